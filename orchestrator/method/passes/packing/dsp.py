"""Weights in the order of the kernels for DSP instructions.

The kernels are op_packed_conv2d.cpp and op_packed_depthwise.cpp of kernels/cortex_m.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.method.passes.arguments import UnknownCallError
from orchestrator.method.passes.packing.convolution import (
    LOWEST,
    largest_sums,
    starts_of,
)
from orchestrator.method.passes.packing.headers import (
    depthwise_header,
    line_header,
)
from orchestrator.method.passes.packing.words import TILE, WORD, int32

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orchestrator.method.passes.packing.convolution import Convolution

    Ints = NDArray[np.int64]

MOST_A: Final = 1 << 30
"""Bound on sums of a pair's first channel: the kernel has twice them, in 32 bits."""
_MOST_B: Final = 1 << 23
"""Bound on sums of the second one: the kernel has 256 times them, in 32 bits."""
_NOBODY: Final = -1
"""Stands for a channel without weights."""


def groups(conv: Convolution) -> list[int]:
    """The words of `PackedDepthwise` and of the groups that follow."""
    import numpy as np  # noqa: PLC0415

    channels, taps = conv.weights.shape
    weights = np.pad(conv.weights, ((0, 0), (0, 2 * conv.pairs - taps)))
    starts = starts_of(conv)
    words: list[int] = []
    for first in range(0, channels, TILE):
        those = range(first, first + TILE)
        words += [first, *(int(starts[c]) for c in those)]
        for tap in range(0, 2 * conv.pairs, 2):
            for c in (first, first + 2):
                items = weights[c : c + 2, tap : tap + 2].T.astype(np.int8)
                words.append(int.from_bytes(items.tobytes(), "little"))
        for c in those:
            words += [int(conv.multipliers[c]), 256 * c - int(conv.shifts[c])]
    header = depthwise_header(conv, conv.pairs, len(words))
    return [int32(word) for word in (*header, *words)]


def tiles(conv: Convolution, *, even: bool = False) -> list[int]:
    """The words of `PackedConvolution` and of the tiles that follow.

    Raises:
        UnknownCallError: The packed kernel cannot take this.
    """
    import numpy as np  # noqa: PLC0415

    sums = starts_of(conv)
    outputs, taps = conv.weights.shape
    weights = np.pad(conv.weights, ((0, 1), (0, conv.depth - taps)))
    may_be_b = largest_sums(conv) < _MOST_B
    if even:
        pairs = [
            (first + a, first + b)
            for first in range(0, outputs, TILE)
            for a, b in _pairs(
                conv.weights[first : first + TILE], may_be_b[first : first + TILE]
            )
        ]
    else:
        pairs = _pairs(conv.weights, may_be_b)
    # An empty pair goes where the next one does.
    if len(pairs) % 2:
        pairs.insert(0, (_NOBODY, _NOBODY))
    sums = np.append(sums, 0)
    multipliers, shifts = np.append(conv.multipliers, 0), np.append(conv.shifts, 0)
    words: list[int] = []
    for first, second in zip(pairs[::2], pairs[1::2], strict=True):
        for a, b in (first, second):
            products = int((weights[a][::2] * weights[a][1::2]).sum())
            words += [int(sums[a] + 256 * sums[b]), int(sums[a]) - products]
        joined = [256 * weights[b] + weights[a] for a, b in (first, second)]
        for tap in range(0, conv.depth, TILE):
            for h in joined:
                words += [_two(h[tap], h[tap + 2]), _two(h[tap + 1], h[tap + 3])]
        if even:
            places = bytes(c % TILE for c in (*first, *second))
            words.append(int.from_bytes(places, "little"))
            continue
        for a, b in (first, second):
            # What is nobody's goes where something is written later.
            place = b if b != _NOBODY else second[1]
            for channel in (a, b):
                to = channel if channel != _NOBODY else place
                words += [int(multipliers[channel]), 256 * to - int(shifts[channel])]
    tile_bytes = TILE * conv.depth
    header = (
        *line_header(conv, conv.depth),
        *(tile_bytes, WORD * len(words), conv.offset),
        *((int(conv.multipliers[0]), -int(conv.shifts[0])) if even else (0, 0)),
    )
    return [int32(word) for word in (*header, *words)]


def _pairs(weights: Ints, may_be_b: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Channels two by two, A and B, so that 256 * B + A has 16 bits.

    It has not where B is -128 and A is negative.

    Raises:
        UnknownCallError: There are no such pairs.
    """
    lowest = weights == LOWEST
    left = list(range(len(weights)))
    pairs = []
    if len(left) % 2:
        # A without weights goes with any B.
        alone = next((c for c in reversed(left) if may_be_b[c]), None)
        if alone is None:
            raise UnknownCallError
        left.remove(alone)
        pairs.append((_NOBODY, alone))
    # Those with many -128 first: they have the fewest partners.
    left.sort(key=lambda c: (may_be_b[c], -int(lowest[c].sum()), c))
    while left:
        one = left.pop(0)
        for other in left:
            for a, b in ((one, other), (other, one)):
                if may_be_b[b] and not (lowest[b] & (weights[a] < 0)).any():
                    pairs.append((a, b))
                    left.remove(other)
                    break
            else:
                continue
            break
        else:
            raise UnknownCallError
    return pairs


def _two(low: int, high: int) -> int:
    """Two numbers of 16 bits in a word."""
    return (int(low) & 0xFFFF) | (int(high) & 0xFFFF) << 16
