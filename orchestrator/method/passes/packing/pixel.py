"""A single pixel with one scale for all channels, for vectors.

The kernel is that of op_packed_pixels.cpp of kernels/cortex_m for a pixel alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from orchestrator.core.lazy_bytes import Bytes
from orchestrator.method.passes.packing.convolution import Convolution, up
from orchestrator.method.passes.packing.header import (
    LANES,
    SETUP,
    ConvolutionHeader,
    Packed,
    convolution_fields,
    tiles_of,
)
from orchestrator.method.passes.packing.steps import vectors_of
from orchestrator.method.windows import Core, Cost

# `vqmovnb` and `vqmovnt` put four sums into the even lanes and four into the odd ones, so that
# outputs come in order.
EIGHT: Final = (0, 2, 4, 6, 1, 3, 5, 7)
"""Channels of a tile, in the order of its sums."""


@dataclass(frozen=True, kw_only=True)
class Pixel(ConvolutionHeader):
    """`PackedPixel` of packed.h."""

    multiplier: int
    shift: int

    @classmethod
    def of_single(cls, conv: Convolution) -> tuple[Self, int]:
        """The struct of a call, and its scratch memory in bytes."""
        taps = conv.weights.shape[1]
        depth = up(taps, LANES)
        header = cls(
            **convolution_fields(conv, depth),
            multiplier=int(conv.multipliers[0]),
            shift=int(conv.shifts[0]),
        )
        return header, 0 if depth == taps else depth

    @classmethod
    def packed(cls, conv: Convolution) -> Packed:
        """A call."""
        header, scratch_bytes = cls.of_single(conv)
        return Packed(header, b"".join(vectors_of(conv, header.depth, EIGHT)), scratch_bytes)

    def costs(self, core: Core, rows: int, weights: Bytes) -> tuple[Cost, ...]:
        # `orch_eight_channels`: 8 products and 9 loads for 16 taps, 2 of each round and 25 around
        # them. 18 and 35 are the same for ten rounds.
        tile = tiles_of(self.out_channels, len(EIGHT)) * (18 * self.depth // LANES + 35)
        return (Cost(setup=SETUP[core.isa], tile=tile),)
