"""Three pixels at once and two channels at once, for DSP instructions.

The kernel is op_packed_conv2d.cpp of kernels/cortex_m; packed_dsp.h has the format.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Self

from orchestrator.core.lazy_bytes import Bytes
from orchestrator.method.passes.arguments import need
from orchestrator.method.passes.packing.convolution import (
    TILE,
    WORD,
    Convolution,
    in_one_line,
    starts_of,
    up,
)
from orchestrator.method.passes.packing.header import (
    ONE,
    SETUP,
    ConvolutionHeader,
    Packed,
    bytes_in,
    convolution_fields,
    lead_bytes,
)
from orchestrator.method.passes.packing.scaling import (
    EMPTY,
    Scale,
    joined,
    pairs_of,
    scales_of_pairs,
)
from orchestrator.method.windows import Core, Cost, Image, OverlapRule, ScratchSavingVariant

if TYPE_CHECKING:
    from orchestrator.method.passes.packing.convolution import Ints
    from orchestrator.method.passes.packing.scaling import Scales

# Two starts of sums and two `PackedScale` of three words each, as packed_dsp.h has them.
PAIR_WORDS: Final = 8
"""Words of a pair of channels besides its weights."""
# `kPixels` of packed_loops_dsp.h. Sums of three pixels and two channels take r7 to r12, inputs and
# weights r2 to r6: a fourth pixel has no registers.
_PIXELS: Final = 3
# A copy of a window has no taps of padding between its rows; rows that are read in place do, up to
# whole words. What both cost is compared in `Pieces.of`.
_COPY, _COPY_ITEM = 128, 4
"""Instructions that the copy of a window takes, and for each item: measured. One more
tap takes about one for each output."""
# Inputs are widened to 16 bits: two bytes for each of two pixels.
_TAP_BYTES: Final = 4
"""Scratch memory of two pixels for each tap."""


class Pieces(NamedTuple):
    """How a kernel that takes whole words reads the inputs of a window.

    Args:
        rows: Pieces that lie side by side.
        items: Of each; where they are no whole words, the last word begins earlier.
        inner_columns: In how many columns windows in the image may begin; 0 if all of
            them are copied first.
    """

    rows: int
    items: int
    inner_columns: int

    @property
    def depth(self) -> int:
        """Taps that weights are for."""
        return self.rows * up(self.items, TILE)

    @classmethod
    def of(cls, conv: Convolution) -> Pieces:
        """Rows of the window in the image, or all of its inputs in a copy."""
        rows, columns = conv.rows, conv.columns
        outputs, taps = conv.weights.shape
        copied = cls(1, up(taps, TILE), 0)
        items = columns.kernel * conv.channels
        inner = columns.size - (columns.kernel - 1) * columns.dilation
        found = cls(rows.kernel, items, conv.pixels if conv.is_matrix else max(inner, 0))
        # The loop steps back within a piece where its items are no whole words, so a piece has at
        # least one word.
        together = columns.dilation == 1 or columns.kernel == 1
        more = found.depth - copied.depth
        if together and items >= TILE and more * outputs <= _COPY + _COPY_ITEM * taps:
            return found
        return copied


@dataclass(frozen=True, kw_only=True)
class Pairs(ConvolutionHeader):
    """`PackedPairs` of packed_dsp.h."""

    HAS_TWO: ClassVar = True
    """Whether there is a kernel with a loop for two pixels."""

    weight_bytes: int
    all_bytes: int
    patch_rows: int
    patch_items: int
    inner_columns: int
    ties: int

    @classmethod
    def of_channels(cls, conv: Convolution) -> tuple[Self, Channels, int]:
        """The struct of a call, its channels two by two, and its scratch memory.

        Raises:
            UnknownCallError: The kernel cannot take this.
        """
        channels = Channels.of(conv)
        ties = {2 * s.ties >> s.left for s in (*channels.first, *channels.second) if s}
        # The assembly has one flag for all channels, and takes half of `1 << left` where it is set.
        # That is the tie of a scale only if its multiplier has all 31 bits, as exporters write it.
        need(ties <= {0} or ties <= {1})
        of = Pieces.of(conv)
        weight_bytes = 2 * of.depth
        header = cls(
            **convolution_fields(in_one_line(conv), of.depth),
            weight_bytes=weight_bytes,
            all_bytes=len(channels.pairs) * (WORD * PAIR_WORDS + weight_bytes),
            patch_rows=of.rows,
            patch_items=of.items,
            inner_columns=of.inner_columns,
            ties=max(ties),
        )
        # Without a gap between pixels, as in a matrix product, nothing is ever copied.
        # Pairs, and a copy of the inputs of a pixel.
        is_joined = conv.is_matrix and of.inner_columns != 0
        return header, channels, (2 * _PIXELS + (0 if is_joined else 1)) * of.depth

    @classmethod
    def packed(cls, conv: Convolution) -> Packed:
        """A call.

        Raises:
            UnknownCallError: The kernel cannot take this.
        """
        header, of, scratch_bytes = cls.of_channels(conv)
        data = bytearray()
        for a, b in of.pairs:
            data += bytes_in("<i4", joined(of.sums[a], of.sums[b]), of.sums[a])
            data += in_words(joined(of.weights[a], of.weights[b]))
            # The output of an empty channel goes where the real one is stored later.
            has_a = a != EMPTY
            data += _scale(of.first[a] if has_a else None, a if has_a else b, right=False)
            data += _scale(of.second[b], b, right=True)
        return Packed(header, bytes(data), scratch_bytes)

    @property
    def may_write_over_input(self) -> bool:
        """Where pixels are their own windows, whose inputs are widened before."""
        return self.rows.is_pixelwise and self.columns.is_pixelwise

    def overlap(self, source: Image, out: Image) -> OverlapRule | None:
        lead = lead_bytes(self.columns, source, out)
        return OverlapRule(lead_bytes=lead, few_bytes=lead, rows=1)

    # Instructions, from loops of the assembly.

    def costs(self, core: Core, rows: int, weights: Bytes) -> tuple[Cost, ...]:
        # Loops are in packed_loops_dsp.cpp. `orch_four_taps` for three pixels: 17 instructions for
        # four taps of two channels, 17/8 of a tap and a channel. With `optimize = "size"` a round
        # has two such steps and a branch: 36 for eight taps, 9/4.
        setup, pixels = SETUP["dsp"], self.pixels_out // rows
        if core.fast and self.rows != ONE:
            return (self._strips_cost(setup, pixels),)
        loop = 17 * self.depth // 8 if core.fast else 9 * self.depth // 4
        # What is around the loop takes 46 of two channels, or 65 where ties go down: 25 of a
        # channel lies between. Widening takes 3 of a tap where windows lie in the image, and about
        # twice as much where they are copied first; 140 are the C++ around a tile.
        tile = self.out_channels * (loop + 25) + 5 * self.depth + 140
        # In an image of several rows, finding where three windows begin and what is in the image.
        tile += 0 if self.rows == ONE else 300
        # Four taps of two pixels take 12 instructions in place of 17; 0.68 is what bands took in
        # the emulator.
        two = tile * 17 // 25 if self.HAS_TWO else 0
        return (Cost(setup=setup, tile=tile, together=_PIXELS, pixels=pixels, two=two),)

    def _strips_cost(self, setup: int, pixels: int) -> Cost:
        """Cost of going down strips: the first row of a call shares no inputs."""
        # Widening a word of three pixels takes 12 instructions (`orch_widen_pixels`), 13 with
        # calls; moving six pairs, which are four taps of three pixels, 4 (`orch_move_pairs`). 60
        # and 100 are the C++ of a tile and of a strip.
        kernel = self.rows.kernel
        kept = max(kernel - self.rows.stride, 0) if self.rows.dilation == 1 else 0
        items = self.depth // kernel
        widened, moved = 13 * items // 4 + 40, items
        strips = -(-self.columns.out // _PIXELS)
        fresh = kernel - kept
        tile = self.out_channels * (17 * self.depth // 8 + 25) + 60
        tile += fresh * widened + kept * moved
        # Both strips at the borders copy inputs first.
        tile += fresh * (100 + items // 2) * min(2, strips) // strips
        more = strips * (100 + kept * (widened - moved))
        return Cost(setup=setup + more, tile=tile, together=_PIXELS, pixels=pixels)

    def scratch_saving(self, core: Core, rows: int, weights: Bytes) -> ScratchSavingVariant | None:
        """Two pixels at once, where these are whole words."""
        if self.in_channels % TILE:
            return None
        # A round of `orch_two_pixels` has four steps of 12 instructions and a branch: 50 for 16
        # taps of two channels. Widening takes 9 for four taps of both pixels. Bands of ResNet-8
        # take 1.05 to 1.07 of this estimate in the emulator.
        tile = self.out_channels * (25 * self.depth // 16 + 14) + 4 * self.depth + 240
        pixels = self.pixels_out // rows
        cost = Cost(setup=SETUP[core.isa], tile=tile, together=2, pixels=pixels)
        return ScratchSavingVariant(scratch_bytes=_TAP_BYTES * self.depth, costs=(cost,))

    def saved(self, kernel: str, narrow: str) -> int | None:
        rows = self.rows.out
        (cost,) = self.costs(Core("dsp"), rows, b"")
        return replace(cost, two=0).of(rows) - cost.of(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """A convolution as pairs of channels, A and B.

    Args:
        pairs: Channels of each pair; A is `EMPTY` where B has no partner.
        weights: [outputs + 1, taps] as the loop reads them; the last ones are zeros,
            those of an empty channel.
        sums: What the sum of each starts with.
        first: Scales of A by channel.
        second: Scales of B.
    """

    pairs: list[tuple[int, int]]
    weights: Ints
    sums: Ints
    first: Scales
    second: Scales

    @classmethod
    def of(cls, conv: Convolution) -> Channels:
        """The channels of a convolution.

        Raises:
            UnknownCallError: The kernel cannot take this.
        """
        import numpy as np  # noqa: PLC0415  # only where something is packed

        first, second = scales_of_pairs(conv)
        of = Pieces.of(conv)
        outputs, taps = conv.weights.shape
        weights = np.zeros((outputs + 1, of.rows, of.depth // of.rows), np.int64)
        given = conv.weights.reshape(outputs, of.rows, taps // of.rows)
        whole = min(of.items // TILE * TILE, taps)
        weights[:-1, :, :whole] = given[:, :, :whole]
        if whole < given.shape[2]:
            weights[:-1, :, whole - given.shape[2] :] = given[:, :, whole:]
        return cls(
            pairs=pairs_of(conv.weights, first, second),
            weights=weights.reshape(outputs + 1, of.depth),
            sums=np.append(starts_of(conv), 0),
            first=first,
            second=second,
        )


def in_words(numbers: Ints) -> bytes:
    """Numbers of 16 bits: of each four 0 and 2, then 1 and 3."""
    four = numbers.reshape(-1, TILE)[:, (0, 2, 1, 3)]
    return four.astype("<i2").tobytes()


def _scale(scale: Scale | None, channel: int, *, right: bool) -> bytes:
    """A `PackedScale`, with the shift to the right or the left."""
    if scale is None:
        return bytes_in("<i4", 0, 0, channel << 8)
    bits = scale.right if right else scale.left
    return bytes_in("<i4", scale.multiplier, scale.added, channel << 8 | bits)
