"""Metrics against figures that were worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import MismatchError, UsageError
from orchestrator.evaluation.metrics import (
    AUC,
    MAE,
    TOP1,
    Scores,
    agreement,
    default_metric,
    scores,
    without_one_hot,
)


def measure(metric: str, outputs: list[list[float]], labels: list[object]) -> Scores:
    return scores(
        metric,
        [np.array(output, np.float64) for output in outputs],
        [np.array(label) for label in labels],
        [f"s{number}" for number in range(len(outputs))],
        "data",
    )


def problem(metric: str, outputs: list[list[float]], labels: list[object]) -> str:
    with pytest.raises(UsageError) as error:
        measure(metric, outputs, labels)
    (found,) = error.value.diagnostics
    assert found.code == "bad-data"
    assert found.where is not None
    return f"{found.where.file}: {found.message}"


def test_top1_counts_what_has_the_largest_score() -> None:
    found = measure(TOP1, [[3, 1, 2], [0, 5, 1], [1, 2, 4], [2, 2, 0], [9, 0, 1]], [0, 1, 1, 1, 2])
    assert found.right == 2
    assert found.value == 2 / 5
    assert found.answers == (0, 1, 2, 0, 0)
    assert found.confusion == ((1, 0, 0), (1, 1, 1), (1, 0, 0))
    # By how much the answer beats the label; a tie is wrong, by next to nothing.
    assert found.errors[:3] == (0.0, 0.0, 2.0)
    assert 0 < found.errors[3] < 1e-300
    assert found.errors[4] == 8.0


def test_a_single_1_among_zeros_is_a_class() -> None:
    outputs = np.zeros(3)
    hot = [np.array([0, 1, 0]), None, np.array([[0.0, 0.0, 1.0]])]
    first, none, last = without_one_hot(hot, outputs)
    assert (first, none, last) == (np.array(1), None, np.array(2))
    for other in ([0, 0, 0], [1, 1, 0], [0, 0.5, 0.5], [0, 1], [0, 2, -1]):
        labels = [hot[0], np.array(other)]
        assert without_one_hot(labels, outputs) == tuple(labels)
    (only,) = without_one_hot([np.array([1])], np.zeros(1))
    assert only == np.array([1])
    assert without_one_hot([None], outputs) == (None,)


def test_a_score_that_is_not_a_number_is_no_answer() -> None:
    found = measure(TOP1, [[1, np.nan], [0, 1]], [1, 1])
    assert found.answers == (-1, 1)
    assert found.right == 1
    assert found.confusion == ((0, 0), (0, 1))
    assert found.errors == (np.inf, 0.0)


def test_labels_that_top1_does_not_take() -> None:
    assert problem(TOP1, [[1, 2]], [2]) == "data, sample s0: no such class: 2"
    assert problem(TOP1, [[1, 2]], [-1]) == "data, sample s0: no such class: -1"
    message = "the label is not the number of a class"
    assert problem(TOP1, [[1, 2]], [0.5]) == f"data, sample s0: {message}"
    assert problem(TOP1, [[1, 2]], [[0, 1]]) == f"data, sample s0: {message}"
    assert problem(TOP1, [[1]], [0]) == "data: top1 takes a score per class"


def test_mae_is_the_mean_over_all_elements() -> None:
    found = measure(MAE, [[1, 2], [3, 5]], [[1, 4], [0, 5]])
    assert found.value == (0 + 2 + 3 + 0) / 4
    assert found.errors == (1.0, 1.5)
    assert problem(MAE, [[1, 2]], [1]).endswith("label and output have different sizes")


def test_auc_of_a_known_example() -> None:
    # Of the six pairs of a positive and a negative, 0.8 beats both negatives, 0.35 one,
    # 0.4 one and ties with the other.
    found = measure(AUC, [[0.1], [0.4], [0.35], [0.8], [0.4]], [0, 0, 1, 1, 1])
    assert found.value == pytest.approx((1 + 2 + 1.5) / 6)


def test_auc_takes_two_scores_as_their_difference() -> None:
    two = measure(AUC, [[0, 1], [2, 1], [0, 3]], [1, 0, 0])
    one = measure(AUC, [[1], [-1], [3]], [1, 0, 0])
    assert two.value == one.value == 0.5


@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30).filter(
        lambda rows: {positive for _, positive in rows} == {True, False}
    )
)
def test_auc_is_how_often_a_positive_wins(rows: list[tuple[int, bool]]) -> None:
    found = measure(AUC, [[s] for s, _ in rows], [int(p) for _, p in rows])
    wins = [
        1.0 if one > other else 0.5 if one == other else 0.0
        for one, positive in rows
        if positive
        for other, other_positive in rows
        if not other_positive
    ]
    assert found.value == pytest.approx(sum(wins) / len(wins))


def test_auc_needs_both_classes_and_numbers() -> None:
    assert problem(AUC, [[1], [2]], [1, 1]) == "data: auc needs samples of both classes"
    assert problem(AUC, [[1, 2, 3]], [1]).startswith("data, sample s0: auc takes one")
    with pytest.raises(MismatchError) as error:
        measure(AUC, [[np.nan], [1]], [0, 1])
    (found,) = error.value.diagnostics
    assert found.code == "nan-output"
    assert found.notes == (("found", "NaN for 1 samples, the first is s0"),)


def test_the_metric_follows_from_the_labels() -> None:
    ten, one = np.zeros(10), np.zeros(1)
    assert default_metric(ten, np.array(3)) == TOP1
    assert default_metric(ten, np.array(3.0)) == TOP1
    assert default_metric(one, np.array(1)) == MAE
    assert default_metric(ten, np.zeros(10)) == MAE


def test_agreement_with_a_reference() -> None:
    found = agreement(
        [[np.array([1.0, 3.0])], [np.array([2.0, 0.0])]],
        [[np.array([1.0, 2.0])], [np.array([2.0, 4.0])]],
        ["a", "b"],
        "reference",
    )
    assert found.same_class == 1
    assert found.errors == (1.0, 4.0)
    assert found.max_abs_error == 4.0
    assert found.mean_abs_error == 5 / 4
    # Power 1 + 4 + 4 + 16, noise 1 + 16.
    assert found.sqnr_db == pytest.approx(10 * np.log10(25 / 17))


def test_equal_outputs_differ_by_nothing_even_if_they_are_no_numbers() -> None:
    one = [[np.array([np.inf, np.nan, 1.0])]]
    found = agreement(one, one, ["a"], "reference")
    assert (found.max_abs_error, found.sqnr_db) == (0.0, np.inf)
    other = [[np.array([1.0, np.nan, 1.0])]]
    assert agreement(one, other, ["a"], "reference").max_abs_error == np.inf


def test_a_reference_with_other_outputs_is_refused() -> None:
    with pytest.raises(UsageError, match="other outputs than the method"):
        agreement([[np.zeros(2)]], [[np.zeros(3)]], ["a"], "reference")
