"""Weights of 4 bits, two in a byte, in the order in which kernels read them.

kernels/cortex_m/int4.h has the formats. A weight is a number of 4 bits times a step,
which a channel has, or each group of its taps; the product is the weight, so that no
bit of an output changes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrator.method.passes.arguments import need
from orchestrator.method.passes.packing import dsp, mve
from orchestrator.method.passes.packing.convolution import (
    TILE,
    WORD,
    convolution_header,
    int32,
    starts_of,
    up,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orchestrator.method.passes.packing.convolution import Convolution
    from orchestrator.method.passes.packing.mve import Strip
    from orchestrator.method.passes.packing.phases import Phase

    Ints = NDArray[np.int64]

LOWEST, HIGHEST = -8, 7
"""Of 4 bits."""
MOST_STEP: Final = 16
"""The weights that it gives are int8."""
GROUPS: Final = (128, 64, 32)
"""Taps that may have a step of their own."""
_LEAST: Final = 128
"""Weights of a call with fewer stay int8: it saves hardly anything."""
_MOST: Final = 1 << 15
"""Bound on taps: sums of 16 times the weights have 32 bits."""
_CHANNELS: Final = 1 << 16
"""Bound on outputs of a convolution for DSP instructions."""
_DSP_GROUP: Final = 256
"""Most taps of a group: with more, packed sums of the single-pixel kernel overlap."""
_BLOCK, _PART = 1536, 8
"""Bytes of weights as int8 in scratch memory, where that adds to the arena, and which
part of the arena these are at most."""
_OUTPUTS, _DEPTH, _WEIGHT_BYTES, _ALL_BYTES = 14, 15, 18, 19
"""Words of headers."""
BLOCK_HEAD: Final = 2 * WORD
"""Bytes in front of all tiles."""
_TILE_WORDS: Final = 12
"""Of a tile for vectors besides its weights."""


class Packed(NamedTuple):
    """Words of a call's constants, and bytes of scratch memory for int8 weights."""

    words: list[int]
    block_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Int4:
    """Weights as numbers of 4 bits.

    Args:
        numbers: [outputs, taps].
        steps: [outputs, groups].
        group: Taps that have a step; all of them, or a multiple of 32.
    """

    numbers: Ints
    steps: Ints
    group: int

    def padded(self, outputs: int, taps: int) -> Int4:
        """The same with weights of zero after the last ones."""
        import numpy as np  # noqa: PLC0415

        more = outputs - len(self.numbers)
        return Int4(
            numbers=np.pad(self.numbers, ((0, more), (0, taps - self.numbers.shape[1]))),
            steps=np.pad(self.steps, ((0, more), (0, 0)), constant_values=1),
            group=self.group if self.steps.shape[1] > 1 else taps,
        )

    def in_groups(self, most: int) -> Int4:
        """The same with groups of so many taps at most."""
        if self.group <= most:
            return self
        count = -(-self.numbers.shape[1] // most)
        return replace(self, steps=self.steps.repeat(count, axis=1), group=most)

    def groups(self) -> list[tuple[Ints, Ints]]:
        """Steps [outputs] and numbers [outputs, taps] of each group."""
        firsts = range(0, self.numbers.shape[1], self.group)
        return [
            (self.steps[:, n], self.numbers[:, first : first + self.group])
            for n, first in enumerate(firsts)
        ]


def may_have_groups(conv: Convolution) -> bool:
    """Whether groups of taps may have steps of their own: pixels of one tap."""
    return conv.rows.kernel == conv.columns.kernel == 1


def why_int8(conv: Convolution) -> str:
    """Why the weights of a call stay int8, whatever they are; "" if they need not."""
    if conv.depthwise:
        return "as most bytes of a depthwise channel are its scale"
    if conv.groups > 1:
        return "as it has groups of channels"
    if conv.weights.size < _LEAST:
        return "as there are few"
    return "as it has many taps" if conv.weights.shape[1] >= _MOST else ""


def int4_of(conv: Convolution) -> Int4 | None:
    """The weights as numbers of 4 bits, if they all are such, and worth it."""
    taps = conv.weights.shape[1]
    if why_int8(conv):
        return None
    groups = [n for n in GROUPS if n < taps] if may_have_groups(conv) else []
    found = (_with_group(conv.weights, group) for group in (taps, *groups))
    return next((i for i in found if i is not None), None)


def _with_group(weights: Ints, group: int) -> Int4 | None:
    """The weights as numbers of 4 bits with a step for so many taps."""
    import numpy as np  # noqa: PLC0415

    outputs, taps = weights.shape
    count = -(-taps // group)
    padded = np.pad(weights, ((0, 0), (0, count * group - taps)))
    grouped = padded.reshape(outputs, count, group)
    steps = np.zeros((outputs, count), np.int64)
    for step in range(1, MOST_STEP + 1):
        numbers = grouped // step
        is_step = (numbers * step == grouped) & (numbers >= LOWEST)
        fits = (is_step & (numbers <= HIGHEST)).all(axis=2)
        steps[fits & (steps == 0)] = step
    if not steps.all():
        return None
    numbers = grouped // steps[:, :, None]
    return Int4(numbers=numbers.reshape(outputs, -1)[:, :taps], steps=steps, group=group)


def convolution(conv: Convolution, int4: Int4) -> Packed:
    """The words of `PackedConvolution` and of tiles, for plain C++."""
    taps = conv.weights.shape[1]
    of = int4.padded(up(len(conv.weights), 2), taps)
    data = _bytes("<i4", 0, of.group)
    for first, tile in _scales(conv, 2):
        pair = slice(first, first + 2)
        data += tile + _bytes("u1", *of.steps[pair].T.reshape(-1).tolist())
        data += _two(of.numbers[first], of.numbers[first + 1])
        data += bytes(-len(data) % WORD)
    return _packed(convolution_header(conv, taps), data)


def block_bytes(live_bytes: int, spare_bytes: int) -> int:
    """How many bytes of weights may be int8 at a time, if they are more than a tile's.

    Args:
        live_bytes: The most that is live at one time.
        spare_bytes: How much less that is at the call, with its other scratch memory.
    """
    return max(spare_bytes, min(_BLOCK, live_bytes // _PART))


class Blocks(NamedTuple):
    """Weights that may be int8 at a time.

    Args:
        tiles: Of the call.
        tile_bytes: Of each as int8.
    """

    tiles: int
    tile_bytes: int

    @classmethod
    def of_pixels(cls, header: tuple[int, ...]) -> Blocks:
        """Those of a call with a `PackedPixels`."""
        outputs, depth = header[_OUTPUTS], header[_DEPTH]
        return cls(-(-outputs // TILE), WORD * _TILE_WORDS + TILE * depth)

    @classmethod
    def of_pairs(cls, header: tuple[int, ...]) -> Blocks:
        """Those of a call with a `PackedPairs`."""
        tile_bytes = WORD * dsp.PAIR_WORDS + header[_WEIGHT_BYTES]
        return cls(header[_ALL_BYTES] // tile_bytes, tile_bytes)

    def count_in(self, weights: bytes) -> int:
        """How many blocks the weights of a call are."""
        (block,) = struct.unpack("<i", weights[:WORD])
        return -(-self.tiles // int(block))

    def bytes_in(self, weights: bytes) -> int:
        """Scratch memory for a block of the weights of a call."""
        (block,) = struct.unpack("<i", weights[:WORD])
        return int(block) * self.tile_bytes

    def resized(self, weights: bytes, most_bytes: int) -> bytes:
        """The weights with blocks of so many bytes, if a tile has no more."""
        block = _block(self.tiles, self.tile_bytes, max(most_bytes, _BLOCK))
        return struct.pack("<i", block) + weights[WORD:]


def pairs(conv: Convolution, int4: Int4, most_bytes: int) -> Packed:
    """The words of `PackedPairs` and of an `Int4Pair` for each pair of channels.

    Args:
        conv: What the call computes.
        int4: Its weights.
        most_bytes: Of weights that are int8 at a time, if they are more than a tile's.

    Raises:
        UnknownCallError: The packed kernel cannot take this.
    """
    import numpy as np  # noqa: PLC0415

    need(len(conv.weights) < _CHANNELS)
    found = dsp.paired(conv)
    depth = found.weights.shape[1]
    group = int4.group if int4.steps.shape[1] > 1 else depth
    steps = np.pad(int4.steps, ((0, 1), (0, 0)), constant_values=1)
    tile_bytes = WORD * dsp.PAIR_WORDS + 2 * depth
    block = _block(len(found.channels), tile_bytes, most_bytes)
    data = _bytes("<i4", block, group)
    multipliers, shifts = np.append(conv.multipliers, 0), np.append(-conv.shifts, 0)
    for a, b in found.channels:
        those = [a, b]
        data += _bytes("<i4", *found.sums[those].tolist(), *multipliers[those].tolist())
        # The output of an empty channel goes where the real one is stored later.
        data += _bytes("<u2", b if a == dsp.EMPTY else a, b)
        data += _bytes("u1", *shifts[those].tolist(), *steps[those, 0].tolist())
        for n, tap in enumerate(range(0, depth, group)):
            weights = found.weights[those, tap : tap + group]
            if n:
                data += _bytes("u1", *steps[those, n].tolist(), 0, 0)
            data += _four_taps(*(weights // steps[those, n, None]))
    return _packed(found.header, data, block * tile_bytes)


def matrix(conv: Convolution, int4: Int4) -> Packed:
    """The words of `Int4Matrix` and of tiles of four channels.

    Raises:
        UnknownCallError: The packed kernel cannot take this.
    """
    need(conv.is_matrix and conv.has_one_scale)
    outputs, taps = conv.weights.shape
    depth = up(taps, dsp.STEP)
    of = int4.padded(up(outputs, TILE), depth).in_groups(_DSP_GROUP)
    data = _bytes("<i4", 0, of.group)
    starts = _pad(starts_of(conv), len(of.numbers))
    for first in range(0, outputs, TILE):
        tile = slice(first, first + TILE)
        data += _bytes("<i4", *starts[tile].tolist())
        for steps, numbers in of.groups():
            a, b, c, d = numbers[tile]
            lanes = (a + 8) | (b + 8) << 4 | (c + 8) << 8 | (d & 15) << 12
            lanes = lanes.reshape(-1, TILE)[:, (0, 2, 1, 3)]
            data += _bytes("u1", *steps[tile].tolist())
            data += _bytes("<u2", *lanes.reshape(-1).tolist())
    header = (
        *(conv.pixels, taps, depth, outputs),
        *(int(conv.multipliers[0]), -int(conv.shifts[0]), conv.offset),
    )
    return _packed(header, data)


def pixels(phase: Phase, strip: Strip, int4: Int4, most_bytes: int) -> Packed:
    """The words of `PackedPixels` and of tiles of four channels, for vectors.

    Args:
        phase: What the call computes.
        strip: How it goes over the image.
        int4: Its weights.
        most_bytes: Of weights that are int8 at a time, if they are more than a tile's.
    """
    conv = phase.conv
    of = int4.padded(up(len(conv.weights), TILE), strip.depth)
    tile_bytes = WORD * _TILE_WORDS + TILE * strip.depth
    block = _block(len(of.numbers) // TILE, tile_bytes, most_bytes)
    data = _bytes("<i4", block, of.group)
    starts = replace(conv, sums=starts_of(conv))
    for first, tile in _scales(starts, TILE):
        data += tile + _vectors(of, [*range(first, first + TILE)])
    header = (*mve.phase_header(phase, strip), 0)
    return _packed(header, data, block * tile_bytes)


def pixel(conv: Convolution, depth: int, int4: Int4) -> Packed:
    """The words of `PackedPixel` and of tiles of eight channels."""
    eight = len(mve.EIGHT)
    of = int4.padded(up(len(conv.weights), eight), depth)
    data = _bytes("<i4", 0, of.group)
    starts = _pad(starts_of(conv), len(of.numbers))
    for first in range(0, len(of.numbers), eight):
        those = [first + c for c in mve.EIGHT]
        data += _bytes("<i4", *starts[those].tolist()) + _vectors(of, those)
    return _packed(mve.pixel_header(conv, depth), data)


def _vectors(int4: Int4, channels: list[int]) -> bytes:
    """Steps and numbers of some channels, two by two, for each 16 taps."""
    data = b""
    for steps, numbers in int4.groups():
        data += _bytes("u1", *steps[channels].tolist())
        for tap in range(0, numbers.shape[1], mve.LANES):
            those = numbers[channels, tap : tap + mve.LANES]
            data += _two(those[::2].reshape(-1), those[1::2].reshape(-1))
    return data


def _scales(conv: Convolution, channels: int) -> Iterator[tuple[int, bytes]]:
    """First channel of each tile, and starts, multipliers and shifts of it."""
    outputs = up(len(conv.weights), channels)
    of = (_pad(a, outputs) for a in (conv.sums, conv.multipliers, conv.shifts))
    starts, multipliers, shifts = of
    for first in range(0, outputs, channels):
        tile = slice(first, first + channels)
        numbers = (*starts[tile].tolist(), *multipliers[tile].tolist())
        yield first, _bytes("<i4", *numbers) + _bytes("i1", *shifts[tile].tolist())


def _block(tiles: int, tile_bytes: int, most_bytes: int) -> int:
    """How many tiles are int8 at a time: blocks of about equal size."""
    most = max(most_bytes // tile_bytes, 1)
    return -(-tiles // -(-tiles // most))


def _packed(header: tuple[int, ...], data: bytes, block_bytes: int = 0) -> Packed:
    words = [*header, *struct.unpack(f"<{len(data) // WORD}i", data)]
    return Packed([int32(word) for word in words], block_bytes)


def _pad(items: Ints, count: int) -> Ints:
    import numpy as np  # noqa: PLC0415

    return np.pad(items, (0, count - len(items)))


def _bytes(dtype: str, *numbers: int) -> bytes:
    """Numbers in memory; those that are too large wrap around, as sums do."""
    import numpy as np  # noqa: PLC0415

    return np.array(numbers, np.int64).astype(dtype).tobytes()


def _two(low: Ints, high: Ints) -> bytes:
    """Numbers two by two in bytes."""
    return _bytes("u1", *((low & 15) | (high & 15) << 4).tolist())


def _four_taps(a: Ints, b: Ints) -> bytes:
    """Of each four taps: 0 and 1 of A, then of B, and 2 and 3 of both."""
    halves = (a[::2] + 8) | (a[1::2] + 8) << 4 | (b[::2] + 8) << 8 | (b[1::2] + 8) << 12
    return _bytes("<u2", *halves.tolist())
