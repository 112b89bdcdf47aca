"""Sizes of outputs of operators that move items."""

from __future__ import annotations

import pytest

from orchestrator.catalog.expressions import moved_shapes as moved
from orchestrator.catalog.expressions.values import (
    ExpressionError,
    Range,
    StridedItems,
    TensorFacts,
    Undecided,
)
from orchestrator.core.dtype import ScalarType

SOME = Range(2, 4)
LARGE = 1 << 30


def tensor(*sizes: int | Range, items: tuple[int, ...] | None = None) -> TensorFacts:
    return TensorFacts(dtype=ScalarType.Float, sizes=sizes, items=lambda: items)


T = tensor(2, 3)
D = tensor(SOME, 3)


@pytest.mark.parametrize(
    ("found", "sizes"),
    [
        (moved.transposed(T, 0, -1), (3, 2)),
        (moved.transposed(tensor(), 0, -1), ()),
        (moved.narrowed(T, 1, -2, 2), (2, 2)),
        (moved.narrowed(T, 0, 2, 0), (0, 3)),
        (moved.narrowed(D, 0, 1, 1), (1, 3)),
        (moved.diagonal(T, 1, 0, 1), (2,)),
        (moved.diagonal(tensor(2, 3, 4), -1, 2, 0), (3, 2)),
        (moved.diagonal(T, -9, 0, 1), (0,)),
        (moved.diagonal(T, 9, 0, 1), (0,)),
        (moved.diagonal(D, -3, 0, 1), (Range(0, 1),)),
        (moved.unfolded(T, 1, 2, 1), (2, 2, 2)),
        (moved.unfolded(T, 1, 0, 5), (2, 1, 0)),
        (moved.unfolded(tensor(), 0, 1, 1), (1,)),
        (moved.unfolded(D, 0, 2, 2), (Range(1, 2), 3, 2)),
        (moved.repeated(T, (2, 1, 3)), (2, 2, 9)),
        (moved.repeated(tensor(), ()), ()),
        (moved.repeated(tensor(0), (1 << 40,)), (0,)),
        (moved.strided(T, (2, 2), (1, 3), 1), (2, 2)),
        (moved.strided(T, (), (), 5), ()),
        (moved.strided(T, (0, 9), (9, 9), 99), (0, 9)),
        (moved.strided(T, (1,), (99,), None), (1,)),
        (moved.strided(D, (6,), (1,), None), (6,)),
        (moved.stacked((T, T), 1), (2, 2, 3)),
        (moved.stacked((T,), -1), (2, 3, 1)),
        (moved.pixels_shuffled(tensor(1, 8, 3, 2), 2), (1, 2, 6, 4)),
        (moved.pixels_unshuffled(tensor(1, 2, 6, 4), 2), (1, 8, 3, 2)),
        (moved.extended(T, (1, 2)), (2, 6)),
        (moved.extended(T, (-3, 1, 0, -2)), (0, 1)),
        (moved.extended(D, (0, 0, 1, -2)), (Range(1, 3), 3)),
        (moved.reflected(T, (2, -1)), (2, 4)),
        (moved.reflected(tensor(2, 0), (0, 0)), (2, 0)),
        (moved.replicated(T, (-4, 5)), (2, 4)),
        (moved.summed(tensor(3, items=(1, 0, 4)), None), (5,)),
        (moved.summed(tensor(3, items=(1, 0, 4)), 5), (5,)),
    ],
)
def test_sizes(found: tuple[object, ...] | StridedItems, sizes: tuple[object, ...]) -> None:
    assert (found.sizes if isinstance(found, StridedItems) else found) == sizes


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (moved.transposed, (T, 0, 2), "there is no dimension 2 of 2"),
        (moved.narrowed, (tensor(), 0, 0, 0), "the tensor has no dimension"),
        (moved.narrowed, (T, 0, -3, 1), "there is no item -3 of 2"),
        (moved.narrowed, (T, 0, 3, 0), "there is no item 3 of 2"),
        (moved.narrowed, (T, 0, 0, -1), "the length is -1"),
        (moved.narrowed, (T, 0, 1, 2), "item 3 is past the end, 2"),
        (moved.diagonal, (T, 0, 1, -1), "a diagonal needs two dimensions"),
        (moved.unfolded, (tensor(*[1] * 8), 0, 1, 1), "it would have 9 dimensions"),
        (moved.unfolded, (T, 0, -1, 1), "the window has -1 items"),
        (moved.unfolded, (T, 0, 3, 1), "the window has 3 items, the dimension 2"),
        (moved.unfolded, (T, 0, 1, 0), "the step is 0"),
        (moved.repeated, (T, (1,)), "it cannot have 1 dimensions"),
        (moved.repeated, (T, (1, -1)), "a dimension is repeated -1 times"),
        (moved.repeated, (T, (1, LARGE)), f"a dimension would have {3 * LARGE}"),
        (moved.strided, (T, (1,), (), None), "sizes and strides differ in number"),
        (moved.strided, (T, (-1,), (1,), None), "a size is -1"),
        (moved.strided, (T, (1,), (-1,), None), "a stride is -1"),
        (moved.strided, (T, (0,), (1,), -1), "the offset is -1"),
        (moved.strided, (T, (2, 2), (2, 3), 1), "item 6 is read of 6"),
        (moved.strided, (tensor(0), (), (), None), "item 0 is read of 0"),
        (moved.stacked, ((), 0), "there are no tensors"),
        (moved.stacked, ((T, None), 0), "there are no tensors"),
        (moved.stacked, ((T, tensor(3, 2)), 0), "tensors have different sizes"),
        (moved.stacked, ((tensor(*[1] * 8),), 0), "it would have 9 dimensions"),
        (moved.pixels_shuffled, (T, 1), "the image has 2 dimensions"),
        (
            moved.pixels_shuffled,
            (tensor(6, 1, 1), 2),
            "6 channels are no blocks of 2 * 2 pixels",
        ),
        (
            moved.pixels_unshuffled,
            (tensor(1, 2, 3), 2),
            "3 pixels are no blocks of 2",
        ),
        (moved.extended, (T, (1,)), "the padding has 1 numbers"),
        (moved.extended, (T, (0,) * 6), "the padding has 6 numbers"),
        (moved.extended, (T, (-5, 4)), "5 items are cut off of 3"),
        (moved.extended, (T, (LARGE + 1, 0)), f"the padding is {LARGE + 1}"),
        (moved.extended, (T, (LARGE, LARGE)), "a dimension would have 2147483651"),
        (moved.reflected, (T, (3, 0)), "padding 3 is too much for 3 items"),
        (moved.reflected, (T, (-4, 0)), "a dimension would have -1"),
        (moved.replicated, (tensor(2, 0), (1, 0)), "there is no item to repeat"),
        (moved.summed, (tensor(1, items=(2,)), 3), "the items add up to 2"),
    ],
)  # fmt: skip
def test_what_has_no_sizes(function: object, args: tuple[object, ...], message: str) -> None:
    assert callable(function)
    with pytest.raises(ExpressionError) as error:
        function(*args)
    assert str(error.value) == message
    assert not isinstance(error.value, Undecided)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (moved.narrowed, (D, 0, 0, 3)),
        (moved.unfolded, (D, 0, 3, 1)),
        (moved.strided, (D, (12,), (1,), None)),
        (moved.stacked, ((T, D), 0)),
        (moved.pixels_unshuffled, (tensor(1, SOME, 2), 2)),
        (moved.extended, (D, (0, 0, -3, 0))),
        (moved.reflected, (D, (0, 0, 2, 0))),
        (moved.summed, (T, None)),
        (moved.splits_evenly, (D, (T,), 2, 0)),
        (moved.unbinds, (D, (tensor(3),) * 2, 0)),
    ],
)
def test_what_a_run_decides(function: object, args: tuple[object, ...]) -> None:
    assert callable(function)
    with pytest.raises(Undecided):
        function(*args)


def test_parts() -> None:
    assert moved.splits_evenly(T, (tensor(2, 2), tensor(2, 1)), 2, -1)
    assert moved.splits_evenly(T, (T,), 9, 0)
    assert moved.splits_evenly(tensor(0), (tensor(0),), 0, 0)
    assert not moved.splits_evenly(T, (tensor(2, 1), tensor(2, 2)), 2, -1)
    assert not moved.splits_evenly(T, (T, tensor(0, 3)), 2, 0)
    assert not moved.splits_evenly(T, (None,), 2, 0)
    with pytest.raises(ExpressionError, match="the size of a part is 0"):
        moved.splits_evenly(T, (), 0, 0)
    assert moved.unbinds(T, (tensor(3), tensor(3)), 0)
    assert moved.unbinds(tensor(0, 2), (), 0)
    assert not moved.unbinds(T, (tensor(3),), 0)
    assert not moved.unbinds(T, (tensor(3), tensor(2)), 0)
    with pytest.raises(ExpressionError, match="the tensor has no dimension"):
        moved.unbinds(tensor(), (), 0)


@pytest.mark.parametrize(
    ("found", "axes", "first"),
    [
        (T.layout, ((2, 3), (3, 1)), 0),
        (D.layout, ((SOME, 3), (3, 1)), 0),
        (moved.transposed(T, 0, 1), ((3, 1), (2, 3)), 0),
        (moved.selected(T, 0, -1), ((3, 1),), 3),
        (moved.narrowed(T, 1, -2, 2), ((2, 3), (2, 1)), 1),
        (moved.diagonal(T, 1, 0, 1), ((2, 4),), 1),
        (moved.diagonal(T, -1, 0, 1), ((1, 4),), 3),
        (moved.unfolded(T, 1, 2, 1), ((2, 3), (2, 1), (2, 1)), 0),
        (moved.strided(T, (2, 2), (1, 3), 1), ((2, 1), (2, 3)), 1),
    ],
)
def test_where_items_lie(
    found: StridedItems, axes: tuple[tuple[int | Range, int], ...], first: int
) -> None:
    assert (found.axes, found.first) == (axes, first)
