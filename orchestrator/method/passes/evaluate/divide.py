"""Quotients and remainders.

Source: kernels/portable/op_div.cpp and kernels/util/remainder.h. Remainders of floats
are exact, so that `numpy.fmod` gives the bits of the kernel's long division.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.dtype import FLOATING, REAL, ScalarType
from orchestrator.method.passes.arguments import need
from orchestrator.method.passes.evaluate.numbers import (
    Array,
    Items,
    computed,
    converted,
    number_of,
)
from orchestrator.method.passes.evaluate.promote import (
    binary,
    number_type,
    pairwise,
    result_type,
    unary_with_number,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.method.passes.evaluate.constant_call import ConstantCall
    from orchestrator.program.values import TensorValue


def _div(call: ConstantCall) -> tuple[Items, ...]:
    return _divided(call.items(0), call.items(1), call.out(2))


def _divided(a: Items, b: Items, out: TensorValue) -> tuple[Items, ...]:
    """Integers are divided as floats."""
    need(out.dtype in FLOATING)
    common = result_type(a, b)
    common = common if common in FLOATING else ScalarType.Float
    return pairwise(a, b, out, common, lambda x, y, dtype: converted(x / y, dtype))


def _div_mode(call: ConstantCall) -> tuple[Items, ...]:
    a, b, out = call.items(0), call.items(1), call.out(3)
    if call.is_none(2):
        return _divided(a, b, out)
    mode = call.text(2)
    need(mode in ("floor", "trunc"))
    return binary(a, b, out, REAL, _floor if mode == "floor" else _trunc)


def _whole_division(a: Array, b: Array, dtype: ScalarType) -> tuple[Array, Array]:
    """Quotient of integers without its fraction, and the remainder."""
    need((b != 0).all())
    # The lowest integer by -1 overflows.
    minus = b == -1 if b.dtype.kind == "i" else np.zeros(b.shape, bool)
    divisor = np.where(minus, 1, b).astype(b.dtype)
    rest = np.fmod(a, divisor)
    quotient = (a - rest) // divisor
    negative = converted(np.negative(computed(a, dtype)), dtype)
    return np.where(minus, negative, quotient), np.where(minus, 0, rest)


def _trunc(a: Array, b: Array, dtype: ScalarType) -> Array:
    if dtype in FLOATING:
        return converted(np.trunc(a / b), dtype)
    return _whole_division(a, b, dtype)[0]


def _floor(a: Array, b: Array, dtype: ScalarType) -> Array:
    if dtype in FLOATING:
        return converted(_floor_floats(a, b), dtype)
    quotient, rest = _whole_division(a, b, dtype)
    below = ((a < 0) != (b < 0)) & (rest != 0)
    return np.where(below, converted(quotient - below, dtype), quotient)


def _floor_floats(a: Array, b: Array) -> Array:
    one = a.dtype.type(1)
    rest = np.fmod(a, b)
    quotient = (a - rest) / b
    quotient = np.where((rest != 0) & ((b < 0) != (rest < 0)), quotient - one, quotient)
    whole = np.floor(quotient)
    whole = np.where(quotient - whole > a.dtype.type(0.5), whole + one, whole)
    whole = np.where(quotient == 0, a / b * a.dtype.type(0), whole)
    return np.where(b == 0, a / b, whole)


def _truncated_rest(a: Array, b: Array, dtype: ScalarType) -> Array:
    if dtype in FLOATING:
        return converted(np.fmod(a, b), dtype)
    return _whole_division(a, b, dtype)[1]


def _floored_rest(a: Array, b: Array, dtype: ScalarType) -> Array:
    rest = _truncated_rest(a, b, dtype)
    other = (rest != 0) & ((rest < 0) != (b < 0))
    moved = computed(rest, dtype) + computed(b, dtype)
    return np.where(other, converted(moved, dtype), rest)


def _rest(
    fn: Callable[[Array, Array, ScalarType], Array],
) -> Callable[[ConstantCall], tuple[Items, ...]]:
    def evaluate(call: ConstantCall) -> tuple[Items, ...]:
        a, number, out = call.items(0), call.scalar(1), call.out(2)

        def rest(x: Array, dtype: ScalarType) -> Array:
            y = np.broadcast_to(number_of(number, dtype), x.shape)
            return fn(x, y, dtype)

        common = number_type(a.dtype, number)
        return unary_with_number(a, out, common, REAL, rest)

    return evaluate


EVALUATORS: Final = MappingProxyType(
    {
        "orch::portable::div_out": _div,
        "orch::portable::div_out_mode": _div_mode,
        "orch::portable::fmod_Scalar_out": _rest(_truncated_rest),
        "orch::portable::remainder_Scalar_out": _rest(_floored_rest),
    }
)
