"""Operators on images as what is needed for some of their rows: windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from math import inf

from orchestrator.method.windows import (
    Axis,
    Cost,
    Image,
    OverlapRule,
    RowTable,
    ScratchSavingVariant,
    Window,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """An operator.

    Args:
        reads: Images that it reads, each with the rows that it needs.
        out: The image that it fills.
        scratch_bytes: Memory that a call for some rows needs.
        whole_scratch_bytes: Memory that a call for all rows needs.
        by_rows: Whether calls can compute some rows; else one call computes all.
        accumulates: Whether its output has one row, which every call adds to: calls
            are for rows of the input.
        in_place: Whether a call may write over one of its inputs, of the same size, at
            the same place.
        costs: Of each of its calls for a band, all of which are added up.
        at_end: Whether its first input may be the end of its output: it moves blocks in
            order, and none to where a later one comes from.
        over: Whether its output may lie over rows that it reads, and how.
        scratch_saving: How calls are where scratch memory is short, if that differs.
        whole: Instructions of the calls for all rows as they are without bands, about.
        given: Rows that the caller gives at a time: the layer is an input of which
            some rows are there, and reads nothing. 0 for operators.
        again: Whether another layer has computed the same before.
        most_rows: That a call may compute, as a step has a limit; None: any number.
    """

    reads: tuple[tuple[int, Window], ...]
    out: int
    scratch_bytes: int = 0
    whole_scratch_bytes: int = 0
    by_rows: bool = True
    accumulates: bool = False
    in_place: bool = False
    at_end: bool = False
    over: OverlapRule | None = None
    costs: tuple[Cost, ...] = ()
    scratch_saving: ScratchSavingVariant | None = None
    whole: int = 0
    given: int = 0
    again: bool = False
    most_rows: int | None = None

    def rows_within(self, count: int, most: float) -> int | None:
        """`most_rows` of calls that take so many instructions at most.

        One row, if that takes more.

        Args:
            count: Rows that its calls are for, together.
            most: Instructions that a call may take.
        """
        scratch_saving = self.scratch_saving.costs if self.scratch_saving else ()

        def fits(rows: int) -> bool:
            return all(
                sum(c.of(rows) for c in costs) <= most for costs in (self.costs, scratch_saving)
            )

        # Sums of all rows are not the call that averages them at once.
        is_short = fits(count) if self.accumulates else self.whole <= most
        is_short = is_short and sum(c.of(count) for c in scratch_saving) <= most
        if is_short or count == 1 or not self.by_rows:
            return None
        return max(takewhile(fits, range(1, count)), default=1)


@dataclass(frozen=True, kw_only=True)  # without slots, for what is cached
class Network:
    """Layers in the order in which they run.

    Args:
        images: By name.
        layers: Every image is filled once, or is an input.
        inputs: Images that are there before the run.
        outputs: Images that are needed after it.
    """

    images: Mapping[int, Image]
    layers: tuple[Layer, ...]
    inputs: frozenset[int]
    outputs: frozenset[int]

    @cached_property
    def born(self) -> dict[int, int]:
        """By image: the layer that fills it; -1 for inputs."""
        return dict.fromkeys(self.inputs, -1) | {
            layer.out: number for number, layer in enumerate(self.layers)
        }

    @cached_property
    def dies(self) -> dict[int, int]:
        """By image: the last layer that touches it; the count of layers for outputs."""
        found = dict(self.born)
        for number, layer in enumerate(self.layers):
            for image, _ in layer.reads:
                found[image] = number
        return found | dict.fromkeys(self.outputs, len(self.layers))

    @cached_property
    def whole_cost(self) -> int:
        """Instructions of a run without bands, and with nothing computed again."""
        return sum(layer.whole for layer in self.layers if not layer.again)

    def within(self, most: float) -> Network:
        """The network with calls of so many instructions at most, if they can be."""

        def limited(layer: Layer) -> Layer:
            image = layer.reads[0][0] if layer.accumulates else layer.out
            rows = layer.rows_within(self.images[image].rows, most)
            return replace(layer, most_rows=rows)

        return replace(self, layers=tuple(map(limited, self.layers)))

    def scratch_saving_of(
        self, layer: int, rows: int, room_bytes: float = inf
    ) -> ScratchSavingVariant | None:
        """How so many rows of a layer fit into a room for scratch memory.

        None if they do as they are, or nothing else is known.
        """
        scratch_saving = self.layers[layer].scratch_saving
        # A matrix product without scratch memory is for the whole call: rows of an image may begin
        # at any byte, and it reads words.
        if scratch_saving is None or scratch_saving.whole != self._is_whole(layer, rows):
            return None
        if self._scratch_of(layer, rows) <= room_bytes:
            return None
        return scratch_saving if rows == 1 or not scratch_saving.one_row else None

    def scratch_of(self, layer: int, rows: int, room_bytes: float = inf) -> int:
        """Scratch memory of a call of a layer for so many rows, in bytes.

        Args:
            layer: Its number.
            rows: Of its output.
            room_bytes: That there are for it.
        """
        scratch_saving = self.scratch_saving_of(layer, rows, room_bytes)
        return (
            self._scratch_of(layer, rows)
            if scratch_saving is None
            else scratch_saving.scratch_bytes
        )

    def _is_whole(self, layer: int, rows: int) -> bool:
        return rows == self.images[self.layers[layer].out].rows

    def _scratch_of(self, layer: int, rows: int) -> int:
        """Scratch memory where there is room for all that it needs."""
        of, is_whole = self.layers[layer], self._is_whole(layer, rows)
        return of.whole_scratch_bytes if is_whole else of.scratch_bytes

    def over_of(self, layer: int, rows: int) -> OverlapRule | None:
        """How so many rows of a layer may lie over its input; None if they may not."""
        over = self.layers[layer].over
        # All rows at once are computed in another way.
        if over is None or rows > over.rows or self._is_whole(layer, rows):
            return None
        return over

    def may_hold(self, layer: int) -> Iterator[int]:
        """Images that may lie in the output of a layer, row by row."""
        of = self.layers[layer]
        out = self.images[of.out]
        rows = Axis(size=out.rows, out=out.rows)
        table = RowTable(size=out.rows, rows=tuple((r, r) for r in range(out.rows)))
        for number, (image, window) in enumerate(of.reads):
            size = self.images[image].row_bytes
            is_part = of.at_end and number == 0 and out.row_bytes % size == 0
            is_whole = of.in_place and size == out.row_bytes
            if window in (rows, table) and (is_part or is_whole):
                yield image

    def whole(self, first: int, last: int) -> frozenset[int]:
        """Images that are live while some layers run, and those that they fill."""
        born, dies = self.born, self.dies
        return frozenset(i for i in born if born[i] <= last and dies[i] >= first)
