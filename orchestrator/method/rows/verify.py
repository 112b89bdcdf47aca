"""Whether a table of steps computes what the layers do, on tagged bytes.

Every byte of the arena knows of which image it is, and its offset there. A call must
find exactly the bytes of the rows that the windows of its layer ask for, and tags what
it writes. Nothing here is shared with what makes tables but the words for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from orchestrator.method.rows.network import Network
from orchestrator.method.rows.plan import Call, RowPlan
from orchestrator.method.windows import RowTable, Window

if TYPE_CHECKING:
    Tags = NDArray[np.int64]

# Tags have 63 bits: 2 ** 23 images of 2 ** 40 bytes.
_IMAGE: Final = 1 << 40
"""Tags are an image's number, times this, plus an offset."""
_NOTHING: Final = -1


def problems_of_rows(network: Network, plan: RowPlan) -> tuple[str, ...]:
    """What is wrong with a plan, the first thing of it; nothing if it is right."""
    try:
        _Machine(network, plan).run()
    except _WrongError as wrong:
        return (str(wrong),)
    return ()


def problems_of_twins(before: Network, after: Network, twins: Sequence[int]) -> tuple[str, ...]:
    """Where a network with layers twice computes something else than it did.

    Args:
        before: The network without.
        after: The network with them.
        twins: By layer of it: the layer before that it is.
    """
    if after.inputs != before.inputs or after.outputs != before.outputs:
        return ("other inputs or outputs",)
    if len(twins) != len(after.layers):
        return ("layers that are nothing before",)
    same = {image: image for image in before.inputs}  # what images are before
    first: set[int] = set()
    for number, (layer, twin) in enumerate(zip(after.layers, twins, strict=True)):
        old = before.layers[twin]
        if any(image not in same for image, _ in layer.reads) or layer.out in same:
            return (f"layer {number}: an image is not there yet, or is filled twice",)
        reads = tuple((same[image], window) for image, window in layer.reads)
        if replace(layer, reads=reads, out=old.out, again=False) != old:
            return (f"layer {number}: it is not layer {twin}",)
        same_size = after.images[layer.out] == before.images[old.out]
        if not same_size or layer.again != (twin in first):
            return (f"layer {number}: its output has another size, or is there twice",)
        same[layer.out] = old.out
        first.add(twin)
    wrong = [image for image in sorted(after.outputs) if same.get(image) != image]
    return tuple(f"output {image} is another image" for image in wrong)


class _WrongError(Exception):
    """What is wrong."""


def _need(holds: bool | np.bool_, problem: str) -> None:  # noqa: FBT001  # reads as an assertion
    if not holds:
        raise _WrongError(problem)


class _Machine:
    def __init__(self, network: Network, plan: RowPlan) -> None:
        self._network = network
        self._plan = plan
        self._arena: Tags = np.full(plan.arena_bytes, _NOTHING, np.int64)
        self._made: list[set[int]] = [set() for _ in network.layers]
        self._added: list[set[int]] = [set() for _ in network.layers]

    def run(self) -> None:
        network, plan = self._network, self._plan
        for image in sorted(network.inputs):
            rows = network.images[image].rows
            self._write(image, plan.offsets[image], 0, rows)
        for number, move in enumerate(plan.moves):
            try:
                if isinstance(move, Call):
                    self._call(move)
                else:
                    # `move_bytes` may overlap: it copies as memmove does.
                    held = self._bytes(move.source, move.size_bytes).copy()
                    self._bytes(move.target, move.size_bytes)[:] = held
            except _WrongError as wrong:
                raise _WrongError(f"step {number}: {wrong}") from None
        for layer, made in zip(network.layers, self._made, strict=True):
            rows = network.images[layer.out].rows
            _need(made == {*range(rows)}, f"image {layer.out} has {len(made)} rows")
        for image in sorted(network.outputs):
            self._read(image, plan.offsets[image], 0, network.images[image].rows)

    def _call(self, call: Call) -> None:
        step = call.step
        layer = self._network.layers[step.layer]
        out, images = layer.out, self._network.images
        rows = {*range(step.first, step.last + 1)}
        begin, end = call.out, call.out + len(rows) * images[out].row_bytes
        room = self._plan.rooms.get(step.layer, inf)
        size = self._network.scratch_of(step.layer, len(rows), room)
        scratch = call.scratch, call.scratch + size
        # Scratch memory destroys what lies there: a read of it later is found.
        self._bytes(scratch[0], size)[:] = _NOTHING
        # Kernels write outputs while they still use their scratch memory.
        clear = not size or scratch[1] <= begin or end <= scratch[0]
        _need(clear, "scratch memory over the output")
        if layer.accumulates:
            self._add(call)
            return
        _need(not rows & self._made[step.layer], f"rows of image {out} again")
        if layer.given:
            first = len(self._made[step.layer])
            _need(step.first == first, f"the caller gives row {first} first")
            _need(len(rows) <= layer.given, "more rows than the caller gives")
        self._made[step.layer] |= rows
        for number, ((image, window), (low, high), at) in enumerate(
            zip(layer.reads, step.reads, call.reads, strict=True)
        ):
            _need(
                all(low <= row <= high for row in _rows_of(window, rows)),
                f"not all rows of image {image} that it needs",
            )
            if low > high:
                continue
            self._read(image, at, low, high - low + 1)
            until = at + (high - low + 1) * images[image].row_bytes
            apart = end <= at or until <= begin
            same = layer.in_place and (at, until) == (begin, end)
            is_end = layer.at_end and number == 0 and until == end
            same |= is_end and (end - begin) % (until - at) == 0
            over = layer.over
            if over is not None and len(rows) <= over.rows:
                is_few = self._network.scratch_saving_of(step.layer, len(rows), room) is not None
                same |= at - begin >= over.lead(is_few=is_few) and not (
                    (at - begin) % over.pixel_bytes or len(rows) == images[out].rows
                )
            _need(apart or same, f"output over rows of image {image} that it reads")
        self._write(out, begin, step.first, len(rows))

    def _add(self, call: Call) -> None:
        """A call that adds rows of its input to its output."""
        layer = self._network.layers[call.step.layer]
        ((image, window),) = layer.reads
        ((low, high),), (at,) = call.step.reads, call.reads
        size = self._network.images[layer.out].row_bytes
        until = at + (high - low + 1) * self._network.images[image].row_bytes
        _need(until <= call.out or call.out + size <= at, "sums over what is added")
        added, rows = self._added[call.step.layer], {*range(low, high + 1)}
        held = self._bytes(call.out, size)
        if added:
            partial = _partial(layer.out, len(added))
            _need(np.all(held == partial), "sums are not where they were")
        _need(not added & rows, f"rows of image {image} again")
        self._read(image, at, low, high - low + 1)
        # Rows may be added in any order, as sums of integers are the same.
        added |= rows
        held[:] = _partial(layer.out, len(added))
        if added == {*range(window.size)}:
            self._made[call.step.layer].add(0)
            self._write(layer.out, call.out, 0, 1)

    def _bytes(self, at: int, size_bytes: int) -> Tags:
        _need(0 <= at <= at + size_bytes <= len(self._arena), "outside of the arena")
        return self._arena[at : at + size_bytes]

    def _tags(self, image: int, first: int, rows: int) -> Tags:
        size = self._network.images[image].row_bytes
        start = image * _IMAGE + first * size
        return np.arange(start, start + rows * size, dtype=np.int64)

    def _read(self, image: int, at: int, first: int, rows: int) -> None:
        tags = self._tags(image, first, rows)
        found = self._bytes(at, len(tags))
        _need(np.array_equal(found, tags), f"rows of image {image} are not at {at}")

    def _write(self, image: int, at: int, first: int, rows: int) -> None:
        tags = self._tags(image, first, rows)
        self._bytes(at, len(tags))[:] = tags


def _partial(image: int, rows: int) -> int:
    """The tag of sums of some rows."""
    # Negative, so that sums that are not complete are no bytes of an image; -1 is nothing.
    return -(image * _IMAGE + rows) - 2


def _rows_of(window: Window, rows: set[int]) -> set[int]:
    """Rows of the input that windows have a tap in."""
    if isinstance(window, RowTable):
        return {tap for row in rows for tap in range(window.rows[row][0], window.rows[row][1] + 1)}
    taps = {
        row * window.stride - window.padding + tap * window.dilation
        for row in rows
        for tap in range(window.kernel)
    }
    return {tap for tap in taps if 0 <= tap < window.size}
