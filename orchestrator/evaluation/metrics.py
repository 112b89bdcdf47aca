"""Metrics: outputs against labels, and against the outputs of a reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from orchestrator.errors import MismatchError
from orchestrator.evaluation.bad_data import bad_data

Floats: TypeAlias = npt.NDArray[np.float64]

TOP1: Final = "top1"
MAE: Final = "mae"
AUC: Final = "auc"
METRICS: Final = (TOP1, MAE, AUC)
# Never a class, so that it is wrong for each label.
_NO_CLASS: Final = -1
"""The answer of a model whose scores are not numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What a metric says.

    Args:
        name: Of the metric.
        values: By name; the first is the one that bounds apply to.
        right: For `top1`: how many samples are right.
        errors: Per sample how wrong it is, above 0 where it is; empty if the metric
            has no such thing.
        answers: For `top1`: per sample the class, -1 where a score is NaN.
        confusion: For `top1`: counts by label and answer; samples without an answer are
            in none.
    """

    name: str
    values: tuple[tuple[str, float], ...]
    right: int | None = None
    errors: tuple[float, ...] = ()
    answers: tuple[int, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = field(default=(), repr=False)

    @property
    def value(self) -> float:
        """The value that bounds apply to."""
        return self.values[0][1]


def default_metric(outputs: Floats, label: npt.NDArray[Any]) -> str:
    """The metric for labels of this kind.

    Args:
        outputs: First output of a sample.
        label: Its label.
    """
    return TOP1 if label.size == 1 < outputs.size else MAE


def without_one_hot(
    labels: Sequence[npt.NDArray[Any] | None], outputs: Floats
) -> tuple[npt.NDArray[Any] | None, ...]:
    """Labels; numbers of classes in the place of those with a single 1 among zeros.

    Args:
        labels: Of all samples.
        outputs: First output of a sample.
    """
    given = [label for label in labels if label is not None]
    if not given or not all(
        label.size == outputs.size > 1
        and sorted({*label.ravel().tolist()}) == [0, 1]
        and label.sum() == 1
        for label in given
    ):
        return tuple(labels)
    return tuple(None if label is None else np.array(label.argmax()) for label in labels)


def scores(
    metric: str,
    outputs: Sequence[Floats],
    labels: Sequence[npt.NDArray[Any]],
    names: Sequence[str],
    place: str,
) -> Scores:
    """A metric over samples.

    Args:
        metric: One of `METRICS`.
        outputs: First output of each sample.
        labels: Of each.
        names: Of each, for messages.
        place: The data, for messages.

    Raises:
        UsageError: Labels or outputs are not what the metric takes (`bad-data`).
        MismatchError: A score that has to be ordered is NaN (`nan-output`).
    """
    if metric == TOP1:
        return _top1(outputs, labels, names, place)
    if metric == AUC:
        return _auc(outputs, labels, names, place)
    return _mae(outputs, labels, names, place)


def _top1(
    outputs: Sequence[Floats], labels: Sequence[npt.NDArray[Any]], names: Sequence[str], place: str
) -> Scores:
    classes = outputs[0].size
    if classes < 2:  # noqa: PLR2004  # one score has no largest
        raise bad_data(
            place,
            "top1 takes a score per class",
            found="an output of one element",
            hint="use --metric auc for one score, or mae",
        )
    numbers = [
        class_of(label, classes, f"{place}, sample {name}")
        for label, name in zip(labels, names, strict=True)
    ]
    answers = [answer_of(output) for output in outputs]
    confusion = np.zeros((classes, classes), np.int64)
    errors = []
    for output, label, answer in zip(outputs, numbers, answers, strict=True):
        # NaN: argmax would give its place, and now and then be right.
        if answer == _NO_CLASS or output.size != classes:
            errors.append(np.inf)
            continue
        confusion[label, answer] += 1
        flat = output.ravel()
        errors.append(float(flat[answer] - flat[label]) if answer != label else 0.0)
    # A tie goes to the first class: the error of a wrong answer may be 0.
    errors = [
        max(error, np.finfo(float).tiny) if answer != label else 0.0
        for error, answer, label in zip(errors, answers, numbers, strict=True)
    ]
    right = int(np.trace(confusion))
    return Scores(
        name=TOP1,
        values=((TOP1, right / len(outputs)),),
        right=right,
        errors=tuple(errors),
        answers=tuple(answers),
        confusion=tuple(tuple(int(n) for n in row) for row in confusion),
    )


def class_of(label: npt.NDArray[Any], classes: int, place: str) -> int:
    """A label as the number of a class.

    Raises:
        UsageError: It is none (`bad-data`).
    """
    if label.size == 1:
        number = label.reshape(()).item()
        if isinstance(number, bool | int) or (isinstance(number, float) and number.is_integer()):
            if 0 <= number < classes:
                return int(number)
            raise bad_data(
                place,
                f"no such class: {number:g}",
                expected=f"0 to {classes - 1}, one per element of the output",
                hint="correct the label, or choose another with --labels",
            )
    raise bad_data(
        place,
        "the label is not the number of a class",
        found=f"{label.dtype} {list(label.shape)}",
        expected="one integer",
        hint="use --metric mae, or a metric of your own as package.module:name",
    )


def answer_of(output: Floats) -> int:
    """The class with the largest score, the first of equals; -1 if one is NaN."""
    if not output.size or np.isnan(output).any():
        return _NO_CLASS
    return int(np.argmax(output))


def _mae(
    outputs: Sequence[Floats], labels: Sequence[npt.NDArray[Any]], names: Sequence[str], place: str
) -> Scores:
    errors = []
    # Over elements, not over means of samples: sizes of outputs may differ.
    total, count = 0.0, 0
    for output, label, name in zip(outputs, labels, names, strict=True):
        if output.size != label.size:
            raise bad_data(
                f"{place}, sample {name}",
                "label and output have different sizes",
                found=f"label {list(label.shape)}, output {list(output.shape)}",
                hint="mae takes a number per element of the output",
            )
        if not np.isfinite(label).all():
            raise bad_data(
                f"{place}, sample {name}",
                "the label is no number",
                found=str(label.ravel().tolist()[:4]),
                hint="correct it, or leave the sample out",
            )
        difference = np.abs(output.ravel() - label.ravel().astype(np.float64))
        errors.append(float(difference.sum()) / max(1, difference.size))
        total += float(difference.sum())
        count += difference.size
    return Scores(name=MAE, values=((MAE, total / count if count else 0.0),), errors=tuple(errors))


def _auc(
    outputs: Sequence[Floats], labels: Sequence[npt.NDArray[Any]], names: Sequence[str], place: str
) -> Scores:
    """Area under the ROC curve: how often a positive outscores a negative.

    Source: Mann-Whitney U; ties count one half.
    """
    found = [_score(o, f"{place}, sample {n}") for o, n in zip(outputs, names, strict=True)]
    nans = [n for n, s in zip(names, found, strict=True) if np.isnan(s)]
    if nans:
        raise MismatchError.of(
            "nan-output",
            "auc cannot order scores that are not numbers",
            found=f"NaN for {len(nans)} samples, the first is {nans[0]}",
            hint="run that sample with `orchestrator run`",
        )
    positive = np.array(
        [
            class_of(label, 2, f"{place}, sample {name}") == 1
            for label, name in zip(labels, names, strict=True)
        ]
    )
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if not positives or not negatives:
        raise bad_data(
            place,
            "auc needs samples of both classes",
            found=f"{positives} with label 1, {negatives} with label 0",
        )
    score = np.array(found)
    # Ranks from 1; equal scores share the mean of theirs, so that a pair of equals
    # counts one half.
    _, group, sizes = np.unique(score, return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)
    ranks = (ends - (sizes - 1) / 2)[group]  # of equals the mean
    larger = float(ranks[positive].sum()) - positives * (positives + 1) / 2
    # How far a sample lies on the wrong side of the middle of the other class.
    middles = float(np.median(score[~positive])), float(np.median(score[positive]))
    errors = np.where(positive, middles[0] - score, score - middles[1])
    return Scores(
        name=AUC,
        values=((AUC, larger / (positives * negatives)),),
        errors=tuple(float(max(e, 0.0)) for e in errors),
    )


def _score(output: Floats, place: str) -> float:
    """How much it speaks for class 1."""
    flat = output.ravel()
    if flat.size == 1:
        return float(flat[0])
    # The order of differences of logits is that of the probabilities of class 1.
    if flat.size == 2:  # noqa: PLR2004  # a score for each class
        return float(flat[1] - flat[0])
    raise bad_data(
        place,
        "auc takes one score, or two: for class 0 and class 1",
        found=f"an output of {flat.size} elements",
        hint="use --metric top1, or a metric of your own as package.module:name",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Outputs against those of a reference.

    Args:
        samples: How many were compared.
        same_class: Samples with the same answer; None without classes.
        max_abs_error: Largest difference of an element.
        mean_abs_error: Of all elements.
        sqnr_db: Power of the reference's outputs over that of the difference; infinite
            if nothing differs.
        errors: Largest difference per sample.
    """

    samples: int
    same_class: int | None
    max_abs_error: float
    mean_abs_error: float
    sqnr_db: float
    errors: tuple[float, ...]


def agreement(
    outputs: Sequence[Sequence[Floats]],
    reference: Sequence[Sequence[Floats]],
    names: Sequence[str],
    place: str,
) -> Agreement:
    """Compare with a reference.

    Args:
        outputs: All outputs of each sample.
        reference: Likewise.
        names: Of each sample, for messages.
        place: Of the reference, for messages.

    Raises:
        UsageError: Numbers or sizes of outputs differ (`bad-data`).
    """
    errors = []
    total = power = noise = 0.0
    count = same = 0
    for mine, others, name in zip(outputs, reference, names, strict=True):
        sizes = [[o.size for o in one] for one in (mine, others)]
        if sizes[0] != sizes[1]:
            raise bad_data(
                f"{place}, sample {name}",
                "the reference has other outputs than the method",
                found=f"outputs of {sizes[1]} elements",
                expected=f"outputs of {sizes[0]} elements",
                hint="name the float program that the model was quantized from",
            )
        got = np.concatenate([one.ravel() for one in mine])
        want = np.concatenate([one.ravel() for one in others])
        with np.errstate(invalid="ignore"):
            difference = np.abs(got - want)
        # Infinite where one is, 0 where both are the same.
        equal = (got == want) | (np.isnan(got) & np.isnan(want))
        difference = np.where(equal, 0.0, np.where(np.isnan(difference), np.inf, difference))
        errors.append(float(difference.max(initial=0.0)))
        total += float(difference.sum())
        # Squares of what float32 allows may be infinite; `decibels` says then that
        # nothing of the signal is left.
        with np.errstate(over="ignore"):
            noise += float((difference**2).sum())
            power += float((want[np.isfinite(want)] ** 2).sum())
        count += difference.size
        same += answer_of(mine[0]) == answer_of(others[0])
    has_classes = all(one[0].size > 1 for one in outputs)
    return Agreement(
        samples=len(errors),
        same_class=same if has_classes else None,
        max_abs_error=max(errors),
        mean_abs_error=total / count if count else 0.0,
        sqnr_db=decibels(power, noise),
        errors=tuple(errors),
    )


def decibels(power: float, noise: float) -> float:
    """A ratio of powers in decibels; infinite without noise."""
    if not noise:
        return float("inf")
    if not power or not np.isfinite(noise):
        return float("-inf")
    return 10.0 * float(np.log10(power / noise))
