"""Windows of three lines, four pixels at once, for vectors.

The kernel is op_packed_lines.cpp of kernels/cortex_m, for products that favour speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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
    Packed,
    convolution_fields,
    of_least_cost,
    tiles_of,
)
from orchestrator.method.passes.packing.steps import (
    LINE_BOUND,
    STRIPS,
    StripHeader,
    even_parts,
    strip_bytes,
)

# Six lines in a register each, weights of two channels in six more: there are eight.
LINES: Final = 3
"""Lines of a window, of which four pixels see six together."""
# Four pixels of two channels are the eight sums that `vmladava` has registers for.
_PIXELS: Final = 4
# `orch_six_lines` has 24 products and 12 loads, 1.5 instructions of a product; `orch_tile` has 8
# and 6, or 1.75. That is 0.86; ends of tiles are for as many outputs in both.
_FOUR_COST: Final = 0.84
"""Cost of a product in the loop over such windows, in that of one in the other loop."""


@dataclass(frozen=True, kw_only=True)
class Lines(StripHeader):
    """`PackedLines` of packed.h."""

    blocks: int
    x_line: int
    x_pixel: int
    y_line: int
    y_pixel: int

    @classmethod
    def packed(cls, conv: Convolution, spare_bytes: int) -> Packed | None:
        """A call, if the kernel can take it and pays."""
        rows, columns, outputs = conv.rows, conv.columns, len(conv.weights)
        if (
            (rows.kernel, rows.stride, rows.dilation) != (LINES, 1, 1)
            or conv.groups > 1
            or conv.channels % LANES
            # The loop adds up to four lines as 16 bits (`Column` in packed_loops_mve.h).
            or _PIXELS * columns.out * outputs >= LINE_BOUND
        ):
            return None
        # `orch_multiply_ties` rounds all negative sums as if they were shifted afterwards.
        if conv.offset != LOWEST and (conv.shifts.max() == 0 or conv.multipliers.min() < 0):
            return None
        # Pixels that are computed for nothing: the other kernel has at most one.
        four = up(rows.out, _PIXELS)
        if _FOUR_COST * four * up(outputs, 2) > rows.out * up(outputs, TILE):
            return None
        blocks = columns.kernel * conv.channels // LANES
        header = cls(
            **convolution_fields(conv, 0),
            pixels=_pixels(rows.out, blocks, strip_bytes(spare_bytes)),
            blocks=blocks,
            x_line=columns.size * conv.channels,
            x_pixel=conv.channels,
            y_line=columns.out * outputs,
            y_pixel=outputs,
        )
        return Packed(header, _tiles(conv, blocks), header.scratch_bytes)

    @property
    def scratch_bytes(self) -> int:
        """Memory for the strip."""
        return (self.pixels + LINES - 1) * self.blocks * LANES

    @property
    def loop(self) -> tuple[int, int]:
        # 24 products and 12 loads of each vector of a line. Around the loop are 25, and 3 of each
        # round: 40 is right for five rounds.
        return tiles_of(self.out_channels, 2) * (36 * self.blocks + 40), _PIXELS

    def for_bands(self, packed: Packed, room_bytes: int) -> Packed | None:
        """With strips along rows; None if it cannot have them, or has."""
        import numpy as np  # noqa: PLC0415  # only where something is packed

        columns = self.columns
        window = columns.kernel, columns.stride, columns.dilation
        if not self.may_be_turned or window != (LINES, 1, 1):
            return None

        def call(most_bytes: int) -> tuple[int, Packed]:
            header = self.turned(_pixels(columns.out, self.blocks, most_bytes))
            return header.row_cost, Packed(header, packed.weights, header.scratch_bytes)

        best = of_least_cost(map(call, STRIPS), room_bytes)
        # A tile: of each vector three lines of two channels, then sums and scales.
        size = 2 * LINES * self.blocks * LANES
        tiles = np.frombuffer(packed.weights, np.int8).reshape(-1, size + 2 * 3 * WORD)
        vectors = tiles[:, :size].reshape(-1, self.blocks, 2, LINES, LANES)
        taps = vectors.transpose(0, 2, 3, 1, 4).reshape(len(tiles), 2, -1)
        made = self.turned_taps(taps).reshape(-1, 2, LINES, self.blocks, LANES)
        items = made.transpose(0, 3, 1, 2, 4).reshape(len(tiles), size)
        return best._replace(weights=np.hstack((items, tiles[:, size:])).tobytes())


def _pixels(count: int, blocks: int, most_bytes: int) -> int:
    """Pixels of a strip for so many in a column, with so many vectors of a line."""
    four = up(count, _PIXELS)
    most = most_bytes // LANES // blocks
    pixels = (most - LINES + 1) // _PIXELS * _PIXELS
    return even_parts(four, max(_PIXELS, min(four, pixels)), _PIXELS)


def _tiles(conv: Convolution, blocks: int) -> bytes:
    """Tiles of two channels."""
    import numpy as np  # noqa: PLC0415

    more = len(conv.weights) % 2
    weights = np.pad(conv.weights, ((0, more), (0, 0))).astype(np.int8)
    scales = [np.pad(a, (0, more)) for a in (starts_of(conv), conv.multipliers, conv.shifts)]
    items = weights.reshape(-1, 2, LINES, blocks, LANES).transpose(0, 3, 1, 2, 4)
    ends = np.array(scales).T.reshape(len(items), -1).astype("<i4")
    return np.hstack((items.reshape(len(items), -1), ends.view(np.int8))).tobytes()
