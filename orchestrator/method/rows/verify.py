"""Whether a table of steps computes what the layers do, on tagged bytes.

Every byte of the arena knows of which image it is, and its offset there. A call must
find exactly the bytes of the rows that the windows of its layer ask for, and tags what it
writes. Nothing here is shared with what makes tables but the words that describe them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from orchestrator.method.rows.plan import Call

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from orchestrator.method.rows.network import Network
    from orchestrator.method.rows.plan import RowPlan

    Tags = NDArray[np.int64]

_IMAGE = 1 << 40
"""Tags are an image's number, times this, plus an offset."""
_NOTHING = -1


def problems_of_rows(network: Network, plan: RowPlan) -> tuple[str, ...]:
    """What is wrong with a plan, the first thing of it; nothing if it is right."""
    return tuple(_Machine(network, plan).run())


class _Machine:
    def __init__(self, network: Network, plan: RowPlan) -> None:
        self._network = network
        self._plan = plan
        self._arena: Tags = np.full(plan.arena_bytes, _NOTHING, np.int64)
        self._made: list[set[int]] = [set() for _ in network.layers]

    def run(self) -> list[str]:
        network, plan = self._network, self._plan
        for image in sorted(network.inputs):
            if not self._write(image, plan.offsets[image], 0, network.images[image].rows):
                return [f"input {image} lies outside of the arena"]
        for number, move in enumerate(plan.moves):
            if isinstance(move, Call):
                problem = self._call(move)
            else:
                problem = self._slide(move.source, move.target, move.size_bytes)
            if problem:
                return [f"step {number}: {problem}"]
        for number, layer in enumerate(network.layers):
            if self._made[number] != {*range(network.images[layer.out].rows)}:
                return [f"layer {number} has made {len(self._made[number])} rows"]
        for image in sorted(network.outputs):
            rows = network.images[image].rows
            if not self._holds(image, plan.offsets[image], 0, rows):
                return [f"output {image} is not whole"]
        return []

    def _call(self, call: Call) -> str:
        step = call.step
        layer = self._network.layers[step.layer]
        made = self._made[step.layer]
        if made.intersection(range(step.first, step.last + 1)):
            return f"layer {step.layer} makes row {step.first} again"
        size = step.last - step.first + 1
        begin, end = call.out, call.out + size * self._network.images[layer.out].row_bytes
        for (image, window), (low, high), at in zip(
            layer.reads, step.reads, call.reads, strict=True
        ):
            taps = [
                row * window.stride - window.padding + tap * window.dilation
                for row in range(step.first, step.last + 1)
                for tap in range(window.kernel)
            ]
            inside = [tap for tap in taps if 0 <= tap < window.size]
            if inside and not (low <= min(inside) and max(inside) <= high):
                return f"rows {low} to {high} of image {image} are not all it needs"
            if low > high:
                continue
            if not self._holds(image, at, low, high - low + 1):
                return f"rows {low} to {high} of image {image} are not at {at}"
            until = at + (high - low + 1) * self._network.images[image].row_bytes
            same = layer.in_place and at == begin and until == end
            if at < end and begin < until and not same:
                return f"it writes over rows of image {image} that it reads"
        scratch = call.scratch, call.scratch + layer.scratch_bytes
        if scratch[1] > len(self._arena):
            return "its scratch memory lies outside of the arena"
        self._arena[scratch[0] : scratch[1]] = _NOTHING
        for (image, _), (low, high), at in zip(
            layer.reads, step.reads, call.reads, strict=True
        ):
            if low <= high and not self._holds(image, at, low, high - low + 1):
                return f"its scratch memory lies over image {image}"
        if layer.scratch_bytes and begin < scratch[1] and scratch[0] < end:
            return "its scratch memory lies over its output"
        made.update(range(step.first, step.last + 1))
        if not self._write(layer.out, call.out, step.first, size):
            return "its output lies outside of the arena"
        return ""

    def _slide(self, source: int, target: int, size_bytes: int) -> str:
        if min(source, target) < 0 or max(source, target) + size_bytes > len(
            self._arena
        ):
            return "a slide leaves the arena"
        moved = self._arena[source : source + size_bytes].copy()
        self._arena[target : target + size_bytes] = moved
        return ""

    def _tags(self, image: int, first: int, rows: int) -> Tags:
        size = self._network.images[image].row_bytes
        start = image * _IMAGE + first * size
        return np.arange(start, start + rows * size, dtype=np.int64)

    def _holds(self, image: int, at: int, first: int, rows: int) -> bool:
        tags = self._tags(image, first, rows)
        return at >= 0 and np.array_equal(self._arena[at : at + len(tags)], tags)

    def _write(self, image: int, at: int, first: int, rows: int) -> bool:
        tags = self._tags(image, first, rows)
        if not 0 <= at <= at + len(tags) <= len(self._arena):
            return False
        self._arena[at : at + len(tags)] = tags
        return True
