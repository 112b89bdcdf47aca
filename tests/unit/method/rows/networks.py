"""Random networks of layers by rows, and what they compute, on numbers."""

from __future__ import annotations

from dataclasses import replace
from math import gcd, inf
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.method.rows.network import Layer, Network
from orchestrator.method.rows.plan import Call
from orchestrator.method.windows import (
    Axis,
    Cost,
    Image,
    OverlapRule,
    RowTable,
    ScratchSavingVariant,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from numpy.typing import NDArray

    from orchestrator.method.rows.plan import RowPlan
    from orchestrator.method.windows import Window

    Bytes = NDArray[np.uint8]


_KINDS: Final = (*("sum", "all", "rows", "rows", "add up", "grow", "grow"), *("join", "join"))


def random_network(random: Random, *, is_given: bool = False) -> Network:
    """A chain of up to nine layers with sums and concatenations of skips.

    Some layers have more rows than their input, some need all of it.

    With `is_given` the caller gives some rows of its input at a time.
    """
    images = {0: Image(rows=random.randint(1, 12), row_bytes=random.randint(1, 60))}
    layers: list[Layer] = []
    if is_given:
        rows = images[0].rows
        layers.append(Layer(reads=(), out=0, given=random.randint(1, rows)))
    for out in range(1, random.randint(2, 10)):
        source = out - 1
        rows = images[source].rows
        same = [i for i in range(source) if images[i] == images[source]]
        kind = random.choice([*["window"] * 3, *_KINDS])
        reads: tuple[tuple[int, Window], ...]
        if kind == "sum" and same:
            reads = tuple((i, Axis(size=rows, out=rows)) for i in (source, random.choice(same)))
            images[out] = images[source]
        elif kind == "grow":
            table = grown(random, rows)
            reads = ((source, table),)
            images[out] = Image(rows=table.out, row_bytes=random.randint(1, 60))
        elif kind == "join":
            others = random.choices(range(source), k=random.randint(0, min(source, 2)))
            others = [i for i in others if images[i].rows == rows]
            more = tuple((i, some_rows(random, rows)) for i in others)
            same_rows: Window = Axis(size=rows, out=rows)
            if random.random() < 0.5:  # the same as a table
                same_rows = table_of(rows, [{row} for row in range(rows)])
            reads = ((source, same_rows), *more)
            size = sum(images[i].row_bytes for i, _ in reads)
            if random.random() < 0.5:
                size = images[source].row_bytes * random.randint(1, 3)
            images[out] = Image(rows=rows, row_bytes=size)
        elif kind in ("all", "add up"):
            reads = ((source, Axis(size=rows, out=1, kernel=rows)),)
            images[out] = Image(rows=1, row_bytes=random.randint(1, 60))
        else:
            window = random_window(random, rows) if kind == "window" else None
            window = window or Axis(size=rows, out=rows)
            reads = ((source, window),)
            size = random.randint(1, 60)
            if kind == "rows" and random.random() < 0.7:
                size = images[source].row_bytes
            images[out] = Image(rows=window.out, row_bytes=size)
        layers.append(
            Layer(
                reads=reads,
                out=out,
                scratch_bytes=(scratch := random.choice([0, 0, random.randint(1, 99)])),
                whole_scratch_bytes=(most := random.choice([0, 0, random.randint(1, 40)])),
                scratch_saving=random_few(random, scratch, most),
                by_rows=kind != "all",
                accumulates=kind == "add up",
                in_place=kind in ("sum", "rows")
                and images[reads[0][0]] == images[out]
                and random.random() < 0.5,
                at_end=kind == "join" and random.random() < 0.7,
                over=random_over(random, images[source], images[out]) if kind == "window" else None,
                costs=(cost := random_cost(random),),
                whole=cost.of(rows if kind == "add up" else images[out].rows),
            )
        )
    outputs = {
        len(images) - 1,
        *random.sample(range(is_given, len(images)), random.choice([0, 0, 1])),
    }
    return Network(
        images=images,
        layers=tuple(layers),
        inputs=frozenset({0} - {layer.out for layer in layers}),
        outputs=frozenset(outputs),
    )


def random_cost(random: Random) -> Cost:
    cost = Cost(
        setup=random.randint(0, 300),
        tile=random.randint(0, 1000),
        together=random.choice([1, 1, 2, 3]),
        pixels=random.choice([1, 5]),
    )
    if cost.together == 3:  # as kernels have it
        return replace(cost, two=cost.tile * 3 // 4)
    return replace(cost, first_rows=(cost.of(1) * 3 // 4,)) if cost.together > 1 else cost


def random_few(
    random: Random, scratch_bytes: int, whole_scratch_bytes: int
) -> ScratchSavingVariant | None:
    """For calls for some rows or for all of them, if these have scratch memory."""
    whole = random.random() < 0.5
    most = whole_scratch_bytes if whole else scratch_bytes
    if not most or random.random() < 0.5:
        return None
    less = random.choice([0, random.randint(0, most - 1)])
    return ScratchSavingVariant(
        scratch_bytes=less,
        costs=(random_cost(random),),
        one_row=not whole and random.random() < 0.5,
        whole=whole,
    )


def random_over(random: Random, source: Image, out: Image) -> OverlapRule | None:
    """Rows of both images, and how far they are apart, are whole pixels."""
    if random.random() < 0.4:
        return None
    pixel = random.choice([1, gcd(source.row_bytes, out.row_bytes)])
    lead = pixel * random.choice([0, random.randint(0, 40 // pixel)])
    return OverlapRule(
        lead_bytes=lead,
        few_bytes=lead + pixel * random.choice([0, random.randint(0, 2)]),
        pixel_bytes=pixel,
        rows=random.choice([1, 2, inf]),
    )


def random_window(random: Random, rows: int) -> Axis | None:
    """A window that gives at least one row."""
    window = Axis(
        size=rows,
        out=0,
        kernel=random.randint(1, 4),
        stride=random.randint(1, 3),
        padding=random.randint(0, 2),
        dilation=random.randint(1, 2),
    )
    reach = (window.kernel - 1) * window.dilation + 1
    out = (rows + window.padding + random.randint(0, 2) - reach) // window.stride + 1
    return replace(window, out=out) if out > 0 else None


def grown(random: Random, rows: int) -> RowTable:
    """Rows of a transposed convolution, as far as these give some."""
    stride, kernel, dilation = (random.randint(1, 3) for _ in range(3))
    padding = random.randint(0, kernel - 1)
    added = {
        (i, i * stride - padding + tap * dilation) for i in range(rows) for tap in range(kernel)
    }
    out = max(max(row for _, row in added) + random.randint(0, 1), 1)
    return table_of(rows, [{i for i, r in added if r == row} for row in range(out)])


def some_rows(random: Random, rows: int) -> Window:
    """Rows of which each gives one, in order, but for some."""
    if random.random() < 0.5:
        return Axis(size=rows, out=rows)
    return table_of(rows, [{i} if random.random() < 0.7 else set() for i in range(rows)])


def table_of(size: int, needed: list[set[int]]) -> RowTable:
    """A table of the least and the greatest row of each."""
    found = [
        (
            min((i for of in needed[row:] for i in of), default=size),
            max((i for of in needed[: row + 1] for i in of), default=-1),
        )
        for row in range(len(needed))
    ]
    return RowTable(size=size, rows=tuple(found))


def row_of(number: int, row: int, taps: list[Bytes], size: int) -> Bytes:
    """What a layer computes for a row: a mixture of all bytes of its taps."""
    mixed = np.zeros(size, np.uint32) + number * 31 + row
    for place, tap in enumerate(taps):
        weights = np.arange(1, len(tap) + 1, dtype=np.uint32) * (2 * place + 3)
        mixed += (tap.astype(np.uint32) * weights).sum(dtype=np.uint32)
        mixed[: len(tap)] += tap[:size] * np.uint32(place + 1)
    return (mixed * np.uint32(2654435761) >> np.uint32(13)).astype(np.uint8)


def added(number: int, row: Bytes, size: int) -> Bytes:
    """What a layer adds up for a row, in whatever order."""
    return row_of(number, 0, [row], size)


def taps_of(window: Window, row: int) -> list[int]:
    """Rows of the input in a window."""
    if isinstance(window, RowTable):
        low, high = window.rows[row]
        return [*range(low, high + 1)]
    first = row * window.stride - window.padding
    rows = range(first, first + window.kernel * window.dilation, window.dilation)
    return [tap for tap in rows if 0 <= tap < window.size]


def whole(network: Network, given: Bytes, twins: Sequence[int] | None = None) -> dict[int, Bytes]:
    """All images, [rows, bytes], each layer at once; with `twins`, as these do."""
    found = {0: given}
    for at, layer in enumerate(network.layers):
        number = twins[at] if twins else at
        image = network.images[layer.out]
        if layer.given:
            continue
        if layer.accumulates:
            rows = found[layer.reads[0][0]]
            total = sum(added(number, row, image.row_bytes) for row in rows)
            found[layer.out] = np.array([total], np.uint8)
            continue
        found[layer.out] = np.array(
            [
                row_of(
                    number,
                    row,
                    [found[i][t] for i, w in layer.reads for t in taps_of(w, row)],
                    image.row_bytes,
                )
                for row in range(image.rows)
            ],
            np.uint8,
        )
    return found


class _Run:
    """A run by a plan, in one arena; scratch memory gets rubbish."""

    def __init__(
        self, network: Network, plan: RowPlan, given: Bytes, twins: Sequence[int] | None
    ) -> None:
        self._network = network
        self._rooms = plan.rooms
        self._twins = twins or range(len(network.layers))
        self._arena = np.full(plan.arena_bytes, 0xA5, np.uint8)
        self._begun: set[int] = set()
        self._coming = [*given]
        for index in network.inputs:
            self.view(plan.offsets[index], *given.shape)[:] = given
        for move in plan.moves:
            if isinstance(move, Call):
                self._call(move)
                continue
            held = self.view(move.source, 1, move.size_bytes).copy()
            self.view(move.target, 1, move.size_bytes)[:] = held

    def view(self, at: int, rows: int, row_bytes: int) -> Bytes:
        return self._arena[at : at + rows * row_bytes].reshape(rows, row_bytes)

    def _call(self, call: Call) -> None:
        step, layer = call.step, self._network.layers[call.step.layer]
        rows = step.last - step.first + 1
        room = self._rooms.get(step.layer, inf)
        scratch_bytes = self._network.scratch_of(step.layer, rows, room)
        self.view(call.scratch, 1, scratch_bytes)[:] = 0x5A
        size = self._network.images[layer.out].row_bytes
        out = self.view(call.out, rows, size)
        if layer.given:  # whichever rows these are
            out[:] = self._coming[: len(out)]
            del self._coming[: len(out)]
        elif layer.accumulates:
            if step.layer not in self._begun:
                out[:] = 0
            self._begun.add(step.layer)
            for row in self._read(call, 0):
                out[0] += added(self._twins[step.layer], row.copy(), size)
        else:
            taken = [self._read(call, at) for at in range(len(layer.reads))]
            if self._may_be_over(call):
                taken = [rows.copy() for rows in taken]
            elif not layer.in_place and not layer.at_end:
                # Kernels may write before they read.
                out[:] = 0xA5
            for row in range(step.first, step.last + 1):
                out[row - step.first] = self._row(call, row, size, taken)

    def _may_be_over(self, call: Call) -> bool:
        """Whether a kernel may write there over what it reads."""
        step, over = call.step, self._network.layers[call.step.layer].over
        rows = step.last - step.first + 1
        layer = self._network.layers[step.layer]
        if over is None or rows > over.rows:
            return False
        if rows == self._network.images[layer.out].rows:
            return False
        room = self._rooms.get(step.layer, inf)
        is_few = self._network.scratch_saving_of(step.layer, rows, room) is not None
        distance = call.reads[0] - call.out
        is_whole = distance % over.pixel_bytes == 0
        return is_whole and distance >= over.lead(is_few=is_few)

    def _row(self, call: Call, row: int, size: int, taken: list[Bytes]) -> Bytes:
        taps = []
        for at, (_, window) in enumerate(self._network.layers[call.step.layer].reads):
            held, low = taken[at], call.step.reads[at][0]
            taps += [held[t - low].copy() for t in taps_of(window, row)]
        return row_of(self._twins[call.step.layer], row, taps, size)

    def _read(self, call: Call, at: int) -> Bytes:
        """Rows of an image that a call reads."""
        low, high = call.step.reads[at]
        image = self._network.layers[call.step.layer].reads[at][0]
        size = self._network.images[image].row_bytes
        return self.view(call.reads[at], max(high - low + 1, 0), size)


def by_plan(
    network: Network, plan: RowPlan, given: Bytes, twins: Sequence[int] | None = None
) -> dict[int, Bytes]:
    """The outputs of a run by a plan; with `twins`, layers compute what these do."""
    run, images = _Run(network, plan, given, twins), network.images
    return {
        i: run.view(plan.offsets[i], images[i].rows, images[i].row_bytes) for i in network.outputs
    }
