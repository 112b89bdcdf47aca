"""From sums to outputs in one step, as the kernels for DSP instructions compute it.

kernels/cortex_m/packed_dsp.h has the formula.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrator.method.passes.packing.convolution import largest_sums

if TYPE_CHECKING:
    from orchestrator.method.passes.packing.convolution import Convolution

_BITS: Final = 31
"""Of a number, and of a multiplier."""
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
        _scale(conv, output, left=left, right=right, largest=largest)
        for output, largest in enumerate(limits)
    )


def _scale(conv: Convolution, output: int, *, left: int, right: int, largest: int) -> Scale | None:
    multiplier, shift = int(conv.multipliers[output]), -int(conv.shifts[output])
    if multiplier < 0:
        return None
    more = _BITS - multiplier.bit_length() if multiplier else 0
    if right:
        left = right + 1 - shift - more
    right = shift + more + left - 1
    # What is below the high half of the product is a rounding of whole numbers.
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
