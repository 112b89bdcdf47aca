"""Depthwise convolutions that go over an image in strips, for vectors.

The kernel is op_packed_depthwise_strips.cpp of kernels/cortex_m.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Final

from orchestrator.core.lazy_bytes import Bytes
from orchestrator.method.passes.packing.convolution import (
    LOWEST,
    TILE,
    WORD,
    Convolution,
    starts_of,
    up,
)
from orchestrator.method.passes.packing.header import (
    LANES,
    SETUP,
    Header,
    Packed,
    of_least_cost,
    overlap_of,
    tiles_of,
)
from orchestrator.method.passes.packing.pixel import EIGHT
from orchestrator.method.passes.packing.steps import even_parts
from orchestrator.method.windows import Axis, Core, Cost, Image, OverlapRule, Rows, Window

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A word of the strip has four inputs across. A load of 16 weights covers four columns; inputs of
# the fourth are zeros, so weights of channels lie side by side, 12 each. Read from a byte earlier,
# they are those of the next line.
_ACROSS, _ALONG = 4, 3
"""Weights of a channel for a strip."""
# With 6 in place of 16 at the peak, the arena of DS-CNN is 640 bytes less on an M55, and a run
# takes 7 % more.
_FEWEST_COLUMNS, _MOST_COLUMNS = 6, 16
"""Columns of a strip if it adds to the arena, and the most."""
_FEWEST_OF_BAND = 8
"""Columns of a strip of a call for a few rows, which fills a strip for them alone."""
# `kColumnBytes` of op_packed_depthwise_strips.cpp: four inputs across of 16 channels.
_COLUMN: Final = 64
"""Bytes of a column."""
# `kZeroBytes` and `kPaddingBytes`.
_BESIDE: Final = 2 * _COLUMN + LANES
"""Bytes beside a strip: zeros for two pixels, and padding."""
# `kMostPhases`: the kernel has an array of them on its stack.
_MOST_PHASES: Final = 4


@dataclass(frozen=True, kw_only=True)
class Strips(Header):
    """`PackedDepthwiseStrips` of packed.h: lines along one dimension of an image.

    With a stride of two, even columns are one phase, odd ones another.
    """

    across: Axis
    along: Axis
    batch: int
    channels: int
    padding: int
    in_across: int
    in_along: int
    out_across: int
    out_along: int
    lines: int
    pixels: int
    phases: int
    columns: int
    at_0: int
    at_1: int
    at_2: int
    weight_bytes: int

    @classmethod
    def packed(cls, conv: Convolution, spare_bytes: int) -> Packed | None:
        """The call that costs least, or None if the kernel cannot take it."""
        # The kernel has no rounding for outputs below the offset: they end at the limit.
        if conv.offset != LOWEST:
            return None
        most = min(max((spare_bytes - _BESIDE) // _COLUMN, _FEWEST_COLUMNS), _MOST_COLUMNS)
        channels = len(conv.weights)
        sizes = conv.batch, channels, -conv.x_offset
        ways = (
            cls.of_axes(conv.rows, conv.columns, sizes, most, is_turned=False),
            cls.of_axes(conv.columns, conv.rows, sizes, most, is_turned=True),
        )
        header = min((w for w in ways if w), key=lambda w: w.cost, default=None)
        if header is None:
            return None
        return Packed(header, header.weights_of(conv), header.scratch_bytes)

    @classmethod
    def of_axes(
        cls,
        across: Axis,
        along: Axis,
        sizes: tuple[int, int, int],
        columns: int,
        *,
        is_turned: bool,
    ) -> Strips | None:
        """The struct for strips along one dimension, if the kernel can have them.

        Args:
            across: Windows along the other dimension.
            along: Windows along the strips.
            sizes: Batch, channels and padding.
            columns: The most columns of a strip, if two pixels do not need more.
            is_turned: Whether strips are along columns of the image.
        """
        window = (along.kernel - 1) * along.dilation
        phases = min(along.stride, window + 1)
        reach = window // along.stride
        # A strip is for two pixels at least: the loop computes two.
        if across.kernel > _ACROSS or along.kernel > _ALONG or along.out == 1:
            return None
        # Two pixels at least.
        columns = max(columns, phases * (reach + 2))
        most = (columns // phases - reach) // 2 * 2
        if phases > _MOST_PHASES or columns > _MOST_COLUMNS:
            return None
        pixels = along.out if along.out <= most else even_parts(along.out, most, 2)
        is_next = across.stride == across.dilation == 1
        batch, channels, padding = sizes
        # From an input, or output, to the next one: across and along.
        steps = (along.size * channels, channels, along.out * channels, channels)
        if is_turned:
            steps = (channels, across.size * channels, channels, across.out * channels)
        # Columns of weights that do not exist are like the first one, with zeros.
        taps = [k * along.dilation if k < along.kernel else 0 for k in range(_ALONG)]
        at = [
            _COLUMN * (tap % along.stride * (pixels + reach) + tap // along.stride) for tap in taps
        ]
        return cls(
            across=across,
            along=along,
            batch=batch,
            channels=channels,
            padding=padding,
            in_across=steps[0],
            in_along=steps[1],
            out_across=steps[2],
            out_along=steps[3],
            lines=1 + _ACROSS - across.kernel if is_next else 1,
            pixels=pixels,
            phases=phases,
            columns=pixels + reach,
            at_0=at[0],
            at_1=at[1],
            at_2=at[2],
            weight_bytes=_ACROSS * _ALONG * up(channels, len(EIGHT)),
        )

    @property
    def is_turned(self) -> bool:
        """Whether lines are columns of the image."""
        # Along rows a strip is for two pixels at least.
        return self.out_across == self.channels

    @property
    def scratch_bytes(self) -> int:
        """Memory for the strip, and for what lies beside it."""
        window = (self.along.kernel - 1) * self.along.dilation
        # Windows may end before the last column of the last phase.
        last = self.phases - 1 > window % self.along.stride
        return _BESIDE + _COLUMN * (self.phases * self.columns - last)

    def weights_of(self, conv: Convolution) -> bytes:
        """What follows the struct: a word of zeros, windows, and scales."""
        import numpy as np  # noqa: PLC0415  # only where something is packed

        channels = len(conv.weights)
        more = -channels % len(EIGHT)
        order = np.arange(channels + more).reshape(-1, len(EIGHT))[:, EIGHT].reshape(-1)
        windows = conv.weights.reshape(channels, conv.rows.kernel, conv.columns.kernel)
        if not self.is_turned:
            windows = windows.swapaxes(1, 2)
        items = np.pad(windows, ((0, more), (0, 0), (0, 0)))[order].astype(np.int8)
        scales = np.array(
            [
                np.pad(a, (0, more))[order].reshape(-1, TILE)
                for a in (starts_of(conv), conv.multipliers, conv.shifts)
            ]
        )
        return bytes(WORD) + _windows(items) + scales.swapaxes(0, 1).astype("<i4").tobytes()

    # Rows.

    def window(self, out: Image) -> Window | None:
        return self.along if self.is_turned else self.across

    def band(self, rows: Rows, row_bytes: int) -> Strips | None:
        if not self.is_turned:
            return replace(self, across=rows.axis(self.across))
        # The kernel computes two pixels of a strip at least: for a single row, the first
        # one lies below the second one.
        is_one = rows.first == rows.last
        out_along = 0 if is_one else self.out_along
        return replace(self, along=rows.axis(self.along), out_along=out_along)

    def overlap(self, source: Image, out: Image) -> OverlapRule | None:
        if self.is_turned:
            return None
        # Parts of all rows come one after the other.
        is_one = self.parts == 1
        return overlap_of(self.along, source, out, is_at_once=is_one, rows=inf if is_one else 1)

    # Instructions, from loops of the kernel: 16 channels have a strip, of which eight are
    # computed at once.

    @property
    def cost(self) -> int:
        """Instructions for 16 channels."""
        strips = -(-self.across.out // self.lines)
        return strips * self.strip_cost + self.across.out * self.line_cost

    @property
    def parts(self) -> int:
        """Parts of a line, for which the strip is filled one after the other."""
        return -(-self.along.out // self.pixels)

    @property
    def strip_cost(self) -> int:
        """Instructions to fill the strip for some lines."""
        columns = self.phases * (self.along.out + self.parts * (self.columns - self.pixels))
        # The loop that fills a column of 16 channels takes 14 (four loads, four stores, four
        # additions, VPST and LE); 120 are the C++ of a strip.
        return 13 * columns + 120 * self.parts

    @property
    def line_cost(self) -> int:
        """Instructions to compute a line."""
        # `orch_four_channels` takes 33, twice for eight channels of two pixels, and 12 around it.
        return 80 * up(self.along.out, 2)

    @property
    def odd_saves(self) -> int:
        """Instructions of a line that the kernel for bands saves.

        It computes an odd last pixel by itself, not with the one before; but one that
        is all of a strip.
        """
        is_odd = self.along.out % 2 and self.along.out % self.pixels != 1
        # The code for a last pixel takes 45 in place of 78. Half of this number counts, as of
        # `line_cost`: less is promised than is saved.
        return 54 if is_odd else 0

    @property
    def filling_saves(self) -> int:
        """Instructions of a call that it saves: it fills columns beside the image alone."""
        beside = 4 * self.along.padding
        # A column is four vectors, of two instructions each in `fill`; 20 are the two calls of a
        # phase for what lies beside the image.
        return max(self.parts * self.phases * (8 * self.columns - 20) - beside, 0)

    def costs(self, core: Core, rows: int, weights: Bytes) -> tuple[Cost, ...]:
        setup = 2 * SETUP["mve"] + 150 * self.parts
        setup -= 0 if self.is_turned else self.filling_saves
        strip = tiles_of(self.channels, 16) * self.strip_cost
        eights = tiles_of(self.channels, len(EIGHT))
        line = eights * self.line_cost // 2
        if not self.is_turned:
            filled = Cost(setup=setup, tile=strip, together=self.lines)
            return (filled, Cost(tile=line - eights * self.odd_saves // 2))
        # Rows are along strips, two at once.
        count = -(-self.across.out // self.lines)
        pairs = -(-self.along.out // 2)
        tile = (self.across.out * line + count * strip) // pairs
        return (Cost(setup=setup, tile=tile, together=2),)

    def saved(self, kernel: str, narrow: str) -> int | None:
        lines = tiles_of(self.channels, len(EIGHT)) * self.across.out
        return lines * self.odd_saves // 2 + self.filling_saves

    # Bands.

    def for_bands(self, packed: Packed, room_bytes: int) -> Packed | None:
        """With strips along rows, if it can have them: fewer rows are fewer lines."""
        import numpy as np  # noqa: PLC0415

        axes = (self.along, self.across) if self.is_turned else (self.across, self.along)
        sizes = self.batch, self.channels, self.padding

        weights = packed.weights
        made = (
            self.of_axes(*axes, sizes, columns, is_turned=False)
            for columns in range(_FEWEST_OF_BAND, _MOST_COLUMNS + 1)
        )
        found = [
            (w.strip_cost + w.line_cost - w.odd_saves, Packed(w, weights, w.scratch_bytes))
            for w in made
            if w
        ]
        best = of_least_cost(found, room_bytes) if found else None
        if best is None or not self.is_turned:
            return best
        end = WORD + self.weight_bytes
        windows = np.frombuffer(weights[WORD:end], np.int8).reshape(-1, _ALONG, _ACROSS)
        windows = windows[:, : self.along.kernel, : self.across.kernel].swapaxes(1, 2)
        return best._replace(weights=weights[:WORD] + _windows(windows) + weights[end:])


def _windows(windows: NDArray[np.int8]) -> bytes:
    """Windows of channels, first along and then across, with zeros beyond them."""
    import numpy as np  # noqa: PLC0415

    _, along, across = windows.shape
    return np.pad(windows, ((0, 0), (0, _ALONG - along), (0, _ACROSS - across))).tobytes()
