"""Windows over images, and calls for some of their rows: what they need and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final, NamedTuple, TypeAlias

# The order of the members of `Axis` in kernels/util/prepared.h; headers of packed calls hold them
# as words.
_NUMBERS: Final = ("size", "out", "kernel", "stride", "padding", "dilation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Windows along one dimension: `Axis` of kernels/util/prepared.h."""

    size: int
    out: int
    kernel: int = 1
    stride: int = 1
    padding: int = 0
    dilation: int = 1

    @classmethod
    def of(cls, words: Sequence[int]) -> Axis:
        """From what `words` gives, of which the last ones may be left out."""
        return cls(**dict(zip(_NUMBERS, words, strict=False)))

    @property
    def window(self) -> int:
        """Items from the first tap of a window to the last one."""
        return self.dilation * (self.kernel - 1) + 1

    @property
    def is_inside(self) -> bool:
        """Whether no window has padding."""
        windows = (self.out - 1) * self.stride + self.window
        return self.padding == 0 and windows <= self.size

    @property
    def reach(self) -> int:
        """Items from the first one that a window sees to the last one, or of all."""
        windows = (self.out - 1) * self.stride + self.window
        return max(windows, self.padding + self.size)

    def inputs(self, first: int, last: int) -> tuple[int, int]:
        """First and last input for some outputs, all inclusive.

        The last one is before the first one if all taps are padding.
        """
        low = first * self.stride - self.padding
        high = last * self.stride - self.padding + self.window - 1
        return max(low, 0), min(high, self.size - 1)

    @property
    def is_pixelwise(self) -> bool:
        """Whether each output has the input at the same place alone."""
        return self == Axis(size=self.size, out=self.size)

    def words(self) -> tuple[int, ...]:
        """As the kernels read them."""
        return (*(self.size, self.out, self.kernel), *(self.stride, self.padding, self.dilation))


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
        """Bytes of the whole tensor."""
        return self.rows * self.row_bytes


class Core(NamedTuple):
    """What kernels run on.

    Args:
        isa: Instruction set of the core: scalar, dsp or mve.
        fast: Whether the product favours speed.
    """

    isa: str
    fast: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A band: rows of the input, rows of the output, inclusive.

    Args:
        low: First row of the input.
        high: Last row of it; before `low` if it needs none.
        first: First row of the output.
        last: Last row of it.
        count: Rows of the whole output.
    """

    low: int
    high: int
    first: int
    last: int
    count: int

    def part(self, whole: int) -> int:
        """What a band has of items that all rows share alike."""
        return whole // self.count * (self.last - self.first + 1)

    def axis(self, axis: Axis) -> Axis:
        """The rows of a band, whose windows begin as those of the whole image."""
        return replace(
            axis,
            size=max(self.high - self.low + 1, 0),
            out=self.last - self.first + 1,
            # Taps above the first row of the band.
            padding=self.low - (self.first * axis.stride - axis.padding),
        )

    def line(self, axis: Axis) -> Axis:
        """The pixels of a band, where those of the whole image lie in a line."""
        pixels = self.part(axis.size)
        return replace(axis, size=pixels, out=pixels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Estimated instructions of calls for some rows.

    Args:
        setup: Instructions of a call beside those for its rows.
        tile: Instructions for the pixels that are computed at once.
        together: Pixels that are computed at once; fewer cost as much.
        pixels: Pixels of a row.
        two: Instructions for two pixels, where a kernel has a loop for them; else 0.
        first_rows: Instructions of a call for one row, for two rows and so on, where there is
            a kernel for that.
    """

    setup: int = 0
    tile: int = 0
    together: int = 1
    pixels: int = 1
    two: int = 0
    first_rows: tuple[int, ...] = ()

    def of(self, rows: int) -> int:
        """Instructions of a call for so many rows."""
        if rows <= len(self.first_rows):
            return self.first_rows[rows - 1]
        tiles, rest = divmod(rows * self.pixels, self.together)
        if rest and self.two:
            # As `next_pixels` of op_packed_conv2d.cpp: four pixels are two and two, not three and
            # one.
            twos = 2 if tiles and rest == 1 else 1
            return self.setup + self.tile * (tiles + 1 - twos) + self.two * twos
        return self.setup + self.tile * (tiles + (rest > 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchSavingVariant:
    """A kernel for a layer that has fewer pixels or inputs in scratch memory at once.

    Args:
        scratch_bytes: Scratch memory of a call.
        costs: Costs of a call, which are added up.
        one_row: Whether it takes no more than one row.
        whole: Whether it is for calls for all rows, not for those for some.
    """

    scratch_bytes: int
    costs: tuple[Cost, ...]
    one_row: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapRule:
    """How the output of a layer may lie over rows of its only input.

    It begins so many bytes before the first row that a call reads that nothing is
    written before it has been read for the last time.

    Args:
        lead_bytes: The fewest bytes in front of the first row.
        few_bytes: The fewest where the layer has a `ScratchSavingVariant`.
        pixel_bytes: The bytes in front are a multiple of this.
        rows: The most rows of a call; a call for all rows has no such output.
    """

    lead_bytes: int = 0
    few_bytes: int = 0
    pixel_bytes: int = 1
    rows: float = inf

    def lead(self, *, is_few: bool) -> int:
        """Bytes between the beginning of an output and what is read, at least."""
        return self.few_bytes if is_few else self.lead_bytes
