"""Convolutions in strips for vectors: what the families pixels and lines have in common.

The kernels, op_packed_pixels.cpp and op_packed_lines.cpp of kernels/cortex_m, go down
columns, some pixels at once. A turned call has rows and columns exchanged, with the
taps of its weights in the order that follows: it has as many pixels to compute at once
where there are few rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from orchestrator.core.lazy_bytes import Bytes
from orchestrator.method.passes.packing.convolution import Convolution, starts_of, up
from orchestrator.method.passes.packing.header import LANES, SETUP, ConvolutionHeader
from orchestrator.method.windows import Core, Cost

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_SUM: Final = 1 << 31
"""Bound on sums, which have 32 bits."""
LINE_BOUND: Final = 1 << 16
"""Bound on bytes from an output to the one below it: the kernels add them as 16 bits."""
# Where less is live than at the peak, memory for longer strips is free: with up to 2,048 bytes
# there ResNet-8 takes 2.6 % fewer instructions on an M55.
STRIP_BYTES, MOST_STRIP_BYTES = 512, 2048
"""Bytes of a strip if it adds to the arena, and the most; two pixels may need more."""
# Tried in this order: `of_least_cost` takes the first that is nearly as fast as the best.
STRIPS: Final = (256, 384, 512, 640, 768, 1024, 1536, MOST_STRIP_BYTES)
"""Bytes of strips that are tried for bands."""


def strip_bytes(spare_bytes: int) -> int:
    """How long a strip may be where the arena has so much for scratch memory."""
    return min(max(spare_bytes, STRIP_BYTES), MOST_STRIP_BYTES)


def vectors_of(conv: Convolution, depth: int, order: Sequence[int]) -> Iterator[bytes]:
    """What each tile begins with: starts of sums, and weights in vectors.

    Args:
        conv: What is computed.
        depth: Taps, in whole vectors.
        order: Channels of a tile.
    """
    import numpy as np  # noqa: PLC0415  # only where something is packed

    outputs, taps = conv.weights.shape
    more = -outputs % len(order)
    starts = np.pad(starts_of(conv), (0, more)).astype("<i4")
    weights = np.pad(conv.weights, ((0, more), (0, depth - taps))).astype(np.int8)
    for first in range(0, outputs, len(order)):
        those = [first + c for c in order]
        steps = weights[those].reshape(len(order), -1, LANES).swapaxes(0, 1)
        yield starts[those].tobytes() + steps.tobytes()


@dataclass(frozen=True, kw_only=True)
class StripHeader(ConvolutionHeader):
    """A struct with `PackedSteps`: calls that go along strips of pixels."""

    pixels: int

    if TYPE_CHECKING:  # where `PackedSteps` is, families differ
        x_line: int
        x_pixel: int
        y_line: int
        y_pixel: int

    @property
    def is_turned(self) -> bool:
        # A line of a turned call is a column: from line to line is a pixel of the image.
        return self.x_line < self.x_pixel

    @property
    def may_be_turned(self) -> bool:
        """Whether rows of the image have several pixels, of inputs and of outputs."""
        is_wide = min(self.columns.size, self.columns.out) > 1
        return is_wide and self.batch == 1 and not self.is_turned

    def turned(self, pixels: int) -> Self:
        """The struct with rows and columns exchanged, and so many pixels of a strip."""
        return replace(
            self,
            rows=self.columns,
            columns=self.rows,
            pixels=pixels,
            x_line=self.x_pixel,
            x_pixel=self.x_line,
            y_line=self.y_pixel,
            y_pixel=self.y_line,
        )

    def turned_taps(self, taps: NDArray[np.int8]) -> NDArray[np.int8]:
        """Taps of windows, the last dimension, column by column."""
        windows = taps.reshape(*taps.shape[:-1], self.rows.kernel, self.columns.kernel, -1)
        return windows.swapaxes(-3, -2).reshape(taps.shape)

    # Instructions, from loops of the kernels.

    @property
    @abstractmethod
    def loop(self) -> tuple[int, int]:
        """Instructions of the loop over pixels, and how many pixels it computes at once."""

    @property
    def is_in_place(self) -> bool:
        """Whether inputs are read where they are, at least some of them."""
        return False

    @property
    def is_without_strips(self) -> bool:
        """Whether all inputs are."""
        return False

    @property
    def row_cost(self) -> int:
        """Instructions of a turned call for a row of its output."""
        tile, together = self.loop
        total = tile * -(-self.rows.out // together)
        return total if self.is_without_strips else total + self.strips_cost

    @property
    def band_row_cost(self) -> int:
        """Instructions of the kernel for bands, if there is one."""
        return self.row_cost

    @property
    def parts(self) -> tuple[int, int]:
        """How many strips a row of a turned call has, and the lines of all of them."""
        strip = min(max(self.pixels, 1), self.rows.out)
        parts = -(-self.rows.out // strip)
        return parts, parts * ((strip - 1) * self.rows.stride + self.rows.kernel)

    @property
    def filling_cost(self) -> int:
        """Instructions that copy these lines, 16 items at a time."""
        parts, lines = self.parts
        vectors = -(-self.in_channels // LANES)
        # `copy_lines` of packed_strip.h: 6 instructions in the loop over lines, 15 around it.
        return self.columns.kernel * vectors * (15 * parts + 6 * lines)

    @property
    def strips_cost(self) -> int:
        """Instructions that fill the strips of a row of a turned call."""
        # 130 of a strip are the C++ around the copies: `gather_lines` and the loops over pixels.
        return 130 * self.parts[0] + self.filling_cost

    def costs(self, core: Core, rows: int, weights: Bytes) -> tuple[Cost, ...]:
        setup = SETUP[core.isa]
        if self.is_turned:
            # As many strips for each row, however many rows there are.
            return (Cost(setup=setup, tile=self.band_row_cost * self.columns.out // rows),)
        columns, lines = self.columns.out, self.rows.out
        loop, together = self.loop
        tile = columns * (loop if self.is_in_place else loop + 30 * together)
        taps = self.rows.kernel * self.columns.kernel * self.in_channels
        # What a column takes to begin. With 280 for every column, and 330 for a call, a U-Net by
        # rows on an M55 was estimated 13.0 % slower than whole; it is 7.4 %, and estimated 7.6 %.
        if self.is_in_place and self.depth == taps:
            setup += 80 * columns
        else:
            setup += 260 * columns
            setup += tile if self.is_in_place else 0  # the last pixels are gathered
        if lines < rows:  # of several phases, each of which has some of the rows
            return (Cost(setup=setup, tile=tile, together=together * rows // lines),)
        return (Cost(setup=setup, tile=tile, together=together, pixels=lines // rows),)


def even_parts(count: int, most: int, step: int) -> int:
    """Pixels of a strip where as few strips as may be are about equally long.

    Args:
        count: Pixels of a line.
        most: The most of a strip.
        step: What the pixels of a strip are a multiple of.
    """
    parts = -(-count // most)
    return up(-(-count // parts), step)
