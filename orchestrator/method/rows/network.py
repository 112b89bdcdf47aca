"""Operators on images as what is needed for some of their rows: windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from math import inf
from typing import TypeAlias

from orchestrator.method.passes.tables import Axis


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTable:
    """Rows that each row of an output needs, where these are no windows of an `Axis`.

    Args:
        size: Rows of the input.
        rows: By row of the output: first and last row of the input, inclusive. A row
            that needs none has the first one of the next row, and the last one of the
            row before; neither ever becomes less from a row to the next.
    """

    size: int
    rows: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, needed: Mapping[int, tuple[int, int]], *, size: int, out: int) -> RowTable:
        """The table of an output of which some rows need something.

        Args:
            needed: By row: first and last row of the input; in ascending order.
            size: Rows of the input.
            out: Rows of the output.
        """
        lows, highs = [size], [-1]
        for row in range(out):
            last = out - 1 - row
            highs.append(needed[row][1] if row in needed else highs[-1])
            lows.append(needed[last][0] if last in needed else lows[-1])
        return cls(size=size, rows=(*zip(lows[:0:-1], highs[1:], strict=True),))

    @property
    def out(self) -> int:
        """Rows of the output."""
        return len(self.rows)

    def inputs(self, first: int, last: int) -> tuple[int, int]:
        """As `Axis.inputs`."""
        return self.rows[first][0], self.rows[last][1]


Window: TypeAlias = Axis | RowTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A tensor as rows, which lie one after the other.

    Args:
        rows: How many; 1 for a tensor that is always used as a whole.
        row_bytes: Of each.
    """

    rows: int
    row_bytes: int

    @property
    def size_bytes(self) -> int:
        """Of the whole tensor."""
        return self.rows * self.row_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Instructions of calls for some rows, about.

    Args:
        setup: Of each call, beside those for its rows.
        tile: Of pixels that are computed at once.
        together: How many these are; fewer cost as much.
        pixels: Of a row, as tiles have them.
        two: Of two pixels, where a kernel takes them apart from others; 0: it does not.
        few: Of calls for one row, for two rows and so on, where there is a kernel for
            that.
    """

    setup: int = 0
    tile: int = 0
    together: int = 1
    pixels: int = 1
    two: int = 0
    few: tuple[int, ...] = ()

    def of(self, rows: int) -> int:
        """Of a call for so many rows."""
        if rows <= len(self.few):
            return self.few[rows - 1]
        tiles, rest = divmod(rows * self.pixels, self.together)
        if rest and self.two:
            twos = 2 if tiles and rest == 1 else 1
            return self.setup + self.tile * (tiles + 1 - twos) + self.two * twos
        return self.setup + self.tile * (tiles + (rest > 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Few:
    """Another way to compute rows of a layer: fewer of its pixels or inputs at once.

    Args:
        scratch_bytes: Memory that a call needs, less than else.
        costs: Of each of its calls, all of which are added up.
        one_row: Whether it takes no more than one row.
        whole: Whether it is for calls for all rows, not for those for some.
    """

    scratch_bytes: int
    costs: tuple[Cost, ...]
    one_row: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """How the output of a layer may lie over rows of its only input.

    It begins so many bytes before the first row that a call reads that nothing is
    written before it has been read for the last time.

    Args:
        lead_bytes: How many these are at least.
        few_bytes: The same where the layer computes few pixels at once.
        pixel_bytes: They have to be a multiple of this.
        rows: That a call may compute so, at most; never all of them.
    """

    lead_bytes: int = 0
    few_bytes: int = 0
    pixel_bytes: int = 1
    rows: float = inf

    def lead(self, *, is_few: bool) -> int:
        """Bytes between the beginning of an output and what is read, at least."""
        return self.few_bytes if is_few else self.lead_bytes


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
        few: How calls are where memory is scarce, if that differs.
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
    over: Over | None = None
    costs: tuple[Cost, ...] = ()
    few: Few | None = None
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
        few = self.few.costs if self.few else ()

        def fits(rows: int) -> bool:
            return all(sum(c.of(rows) for c in way) <= most for way in (self.costs, few))

        # Sums of all rows are not the call that averages them at once.
        is_short = fits(count) if self.accumulates else self.whole <= most
        is_short = is_short and sum(c.of(count) for c in few) <= most
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

    def few_of(self, layer: int, rows: int, room_bytes: float = inf) -> Few | None:
        """How so many rows of a layer fit into a room for scratch memory.

        None if they do as they are, or nothing else is known.
        """
        few = self.layers[layer].few
        if few is None or few.whole != self._is_whole(layer, rows):
            return None
        if self._scratch_of(layer, rows) <= room_bytes:
            return None
        return few if rows == 1 or not few.one_row else None

    def scratch_of(self, layer: int, rows: int, room_bytes: float = inf) -> int:
        """Scratch memory of a call of a layer for so many rows, in bytes.

        Args:
            layer: Its number.
            rows: Of its output.
            room_bytes: That there are for it.
        """
        few = self.few_of(layer, rows, room_bytes)
        return self._scratch_of(layer, rows) if few is None else few.scratch_bytes

    def _is_whole(self, layer: int, rows: int) -> bool:
        return rows == self.images[self.layers[layer].out].rows

    def _scratch_of(self, layer: int, rows: int) -> int:
        """The same where there is room for all that it needs."""
        of, is_whole = self.layers[layer], self._is_whole(layer, rows)
        return of.whole_scratch_bytes if is_whole else of.scratch_bytes

    def over_of(self, layer: int, rows: int) -> Over | None:
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
