"""Weights of 4 bits, two in a byte: the families of kernels that make int8 of them.

kernels/cortex_m/int4.h has the formats. A weight is a number of 4 bits times a step,
which a channel has, or each group of its taps; the product is the weight, so that no
bit of an output changes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from orchestrator.core.lazy_bytes import Bytes
from orchestrator.method.passes.arguments import need
from orchestrator.method.passes.packing.convolution import TILE, WORD, Convolution, starts_of, up
from orchestrator.method.passes.packing.header import (
    LANES,
    SETUP,
    ConvolutionHeader,
    Header,
    Packed,
    Room,
    bytes_in,
    convolution_fields,
    tiles_of,
    word_of,
)
from orchestrator.method.passes.packing.matrix import STEP, MatrixHeader
from orchestrator.method.passes.packing.pairs import PAIR_WORDS, Pairs
from orchestrator.method.passes.packing.phases import Phase
from orchestrator.method.passes.packing.pixel import EIGHT, Pixel
from orchestrator.method.passes.packing.pixels import (
    LinePhase,
    Pixels,
    TileLayout,
    strip_of,
    unrolled,
)
from orchestrator.method.passes.packing.scaling import EMPTY
from orchestrator.method.windows import Core, Cost, Image, OverlapRule, ScratchSavingVariant

if TYPE_CHECKING:
    from orchestrator.method.passes.packing.convolution import Ints

LOWEST, HIGHEST = -8, 7
"""Numbers of 4 bits."""
# -8 times 16 is -128.
MOST_STEP: Final = 16
"""The weights that it gives are int8."""
# `group` of [models.weights] has these; the largest that fits has the fewest steps.
GROUPS: Final = (128, 64, 32)
"""Taps that may have a step of their own."""
# Half of 128 bytes, less the steps, and kernels of their own.
_LEAST: Final = 128
"""Weights of a call with fewer stay int8: it saves hardly anything."""
# In op_int4_convolution.cpp an input with its offset has 9 bits, a number times 16 has 8: 2 ** 15
# products stay below 2 ** 30.
_TAP_BOUND: Final = 1 << 15
"""Bound on taps: sums of 16 times the weights have 32 bits."""
# `Int4Pair.to` of int4.h has 16 bits.
_CHANNELS: Final = 1 << 16
"""Bound on outputs of a convolution for DSP instructions."""
# A word has four channels, the highest times 4096: 256 taps of inputs of 128 and numbers of 8 make
# sums of 2 ** 30, 512 would make 2 ** 31.
_DSP_GROUP: Final = 256
"""Most taps of a group: with more, packed sums of the single-pixel kernel overlap."""
# Fewer blocks bring inputs together less often (decision 29).
_BLOCK, _PART = 1536, 8
"""Bytes of weights as int8 in scratch memory, where that adds to the arena, and which
part of the arena these are at most."""
_HEAD_BYTES: Final = 2 * WORD
"""Bytes in front of all tiles."""
# Four starts, multipliers and shifts.
_TILE_WORDS: Final = 12
"""Words of a tile for vectors besides its weights."""


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
        """These weights with zeros after the last ones."""
        import numpy as np  # noqa: PLC0415

        more = outputs - len(self.numbers)
        return Int4(
            numbers=np.pad(self.numbers, ((0, more), (0, taps - self.numbers.shape[1]))),
            steps=np.pad(self.steps, ((0, more), (0, 0)), constant_values=1),
            group=self.group if self.steps.shape[1] > 1 else taps,
        )

    def in_groups(self, most: int) -> Int4:
        """These weights in groups of so many taps at most."""
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
    return "as it has many taps" if conv.weights.shape[1] >= _TAP_BOUND else ""


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


@dataclass(frozen=True, kw_only=True)
class Int4Convolution(ConvolutionHeader):
    """`PackedConvolution` of packed.h, for plain C++: tiles of two channels."""

    @classmethod
    def packed(cls, conv: Convolution, int4: Int4) -> Packed:
        """A call."""
        taps = conv.weights.shape[1]
        of = int4.padded(up(len(conv.weights), 2), taps)
        data = bytes_in("<i4", 0, of.group)
        for first, tile in _scales(conv, 2):
            pair = slice(first, first + 2)
            data += tile + bytes_in("u1", *of.steps[pair].T.reshape(-1).tolist())
            data += _two(of.numbers[first], of.numbers[first + 1])
            data += bytes(-len(data) % WORD)
        return Packed(cls(**convolution_fields(conv, taps)), data, 0)

    def costs(self, core: Core, rows: int, weights: Bytes) -> tuple[Cost, ...]:
        # The loop of `add_row` (op_int4_convolution.cpp) takes 17 instructions for a tap of two
        # channels on a Cortex-M0+: 8.5 of a product, with GCC. What scales an output is left out.
        tile = 8 * self.depth * self.out_channels
        return (Cost(setup=SETUP["scalar"], tile=tile, pixels=self.pixels_out // rows),)


class _Blocks(Header):
    """Calls whose weights become int8 in scratch memory, some tiles at a time."""

    @property
    @abstractmethod
    def tiles(self) -> int:
        """Tiles of the call."""

    @property
    @abstractmethod
    def tile_bytes(self) -> int:
        """Bytes of each as int8."""

    @abstractmethod
    def block_cost(self, cost: Cost) -> tuple[int, int]:
        """Instructions for all weights, and for the inputs that `cost` is for once more."""

    def block(self, most_bytes: int) -> int:
        """How many tiles are int8 at a time: blocks of about equal size.

        Args:
            most_bytes: Bytes of a block, if they are more than a tile's.
        """
        most = max(most_bytes // self.tile_bytes, 1)
        return -(-self.tiles // -(-self.tiles // most))

    def with_blocks(self, cost: Cost, weights: Bytes) -> tuple[Cost, ...]:
        """Costs of a call, of which one is without blocks."""
        made, again = self.block_cost(cost)
        # Inputs are brought together for each block anew.
        # The first word of the weights is how many tiles are int8 at a time (`Int4Weights`).
        count = -(-self.tiles // word_of(weights))
        return (cost, Cost(setup=made), replace(cost, setup=0, tile=again * (count - 1)))

    def in_blocks(self, packed: Packed, room_bytes: int) -> Packed:
        """A call with as many weights as int8 at a time as there is room for."""
        beside = packed.scratch_bytes - word_of(packed.weights) * self.tile_bytes
        block = self.block(max(room_bytes - beside, _BLOCK))
        weights = bytes_in("<i4", block) + packed.weights[WORD:]
        return Packed(packed.header, weights, block * self.tile_bytes + beside)


@dataclass(frozen=True, kw_only=True)
class Int4Pairs(_Blocks, Pairs):
    """`PackedPairs` of packed_dsp.h, with an `Int4Pair` for each pair of channels."""

    HAS_TWO: ClassVar = False

    @classmethod
    def packed_in(cls, conv: Convolution, int4: Int4, room: Room) -> Packed:
        """A call.

        Raises:
            UnknownCallError: The kernel cannot take this.
        """
        import numpy as np  # noqa: PLC0415

        need(len(conv.weights) < _CHANNELS)
        header, found, scratch_bytes = cls.of_channels(conv)
        depth = header.depth
        group = int4.group if int4.steps.shape[1] > 1 else depth
        steps = np.pad(int4.steps, ((0, 1), (0, 0)), constant_values=1)
        block = header.block(block_bytes(room.live_bytes, room.spare_bytes - scratch_bytes))
        data = bytes_in("<i4", block, group)
        multipliers, shifts = np.append(conv.multipliers, 0), np.append(-conv.shifts, 0)
        for a, b in found.pairs:
            those = [a, b]
            data += bytes_in("<i4", *found.sums[those].tolist(), *multipliers[those].tolist())
            # The output of an empty channel goes where the real one is stored later.
            data += bytes_in("<u2", b if a == EMPTY else a, b)
            data += bytes_in("u1", *shifts[those].tolist(), *steps[those, 0].tolist())
            for n, tap in enumerate(range(0, depth, group)):
                weights = found.weights[those, tap : tap + group]
                if n:
                    data += bytes_in("u1", *steps[those, n].tolist(), 0, 0)
                data += _four_taps(*(weights // steps[those, n, None]))
        return Packed(header, data, block * header.tile_bytes + scratch_bytes)

    @property
    def tiles(self) -> int:
        return self.all_bytes // self.tile_bytes

    @property
    def tile_bytes(self) -> int:
        return WORD * PAIR_WORDS + self.weight_bytes

    def block_cost(self, cost: Cost) -> tuple[int, int]:
        # `expand` of op_int4_packed_conv2d.cpp takes 18 for four taps of two channels, 2.3 of a
        # weight, and a pair has its scales. Inputs of three pixels cost what `Pairs.costs` says.
        return 4 * self.depth * self.out_channels, 5 * self.depth + 440

    @property
    def may_write_over_input(self) -> bool:
        return False  # it reads inputs for each block

    def overlap(self, source: Image, out: Image) -> OverlapRule | None:
        return None

    def costs(self, core: Core, rows: int, weights: Bytes) -> tuple[Cost, ...]:
        (cost,) = Pairs.costs(self, core, rows, weights)
        return self.with_blocks(cost, weights)

    def scratch_saving(self, core: Core, rows: int, weights: Bytes) -> ScratchSavingVariant | None:
        return None

    def for_bands(self, packed: Packed, room_bytes: int) -> Packed | None:
        return self.in_blocks(packed, room_bytes)


@dataclass(frozen=True, kw_only=True)
class Int4Matrix(MatrixHeader):
    """`Int4Matrix` of int4.h: tiles of four channels, for DSP instructions."""

    multiplier: int
    right: int
    offset: int

    @classmethod
    def packed(cls, conv: Convolution, int4: Int4) -> Packed:
        """A call.

        Raises:
            UnknownCallError: The kernel cannot take this.
        """
        need(conv.is_matrix and conv.has_one_scale)
        outputs, taps = conv.weights.shape
        depth = up(taps, STEP)
        of = int4.padded(up(outputs, TILE), depth).in_groups(_DSP_GROUP)
        data = bytes_in("<i4", 0, of.group)
        starts = _pad(starts_of(conv), len(of.numbers))
        for first in range(0, outputs, TILE):
            tile = slice(first, first + TILE)
            data += bytes_in("<i4", *starts[tile].tolist())
            for steps, numbers in of.groups():
                a, b, c, d = numbers[tile]
                # The last channel keeps its sign; products of the others with 8 are taken off by
                # the sum of inputs (int4.h).
                lanes = (a + 8) | (b + 8) << 4 | (c + 8) << 8 | (d & 15) << 12
                lanes = lanes.reshape(-1, TILE)[:, (0, 2, 1, 3)]
                data += bytes_in("u1", *steps[tile].tolist())
                data += bytes_in("<u2", *lanes.reshape(-1).tolist())
        header = cls(
            pixels=conv.pixels,
            items=taps,
            depth=depth,
            out_channels=outputs,
            multiplier=int(conv.multipliers[0]),
            right=-int(conv.shifts[0]),
            offset=conv.offset,
        )
        # A sum for each group, and pairs.
        return Packed(header, data, WORD * -(-taps // GROUPS[-1]) + 2 * depth)


@dataclass(frozen=True, kw_only=True)
class Int4Pixels(_Blocks, Pixels):
    """`PackedPixels` of packed.h, of one phase."""

    LAYOUT: ClassVar = TileLayout(head=2 * TILE * WORD + TILE + TILE, lines=TILE // 2, tail=0)
    """Starts and multipliers, shifts in bytes, and steps of windows of several taps."""

    @classmethod
    def packed_in(cls, phase: Phase, int4: Int4, room: Room, *, fast: bool) -> Packed:
        """A call."""
        conv, strip = phase.conv, strip_of(phase, room.spare_bytes)
        header = cls.of_phase(phase, strip)
        most = block_bytes(room.live_bytes, room.spare_bytes - strip.scratch_bytes)
        of = int4.padded(up(len(conv.weights), TILE), strip.depth)
        block = header.block(most)
        data = bytes_in("<i4", block, of.group)
        for first, tile in _scales(replace(conv, sums=starts_of(conv)), TILE):
            data += tile + _vectors(of, [*range(first, first + TILE)])
        scratch_bytes = block * header.tile_bytes + strip.scratch_bytes
        return Packed(header, data, scratch_bytes, unrolled(cls.kernels(), [strip], fast=fast))

    @property
    def tiles(self) -> int:
        return tiles_of(self.out_channels)

    @property
    def tile_bytes(self) -> int:
        return WORD * _TILE_WORDS + TILE * self.depth

    def block_cost(self, cost: Cost) -> tuple[int, int]:
        again = self.strips_cost if self.is_turned else 30 * cost.together
        # The loop of `expand` takes 17 for 16 taps of four channels, not of one as here: bands look
        # slower than they are.
        return self.depth * self.out_channels * 9 // 8, again

    @property
    def band_row_cost(self) -> int:
        return self.row_cost  # there is no kernel for bands

    def _phase(self, row_bytes: int) -> LinePhase | None:
        return None

    def overlap(self, source: Image, out: Image) -> OverlapRule | None:
        return None

    def costs(self, core: Core, rows: int, weights: Bytes) -> tuple[Cost, ...]:
        (cost,) = Pixels.costs(self, core, rows, weights)
        return self.with_blocks(cost, weights)

    def for_bands(self, packed: Packed, room_bytes: int) -> Packed | None:
        # Blocks and strips share scratch memory. Strips get as little as may be (0), blocks what is
        # left.
        head, tiles = packed.weights[:_HEAD_BYTES], packed.weights[_HEAD_BYTES:]
        made = Pixels.for_bands(self, packed._replace(weights=tiles), 0)
        if made is not None:
            scratch_bytes = word_of(head) * self.tile_bytes + made.scratch_bytes
            packed = Packed(made.header, head + made.weights, scratch_bytes)
        return self.in_blocks(packed, room_bytes)


@dataclass(frozen=True, kw_only=True)
class Int4Pixel(Pixel):
    """`PackedPixel` of packed.h: tiles of eight channels."""

    @classmethod
    def packed_int4(cls, conv: Convolution, int4: Int4) -> Packed:
        """A call."""
        header, scratch_bytes = cls.of_single(conv)
        of = int4.padded(up(len(conv.weights), len(EIGHT)), header.depth)
        data = bytes_in("<i4", 0, of.group)
        starts = _pad(starts_of(conv), len(of.numbers))
        for first in range(0, len(of.numbers), len(EIGHT)):
            those = [first + c for c in EIGHT]
            data += bytes_in("<i4", *starts[those].tolist()) + _vectors(of, those)
        return Packed(header, data, scratch_bytes)


def block_bytes(live_bytes: int, spare_bytes: int) -> int:
    """How many bytes of weights may be int8 at a time, if they are more than a tile's.

    Args:
        live_bytes: The most that is live at one time.
        spare_bytes: How much less that is at the call, with its other scratch memory.
    """
    return max(spare_bytes, min(_BLOCK, live_bytes // _PART))


def _vectors(int4: Int4, channels: list[int]) -> bytes:
    """Steps and numbers of some channels, two by two, for each 16 taps."""
    data = b""
    for steps, numbers in int4.groups():
        data += bytes_in("u1", *steps[channels].tolist())
        for tap in range(0, numbers.shape[1], LANES):
            those = numbers[channels, tap : tap + LANES]
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
        yield first, bytes_in("<i4", *numbers) + bytes_in("i1", *shifts[tile].tolist())


def _pad(items: Ints, count: int) -> Ints:
    import numpy as np  # noqa: PLC0415

    return np.pad(items, (0, count - len(items)))


def _two(low: Ints, high: Ints) -> bytes:
    """Numbers two by two in bytes."""
    return bytes_in("u1", *((low & 15) | (high & 15) << 4).tolist())


def _four_taps(a: Ints, b: Ints) -> bytes:
    """Four taps after four: 0 and 1 of A, then of B, and 2 and 3 of both."""
    # As `Int4Pair` of int4.h says: numbers from -8 to 7 are stored larger by 8, so that none is
    # negative.
    halves = (a[::2] + 8) | (a[1::2] + 8) << 4 | (b[::2] + 8) << 8 | (b[1::2] + 8) << 12
    return bytes_in("<u2", *halves.tolist())
