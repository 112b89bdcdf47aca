"""Columns of pixels, two at once, for vectors: convolutions of all kinds.

The kernel is op_packed_pixels.cpp of kernels/cortex_m. A transposed convolution, or one of
groups of channels, is several of these.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Self

from orchestrator.method.passes.inventory import Row
from orchestrator.method.passes.packing.convolution import TILE, WORD, Convolution, up
from orchestrator.method.passes.packing.header import (
    LANES,
    Packed,
    bytes_in,
    convolution_fields,
    lead_bytes,
    of_least_cost,
    tiles_of,
)
from orchestrator.method.passes.packing.steps import (
    STRIPS,
    StripHeader,
    even_parts,
    strip_bytes,
    vectors_of,
)
from orchestrator.method.windows import Axis, Image, OverlapRule, Rows, RowTable, Window

if TYPE_CHECKING:
    from orchestrator.method.passes.packing.phases import Phase

# The same bound is in `gather_lines` of packed_strip.h: a vector holds two lines at least.
_MOST_JOINED_CHANNELS: Final = 8
"""Channels of lines that the kernel for bands brings together several at once."""


class TileLayout(NamedTuple):
    """What a tile of four channels is made of.

    Args:
        head: Bytes in front of the weights.
        lines: Bytes for each tap: one for each channel, or for two.
        tail: Bytes behind them.
    """

    head: int
    lines: int
    tail: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """How inputs of pixels come to the loop over them, which goes down a column.

    Args:
        depth: Taps of a pixel, up to whole vectors.
        pixels: How many a strip is for.
        in_place: Whether pixels are read where they are, as long as no vector goes
            beyond the image.
        scratch_bytes: Memory for the strip.
    """

    depth: int
    pixels: int
    in_place: bool
    scratch_bytes: int


def strip_of(phase: Phase, spare_bytes: int) -> Strip:
    """The strips of a convolution."""
    conv = phase.conv
    is_apart = phase.x_pixel != conv.channels and conv.rows.kernel > 1
    most = strip_bytes(spare_bytes)
    return strip_along(conv.rows, conv.columns, conv.channels, most, is_apart=is_apart)


def strip_along(
    rows: Axis, columns: Axis, channels: int, most_bytes: int, *, is_apart: bool
) -> Strip:
    """Strips along a dimension.

    Args:
        rows: Windows along a strip.
        columns: Windows along the other dimension.
        channels: Channels that a pixel sees.
        most_bytes: Bytes of a strip, if two pixels do not need more.
        is_apart: Whether taps along `rows` have other bytes between them.
    """
    taps = rows.kernel * columns.kernel * channels
    depth = up(taps, LANES)
    in_place = (
        (rows.kernel == columns.kernel == 1 or columns.size == rows.dilation == 1)
        and not is_apart
        and rows.is_inside
        and columns.is_inside
    )
    if in_place and depth == taps:
        return Strip(depth=depth, pixels=0, in_place=True, scratch_bytes=0)
    line = columns.kernel * channels
    joined = rows.dilation == 1 and rows.stride <= rows.kernel
    step = line * (rows.stride if joined else rows.kernel)
    # Where inputs are read in place, only the last pixels of an image need a strip, so that no
    # vector goes beyond it; two pixels are what the loop computes at once.
    # More pixels share more, but scratch memory adds to the arena.
    pixels = 2 if in_place else max(2, (most_bytes - depth) // step + 1)
    pixels = min(rows.out, even_parts(rows.out, pixels, 2))
    return Strip(
        depth=depth, pixels=pixels, in_place=in_place, scratch_bytes=(pixels - 1) * step + depth
    )


def unrolled(kernels: Sequence[Row], strips: Sequence[Strip], *, fast: bool) -> Row:
    """The kernel for some strips: of as many taps at once as all of them have."""
    # One kernel runs all phases of a call, so a depth of any of them must fit.
    depth = gcd(*(strip.depth for strip in strips))
    fitting = (
        row for row in kernels if row.is_whole and depth % row.taps == 0 and (fast or not row.when)
    )
    return max(fitting, key=lambda row: row.taps)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePhase:
    """Rows of the output that a packed convolution fills.

    Args:
        axis: Windows along its rows.
        first: The first row of the output that is one of them.
        step: From each to the next one.
    """

    axis: Axis
    first: int
    step: int

    def window(self, out: int) -> RowTable:
        """What each row of the output needs."""
        needed = {self.first + i * self.step: self.axis.inputs(i, i) for i in range(self.axis.out)}
        return RowTable.of(needed, size=self.axis.size, out=out)

    def among(self, first: int, last: int) -> tuple[int, int]:
        """First and last of its rows among some of the output; the last may be less."""
        begin = max(-((self.first - first) // self.step), 0)
        return begin, min((last - self.first) // self.step, self.axis.out - 1)


@dataclass(frozen=True, kw_only=True)
class Pixels(StripHeader):
    """`PackedPixels` of packed.h."""

    LAYOUT: ClassVar = TileLayout(head=TILE * WORD, lines=TILE, tail=2 * TILE * WORD)
    """Starts of sums; multipliers and shifts."""

    in_bytes: int
    x_line: int
    x_pixel: int
    y_line: int
    y_pixel: int
    x_first: int
    y_first: int
    y_image: int
    next: int = 0

    @classmethod
    def of_phase(cls, phase: Phase, strip: Strip) -> Self:
        """The struct of a convolution."""
        conv = phase.conv
        line = conv.columns.size * phase.x_pixel
        return cls(
            **convolution_fields(conv, strip.depth),
            pixels=strip.pixels,
            in_bytes=conv.batch * conv.rows.size * line * strip.in_place,
            x_line=line,
            x_pixel=phase.x_pixel,
            y_line=phase.line,
            y_pixel=phase.pixel,
            x_first=phase.x_first,
            y_first=phase.first,
            y_image=phase.image,
        )

    @classmethod
    def packed(cls, phases: Sequence[tuple[Phase, Strip]], *, fast: bool = False) -> Packed:
        """A call of some convolutions, each with its struct and its weights."""
        header, weights = None, b""
        # From the last one on: `next` is the size of what comes before the next struct, which is
        # known once the weights are made.
        for phase, strip in reversed(phases):
            rest = b"" if header is None else bytes_in("<i4", *header.words()) + weights
            header, weights = cls.of_phase(phase, strip), _tiles(phase.conv, strip.depth)
            size = WORD * len(header.words()) + len(weights)
            header, weights = replace(header, next=size if rest else 0), weights + rest
        assert header is not None  # noqa: S101  # there are some
        strips = [strip for _, strip in phases]
        scratch_bytes = max(strip.scratch_bytes for strip in strips)
        return Packed(header, weights, scratch_bytes, unrolled(cls.kernels(), strips, fast=fast))

    def each(self, weights: bytes) -> Iterator[tuple[Self, bytes]]:
        """Several convolutions, each as if alone."""
        header, size = self, WORD * len(self.words())
        while header.next:
            yield replace(header, next=0), weights[: header.next - size]
            weights = weights[header.next - size :]
            header = self.of(struct.unpack(f"<{size // WORD}i", weights[:size]))
            weights = weights[size:]
        yield header, weights

    @property
    def is_several(self) -> bool:
        return self.next != 0

    # Rows.

    def _phase(self, row_bytes: int) -> LinePhase | None:
        """The rows of the output that the call fills, unless these are all, in order."""
        step = self.y_pixel if self.is_turned else self.y_line
        if step % row_bytes or not step:
            return None
        first, step = self.y_first // row_bytes, step // row_bytes
        if (first, step) == (0, 1):
            return None
        return LinePhase(axis=self.image_rows, first=first, step=step)

    def window(self, out: Image) -> Window | None:
        if self.is_several:
            return None
        phase = self._phase(out.row_bytes)
        return phase.window(out.rows) if phase else super().window(out)

    def band(self, rows: Rows, row_bytes: int) -> Self | None:
        header = self
        if phase := self._phase(row_bytes):
            begin, last = phase.among(rows.first, rows.last)
            # A band may be so narrow that all of its rows are those of other phases.
            if begin > last:
                return None
            lines = begin * phase.step - rows.first
            header = replace(self, y_first=self.y_first + lines * row_bytes)
            rows = replace(rows, first=begin, last=last)
        band = super(Pixels, header).band(rows, row_bytes)
        if band is None or not self.in_bytes:
            return band
        # What a pixel sees lies side by side: one of the axes has changed.
        was, now = (one.rows.size * one.columns.size for one in (header, band))
        return replace(band, in_bytes=self.in_bytes // was * now)

    def overlap(self, source: Image, out: Image) -> OverlapRule | None:
        """Strips along rows are copied before some pixels of them are written."""
        # Strips down columns write rows that later columns still have to read from; inputs that are
        # read in place are never copied before.
        if not self.is_turned or self.in_bytes or self.is_several:
            return None
        lead = lead_bytes(self.rows, source, out)
        return OverlapRule(lead_bytes=lead, few_bytes=lead, rows=1)

    # Costs.

    @property
    def loop(self) -> tuple[int, int]:
        # `orch_tile`: 8 products and 6 loads for 16 taps of two pixels and four channels, 24 around
        # the loop, or 29 with ties, and 2 for each round. 32 is right for four rounds.
        return tiles_of(self.out_channels) * (14 * self.depth // LANES + 32), 2

    @property
    def is_in_place(self) -> bool:
        return self.in_bytes != 0

    @property
    def is_without_strips(self) -> bool:
        return self.is_in_place and self.depth == self.in_channels

    @property
    def band_row_cost(self) -> int:
        return self.row_cost - self.band_row_saves

    @property
    def band_row_saves(self) -> int:
        """Instructions of `row_cost` that the kernel for bands saves.

        It computes an odd last pixel of a strip by itself, not with the one before, and
        brings together taps of one channel at once.
        """
        along, across = self.rows, self.columns
        count = along.out % 2
        if not self.is_in_place and self.pixels % 2:
            count = along.out // self.pixels + along.out % self.pixels % 2
        # `orch_packed_one_pixel`: 8 products and 9 loads for 16 taps of eight channels, 32 around
        # them, or 37 with ties.
        one = tiles_of(self.out_channels, 2 * TILE) * (17 * self.depth // LANES + 36)
        saved = count * (self.loop[0] - one)
        # `copy_side_by_side`: 6 instructions for a tap of each vector, and about 20 that find where
        # bytes go.
        # The kernel has the same conditions.
        is_apart = across.dilation > 1 or self.x_pixel != self.in_channels
        is_close = self.x_line * along.dilation == self.in_channels <= _MOST_JOINED_CHANNELS
        if is_apart and is_close and across.kernel <= LANES:
            at_once = LANES // self.in_channels
            each = 20 + 6 * across.kernel
            if not self.is_without_strips:
                saved += self.filling_cost - each * -(-self.parts[1] // at_once)
        return saved

    def saved(self, kernel: str, narrow: str) -> int | None:
        return self.band_row_saves * self.columns.out

    # Bands.

    def for_bands(self, packed: Packed, room_bytes: int) -> Packed | None:
        """With strips along rows; None if it cannot have them, or has."""
        import numpy as np  # noqa: PLC0415

        if not self.may_be_turned or self.is_several:
            return None
        rows, columns, channels = self.rows, self.columns, self.in_channels
        is_apart = self.x_pixel != channels and columns.kernel > 1
        in_bytes = self.batch * rows.size * self.x_line

        def call(most_bytes: int) -> tuple[int, Packed]:
            strip = strip_along(columns, rows, channels, most_bytes, is_apart=is_apart)
            header = replace(self.turned(strip.pixels), in_bytes=in_bytes * strip.in_place)
            return header.band_row_cost, Packed(header, packed.weights, strip.scratch_bytes)

        best = of_least_cost(map(call, STRIPS), room_bytes)
        if 1 in (rows.kernel, columns.kernel):
            return best  # weights are in the same order, with any groups of steps
        head, lines, tail = self.LAYOUT
        size = lines * self.depth
        tiles = np.frombuffer(packed.weights, np.int8).reshape(-1, head + size + tail)
        before, items, after = np.split(tiles, (head, head + size), axis=1)
        vectors = items.reshape(len(tiles), -1, lines, LANES).swapaxes(1, 2)
        taps = vectors.reshape(len(tiles), lines, self.depth)
        count = rows.kernel * columns.kernel * channels
        made = np.concatenate((self.turned_taps(taps[..., :count]), taps[..., count:]), axis=-1)
        vectors = made.reshape(len(tiles), lines, -1, LANES).swapaxes(1, 2)
        items = vectors.reshape(len(tiles), size)
        return best._replace(weights=np.hstack((before, items, after)).tobytes())


def _tiles(conv: Convolution, depth: int) -> bytes:
    """Tiles of four channels: starts and weights, multipliers, shifts."""
    import numpy as np  # noqa: PLC0415

    more = -len(conv.weights) % TILE
    scales = np.array([np.pad(a, (0, more)) for a in (conv.multipliers, conv.shifts)])
    ends = scales.reshape(2, -1, TILE).swapaxes(0, 1).astype("<i4")
    tiles = zip(vectors_of(conv, depth, range(TILE)), ends, strict=True)
    return b"".join(begin + end.tobytes() for begin, end in tiles)
