"""Where items lie: against the strides that NumPy computes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from orchestrator.core.layout import layout_of


def _places(sizes: tuple[int, ...], order: tuple[int, ...]) -> list[int]:
    """Where each item lies, counted row by row."""
    there = np.arange(np.prod(sizes, dtype=int)).reshape([sizes[d] for d in order])
    return list(there.transpose(np.argsort(order)).flatten())


SHAPES = ((12,), (3, 4), (4, 3), (2, 2, 3), (1, 4, 3), (2, 1, 6), (2, 2, 1, 3))
TENSORS = [
    (shape, order)
    for shape in SHAPES
    for order in itertools.permutations(range(len(shape)))
]


@pytest.mark.parametrize("one", TENSORS, ids=str)
def test_layouts_are_equal_where_the_items_lie_in_the_same_places(
    one: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    for other in TENSORS:
        same = _places(*one) == _places(*other)
        assert (layout_of(*one) == layout_of(*other)) is same, other
