"""Packed convolutions with strips along the rows of an image, for vectors.

The kernels, op_packed_pixels.cpp and op_packed_lines.cpp of kernels/cortex_m, go down
columns, some pixels at once. A turned call has rows and columns exchanged, with the
taps of its weights in the order that follows: it has as many pixels to compute at once
where there are few rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrator.method.passes.packing.convolution import TILE, WORD
from orchestrator.method.passes.packing.mve import (
    LANES,
    LINES,
    MOST_STRIP,
    lines_pixels,
    strip_along,
)
from orchestrator.method.passes.tables import Axis

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_AXIS: Final = 6
"""Words of an `Axis`."""
_BATCH, _CHANNELS = 12, 13
_DEPTH, _PIXELS, _IN_BYTES, _BLOCKS = 15, 18, 19, 19
_STEPS: Final = slice(20, 24)
_X_LINE, _X_PIXEL = 20, 21
"""Words of a PackedPixels, and of a PackedLines."""
_STRIPS: Final = (256, 384, 512, 640, 768, 1024, 1536, MOST_STRIP)
"""Bytes of strips that are tried."""
_FEW: Final = 8
"""Channels of lines that are brought together several at once."""
_NEAR: Final = 1.08
"""How many times the cost of the fastest strip the shortest one may have."""


class Turned(NamedTuple):
    """A turned call.

    Args:
        header: Its words.
        weights: Its tiles.
        scratch_bytes: Memory for its strip.
    """

    header: tuple[int, ...]
    weights: bytes
    scratch_bytes: int


def has_steps(function: str) -> bool:
    """Whether a kernel has such a header."""
    return "packed_pixels" in function or "packed_lines" in function


def is_turned(header: Sequence[int]) -> bool:
    """Whether a `PackedPixels`, or `PackedLines`, has strips along rows."""
    return header[_X_LINE] < header[_X_PIXEL]


def rows_at(header: Sequence[int]) -> int:
    """The first word of the `Axis` that is over the rows of the image."""
    return _AXIS if is_turned(header) else 0


class Tile(NamedTuple):
    """What a tile is made of.

    Args:
        head: Bytes in front of the weights.
        lines: Bytes for each tap: one for each channel, or for two.
        tail: Bytes behind them.
    """

    head: int
    lines: int
    tail: int


INT8_TILE: Final = Tile(head=TILE * WORD, lines=TILE, tail=2 * TILE * WORD)
"""Starts of sums; multipliers and shifts."""
INT4_TILE: Final = Tile(head=2 * TILE * WORD + TILE + TILE, lines=TILE // 2, tail=0)
"""Starts and multipliers, shifts in bytes, and steps of windows of several taps."""


def turned_pixels(
    header: tuple[int, ...], weights: bytes, room_bytes: int, tile: Tile = INT8_TILE
) -> Turned | None:
    """A turned `packed_pixels`.

    Args:
        header: The words of its `PackedPixels`, of a single phase.
        weights: Its tiles.
        room_bytes: For its strip, as for `of_least_cost`.
        tile: What tiles are made of.

    Returns:
        None if it cannot be turned, or is.
    """
    import numpy as np  # noqa: PLC0415

    if not _can_be(header):
        return None
    rows, columns, channels = _axes(header)
    is_apart = header[_X_PIXEL] != channels and columns.kernel > 1
    in_bytes = header[_BATCH] * rows.size * header[_X_LINE]

    def way(most_bytes: int) -> Way:
        strip = strip_along(columns, rows, channels, most_bytes, is_apart=is_apart)
        words = _turned(header, strip.pixels, in_bytes * strip.in_place)
        cost = row_cost(words, is_lines=False)
        cost -= band_row_saves(words) if tile is INT8_TILE else 0
        return Way(words, strip.scratch_bytes, cost)

    best = of_least_cost(map(way, _STRIPS), room_bytes)
    if 1 in (rows.kernel, columns.kernel):
        return best.call(weights)  # in the same order, with any groups of steps
    depth = header[_DEPTH]
    size = tile.lines * depth
    tiles = np.frombuffer(weights, np.int8).reshape(-1, tile.head + size + tile.tail)
    head, items, tail = np.split(tiles, (tile.head, tile.head + size), axis=1)
    vectors = items.reshape(len(tiles), -1, tile.lines, LANES).swapaxes(1, 2)
    lines = vectors.reshape(len(tiles), tile.lines, depth)
    taps = rows.kernel * columns.kernel * channels
    made = _turned_taps(lines[..., :taps], rows, columns)
    made = np.concatenate((made, lines[..., taps:]), axis=-1)
    vectors = made.reshape(len(tiles), tile.lines, -1, LANES).swapaxes(1, 2)
    items = vectors.reshape(len(tiles), size)
    return best.call(np.hstack((head, items, tail)).tobytes())


def turned_lines(header: tuple[int, ...], weights: bytes, room_bytes: int) -> Turned | None:
    """The same of `packed_lines`, with its `PackedLines`."""
    import numpy as np  # noqa: PLC0415

    rows, columns, _ = _axes(header)
    window = columns.kernel, columns.stride, columns.dilation
    if not _can_be(header) or window != (LINES, 1, 1):
        return None
    blocks = header[_BLOCKS]

    def way(most_bytes: int) -> Way:
        pixels = lines_pixels(columns.out, blocks, most_bytes)
        words = _turned(header, pixels, blocks)
        scratch_bytes = (pixels + LINES - 1) * blocks * LANES
        return Way(words, scratch_bytes, row_cost(words, is_lines=True))

    best = of_least_cost(map(way, _STRIPS), room_bytes)
    # A tile: of each vector three lines of two channels, then sums and scales.
    size = 2 * LINES * blocks * LANES
    tiles = np.frombuffer(weights, np.int8).reshape(-1, size + 2 * 3 * WORD)
    vectors = tiles[:, :size].reshape(-1, blocks, 2, LINES, LANES)
    taps = vectors.transpose(0, 2, 3, 1, 4).reshape(len(tiles), 2, -1)
    made = _turned_taps(taps, rows, columns).reshape(-1, 2, LINES, blocks, LANES)
    items = made.transpose(0, 3, 1, 2, 4).reshape(len(tiles), size)
    return best.call(np.hstack((items, tiles[:, size:])).tobytes())


class Way(NamedTuple):
    """A strip for a call.

    Args:
        header: The words of the call.
        scratch_bytes: Memory for the strip.
        cost: Instructions of a row, about.
    """

    header: tuple[int, ...]
    scratch_bytes: int
    cost: int

    def call(self, weights: bytes) -> Turned:
        """The call with this strip."""
        header, scratch_bytes, _ = self
        return Turned(header=header, weights=weights, scratch_bytes=scratch_bytes)


def of_least_cost(ways: Iterable[Way], room_bytes: int) -> Way:
    """The fastest strip that fits, if there is room.

    Args:
        ways: The shortest strip first.
        room_bytes: Scratch memory that others need anyway; 0: the shortest strip that
            is nearly as fast as any.
    """
    found = [*ways]
    least = min(way.cost for way in found)
    near = next(way for way in found if way.cost <= _NEAR * least)
    fitting = [way for way in found if way.scratch_bytes <= room_bytes]
    return min((near, *fitting), key=lambda way: way.cost)


def row_cost(header: tuple[int, ...], *, is_lines: bool) -> int:
    """Instructions of a turned call for a row of its output, about."""
    along = Axis.of(header[:_AXIS])
    channels, outputs, depth = header[_CHANNELS : _DEPTH + 1]
    tile, together = _pair_cost(outputs, depth), 2
    if is_lines:
        tile, together = -(-outputs // 2) * (36 * header[_BLOCKS] + 40), 4
    total = tile * -(-along.out // together)
    if is_lines or not header[_IN_BYTES] or depth != channels:
        total += strips_cost(header)
    return total


def band_row_saves(header: tuple[int, ...]) -> int:
    """Of that, what the kernel for bands of a `PackedPixels` takes less.

    It computes an odd last pixel of a strip by itself, not with the one before, and
    brings together taps of one channel at once.
    """
    along, across = (Axis.of(header[at : at + _AXIS]) for at in (0, _AXIS))
    channels, outputs, depth = header[_CHANNELS : _DEPTH + 1]
    lines = _parts(header)[1]
    in_place = bool(header[_IN_BYTES])
    count = along.out % 2
    if not in_place and header[_PIXELS] % 2:
        count = along.out // header[_PIXELS] + along.out % header[_PIXELS] % 2
    one = -(-outputs // (2 * TILE)) * (17 * depth // LANES + 36)
    saved = count * (_pair_cost(outputs, depth) - one)
    # The kernel has the same conditions.
    is_apart = across.dilation > 1 or header[_X_PIXEL] != channels
    is_close = header[_X_LINE] * along.dilation == channels <= _FEW
    if is_apart and is_close and across.kernel <= LANES:
        at_once = LANES // channels
        each = 20 + 6 * across.kernel
        if not (in_place and depth == channels):
            saved += _filling(header) - each * -(-lines // at_once)
    return saved


def strips_cost(header: tuple[int, ...]) -> int:
    """What of the cost of a row the strips are."""
    return 130 * _parts(header)[0] + _filling(header)


def _pair_cost(outputs: int, depth: int) -> int:
    """Of two pixels."""
    return -(-outputs // TILE) * (14 * depth // LANES + 32)


def _filling(header: tuple[int, ...]) -> int:
    """Of copying lines, 16 items at a time."""
    parts, lines = _parts(header)
    vectors = -(-header[_CHANNELS] // LANES)
    return header[_AXIS + 2] * vectors * (15 * parts + 6 * lines)


def _parts(header: tuple[int, ...]) -> tuple[int, int]:
    """How many strips a row has, and lines of all of them."""
    along = Axis.of(header[:_AXIS])
    strip = min(max(header[_PIXELS], 1), along.out)
    parts = -(-along.out // strip)
    return parts, parts * ((strip - 1) * along.stride + along.kernel)


def _axes(header: tuple[int, ...]) -> tuple[Axis, Axis, int]:
    """Rows, columns and channels of a call that is not turned."""
    rows, columns = (Axis.of(header[at : at + _AXIS]) for at in (0, _AXIS))
    return rows, columns, header[_CHANNELS]


def _can_be(header: tuple[int, ...]) -> bool:
    """Whether rows of the image have several pixels, of inputs and of outputs."""
    _, columns, _ = _axes(header)
    is_wide = min(columns.size, columns.out) > 1
    return is_wide and header[_BATCH] == 1 and not is_turned(header)


def _turned_taps(taps: NDArray[np.int8], rows: Axis, columns: Axis) -> NDArray[np.int8]:
    """Taps of windows, the last dimension, column by column."""
    shape = taps.shape
    windows = taps.reshape(*shape[:-1], rows.kernel, columns.kernel, -1)
    return windows.swapaxes(-3, -2).reshape(shape)


def _turned(header: tuple[int, ...], *strip: int) -> tuple[int, ...]:
    """The words with rows and columns exchanged, and those of another strip."""
    x_line, x_pixel, y_line, y_pixel = header[_STEPS]
    return (
        *(*header[_AXIS : 2 * _AXIS], *header[:_AXIS]),
        *(*header[2 * _AXIS : _PIXELS], *strip),
        *(x_pixel, x_line, y_pixel, y_line),
        *header[_STEPS.stop :],
    )
