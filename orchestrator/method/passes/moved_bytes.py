"""Bytes of a constant that views of others make up, moved when they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from orchestrator.core.lazy_bytes import Bytes, LazyBytes, settled

if TYPE_CHECKING:
    from orchestrator.method.passes.views import View

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
