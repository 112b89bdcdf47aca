"""From sums to outputs in one step, as the kernels for DSP instructions compute it.

kernels/cortex_m/packed_dsp.h has the formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from orchestrator.method.passes.arguments import need
from orchestrator.method.passes.packing.convolution import LOWEST, Convolution, largest_sums

if TYPE_CHECKING:
    from orchestrator.method.passes.packing.convolution import Ints

    Scales: TypeAlias = "Sequence[Scale | None]"

# Both sums of a pair may wrap around, as S - A is 256 * B again; what a sum may be after its shift
# to the left, `_scale_of_group` checks for each channel.
MOST_SUM: Final = 1 << 30
"""Bound on sums."""
# `asr #13` in packed_loops_dsp.cpp. The shift of A is in the instruction, that of B in a register:
# SSAT takes only constants, and the left shift of A makes up for any scale.
A_RIGHT: Final = 13
"""Bits that the assembly shifts the first channel of a pair to the right."""
# Weights of a pair are 256 * B + A, in 16 bits.
B_LEFT: Final = 8
"""Bits that the second one is shifted to the left, by its weights."""
EMPTY: Final = -1
"""Stands for a channel without weights."""
_BITS: Final = 31
"""Bits of a number, and of a multiplier."""
_HIGH_HALF: Final = 32
"""Bits that the product drops."""


class Scale(NamedTuple):
    """How a sum becomes an output.

    Args:
        multiplier: As large as it can be.
        added: To the high half of the product.
        left: Bits to shift the sum before.
        right: Bits to shift what comes out.
        ties: Taken off where the sum is negative.
    """

    multiplier: int
    added: int
    left: int
    right: int
    ties: int


def scales(conv: Convolution, *, left: int = 0, right: int = 0) -> tuple[Scale | None, ...]:
    """The scale of each output that has one, with a shift to the left or the right."""
    limits = (int(largest) for largest in largest_sums(conv))
    return tuple(
        _scale_of_group(conv, output, left=left, right=right, largest=largest)
        for output, largest in enumerate(limits)
    )


def _scale_of_group(
    conv: Convolution, output: int, *, left: int, right: int, largest: int
) -> Scale | None:
    multiplier, shift = int(conv.multipliers[output]), -int(conv.shifts[output])
    if multiplier < 0:
        return None
    more = _BITS - multiplier.bit_length() if multiplier else 0
    if right:
        left = right + 1 - shift - more
    right = shift + more + left - 1
    # What is below the high half of the product is a rounding of whole numbers.
    # `added` has half of the high half, 1 << (more + left - 2): less would be no whole number.
    if left < 0 or more + left < 2 or right >= _BITS:  # noqa: PLR2004
        return None
    added = 1 << (more + _BITS - 1 + left - _HIGH_HALF)
    if shift:
        added += 1 << (right - 1)
    added += conv.offset << right
    ties = 1 << (more + _BITS + left - _HIGH_HALF)
    # Sums that are negative give outputs below the offset.
    if not shift or conv.offset <= conv.low:
        ties = 0
    # Products are less than 2^30, and ties than what is added to positive ones.
    if largest << left >= 1 << _BITS or abs(added) + ties >= 1 << (_BITS - 1):
        return None
    return Scale(multiplier << more, added, left, right, ties)


def scales_of_pairs(conv: Convolution) -> tuple[Scales, Scales]:
    """Scales of all channels as the first one of a pair, and as the second one."""
    return scales(conv, right=A_RIGHT), scales(conv, left=B_LEFT)


def joined(a: Ints, b: Ints) -> Ints:
    """Numbers of two channels in one: 256 * B + A."""
    return (b << B_LEFT) + a


def pairs_of(weights: Ints, first: Scales, second: Scales) -> list[tuple[int, int]]:
    """Channels two by two, A and B, so that 256 * B + A has 16 bits.

    It has not where B is -128 and A is negative. A channel without a partner is B.

    Raises:
        UnknownCallError: A channel cannot be that.
    """
    lowest, negative = weights == LOWEST, weights < 0
    left = list(range(len(weights)))
    # A pair that leaves others without a partner costs an empty channel, in every pixel.
    # Those with few partners first.
    left.sort(key=lambda c: (second[c] is not None, -int(lowest[c].sum()), c))
    alone: list[tuple[int, int]] = []
    pairs: list[tuple[int, int]] = []
    while left:
        one = left.pop(0)
        for other in left:
            for a, b in ((one, other), (other, one)):
                may_be = first[a] is not None and second[b] is not None
                if may_be and not (lowest[b] & negative[a]).any():
                    pairs.append((a, b))
                    left.remove(other)
                    break
            else:
                continue
            break
        else:
            need(second[one] is not None)
            alone.append((EMPTY, one))
    return [*alone, *pairs]
