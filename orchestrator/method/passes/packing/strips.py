"""Weights of depthwise convolutions that go over an image in strips.

The kernel is op_packed_depthwise_strips.cpp of kernels/cortex_m, for vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.method.passes.packing.convolution import LOWEST, TILE, WORD, int32, starts_of, up
from orchestrator.method.passes.packing.mve import EIGHT, LANES
from orchestrator.method.passes.packing.turned import Way, of_least_cost
from orchestrator.method.passes.tables import Axis

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orchestrator.method.passes.packing.convolution import Convolution
    from orchestrator.method.passes.packing.turned import Turned

_ACROSS, _ALONG = 4, 3
"""Weights of a channel for a strip."""
_FEW, _MOST = 6, 16
"""Columns of a strip if it adds to the arena, and the most."""
_BAND = 8
"""The same of a call for a few rows, which fills a strip for them alone."""
_COLUMN: Final = 64
"""Bytes of such a column."""
_BESIDE: Final = 2 * _COLUMN + LANES
"""Bytes beside a strip: zeros for two pixels, and padding."""
_MOST_PHASES: Final = 4
"""Strips have no more."""
_AXIS, _CHANNELS, _IN_ACROSS, _OUT_ACROSS = 6, 13, 15, 17
_LINES, _AT = 19, 23
"""Words of an `Axis`, and which ones of the header are what."""


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
        window = (self.along.kernel - 1) * self.along.dilation
        # Windows may end before the last column of the last phase.
        last = self.phases - 1 > window % self.along.stride
        return _BESIDE + _COLUMN * (self.phases * self.columns - last)

    @property
    def cost(self) -> int:
        """About how many instructions 16 channels take."""
        strips = -(-self.across.out // self.lines)
        return strips * self.strip_cost + self.across.out * self.line_cost

    @property
    def parts(self) -> int:
        """Of a line, for which the strip is filled one after the other."""
        return -(-self.along.out // self.pixels)

    @property
    def strip_cost(self) -> int:
        """Instructions to fill the strip for some lines, about."""
        columns = self.phases * (self.along.out + self.parts * self.reach)
        return 13 * columns + 120 * self.parts

    @property
    def line_cost(self) -> int:
        """The same to compute a line."""
        return 80 * up(self.along.out, 2)

    @property
    def odd_saves(self) -> int:
        """Of that, what the kernel for bands takes less.

        It computes an odd last pixel by itself, not with the one before; but one that
        is all of a strip.
        """
        is_odd = self.along.out % 2 and self.along.out % self.pixels != 1
        return 54 if is_odd else 0

    @property
    def filling_saves(self) -> int:
        """What that kernel takes less as it fills columns beside the image alone."""
        beside = 4 * self.along.padding
        return max(self.parts * self.phases * (8 * self.columns - 20) - beside, 0)


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


def _strips(across: Axis, along: Axis, columns: int, *, is_turned: bool) -> Strips | None:
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


def is_turned(header: tuple[int, ...]) -> bool:
    """Whether a `PackedDepthwiseStrips` has strips along the columns of an image."""
    # Along rows a strip is for two pixels at least.
    return header[_OUT_ACROSS] == header[_CHANNELS]


def strips_of(header: tuple[int, ...]) -> Strips:
    """What a `PackedDepthwiseStrips` says."""
    across, along = (Axis.of(header[at : at + _AXIS]) for at in (0, _AXIS))
    lines, pixels, phases, columns = header[_LINES:_AT]
    return Strips(
        across=across,
        along=along,
        is_turned=is_turned(header),
        lines=lines,
        phases=phases,
        pixels=pixels,
        reach=columns - pixels,
    )


def along_rows(header: tuple[int, ...], weights: bytes, room_bytes: int) -> Turned | None:
    """A call with strips along rows, for bands: fewer rows are fewer lines.

    Args:
        header: The words of its `PackedDepthwiseStrips`.
        weights: What follows them.
        room_bytes: For its strip, as for `of_least_cost`.

    Returns:
        None if its strips have to be along columns.
    """
    import numpy as np  # noqa: PLC0415

    given = strips_of(header)
    batch, channels, padding = header[2 * _AXIS : _IN_ACROSS]
    size, begin = header[-1], WORD
    axes = (given.across, given.along)
    if given.is_turned:
        axes = axes[::-1]

    def way(columns: int) -> Way | None:
        strips = _strips(*axes, columns, is_turned=False)
        if strips is None:
            return None
        words = _header(strips, batch, channels, padding, size)
        line_cost = strips.line_cost - strips.odd_saves
        return Way(words, strips.scratch_bytes, strips.strip_cost + line_cost)

    ways = [found for columns in range(_BAND, _MOST + 1) if (found := way(columns))]
    if not ways:
        return None
    best = of_least_cost(ways, room_bytes)
    if not given.is_turned:
        return best.call(weights)
    items = np.frombuffer(weights[begin : begin + size], np.int8)
    windows = items.reshape(-1, _ALONG, _ACROSS)
    windows = windows[:, : given.along.kernel, : given.across.kernel]
    made = _windows(windows.swapaxes(1, 2)).tobytes()
    return best.call(weights[:begin] + made + weights[begin + size :])


def _windows(windows: NDArray[np.int8]) -> NDArray[np.int8]:
    """Windows of channels, first along and then across, with zeros beyond them."""
    import numpy as np  # noqa: PLC0415

    _, along, across = windows.shape
    return np.pad(windows, ((0, 0), (0, _ALONG - along), (0, _ACROSS - across)))


def strip_groups(conv: Convolution, strips: Strips) -> list[int]:
    """The words of `PackedDepthwiseStrips` and of the groups that follow."""
    import numpy as np  # noqa: PLC0415

    channels = len(conv.weights)
    more = -channels % len(EIGHT)
    order = np.arange(channels + more).reshape(-1, len(EIGHT))[:, EIGHT].reshape(-1)
    windows = conv.weights.reshape(channels, conv.rows.kernel, conv.columns.kernel)
    if not strips.is_turned:
        windows = windows.swapaxes(1, 2)
    windows = np.pad(windows, ((0, more), (0, 0), (0, 0)))[order]
    weights = _windows(windows.astype(np.int8)).tobytes()
    scales = np.array(
        [
            np.pad(a, (0, more))[order].reshape(-1, TILE)
            for a in (starts_of(conv), conv.multipliers, conv.shifts)
        ]
    ).swapaxes(0, 1)
    header = _header(strips, conv.batch, channels, -conv.x_offset, len(weights))
    words = np.frombuffer(weights, "<i4").tolist() + scales.reshape(-1).tolist()
    return [int32(word) for word in (*header, 0, *words)]


def _header(
    strips: Strips, batch: int, channels: int, padding: int, weight_bytes: int
) -> tuple[int, ...]:
    """The words of `PackedDepthwiseStrips`."""
    across, along = strips.across, strips.along
    # From an input, or output, to the next one: across and along.
    steps = ((along.size * channels, channels), (along.out * channels, channels))
    if strips.is_turned:
        steps = ((channels, across.size * channels), (channels, across.out * channels))
    # Columns of weights that do not exist are like the first one, with zeros.
    taps = [k * along.dilation if k < along.kernel else 0 for k in range(_ALONG)]
    return (
        *(*across.words(), *along.words()),
        *(batch, channels, padding, *steps[0], *steps[1]),
        *(strips.lines, strips.pixels, strips.phases, strips.columns),
        *(_COLUMN * (tap % along.stride * strips.columns + tap // along.stride) for tap in taps),
        weight_bytes,
    )
