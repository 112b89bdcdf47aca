"""Weights of depthwise convolutions that go over an image in strips.

The kernel is op_packed_depthwise_strips.cpp of kernels/cortex_m, for vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.method.passes.packing.convolution import LOWEST, starts_of
from orchestrator.method.passes.packing.mve import EIGHT, LANES
from orchestrator.method.passes.packing.words import TILE, int32, up

if TYPE_CHECKING:
    from orchestrator.method.passes.packing.convolution import Axis, Convolution

_ACROSS, _ALONG = 4, 3
"""Weights of a channel for a strip."""
_FEW, _MOST = 6, 16
"""Columns of a strip if it adds to the arena, and the most."""
_COLUMN: Final = 64
"""Bytes of such a column."""
_BESIDE: Final = 2 * _COLUMN + LANES
"""Bytes beside a strip: zeros for two pixels, and padding."""
_MOST_PHASES: Final = 4
"""Strips have no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strips:
    """How a depthwise call goes over an image, in lines along one of its dimensions.

    Args:
        is_turned: Whether lines are columns of the image.
        lines: Of the output that one strip serves.
        phases: With a stride of two, even columns are one phase, odd ones another.
        pixels: The most of a line at once.
        reach: How many columns of a phase a window has after the first one.
    """

    across: Axis
    along: Axis
    is_turned: bool
    lines: int
    phases: int
    pixels: int
    reach: int

    @property
    def columns(self) -> int:
        """Of a phase."""
        return self.pixels + self.reach

    @property
    def scratch_bytes(self) -> int:
        """Memory for the strip, and for what lies beside it."""
        return _BESIDE + _COLUMN * self.phases * self.columns

    @property
    def cost(self) -> int:
        """About how many instructions 16 channels take."""
        parts = -(-self.along.out // self.pixels)
        columns = self.phases * (self.along.out + parts * self.reach)
        strips = -(-self.across.out // self.lines)
        pixels = self.across.out * (self.along.out + self.along.out % 2)
        return strips * (13 * columns + 120 * parts) + 80 * pixels


def best_strips(conv: Convolution, spare_bytes: int) -> Strips | None:
    """The way that costs least, or None if there is none.

    Args:
        conv: A depthwise call.
        spare_bytes: What the arena has for scratch memory anyway.
    """
    columns = min(max((spare_bytes - _BESIDE) // _COLUMN, _FEW), _MOST)
    # The kernel has no rounding for outputs below the offset: they end at the limit.
    if conv.offset != LOWEST:
        return None
    ways = (
        _strips(conv.rows, conv.columns, columns, is_turned=False),
        _strips(conv.columns, conv.rows, columns, is_turned=True),
    )
    return min((w for w in ways if w is not None), key=lambda w: w.cost, default=None)


def _strips(
    across: Axis, along: Axis, columns: int, *, is_turned: bool
) -> Strips | None:
    """Strips along one dimension, if the kernel can have them."""
    window = (along.kernel - 1) * along.dilation
    phases = min(along.stride, window + 1)
    reach = window // along.stride
    if across.kernel > _ACROSS or along.kernel > _ALONG or along.out == 1:
        return None
    # Two pixels at least.
    columns = max(columns, phases * (reach + 2))
    most = (columns // phases - reach) // 2 * 2
    if phases > _MOST_PHASES or columns > _MOST:
        return None
    parts = -(-along.out // most)
    is_next = across.stride == across.dilation == 1
    return Strips(
        across=across,
        along=along,
        is_turned=is_turned,
        lines=1 + _ACROSS - across.kernel if is_next else 1,
        phases=phases,
        pixels=along.out if parts == 1 else up(-(-along.out // parts), 2),
        reach=reach,
    )


def strip_groups(conv: Convolution, strips: Strips) -> list[int]:
    """The words of `PackedDepthwiseStrips` and of the groups that follow."""
    import numpy as np  # noqa: PLC0415

    across, along = strips.across, strips.along
    channels = len(conv.weights)
    more = -channels % len(EIGHT)
    order = np.arange(channels + more).reshape(-1, len(EIGHT))[:, EIGHT].reshape(-1)
    windows = conv.weights.reshape(channels, conv.rows.kernel, conv.columns.kernel)
    if not strips.is_turned:
        windows = windows.swapaxes(1, 2)
    spaces = ((0, more), (0, _ALONG - along.kernel), (0, _ACROSS - across.kernel))
    weights = np.pad(windows, spaces)[order].astype(np.int8).tobytes()
    scales = np.array(
        [
            np.pad(a, (0, more))[order].reshape(-1, TILE)
            for a in (starts_of(conv), conv.multipliers, conv.shifts)
        ]
    ).swapaxes(0, 1)
    # Columns of weights that do not exist are like the first one, with zeros.
    taps = [k * along.dilation if k < along.kernel else 0 for k in range(_ALONG)]
    line_in, line_out = (
        (channels, conv.columns.size * channels),
        (channels, conv.columns.out * channels),
    )
    steps = (line_in[::-1], line_out[::-1])
    if strips.is_turned:
        steps = (line_in, line_out)
    header = (
        *(*across.words(), *along.words()),
        *(conv.batch, channels, -conv.x_offset, *steps[0], *steps[1]),
        *(strips.lines, strips.pixels, strips.phases, strips.columns),
        *(
            _COLUMN * (tap % along.stride * strips.columns + tap // along.stride)
            for tap in taps
        ),
        *(len(weights), 0),
    )
    words = np.frombuffer(weights, "<i4").tolist() + scales.reshape(-1).tolist()
    return [int32(word) for word in (*header, *words)]
