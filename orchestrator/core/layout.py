"""Where the items of a tensor lie in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def layout_of(sizes: Sequence[int], dim_order: Sequence[int]) -> list[tuple[int, int]]:
    """(size, stride) by dimension, with neighbours merged that lie side by side.

    Equal for two tensors if the items, counted row by row, lie in the same places.
    """
    strides = [0] * len(sizes)
    step = 1
    for dim in reversed(dim_order):
        strides[dim] = step
        step *= sizes[dim]
    merged: list[tuple[int, int]] = []
    for size, stride in zip(sizes, strides, strict=True):
        if size == 1:
            continue
        if merged and merged[-1][1] == size * stride:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    return merged
