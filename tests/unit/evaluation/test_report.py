"""What an evaluation prints: whole texts, and JSON with the same figures."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from orchestrator.evaluation.layers import Layer, Layers, Probe
from orchestrator.evaluation.metrics import AUC, TOP1, agreement, scores
from orchestrator.evaluation.report import Evaluation, Reference, evaluation_data, evaluation_text

OUTPUTS = [np.array(row) for row in ([2.0, 1.0], [0.5, 1.0], [3.0, 1.0], [0.0, np.nan])]
FLOATS = [np.array(row) for row in ([2.0, 1.0], [0.0, 1.0], [1.0, 2.0], [0.0, 1.0])]
LABELS = [np.array(n) for n in (0, 1, 1, 1)]
NAMES = ("0", "1", "2", "3")


def probe(instruction: int, operator: str) -> Probe:
    return Probe(instruction=instruction, operator=operator, sizes=(1, 4), output=instruction)


LAYERS = Layers(
    samples=2,
    layers=(
        Layer(probe=probe(0, "q::pad"), reference=None, error=None),
        Layer(probe=probe(1, "q::conv"), reference=probe(2, "conv"), error=0.01),
        Layer(probe=probe(2, "q::relu"), reference=probe(3, "relu"), error=0.2),
        Layer(probe=probe(3, "q::copy"), reference=None, error=None),
    ),
    first_large=2,
    largest_step=2,
)


def evaluation() -> Evaluation:
    top1 = scores(TOP1, OUTPUTS, LABELS, NAMES, "d.npz")
    floats = scores(TOP1, FLOATS, LABELS, NAMES, "d.npz")
    near = agreement([[o] for o in OUTPUTS], [[o] for o in FLOATS], NAMES, "f.pte")
    return Evaluation(
        profile="p",
        model="m",
        method="forward",
        place="host",
        data="d.npz",
        names=NAMES,
        labels=("0", "1", "1", "1"),
        scores=top1,
        reference=Reference(name="f.pte", agreement=near, scores=floats),
        layers=LAYERS,
        classes=("cat", "dog"),
        worst=5,
    )


def test_the_whole_text() -> None:
    assert (
        evaluation_text(evaluation())
        == """\
p: m.forward on host, 4 samples of d.npz
top1            50.00 % (2 of 4)
reference top1  100.00 % (4 of 4)
same class      50.00 % (2 of 4) as reference
difference      at most inf, inf on average, SQNR -inf

confusion: a row per label, a column per answer
     cat  dog    right
cat    1    .  100.0 %
dog    1    1   50.0 %

worst samples  label  answer  margin
3              1      none       inf
2              1      cat          2

layer  operator  float operator  sizes     error     SQNR
    0  q::pad    -               [1, 4]        -        -
    1  q::conv   conv            [1, 4]   1.00 %  40.0 dB
    2  q::relu   relu            [1, 4]  20.00 %  14.0 dB
    3  q::copy   -               [1, 4]        -        -
2 of 4 layers are like one of the reference
none after layer 2 is
departs by more than 10% first at layer 2, q::relu
error grows most at layer 2, q::relu
"""
    )


def test_the_same_as_json() -> None:
    document = json.loads(json.dumps(evaluation_data(evaluation()), allow_nan=False))
    assert document["metric"] == {"name": "top1", "value": 0.5, "values": {"top1": 0.5}, "right": 2}
    assert document["classes"] == ["cat", "dog"]
    assert document["confusion"] == [[1, 0], [1, 1]]
    assert document["reference"]["metric"]["value"] == 1.0
    assert document["reference"]["max_abs_error"] == "inf"
    assert document["worst"][0] == {"sample": "3", "label": "1", "answer": "none", "error": "inf"}
    assert list(document) == [
        *("profile", "model", "method", "on", "data", "samples", "metric", "classes"),
        *("confusion", "reference", "worst", "layers"),
    ]
    assert list(document["reference"]) == [
        *("name", "metric", "same_class", "max_abs_error", "mean_abs_error", "sqnr_db")
    ]
    layers = document["layers"]
    assert list(layers) == [*("samples", "matched", "first_large", "largest_step", "layers")]
    assert list(layers["layers"][0]) == [
        *("instruction", "operator", "sizes", "reference_instruction"),
        *("reference_operator", "error", "sqnr_db"),
    ]
    assert (layers["matched"], layers["first_large"], layers["largest_step"]) == (2, 2, 2)
    assert layers["layers"][2]["reference_operator"] == "relu"
    assert layers["layers"][0]["error"] is None


def test_without_labels_the_worst_are_those_unlike_the_reference() -> None:
    found = replace(evaluation(), scores=None, labels=("",) * 4, layers=None, worst=1)
    text = evaluation_text(found)
    assert "confusion" not in text
    assert text.endswith("worst samples  label  error\n3              -        inf\n")
    assert evaluation_data(found)["metric"] is None


def test_other_metrics_are_printed_as_numbers() -> None:
    one = scores(AUC, [np.array([0.1]), np.array([0.9])], LABELS[:2], NAMES[:2], "d")
    found = replace(evaluation(), scores=one, names=NAMES[:2], reference=None, layers=None)
    assert evaluation_text(found).splitlines()[1:] == ["auc  1"]


def test_of_many_classes_only_what_was_confused_is_printed() -> None:
    outputs = [np.eye(30)[n] for n in (1, 1, 2, 3)]
    many = scores(TOP1, outputs, [np.array(n) for n in (0, 0, 2, 4)], NAMES, "d")
    found = replace(evaluation(), scores=many, reference=None, layers=None, classes=(), worst=0)
    assert evaluation_text(found).splitlines()[3:] == [
        "confused most",
        "label  answer  samples",
        "0      1             2",
        "4      3             1",
    ]


@pytest.mark.parametrize(
    ("answers", "classes", "line"),
    [
        # Labels are a, b, c, c; the model has c first.
        ((1, 2, 0, 0), ("a", "b", "c"), "right would be 4 of 4 with --classes c,a,b"),
        ((1, 2, 0, 0), ("a 1", "b", "c"), "right would be 4 of 4 with --classes 'c,a 1,b'"),
        ((1, 2, 0, 0), ("b", "a", "c"), ""),  # the user's own order
        ((0, 1, 2, 2), ("a", "b", "c"), ""),  # it is the order
        ((1, 1, 0, 0), ("a", "b", "c"), ""),  # no order is right
    ],
)
def test_another_order_of_the_classes(
    answers: tuple[int, ...], classes: tuple[str, ...], line: str
) -> None:
    outputs = [np.eye(3)[answer] for answer in answers]
    given = scores(TOP1, outputs, [np.array(n) for n in (0, 1, 2, 2)], NAMES, "d")
    found = replace(evaluation(), scores=given, reference=None, layers=None, worst=0)
    text = evaluation_text(replace(found, classes=classes))
    assert ("--classes" in text) == bool(line)
    assert line in text.splitlines() or not line


def test_a_reference_of_another_model_is_said() -> None:
    layers = replace(LAYERS, layers=LAYERS.layers[:1], first_large=None)
    text = evaluation_text(replace(evaluation(), layers=layers))
    assert text.endswith("0 of 1 layers are like one of the reference\n")
