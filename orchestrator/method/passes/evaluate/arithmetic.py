"""Sums, products and bits of items.

Source: kernels/portable/op_add.cpp and the like.
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
    INTEGRAL_OR_BOOL,
    REAL_OR_BOOL,
    alpha_fits,
    binary,
    number_type,
    result_type,
    unary_same,
    unary_with_number,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.method.passes.evaluate.constant_call import ConstantCall


def _scaled(
    taken: frozenset[ScalarType], fn: Callable[[Array, Array], Array]
) -> Callable[[ConstantCall], tuple[Items, ...]]:
    """fn(self, alpha * other); alpha is rounded to the dtype of the tensors."""

    def evaluate(call: ConstantCall) -> tuple[Items, ...]:
        a, b, alpha, out = call.items(0), call.items(1), call.scalar(2), call.out(3)
        need(alpha_fits(alpha, result_type(a, b)))
        need({a.dtype, b.dtype, out.dtype} <= taken)

        def scaled(x: Array, y: Array, dtype: ScalarType) -> Array:
            factor = computed(number_of(alpha, dtype), dtype)
            result = fn(computed(x, dtype), factor * computed(y, dtype))
            return converted(result, dtype)

        return binary(a, b, out, taken, scaled)

    return evaluate


def _mul(call: ConstantCall) -> tuple[Items, ...]:
    def product(x: Array, y: Array, dtype: ScalarType) -> Array:
        return converted(computed(x, dtype) * computed(y, dtype), dtype)

    return binary(call.items(0), call.items(1), call.out(2), REAL_OR_BOOL, product)


def _neg(call: ConstantCall) -> tuple[Items, ...]:
    def negative(x: Array, dtype: ScalarType) -> Array:
        return converted(np.negative(computed(x, dtype)), dtype)

    return unary_same(call.items(0), call.out(1), negative)


def _abs(call: ConstantCall) -> tuple[Items, ...]:
    def size(x: Array, dtype: ScalarType) -> Array:
        # Added to 0, so that -0 becomes 0; the lowest integer stays.
        number = computed(x, dtype)
        zero = np.zeros_like(number)
        return converted(np.where(x < 0, zero - number, zero + number), dtype)

    need(call.items(0).dtype in REAL)
    return unary_same(call.items(0), call.out(1), size)


def _bits_of_tensors(
    fn: Callable[[Array, Array], Array],
) -> Callable[[ConstantCall], tuple[Items, ...]]:
    def evaluate(call: ConstantCall) -> tuple[Items, ...]:
        a, b, out = call.items(0), call.items(1), call.out(2)
        return binary(a, b, out, INTEGRAL_OR_BOOL, lambda x, y, _: fn(x, y))

    return evaluate


def _bits_of_number(
    fn: Callable[[Array, Array], Array],
) -> Callable[[ConstantCall], tuple[Items, ...]]:
    def evaluate(call: ConstantCall) -> tuple[Items, ...]:
        a, number, out = call.items(0), call.scalar(1), call.out(2)
        need(not isinstance(number, float))
        return unary_with_number(
            a,
            out,
            number_type(a.dtype, number),
            INTEGRAL_OR_BOOL,
            lambda x, dtype: fn(x, number_of(number, dtype)),
        )

    return evaluate


def _bitwise_not(call: ConstantCall) -> tuple[Items, ...]:
    need(call.items(0).dtype not in FLOATING)
    return unary_same(call.items(0), call.out(1), lambda x, _: np.invert(x))


EVALUATORS: Final = MappingProxyType(
    {
        "orch::portable::abs_out": _abs,
        "orch::portable::add_out": _scaled(REAL_OR_BOOL, np.add),
        "orch::portable::bitwise_and_Scalar_out": _bits_of_number(np.bitwise_and),
        "orch::portable::bitwise_and_Tensor_out": _bits_of_tensors(np.bitwise_and),
        "orch::portable::bitwise_not_out": _bitwise_not,
        "orch::portable::bitwise_or_Scalar_out": _bits_of_number(np.bitwise_or),
        "orch::portable::bitwise_or_Tensor_out": _bits_of_tensors(np.bitwise_or),
        "orch::portable::mul_out": _mul,
        "orch::portable::neg_out": _neg,
        "orch::portable::sub_out": _scaled(REAL, np.subtract),
    }
)
