"""Functions of conditions about indices and masks that are tensors.

They mirror kernels/util/along_dim.h, indexing.h and mask.h.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

from orchestrator.catalog.expressions import shapes
from orchestrator.catalog.expressions.predicates import dtype_limits, items_within
from orchestrator.catalog.expressions.values import (
    Number,
    Range,
    TensorFacts,
    Undecided,
    every,
    limits,
    same_number,
    settled,
)
from orchestrator.core.dtype import FLOATING, ScalarType

if TYPE_CHECKING:
    from orchestrator.catalog.expressions.values import Value


def _unless_empty(index: TensorFacts, check: Callable[[], bool]) -> bool:
    """Whether an index has no items, or the check holds."""
    try:
        if check():
            return True
    except Undecided:
        if same_number(index.numel, 0):
            return True
        raise
    return same_number(index.numel, 0)


def _sizes(tensor: TensorFacts) -> tuple[Number, ...]:
    """Sizes; a tensor without dimensions has one of size 1."""
    return tensor.sizes or (1,)


def _fits(index: TensorFacts, tensor: TensorFacts, but: int | None) -> bool:
    own, present = _sizes(index), _sizes(tensor)
    return len(own) == len(present) and every(
        [
            lambda a=a, b=b: a <= b  # type: ignore[misc]  # mypy knows no types of defaults
            for d, (a, b) in enumerate(zip(own, present, strict=True))
            if d != but
        ]
    )


def picks(tensor: TensorFacts, index: TensorFacts, dim: Number) -> bool:
    """Whether an index of `gather` or `scatter` fits a tensor in other dimensions."""
    along = shapes.dimension(dim, tensor.rank)
    return _unless_empty(index, lambda: _fits(index, tensor, along))


def covers(tensor: TensorFacts, index: TensorFacts) -> bool:
    """Whether a tensor has an item for each item of an index, unless that is empty."""
    return _unless_empty(index, lambda: _fits(index, tensor, None))


def picked(tensor: TensorFacts, index: TensorFacts, dim: Number) -> bool:
    """Whether the items of a constant index are in range along a dimension."""
    size = _sizes(tensor)[shapes.dimension(dim, tensor.rank)]

    def within() -> bool:
        return size > 0 and items_within(index, 0, size - 1)

    return _unless_empty(index, within)


def _count(mask: TensorFacts) -> Number:
    items = mask.items()
    if items is None:
        return Range(0, limits(mask.numel)[1])
    return sum(item != 0 for item in items)


def divides(offsets: TensorFacts, indices: TensorFacts) -> bool:
    """Whether constant offsets divide indices into bags, one after the other."""
    if same_number(offsets.numel, 0):
        return True
    bounds = [int(i) for i in offsets.known_items]
    return bounds[0] == 0 and bounds == sorted(bounds) and bounds[-1] <= indices.numel


def trues(tensor: TensorFacts, mask: TensorFacts) -> Number:
    """How many items of a tensor a mask chooses, where both are broadcast."""
    items = prod(shapes.broadcast(tensor, mask), start=1)
    if isinstance(items, Range) or mask.items() is None:
        return Range(0, limits(items)[1])
    own = shapes.known(mask.numel)
    return shapes.known(_count(mask)) * (items // own) if own else 0


def nonzeros(tensor: TensorFacts) -> Number:
    """How many items of a tensor are not 0."""
    return _count(tensor)


def becomes(number: Value, dtype: ScalarType) -> bool:
    """Whether a number can become an item of a dtype, as PyTorch checks it."""
    if dtype in FLOATING or dtype is ScalarType.Bool:
        return True
    low, high = dtype_limits(dtype)
    value = settled(number)
    # Unsigned integers take the negative of what they hold.
    least = low if low < 0 else -high
    return every([lambda: least <= value, lambda: value <= high])
