"""Weights in the order of the kernels for vector instructions.

The kernels are op_packed_depthwise.cpp and op_packed_pixels.cpp of kernels/cortex_m.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.method.passes.packing.convolution import starts_of
from orchestrator.method.passes.packing.headers import (
    convolution_header,
    depthwise_header,
)
from orchestrator.method.passes.packing.words import TILE, int32, up

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from orchestrator.method.passes.packing.convolution import Convolution

    Ints = NDArray[np.int64]

MOST: Final = 1 << 31
"""Bound on sums, which have 32 bits."""
LANES: Final = 16
"""Taps of a step of the loop."""
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


def two_pixels(conv: Convolution, depth: int) -> list[int]:
    """The words of `PackedConvolution` and of tiles of four channels, for vectors."""
    words = [*convolution_header(conv, depth)]
    scales = [(m, s) for m, s in zip(conv.multipliers, conv.shifts, strict=True)]
    scales += [(0, 0)] * (TILE - 1)
    for first, tile in enumerate(_vectors(conv, depth, range(TILE))):
        those = scales[TILE * first : TILE * (first + 1)]
        words += [*tile, *(int(m) for m, _ in those), *(int(s) for _, s in those)]
    return [int32(word) for word in words]


def pixel(conv: Convolution, depth: int) -> list[int]:
    """The words of `PackedPixel` and of tiles of eight channels."""
    scale = int(conv.multipliers[0]), int(conv.shifts[0])
    words = [*convolution_header(conv, depth), *scale]
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
