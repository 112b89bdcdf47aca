"""Elements of a tensor in logical order, and in the dim order of its memory."""

from __future__ import annotations

from array import array
from math import prod
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_CODES: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}


def to_memory_order(
    data: bytes,
    *,
    sizes: Sequence[int],
    dim_order: Sequence[int],
    item_bytes: int,
) -> bytes:
    """Elements in C order, laid out anew in a dim order.

    Args:
        data: `prod(sizes)` elements in C order.
        sizes: Of the tensor, outermost dimension first.
        dim_order: Dimensions from outermost to innermost in memory.
        item_bytes: 1, 2, 4 or 8.
    """
    return _copy(
        data,
        sizes,
        source=_strides(sizes, range(len(sizes))),
        target=_strides(sizes, dim_order),
        item_bytes=item_bytes,
    )


def to_logical_order(
    data: bytes,
    *,
    sizes: Sequence[int],
    dim_order: Sequence[int],
    item_bytes: int,
) -> bytes:
    """Elements laid out in a dim order, in C order; undoes `to_memory_order`."""
    return _copy(
        data,
        sizes,
        source=_strides(sizes, dim_order),
        target=_strides(sizes, range(len(sizes))),
        item_bytes=item_bytes,
    )


def _strides(sizes: Sequence[int], dim_order: Sequence[int]) -> list[int]:
    """Elements from one index to the next, by logical dimension."""
    strides = [0] * len(sizes)
    step = 1
    for dim in reversed(dim_order):
        strides[dim] = step
        step *= sizes[dim]
    return strides


def _copy(
    data: bytes,
    sizes: Sequence[int],
    *,
    source: list[int],
    target: list[int],
    item_bytes: int,
) -> bytes:
    # A dimension of size 1 has no part in the layout, whatever its stride.
    dims = [dim for dim, size in enumerate(sizes) if size != 1]
    if prod(sizes) == 0 or all(source[dim] == target[dim] for dim in dims):
        return data
    # One strided slice copies along the longest dimension; Python loops over the rest.
    longest = max(dims, key=lambda dim: sizes[dim])
    starts = [(0, 0)]
    for dim in dims:
        if dim != longest:
            steps = [(i * source[dim], i * target[dim]) for i in range(sizes[dim])]
            starts = [(s + i, t + j) for s, t in starts for i, j in steps]
    elements = array(_CODES[item_bytes], data)
    result = array(_CODES[item_bytes], bytes(len(data)))
    source_step, target_step = source[longest], target[longest]
    source_span = source_step * sizes[longest]
    target_span = target_step * sizes[longest]
    for s, t in starts:
        result[t : t + target_span : target_step] = elements[
            s : s + source_span : source_step
        ]
    return result.tobytes()
