"""Comparisons: truth values, stored as whatever dtype the output has.

Source: kernels/util/compare.h and kernels/portable/op_logical_not.cpp.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.method.passes.evaluate.numbers import Array, Items, number_of
from orchestrator.method.passes.evaluate.promote import (
    number_type,
    pairwise,
    result_type,
    unary,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.method.passes.evaluate.constant_call import ConstantCall

    Compare = Callable[[Array, Array], Array]


def _tensors(fn: Compare) -> Callable[[ConstantCall], tuple[Items, ...]]:
    def evaluate(call: ConstantCall) -> tuple[Items, ...]:
        a, b = call.items(0), call.items(1)
        common = result_type(a, b)
        return pairwise(a, b, call.out(2), common, lambda x, y, _: fn(x, y))

    return evaluate


def _number(fn: Compare) -> Callable[[ConstantCall], tuple[Items, ...]]:
    def evaluate(call: ConstantCall) -> tuple[Items, ...]:
        a, number = call.items(0), call.scalar(1)
        common = number_type(a.dtype, number)
        return unary(
            a,
            call.out(2),
            common,
            lambda x, dtype: fn(x, number_of(number, dtype)),
        )

    return evaluate


def _logical_not(call: ConstantCall) -> tuple[Items, ...]:
    items = call.items(0)
    return unary(items, call.out(1), items.dtype, lambda x, _: np.asarray(x == 0))


EVALUATORS: Final = MappingProxyType(
    {
        "orch::portable::eq_Scalar_out": _number(np.equal),
        "orch::portable::eq_Tensor_out": _tensors(np.equal),
        "orch::portable::ge_Scalar_out": _number(np.greater_equal),
        "orch::portable::ge_Tensor_out": _tensors(np.greater_equal),
        "orch::portable::gt_Scalar_out": _number(np.greater),
        "orch::portable::gt_Tensor_out": _tensors(np.greater),
        "orch::portable::le_Scalar_out": _number(np.less_equal),
        "orch::portable::le_Tensor_out": _tensors(np.less_equal),
        "orch::portable::logical_not_out": _logical_not,
        "orch::portable::logical_xor_out": _tensors(np.logical_xor),
        "orch::portable::lt_Scalar_out": _number(np.less),
        "orch::portable::lt_Tensor_out": _tensors(np.less),
        "orch::portable::ne_Scalar_out": _number(np.not_equal),
        "orch::portable::ne_Tensor_out": _tensors(np.not_equal),
    }
)
