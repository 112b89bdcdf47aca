"""What an evaluation found: text for people, data for programs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final

from orchestrator.document import document, picked
from orchestrator.evaluation.layers import LARGE, Layer, Layers
from orchestrator.evaluation.metrics import TOP1, Agreement, Scores
from orchestrator.plain_table import table_lines

# Columns and rows; wider tables wrap in terminals. Chosen by hand, docs/evaluate.md
# says it.
_MOST_CLASSES: Final = 20
"""Largest confusion matrix that is printed whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Outputs of a float model, and how near they are.

    Args:
        name: The program, or where the outputs are from.
        agreement: How near the outputs are.
        scores: The same metric for the reference; None without labels.
    """

    name: str
    agreement: Agreement
    scores: Scores | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What an evaluation found.

    Args:
        profile: Name of the profile.
        model: Name of the model.
        method: Of the method.
        place: Where the firmware ran: `host` or a board.
        data: The data set, as the user named it.
        names: Of all samples.
        labels: Per sample as text; "" if it has none.
        scores: None without labels.
        reference: None without a reference.
        layers: None if they were not compared.
        classes: Names of classes; empty for numbers.
        worst: How many samples to list.
    """

    profile: str
    model: str
    method: str
    place: str
    data: str
    names: tuple[str, ...]
    labels: tuple[str, ...]
    scores: Scores | None
    reference: Reference | None
    layers: Layers | None
    classes: tuple[str, ...]
    worst: int

    def class_name(self, number: int) -> str:
        """Name of a class, or its number; `none` for no answer."""
        if number < 0:
            return "none"
        return self.classes[number] if number < len(self.classes) else str(number)

    @property
    def worst_samples(self) -> list[tuple[int, float]]:
        """(number, error) of the samples that are most wrong, the worst first."""
        errors: Sequence[float] = ()
        if self.scores is not None:
            errors = self.scores.errors
        elif self.reference is not None:
            errors = self.reference.agreement.errors
        found = [(i, error) for i, error in enumerate(errors) if error > 0]
        return sorted(found, key=lambda item: (-item[1], item[0]))[: self.worst]


def evaluation_text(found: Evaluation) -> str:
    """Lines for people, with a newline at the end."""
    lines = [
        f"{found.profile}: {found.model}.{found.method} on {found.place},"
        f" {len(found.names):,} samples of {found.data}"
    ]
    lines += _summary(found)
    if found.scores is not None and found.scores.confusion:
        lines += ["", *_confusion(found, found.scores), *_other_order(found, found.scores)]
    if found.worst_samples:
        lines += ["", *_worst(found)]
    if found.layers is not None:
        lines += ["", *_layers(found.layers)]
    return "\n".join(lines) + "\n"


def _summary(found: Evaluation) -> Iterator[str]:
    rows: list[tuple[str, str]] = []
    if found.scores is not None:
        rows += _score_rows("", found.scores, len(found.names))
    if found.reference is not None:
        if found.reference.scores is not None:
            rows += _score_rows("reference ", found.reference.scores, len(found.names))
        near = found.reference.agreement
        if near.same_class is not None:
            rows.append(("same class", _share(near.same_class, near.samples) + " as reference"))
        rows.append(
            (
                "difference",
                f"at most {near.max_abs_error:.4g}, {near.mean_abs_error:.4g} on"
                f" average, SQNR {_db(near.sqnr_db)}",
            )
        )
    yield from table_lines(rows)


def _score_rows(prefix: str, found: Scores, count: int) -> Iterator[tuple[str, str]]:
    if found.name == TOP1 and found.right is not None:
        yield f"{prefix}{TOP1}", _share(found.right, count)
        return
    for name, value in found.values:
        yield f"{prefix}{name}", f"{value:.6g}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} % ({part:,} of {whole:,})"


def _db(value: float) -> str:
    return f"{value:.1f} dB" if isfinite(value) else str(value)


def _confusion(found: Evaluation, of: Scores) -> Iterator[str]:
    matrix = of.confusion
    count = len(matrix)
    if count > _MOST_CLASSES:
        pairs = [
            (number, label, answer)
            for label, row in enumerate(matrix)
            for answer, number in enumerate(row)
            if label != answer and number
        ]
        pairs.sort(key=lambda pair: (-pair[0], pair[1], pair[2]))
        rows = [("label", "answer", "samples")]
        rows += [
            (found.class_name(label), found.class_name(answer), str(number))
            for number, label, answer in pairs[:_MOST_CLASSES]
        ]
        yield "confused most"
        yield from table_lines(rows, right=(2,))
        return
    yield "confusion: a row per label, a column per answer"
    head = ["", *map(found.class_name, range(count)), "right"]
    table = [head]
    for label, row in enumerate(matrix):
        total = sum(row)
        share = f"{100 * row[label] / total:.1f} %" if total else "-"
        table.append([found.class_name(label), *(str(n or ".") for n in row), share])
    yield from table_lines(table, right=range(1, count + 2))


def _other_order(found: Evaluation, of: Scores) -> Iterator[str]:
    """The order of the classes that answers suggest, where it was that of the alphabet."""
    matrix = of.confusion
    answers = [row.index(max(row)) for row in matrix]
    # Networks that are trained with classes in another order than the alphabet's have a
    # confusion matrix that is a permutation, and an accuracy of a few percent. Nothing
    # else in a report would say why.
    is_order = sorted(answers) == [*range(len(matrix))]
    right, total = sum(map(max, matrix)), sum(map(sum, matrix))
    is_better = right > (of.right or 0) and 2 * right > total  # most, not by chance
    names = [*found.classes]
    if is_order and is_better and len(names) == len(matrix) and names == sorted(names):
        order = ",".join(names[answers.index(number)] for number in range(len(names)))
        yield f"right would be {right} of {total} with --classes {shlex.quote(order)}"


def _worst(found: Evaluation) -> Iterator[str]:
    answers = found.scores.answers if found.scores is not None else ()
    rows = [["worst samples", "label", *(["answer", "margin"] if answers else ["error"])]]
    for number, error in found.worst_samples:
        answer = [found.class_name(answers[number])] if answers else []
        label = found.labels[number] or "-"
        rows.append([found.names[number], label, *answer, f"{error:.4g}"])
    yield from table_lines(rows, right=(len(rows[0]) - 1,))


def _layers(found: Layers) -> Iterator[str]:
    rows = [("layer", "operator", "float operator", "sizes", "error", "SQNR")]
    for number, layer in enumerate(found.layers):
        reference, error, decibels = layer.reference, layer.error, layer.sqnr_db
        rows.append(
            (
                str(number),
                layer.probe.operator,
                "-" if reference is None else reference.operator,
                str(list(layer.probe.sizes)),
                "-" if error is None else f"{100 * error:.2f} %",
                "-" if decibels is None else _db(decibels),
            )
        )
    yield from table_lines(rows, right=(0, 4, 5))
    matched = [i for i, layer in enumerate(found.layers) if layer.reference is not None]
    yield f"{len(matched)} of {len(found.layers)} layers are like one of the reference"
    if not matched:
        return
    if matched[-1] < len(found.layers) - 1:
        yield f"none after layer {matched[-1]} is"
    at = found.first_large
    yield (
        f"none of them departs by more than {LARGE:.0%}"
        if at is None
        else f"departs by more than {LARGE:.0%} first at layer {at},"
        f" {found.layers[at].probe.operator}"
    )
    if found.largest_step is not None:
        layer = found.layers[found.largest_step]
        yield f"error grows most at layer {found.largest_step}, {layer.probe.operator}"


def evaluation_data(found: Evaluation) -> dict[str, object]:
    """All that the text says and more as JSON data; the keys are stable.

    Numbers that are not finite are the texts `inf`, `-inf` and `nan`.
    """
    scores = found.scores
    confusion = scores.confusion if scores is not None else ()
    return {
        **picked(found, "profile", "model", "method"),
        "on": found.place,
        "data": found.data,
        "samples": len(found.names),
        "metric": _scores_data(scores),
        "classes": [found.class_name(i) for i in range(len(confusion))],
        "confusion": document(confusion),
        "reference": _reference_data(found.reference),
        "worst": [
            {
                "sample": found.names[number],
                "label": found.labels[number] or None,
                "answer": found.class_name(scores.answers[number])
                if scores is not None and scores.answers
                else None,
                "error": document(error),
            }
            for number, error in found.worst_samples
        ],
        "layers": _layers_data(found.layers),
    }


def _scores_data(scores: Scores | None) -> dict[str, object] | None:
    if scores is None:
        return None
    values = document(dict(scores.values))
    return {**picked(scores, "name", "value"), "values": values, "right": scores.right}


def _reference_data(found: Reference | None) -> dict[str, object] | None:
    if found is None:
        return None
    errors = ("same_class", "max_abs_error", "mean_abs_error", "sqnr_db")
    metric = _scores_data(found.scores)
    return {"name": found.name, "metric": metric, **picked(found.agreement, *errors)}


def _layers_data(found: Layers | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {
        "samples": found.samples,
        "matched": sum(layer.reference is not None for layer in found.layers),
        **picked(found, "first_large", "largest_step"),
        "layers": [_layer_data(layer) for layer in found.layers],
    }


def _layer_data(layer: Layer) -> dict[str, object]:
    reference = layer.reference
    return {
        **picked(layer.probe, "instruction", "operator", "sizes"),
        "reference_instruction": None if reference is None else reference.instruction,
        "reference_operator": None if reference is None else reference.operator,
        "error": layer.error,
        "sqnr_db": document(layer.sqnr_db),
    }
