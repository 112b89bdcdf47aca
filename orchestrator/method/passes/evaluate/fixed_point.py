"""Fixed-point arithmetic of int8 kernels, in 64-bit integers.

What overflows 32 bits wraps around, as the kernels have it.

Source: kernels/cortex_m/requantize.h and image.h, after gemmlowp's fixedpoint.h and
CMSIS-NN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from orchestrator.method.passes.arguments import need

if TYPE_CHECKING:
    from orchestrator.method.passes.evaluate.constant_call import ConstantCall
    from orchestrator.method.passes.evaluate.numbers import Array, Items

CHAR: Final = ScalarType.Char
CHAR_LIMITS: Final = (-128, 127)
_OFFSET: Final = 128
_MAX_SHIFT: Final = 31
_LOWEST: Final = -(1 << 31)


def wrapped(numbers: Array) -> Array:
    """The number of 32 bits that each is modulo 2^32."""
    return np.asarray(numbers).astype(np.int64).astype(np.int32).astype(np.int64)


def high_multiply(a: Array, b: Array) -> Array:
    """Products / 2^31, rounded to nearest, ties up.

    Raises:
        UnknownCallError: Both are -2^31: vectors give the largest integer, and plain
            code the lowest.
    """
    need(not ((a == _LOWEST) & (b == _LOWEST)).any())
    return (a * b + np.int64(1 << 30)) >> np.int64(31)


def divide_by_power(numbers: Array, exponent: Array) -> Array:
    """Quotients by 2^exponent, rounded to nearest, ties away from zero."""
    lower = wrapped(numbers - (numbers < 0))
    before = np.maximum(exponent, 1) - 1
    rounded = (lower >> exponent) + ((lower >> before) & 1)
    return np.where(exponent == 0, numbers, rounded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A factor, multiplier / 2^31 * 2^shift; one of each, or one per channel."""

    multiplier: Array
    shift: Array

    def of(self, numbers: Array) -> Array:
        """Integers of 32 bits times the factor, rounded twice if it divides."""
        need((np.abs(self.shift) <= _MAX_SHIFT).all())
        moved = wrapped(numbers << np.maximum(self.shift, 0))
        high = wrapped(high_multiply(moved, self.multiplier))
        return divide_by_power(high, np.maximum(-self.shift, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """From sums of 32 bits to items."""

    scale: Scale
    offset: int
    limits: tuple[int, int]

    def of(self, sums: Array) -> Array:
        """Items, as int8."""
        moved = wrapped(self.scale.of(wrapped(sums)) + self.offset)
        return limited(moved, self.limits)


def limited(numbers: Array, limits: tuple[int, int]) -> Array:
    """Numbers between two limits, as int8."""
    return np.asarray(np.clip(numbers, *limits).astype(np.int8))


def between(call: ConstantCall, position: int, low: int, high: int) -> int:
    """An integer among the arguments."""
    value = call.number(position)
    need(low <= value <= high)
    return value


def item(call: ConstantCall, position: int) -> int:
    """An item among the arguments, as zero points are."""
    return between(call, position, *CHAR_LIMITS)


def offset(call: ConstantCall, position: int) -> int:
    """What is added to items before they are multiplied."""
    return between(call, position, -_OFFSET, _OFFSET)


def limits(call: ConstantCall, low: int, high: int) -> tuple[int, int]:
    """Limits of the output.

    Raises:
        UnknownCallError: They are the wrong way round, which kernels take differently.
    """
    found = item(call, low), item(call, high)
    need(found[0] <= found[1])
    return found


def scale(call: ConstantCall, position: int) -> Scale:
    """A multiplier, and the shift behind it."""
    multiplier = between(call, position, _LOWEST, -_LOWEST - 1)
    shift = between(call, position + 1, -_MAX_SHIFT, _MAX_SHIFT)
    return Scale(
        multiplier=np.asarray(multiplier, np.int64), shift=np.asarray(shift, np.int64)
    )


def ints(items: Items, count: int) -> Array:
    """A tensor with one Int for each of some channels."""
    need(items.dtype is ScalarType.Int and items.numbers.size == count)
    return items.numbers.reshape(-1).astype(np.int64)
