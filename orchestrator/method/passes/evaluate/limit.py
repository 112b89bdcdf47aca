"""The larger or smaller of two, and limits.

Source: kernels/portable/op_maximum.cpp, op_clamp.cpp, op_hardtanh.cpp, op_relu.cpp;
kernels/cortex_m/op_maximum.cpp.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.dtype import FLOATING, REAL, ScalarType
from orchestrator.method.passes.arguments import need
from orchestrator.method.passes.evaluate.numbers import Array, Items, number_of
from orchestrator.method.passes.evaluate.promote import (
    REAL_OR_BOOL,
    binary,
    number_type,
    unary_same,
    unary_with_number,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.method.passes.evaluate.constant_call import ConstantCall
    from orchestrator.method.passes.evaluate.numbers import Scalar


def _of_two(
    fn: Callable[[Array, Array], Array],
) -> Callable[[ConstantCall], tuple[Items, ...]]:
    """`a` if fn(a, b), else `b`, as of two zeros; NaN wins."""

    def chosen(a: Array, b: Array, dtype: ScalarType) -> Array:
        first = fn(a, b)
        if dtype in FLOATING:
            first = first | np.isnan(a)
        return np.where(first, a, b)

    def evaluate(call: ConstantCall) -> tuple[Items, ...]:
        return binary(call.items(0), call.items(1), call.out(2), REAL_OR_BOOL, chosen)

    return evaluate


def _relu(call: ConstantCall) -> tuple[Items, ...]:
    need(call.items(0).dtype in REAL)
    return unary_same(
        call.items(0), call.out(1), lambda x, _: np.where(x < 0, x.dtype.type(0), x)
    )


def _hardtanh(call: ConstantCall) -> tuple[Items, ...]:
    low, high = call.scalar(1), call.scalar(2)

    def limited(x: Array, dtype: ScalarType) -> Array:
        bottom, top = number_of(low, dtype), number_of(high, dtype)
        raised = np.where(x < bottom, bottom, x)
        return np.where(raised > top, top, raised)

    need(call.items(0).dtype in FLOATING)
    return unary_same(call.items(0), call.out(3), limited)


def _clamp(call: ConstantCall) -> tuple[Items, ...]:
    items = call.items(0)
    low, high = call.optional_scalar(1), call.optional_scalar(2)
    need(low is not None or high is not None)
    common = items.dtype
    for limit in (low, high):
        if limit is not None:
            common = number_type(common, limit)
    need(_is_within(low, common) and _is_within(high, common))

    def limited(x: Array, dtype: ScalarType) -> Array:
        # NaN, as item and as limit, makes the result NaN, which is not stored.
        found = x
        if low is not None:
            bottom = number_of(low, dtype)
            found = np.where(found >= bottom, found, bottom)
        if high is not None:
            top = number_of(high, dtype)
            found = np.where((found <= top) | (found != found), found, top)  # noqa: PLR0124  # NaN
        return np.where(x != x, x, found)  # noqa: PLR0124  # NaN

    return unary_with_number(items, call.out(3), common, REAL, limited)


def _is_within(limit: Scalar | None, dtype: ScalarType) -> bool:
    """Whether a limit is a number of a dtype; floats hold all, rounded."""
    if limit is None or dtype in FLOATING:
        return True
    if dtype is ScalarType.Byte:
        return 0 <= limit < 1 << 8
    top = 1 << (8 * dtype.item_bytes - 1)
    return -top <= limit < top


EVALUATORS: Final = MappingProxyType(
    {
        "orch::cortex_m::maximum_out": _of_two(np.greater),
        "orch::cortex_m::minimum_out": _of_two(np.less),
        "orch::portable::clamp_out": _clamp,
        "orch::portable::hardtanh_out": _hardtanh,
        "orch::portable::maximum_out": _of_two(np.greater),
        "orch::portable::minimum_out": _of_two(np.less),
        "orch::portable::relu_out": _relu,
    }
)
