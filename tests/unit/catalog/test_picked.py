"""Conditions about indices and masks."""

from __future__ import annotations

import pytest

from orchestrator.catalog.expressions import predicates, shapes
from orchestrator.catalog.expressions.predicates import indices_fit
from orchestrator.catalog.expressions.values import ExpressionError, Range, TensorFacts, Undecided
from orchestrator.core.dtype import ScalarType


def tensor(
    *sizes: int | Range,
    dtype: ScalarType = ScalarType.Float,
    items: tuple[float, ...] | None = None,
) -> TensorFacts:
    """A tensor, or a constant with these items."""
    return TensorFacts(dtype=dtype, sizes=sizes, items=lambda: items)


def mask(*sizes: int, items: tuple[int, ...] | None = None) -> TensorFacts:
    """A mask."""
    return tensor(*sizes, dtype=ScalarType.Bool, items=items)


def longs(*items: int) -> TensorFacts:
    """Constant indices."""
    return tensor(len(items), dtype=ScalarType.Long, items=items)


def test_an_index_is_no_larger_than_the_tensor_in_other_dimensions() -> None:
    assert predicates.picks(tensor(3, 4), tensor(9, 4), 0)
    assert not predicates.picks(tensor(3, 4), tensor(9, 4), 1)
    assert not predicates.picks(tensor(3, 4), tensor(4), 0)
    assert predicates.picks(tensor(), tensor(7), -1)
    assert predicates.picks(tensor(3, 4), tensor(0), 0)
    assert not predicates.covers(tensor(3, 4), tensor(4, 4))
    assert predicates.covers(tensor(3, 4), tensor(0, 9))


def test_a_dynamic_index_may_be_empty() -> None:
    with pytest.raises(Undecided):
        predicates.covers(tensor(3), tensor(Range(0, 4)))
    assert predicates.covers(tensor(4), tensor(Range(0, 4)))
    assert not predicates.covers(tensor(3), tensor(Range(4, 5)))


def test_constant_indices_are_within_the_dimension() -> None:
    assert predicates.picked(tensor(3, 4), longs(0, 3), 1)
    assert not predicates.picked(tensor(3, 4), longs(0, 3), 0)
    assert not predicates.picked(tensor(3), longs(-1), 0)
    assert not predicates.picked(tensor(0), tensor(2), 0)
    with pytest.raises(Undecided):
        predicates.picked(tensor(3), tensor(2), 0)


def test_constant_offsets_divide_indices_into_bags() -> None:
    assert predicates.divides(longs(0, 2, 2, 5), longs(1, 2, 3, 4, 5))
    assert predicates.divides(longs(), longs(1))
    for wrong in (longs(1, 2), longs(0, 3, 2), longs(0, 6), longs(0, -1)):
        assert not predicates.divides(wrong, longs(1, 2, 3, 4, 5))
    with pytest.raises(Undecided):
        predicates.divides(tensor(3), longs(1))


def test_trues_count_what_a_mask_chooses() -> None:
    assert predicates.trues(tensor(2, 3), mask(3, items=(1, 0, 1))) == 4
    assert predicates.trues(tensor(3), mask(2, 1, items=(0, 1))) == 3
    assert predicates.trues(tensor(0, 3), mask(3, items=(1, 0, 1))) == 0
    assert predicates.trues(tensor(2, 3), mask(2, 3)) == Range(0, 6)
    with pytest.raises(ExpressionError):
        predicates.trues(tensor(2), mask(3))


def test_nonzeros_count_items() -> None:
    assert predicates.nonzeros(tensor(3, items=(0.0, -0.0, 1e-40))) == 1
    assert predicates.nonzeros(tensor(2, 2)) == Range(0, 4)


@pytest.mark.parametrize(
    ("number", "dtype", "fits"),
    [
        (-129, ScalarType.Char, False),
        (127.5, ScalarType.Char, False),
        (-255, ScalarType.Byte, True),
        (256, ScalarType.Byte, False),
        (7, ScalarType.Bool, True),
        (1e300, ScalarType.Half, True),
        (float("nan"), ScalarType.Int, False),
    ],
)
def test_numbers_become_items(number: float, dtype: ScalarType, *, fits: bool) -> None:
    assert predicates.becomes(number, dtype) is fits


def test_masks_are_as_many_indices_as_they_have_dimensions() -> None:
    chosen = mask(3, 4, items=(1,) * 5 + (0,) * 7)
    assert shapes.indexed(tensor(3, 4, 2), (chosen,)) == (5, 2)
    assert shapes.indexed(tensor(2, 3, 4), (None, chosen)) == (2, 5)
    assert shapes.indexed(tensor(2, 3, 4), (None, mask(3, 4))) == (2, Range(0, 12))
    assert indices_fit(tensor(3, 4, 2), (chosen, longs(1)))
    assert not indices_fit(tensor(3, 4, 2), (chosen, longs(2)))
    for wrong in ((mask(4, 3),), (None, chosen), (mask(),), (chosen, None, None)):
        with pytest.raises(ExpressionError):
            shapes.indexed(tensor(3, 4, 2), wrong)
