"""Passes that replace calls with constant inputs by their results."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.core.lazy_bytes import Bytes, LazyBytes, settled
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.context import Context
from orchestrator.method.passes.evaluate import (
    may_be_computed,
    may_be_number,
    number_of,
    results_of,
)
from orchestrator.method.passes.fold import SMALL_BYTES, folded
from orchestrator.method.passes.views import ITEM_BYTES, moves_items, views_of
from orchestrator.program.values import TensorValue, Value

if TYPE_CHECKING:
    from orchestrator.method.passes.fold import Contents, Folding
    from orchestrator.method.passes.views import View


# Bytes of a constant that views of others make up, moved when they are read.

# 8 MiB. `check` of a program of 100 MB whose weights are permuted takes 74 MB of memory, of which
# 72 are those of any `check` (benchmarks/README.md, Scale).
_SLAB_BYTES: Final = 1 << 23
"""Most bytes that are moved at once, if a row has no more."""


class MovedBytes(LazyBytes):
    """The items of a tensor that views move there, of constants.

    Args:
        moves: Views with what they read.
        size_bytes: Of the tensor.
        item_bytes: Of an item.
    """

    __slots__ = ("_item_bytes", "_moves", "_size_bytes")

    def __init__(
        self, moves: Iterable[tuple[View, Bytes]], size_bytes: int, item_bytes: int
    ) -> None:
        super().__init__()
        self._moves = tuple(moves)
        self._size_bytes = size_bytes
        self._item_bytes = item_bytes

    def __len__(self) -> int:
        return self._size_bytes

    def chunks(self) -> Iterator[bytes | memoryview]:
        """See `LazyBytes`: at once, unless it is very large and moved by one view."""
        if len(self._moves) == 1 and self._size_bytes > _SLAB_BYTES:
            ((view, source),) = self._moves
            if view.sizes and not view.first_written:
                yield from self._slabs(view, source)
                return
        found = bytearray(self._size_bytes)
        for view, source in self._moves:
            view.moved(bytes(source), found, self._item_bytes)
        yield memoryview(found)

    def _slabs(self, view: View, source: Bytes) -> Iterator[memoryview]:
        """The items along the outermost axis; each slab reads the source in blocks."""
        outer = max(range(len(view.sizes)), key=lambda axis: view.written[axis])
        # Along the axis with the longest stride of the source, so that a block of it is read, not
        # all.
        far = max(range(len(view.sizes)), key=lambda axis: view.read[axis])
        row_bytes = view.written[outer] * self._item_bytes
        for first, count in _steps(view.sizes[outer], row_bytes):
            slab = view.along(outer, first, count)
            found = bytearray(count * row_bytes)
            start = replace(slab, first_written=0)
            for block_first, block in _steps(start.sizes[far], view.read[far] * self._item_bytes):
                moved = start.along(far, block_first, block)
                begin, end = moved.reach
                part = source[begin * self._item_bytes : end * self._item_bytes]
                moved = replace(moved, first_read=moved.first_read - begin)
                moved.moved(bytes(part), found, self._item_bytes)
            yield memoryview(found)

    def part(self, begin: int, end: int) -> Bytes:
        """See `LazyBytes`."""
        return settled(memoryview(bytes(self))[begin:end])

    def __reduce__(self) -> tuple[type[MovedBytes], tuple[object, ...]]:
        return MovedBytes, (self._moves, self._size_bytes, self._item_bytes)


def _steps(size: int, bytes_each: int) -> Iterator[tuple[int, int]]:
    """(first, count) of parts of an axis."""
    most = max(1, _SLAB_BYTES // max(bytes_each, 1))
    for first in range(0, size, most):
        yield first, min(most, size - first)


PERMUTE: Final = "aten::permute_copy.out"


def fold_permutes(method: LinkedMethod) -> LinkedMethod:
    """Permute constants at build time."""
    return folded(method, partial(_moved_outputs, permutes=True), may_grow=True)


def fold_constants(method: LinkedMethod, context: Context) -> LinkedMethod:
    """Compute all other copies, views and slices of constants at build time.

    That includes conversions to another dtype, where they are exact. Results of a modest
    pass take no more bytes than the constants they come from.
    """
    outputs_of = partial(_moved_outputs, permutes=False, expands=not context.modest)
    return folded(method, outputs_of, may_grow=True)


def evaluate_constants(method: LinkedMethod) -> LinkedMethod:
    """Compute calls with constant inputs, where flash does not grow.

    Results may be inputs of further folds.
    """
    given = frozenset(index for index, _ in method.data)
    outputs_of = partial(_computed_outputs, given=given)
    return folded(method, outputs_of, may_grow=False, number_of=_number)


def _number(state: Folding, call: LinkedCall) -> Value | None:
    """The number that a call returns."""
    if not may_be_number(call):
        return None  # before a set of all values is made
    moved = state.flow.moved
    return number_of(state.method, call, state.written | moved, moved)


def _computed_outputs(
    state: Folding, call: LinkedCall, *, given: frozenset[int]
) -> Contents | None:
    """Items of a call's outputs, if they can be computed.

    Moves of constants in `given`, which the method had before the pass, are left to
    the other passes: the profile may skip these.
    """
    method, moved = state.method, state.flow.moved
    outs = [method.values[out] for out in call.outs]
    if not moved.isdisjoint(call.outs) or not all(
        isinstance(out, TensorValue) and (out.allocation or not out.size_bytes) for out in outs
    ):
        return None
    if may_be_computed(method, call):
        results = results_of(method, call, state.written | moved)
        if results is not None:
            return results
    views = views_of(method, call, state.written, converts=True)
    if views is None or given.issuperset(view.source for view in views):
        return None
    return _moved(state, call, views)


def _moved_outputs(
    state: Folding, call: LinkedCall, *, permutes: bool, expands: bool = True
) -> Contents | None:
    """Items of a call's outputs, if it only moves items of constants."""
    if (str(call.operator) == PERMUTE) is not permutes:
        return None
    views = views_of(state.method, call, state.written, converts=True)
    outputs = _moved(state, call, views) if views else None
    if views is None or outputs is None:
        return None
    sources = {view.source for view in views}
    data = state.method.contents
    room = sum(len(data[source]) for source in sources)
    is_expanded = sum(map(len, outputs.values())) > room
    if (expands or not is_expanded) and _replaces(state, sources):
        return outputs
    # What is there anyway takes no flash, and small results take no more than their call.
    known = {*data.values()}
    is_cheap = all(len(content) <= SMALL_BYTES or content in known for content in outputs.values())
    return outputs if is_cheap else None


def _moved(state: Folding, call: LinkedCall, views: tuple[View, ...]) -> Contents | None:
    """Items of a call's outputs, if all items that it moves are constant."""
    method = state.method
    data = method.contents
    moves: dict[int, list[tuple[View, Bytes]]] = {}
    for view in views:
        source, target = method.values[view.source], method.values[view.target]
        if not (
            isinstance(source, TensorValue)
            and isinstance(target, TensorValue)
            and source.allocation is None
            and target.allocation is not None
            and view.source in data
            and target.dtype.item_bytes in ITEM_BYTES
            and not {view.source, *call.args} & state.flow.moved
        ):
            return None
        items = converted(data[view.source], source.dtype, target.dtype)
        if items is None:
            return None
        moves.setdefault(view.target, []).append((view, items))
    outputs: Contents = {}
    for out, found in moves.items():
        tensor = method.tensor(out)
        if tensor.size_bytes:
            content = MovedBytes(found, tensor.size_bytes, tensor.dtype.item_bytes)
            outputs[out] = settled(content)
    return outputs if len(outputs) == len(set(call.outs)) else None


def _replaces(state: Folding, sources: set[int]) -> bool:
    """Whether only calls that may be folded, too, read some constants."""
    flow = state.flow
    if not sources.isdisjoint(flow.outputs):
        return False
    readers = (i for s in sources for i in flow.touching(s) if s in flow.at[i].reads)
    calls = (state.method.instructions[index] for index in readers)
    return all(isinstance(c, LinkedCall) and moves_items(c.operator) for c in calls)


_INTEGERS: Final[Mapping[ScalarType, str]] = {
    ScalarType.Byte: "B",
    ScalarType.Char: "b",
    ScalarType.Short: "h",
    ScalarType.Int: "i",
    ScalarType.Long: "q",
    ScalarType.Bool: "?",
}
_FLOATS: Final[Mapping[ScalarType, tuple[str, int]]] = {
    # Bits of the fraction of a float and a double, with the hidden one: larger integers are not
    # exact.
    ScalarType.Float: ("f", 24),
    ScalarType.Double: ("d", 53),
}


def converted(data: Bytes, dtype: ScalarType, to: ScalarType) -> Bytes | None:
    """Items converted to another dtype; None unless all conversions are exact."""
    if dtype is to:
        return data
    if dtype not in _INTEGERS or to is ScalarType.Bool:
        return None
    count = len(data) // dtype.item_bytes
    items = [int(i) for i in struct.unpack(f"<{count}{_INTEGERS[dtype]}", bytes(data))]
    if to in _FLOATS:
        code, bits = _FLOATS[to]
        exact = all(abs(item) <= 1 << bits for item in items)
        return struct.pack(f"<{count}{code}", *items) if exact else None
    code = _INTEGERS.get(to, "")
    try:
        return struct.pack(f"<{count}{code}", *items) if code else None
    except struct.error:
        return None  # too large for the dtype
