"""Weights in the order of the kernels for vector instructions.

The kernels are op_packed_depthwise.cpp and op_packed_pixels.cpp of kernels/cortex_m.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.method.passes.packing.convolution import (
    LOWEST,
    TILE,
    WORD,
    convolution_header,
    depthwise_header,
    int32,
    starts_of,
    up,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orchestrator.method.passes.packing.convolution import Convolution
    from orchestrator.method.passes.packing.phases import Phase
    from orchestrator.method.passes.tables import Axis

    Ints = NDArray[np.int64]

MOST: Final = 1 << 31
"""Bound on sums, which have 32 bits."""
LANES: Final = 16
"""Taps of a step of the loop."""
_STRIP, MOST_STRIP = 512, 2048
"""Bytes of a strip if it adds to the arena, and the most; two pixels may need more."""
LINES: Final = 3
"""Of a window, of which four pixels see six together."""
_PIXELS: Final = 4
_FOUR_COST: Final = 0.84
"""Of a product in the loop over such windows, of one in the other loop."""
LINE_BOUND: Final = 1 << 16
"""Bound on bytes from an output to the one below it."""
EIGHT: Final = (0, 2, 4, 6, 1, 3, 5, 7)
"""Channels of a tile for a single pixel, in the order of its sums."""


def groups(conv: Convolution) -> list[int]:
    """The words of `PackedDepthwise` and of groups of eight channels, for vectors."""
    import numpy as np  # noqa: PLC0415

    channels, taps = conv.weights.shape
    more = -channels % len(EIGHT)
    padding = ((0, more), (0, -taps % TILE))
    weights = np.pad(conv.weights, padding).astype(np.int8)
    starts, multipliers, shifts = (
        np.pad(a, (0, more)) for a in (starts_of(conv), conv.multipliers, conv.shifts)
    )
    words: list[int] = []
    for first in range(0, channels, len(EIGHT)):
        those = [first + c for c in EIGHT]
        tile = weights[first : first + len(EIGHT)].reshape(len(EIGHT), -1, TILE)
        items = tile.swapaxes(0, 1).tobytes()
        words += [*starts[those].tolist(), *np.frombuffer(items, "<i4").tolist()]
        words += [*multipliers[those].tolist(), *shifts[those].tolist()]
    if taps <= TILE:
        # The kernel reads four times four taps, whatever they are.
        words += [0] * len(EIGHT)
    header = depthwise_header(conv, up(taps, TILE) // 2, len(words))
    return [int32(word) for word in (*header, *words)]


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


def is_short(conv: Convolution) -> bool:
    """Whether channel by channel is slow: strips copy two lines, or more, per output.

    The kernel for calls that are not packed takes four channels at once, if each has
    one output.
    """
    rows = conv.rows
    lines = (rows.out - 1) * rows.stride + rows.kernel
    four = conv.depthwise and len(conv.weights) == conv.channels >= TILE
    return four and lines >= 2 * rows.out


def strip_bytes(spare_bytes: int) -> int:
    """How long a strip may be where the arena has so much for scratch memory."""
    return min(max(spare_bytes, _STRIP), MOST_STRIP)


def strip_of(phase: Phase, spare_bytes: int) -> Strip:
    """The way that the kernel goes over a convolution."""
    conv = phase.conv
    is_apart = phase.x_pixel != conv.channels and conv.rows.kernel > 1
    most = strip_bytes(spare_bytes)
    return strip_along(conv.rows, conv.columns, conv.channels, most, is_apart=is_apart)


def strip_along(
    rows: Axis, columns: Axis, channels: int, most_bytes: int, *, is_apart: bool
) -> Strip:
    """The same, with strips along `rows`.

    Args:
        rows: Dimension of the image along a strip.
        columns: The other dimension.
        channels: That a pixel sees.
        most_bytes: Of a strip, if two pixels do not need more.
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
    # More pixels share more, but scratch memory adds to the arena.
    pixels = 2 if in_place else max(2, (most_bytes - depth) // step + 1)
    parts = -(-rows.out // pixels)
    pixels = min(rows.out, up(-(-rows.out // parts), 2))
    return Strip(
        depth=depth, pixels=pixels, in_place=in_place, scratch_bytes=(pixels - 1) * step + depth
    )


def pixels(phases: Sequence[tuple[Phase, Strip]]) -> list[int]:
    """The words of `PackedPixels` and of tiles of four channels, for each phase."""
    words: list[int] = []
    for phase, strip in reversed(phases):
        found = _tiles(phase.conv, strip.depth)
        header = phase_header(phase, strip)
        size = WORD * (len(header) + 1 + len(found))
        words = [*header, size if words else 0, *found, *words]
    return [int32(word) for word in words]


def phase_header(phase: Phase, strip: Strip) -> tuple[int, ...]:
    """The words of `PackedPixels` but for the last one, bytes to the next phase."""
    conv = phase.conv
    line = conv.columns.size * phase.x_pixel
    return (
        *convolution_header(conv, strip.depth),
        *(strip.pixels, conv.batch * conv.rows.size * line * strip.in_place),
        *(line, phase.x_pixel, phase.line, phase.pixel),
        *(phase.x_first, phase.first, phase.image),
    )


def _tiles(conv: Convolution, depth: int) -> list[int]:
    """Tiles of four channels."""
    words: list[int] = []
    scales = [(m, s) for m, s in zip(conv.multipliers, conv.shifts, strict=True)]
    scales += [(0, 0)] * (TILE - 1)
    for first, tile in enumerate(_vectors(conv, depth, range(TILE))):
        those = scales[TILE * first : TILE * (first + 1)]
        words += [*tile, *(int(m) for m, _ in those), *(int(s) for _, s in those)]
    return words


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """How inputs come to the loop over windows of three lines.

    Args:
        pixels: Of a strip.
        blocks: Vectors of a line.
    """

    pixels: int
    blocks: int

    @property
    def scratch_bytes(self) -> int:
        """Memory for the strip."""
        return (self.pixels + LINES - 1) * self.blocks * LANES


def lines_of(conv: Convolution, spare_bytes: int) -> Lines | None:
    """The way that the kernel goes over a call, if it can and pays."""
    rows, columns = conv.rows, conv.columns
    outputs = len(conv.weights)
    wide = (rows.kernel, rows.stride, rows.dilation) == (LINES, 1, 1)
    if (
        not wide
        or conv.groups > 1
        or conv.channels % LANES
        or _PIXELS * columns.out * outputs >= LINE_BOUND
    ):
        return None
    if conv.offset != LOWEST and (conv.shifts.max() == 0 or conv.multipliers.min() < 0):
        return None
    # Pixels that are computed for nothing: the other kernel has at most one.
    four = up(rows.out, _PIXELS)
    if _FOUR_COST * four * up(outputs, 2) > rows.out * up(outputs, TILE):
        return None
    blocks = columns.kernel * conv.channels // LANES
    return Lines(pixels=lines_pixels(rows.out, blocks, strip_bytes(spare_bytes)), blocks=blocks)


def lines_pixels(count: int, blocks: int, most_bytes: int) -> int:
    """Pixels of a strip for so many in a column, with vectors of a line."""
    four = up(count, _PIXELS)
    most = most_bytes // LANES // blocks
    pixels = (most - LINES + 1) // _PIXELS * _PIXELS
    pixels = max(_PIXELS, min(four, pixels))
    parts = -(-four // pixels)
    return up(-(-four // parts), _PIXELS)


def lines(conv: Convolution, way: Lines) -> list[int]:
    """The words of `PackedLines` and of tiles of two channels, for vectors."""
    import numpy as np  # noqa: PLC0415

    outputs, columns = len(conv.weights), conv.columns
    words = [
        *(*convolution_header(conv, 0), way.pixels, way.blocks),
        *(columns.size * conv.channels, conv.channels),
        *(columns.out * outputs, outputs),
    ]
    more = outputs % 2
    weights = np.pad(conv.weights, ((0, more), (0, 0))).astype(np.int8)
    scales = np.array(
        [np.pad(a, (0, more)) for a in (starts_of(conv), conv.multipliers, conv.shifts)]
    )
    for first in range(0, outputs, 2):
        pair = slice(first, first + 2)
        tile = weights[pair].reshape(2, LINES, way.blocks, LANES)
        items = tile.transpose(2, 0, 1, 3).tobytes()
        words += np.frombuffer(items, "<i4").tolist()
        words += scales[:, pair].T.reshape(-1).tolist()
    return [int32(word) for word in words]


def pixel_header(conv: Convolution, depth: int) -> tuple[int, ...]:
    """The words of `PackedPixel`."""
    scale = int(conv.multipliers[0]), int(conv.shifts[0])
    return (*convolution_header(conv, depth), *scale)


def pixel(conv: Convolution, depth: int) -> list[int]:
    """The words of `PackedPixel` and of tiles of eight channels."""
    words = [*pixel_header(conv, depth)]
    for tile in _vectors(conv, depth, EIGHT):
        words += tile.tolist()
    return [int32(word) for word in words]


def _vectors(conv: Convolution, depth: int, order: Sequence[int]) -> Iterator[Ints]:
    """What each tile has for vectors: starts of sums, and weights."""
    import numpy as np  # noqa: PLC0415

    outputs, taps = conv.weights.shape
    more = -outputs % len(order)
    starts = np.pad(starts_of(conv), (0, more))
    weights = np.pad(conv.weights, ((0, more), (0, depth - taps))).astype(np.int8)
    for first in range(0, outputs, len(order)):
        those = [first + c for c in order]
        steps = weights[those].reshape(len(order), -1, LANES).swapaxes(0, 1)
        yield np.append(starts[those], np.frombuffer(steps.tobytes(), "<i4"))
