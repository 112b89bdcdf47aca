"""Single pixels with one scale, four channels at once, for DSP instructions.

The kernel is op_packed_matrix.cpp of kernels/cortex_m; packed_dsp.h has the format.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from orchestrator.core.lazy_bytes import Bytes
from orchestrator.method.passes.arguments import UnknownCallError, need
from orchestrator.method.passes.packing.convolution import TILE, WORD, Convolution, starts_of, up
from orchestrator.method.passes.packing.header import SETUP, Header, Packed, bytes_in
from orchestrator.method.passes.packing.pairs import in_words
from orchestrator.method.passes.packing.scaling import EMPTY, joined, pairs_of, scales_of_pairs
from orchestrator.method.windows import Axis, Core, Cost, Image, Rows, ScratchSavingVariant

if TYPE_CHECKING:
    from orchestrator.method.windows import Window

# `orch_eight_taps` of packed_loops_dsp.cpp.
STEP: Final = 2 * TILE
"""Taps of a step of the loop."""


@dataclass(frozen=True, kw_only=True)
class MatrixHeader(Header):
    """What the structs of matrix products begin with."""

    pixels: int
    items: int
    depth: int
    out_channels: int

    def window(self, out: Image) -> Window | None:
        return Axis(size=out.rows, out=out.rows)

    def band(self, rows: Rows, row_bytes: int) -> Self | None:
        return replace(self, pixels=rows.part(self.pixels))

    def costs(self, core: Core, rows: int, weights: Bytes) -> tuple[Cost, ...]:
        # Eight taps of four channels are 32 bytes and 26 instructions, with `optimize = "speed"`
        # 24.5: 0.77 to 0.81 of a byte. The rest is what ends a tile: 41 for four outputs, or 53
        # where ties go down.
        tile = round(0.9 * len(weights))
        return (Cost(setup=SETUP[core.isa], tile=tile, pixels=self.pixels // rows),)


@dataclass(frozen=True, kw_only=True)
class Matrix(MatrixHeader):
    """`PackedMatrix` of packed_dsp.h."""

    tile_bytes: int
    all_bytes: int
    multiplier: int
    a_add: int
    a_shift: int
    b_add: int
    b_shift: int
    a_ties: int
    b_ties: int

    @classmethod
    def packed(cls, conv: Convolution) -> Packed:
        """A call.

        Raises:
            UnknownCallError: The kernel cannot take this.
        """
        import numpy as np  # noqa: PLC0415  # only where something is packed

        need(conv.is_matrix and conv.has_one_scale)
        first, second = scales_of_pairs(conv)
        a_scale, b_scale = first[0], second[0]
        if a_scale is None or b_scale is None or None in {*first, *second}:
            raise UnknownCallError
        outputs, taps = conv.weights.shape
        depth = up(taps, STEP)
        weights = np.pad(conv.weights, ((0, 1), (0, depth - taps)))
        sums = np.append(starts_of(conv), 0)
        data = bytearray()
        for tile in range(0, outputs, TILE):
            those = slice(tile, tile + TILE)
            pairs = pairs_of(conv.weights[those], first[those], second[those])
            # Four channels of which too many have -128 and negative weights need a third pair,
            # which a tile has no room for.
            need(len(pairs) <= TILE // 2)
            # An empty pair goes where the next one does.
            if len(pairs) == 1:
                pairs.insert(0, (EMPTY, EMPTY))
            of = [tuple(c if c == EMPTY else tile + c for c in pair) for pair in pairs]
            for a, b in of:
                products = (weights[a][::2] * weights[a][1::2]).sum()
                data += bytes_in("<i4", joined(sums[a], sums[b]), sums[a] - products)
            words = [joined(weights[a], weights[b]).reshape(-1, TILE) for a, b in of]
            data += in_words(np.stack(words, axis=1))
            # Outputs of empty channels go where real ones are stored later.
            last = pairs[1][1]
            data += bytes(
                c if c != EMPTY else b if b != EMPTY else last for a, b in pairs for c in (a, b)
            )
        header = cls(
            pixels=conv.pixels,
            items=taps,
            depth=depth,
            out_channels=outputs,
            tile_bytes=TILE * depth,
            all_bytes=len(data),
            multiplier=a_scale.multiplier,
            a_add=a_scale.added,
            a_shift=a_scale.left,
            b_add=b_scale.added,
            b_shift=b_scale.right,
            a_ties=a_scale.ties,
            b_ties=b_scale.ties,
        )
        # A sum, and pairs.
        return Packed(header, bytes(data), WORD + 2 * depth)

    def scratch_saving(self, core: Core, rows: int, weights: Bytes) -> ScratchSavingVariant | None:
        """Pairs of inputs for each tile anew, without scratch memory.

        For tensors of one row whose items are whole words; rows of images may lie
        anywhere.
        """
        if self.items != self.depth or rows != 1:
            return None
        (cost,) = self.costs(core, rows, weights)
        # Widening in the loop takes 27 instructions of a step in place of 23, but a round has four
        # steps, in place of one, or of two with `optimize = "speed"`.
        cost = replace(cost, tile=cost.tile * (107 if core.fast else 104) // 100)
        return ScratchSavingVariant(scratch_bytes=0, costs=(cost,), whole=True)
