"""Where items lie: against the strides that NumPy computes; who may read them."""

from __future__ import annotations

import ast
import itertools
import time
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.layout import (
    layout_of,
    lies_in_order,
    logical_items,
    memory_sizes,
    stored_items,
    strides_of,
)
from tests.unit.modules import modules

READERS: Final = {
    "core/layout.py": "the owner",
    "running/npy.py": "a file in NumPy's own format",
    "method/passes/packing/lines.py": "packed weights, which are one row of bytes",
    "method/passes/packing/pixels.py": "packed weights, which are one row of bytes",
    "method/passes/packing/strips.py": "packed weights, which are one row of bytes",
}
"""Modules that may take bytes for arrays, and what these are."""


def _places(sizes: tuple[int, ...], order: tuple[int, ...]) -> list[int]:
    """Where each item lies, counted row by row."""
    there = np.arange(np.prod(sizes, dtype=int)).reshape([sizes[d] for d in order])
    return list(there.transpose(np.argsort(order)).flatten())


SHAPES = ((12,), (3, 4), (4, 3), (2, 2, 3), (1, 4, 3), (2, 1, 6), (2, 2, 1, 3))
TENSORS = [
    (shape, order) for shape in SHAPES for order in itertools.permutations(range(len(shape)))
]


@pytest.mark.parametrize("one", TENSORS, ids=str)
def test_layouts_are_equal_where_the_items_lie_in_the_same_places(
    one: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    for other in TENSORS:
        same = _places(*one) == _places(*other)
        assert (layout_of(*one) == layout_of(*other)) is same, other


SIZES: Final = st.lists(st.sampled_from([1, 1, 2, 3, 4]), max_size=5).map(tuple)
"""Half of them are 1, where several dim orders are the same memory."""


@given(data=st.data(), sizes=SIZES)
def test_items_are_those_at_the_strides_and_go_back(
    data: st.DataObject, sizes: tuple[int, ...]
) -> None:
    order = data.draw(st.permutations(range(len(sizes))))
    memory = np.arange(np.prod(sizes, dtype=int), dtype="<i2")
    array = logical_items(memory.tobytes(), "<i2", sizes, order)

    assert array.shape == sizes
    strides = strides_of(sizes, order)
    for place in np.ndindex(sizes):
        at = sum(i * s for i, s in zip(place, strides, strict=True))
        assert array[place] == memory[at]
    assert stored_items(array, order) == memory.tobytes()
    assert memory_sizes(sizes, order) == tuple(sizes[d] for d in order)


@given(data=st.data(), sizes=SIZES)
def test_dim_orders_of_the_same_memory_give_the_same_array(
    data: st.DataObject, sizes: tuple[int, ...]
) -> None:
    order = data.draw(st.permutations(range(len(sizes))))
    memory = bytes(range(256))[: int(np.prod(sizes, dtype=int))]
    array = logical_items(memory, "u1", sizes, order)
    for other in itertools.permutations(range(len(sizes))):
        found = logical_items(memory, "u1", sizes, other)
        same = _places(sizes, tuple(order)) == _places(sizes, other)
        assert np.array_equal(found, array) is same
        assert lies_in_order(sizes, order, other) is same
        if same:
            assert stored_items(array, other) == memory


@pytest.mark.parametrize("sizes", [(1, 3, 200, 200), (1, 120_000, 1, 1)])
def test_images_take_little_time(sizes: tuple[int, ...]) -> None:
    image = np.arange(120_000, dtype="<f4").reshape(sizes)
    start = time.process_time()
    memory = stored_items(image, (0, 2, 3, 1))
    assert (logical_items(memory, "<f4", sizes, (0, 2, 3, 1)) == image).all()
    assert time.process_time() - start < 0.3


def _attributes(tree: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == name for n in ast.walk(tree))


def _takes_places(node: ast.AST) -> bool:
    """Whether an expression goes through dimensions as memory has them.

    That is what the owner is for: `sizes` by dim order, or a certain place of it.
    """
    match node:
        case ast.Subscript(value=value, slice=place, ctx=ast.Load()):
            return _attributes(value, "sizes") and _attributes(place, "dim_order")
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
            over = any(_attributes(g.iter, "dim_order") for g in node.generators)
            return over and _attributes(node.elt, "sizes")
        case ast.Call(func=ast.Attribute(attr="transpose" | "reshape" | "argsort")):
            return any(_attributes(argument, "dim_order") for argument in node.args)
    return False


def test_nothing_else_takes_bytes_of_tensors_for_arrays() -> None:
    found, ways = set(), set()
    for name, nodes in modules().items():
        if name.startswith("_native/"):
            continue
        for node in nodes:
            if isinstance(node, ast.Attribute) and node.attr == "frombuffer":
                found.add(name)
            if _takes_places(node):
                ways.add(f"{name}:{node.lineno}")  # type: ignore[attr-defined]
    assert found == READERS.keys()
    assert ways == set()
