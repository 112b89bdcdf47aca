"""Tensors made of numbers alone.

Source: kernels/portable/op_full.cpp, op_scalar_tensor.cpp and op_arange.cpp.
"""

from __future__ import annotations

from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.dtype import FLOATING, INTEGRAL
from orchestrator.method.passes.arguments import UnknownCallError, need
from orchestrator.method.passes.evaluate.numbers import (
    Items,
    Scalar,
    converted,
    number_of,
)

if TYPE_CHECKING:
    from orchestrator.method.passes.evaluate.constant_call import ConstantCall
    from orchestrator.program.values import TensorValue


def _filled(number: Scalar, out: TensorValue) -> tuple[Items, ...]:
    item = number_of(number, out.dtype)
    return (Items(out.dtype, np.broadcast_to(item, out.sizes)),)


def _full(call: ConstantCall) -> tuple[Items, ...]:
    need(call.numbers(0) == call.out(2).sizes)
    return _filled(call.scalar(1), call.out(2))


def _scalar_tensor(call: ConstantCall) -> tuple[Items, ...]:
    need(call.out(1).sizes == ())
    return _filled(call.scalar(0), call.out(1))


def _arange(call: ConstantCall) -> tuple[Items, ...]:
    start, end, step = (call.scalar(i) for i in range(3))
    out = call.out(3)
    need(len(out.sizes) == 1)
    if out.dtype in FLOATING:
        return _steps(float(start), float(end), float(step), out)
    need(out.dtype in INTEGRAL)
    if isinstance(start, float) or isinstance(end, float) or isinstance(step, float):
        raise UnknownCallError
    need(step != 0)
    count = len(range(int(start), int(end), int(step)))
    need((count,) == out.sizes and (end - start) * step >= 0)
    # Modulo 2^64, as the kernel counts.
    steps = np.arange(count, dtype=np.uint64) * np.uint64(int(step) % (1 << 64))
    numbers = steps + np.uint64(int(start) % (1 << 64))
    return (Items(out.dtype, converted(numbers, out.dtype)),)


def _steps(
    start: float, end: float, step: float, out: TensorValue
) -> tuple[Items, ...]:
    """Floats: start + i * step in double, rounded once."""
    need(isfinite(start) and isfinite(end) and isfinite(step) and step != 0)
    size = (end - start) / step
    need(size >= 0 and size <= out.sizes[0])
    need(int(size) + (int(size) < size) == out.sizes[0])
    numbers = start + np.arange(out.sizes[0], dtype=np.float64) * step
    return (Items(out.dtype, converted(numbers, out.dtype)),)


EVALUATORS: Final = MappingProxyType(
    {
        "orch::portable::arange_start_out": _arange,
        "orch::portable::full_out": _full,
        "orch::portable::scalar_tensor_out": _scalar_tensor,
    }
)
