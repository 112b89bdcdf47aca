"""Tensors created from numbers.

Source: kernels/portable/op_full.cpp, op_scalar_tensor.cpp and op_arange.cpp.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from orchestrator.core.dtype import FLOATING, INTEGRAL
from orchestrator.method.passes.arguments import UnknownCallError, need
from orchestrator.method.passes.evaluate.numbers import Items, Scalar, converted, item_of
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.passes.evaluate.constant_call import ConstantCall


def full(call: ConstantCall) -> Items:
    """One number in every item."""
    need(call.numbers(0) == call.tensor(2).sizes)
    return _filled(call.literal(1), call.tensor(2))


def scalar_tensor(call: ConstantCall) -> Items:
    """One number, without dimensions."""
    need(call.tensor(1).sizes == ())
    return _filled(call.literal(0), call.tensor(1))


def arange(call: ConstantCall) -> Items:
    """Numbers from start to end, exclusive."""
    start, end, step = (call.literal(i) for i in range(3))
    out = call.tensor(3)
    need(len(out.sizes) == 1)
    if out.dtype in FLOATING:
        return _float_range(float(start), float(end), float(step), out)
    need(out.dtype in INTEGRAL)
    if isinstance(start, float) or isinstance(end, float) or isinstance(step, float):
        raise UnknownCallError
    need(step != 0)
    count = len(range(int(start), int(end), int(step)))
    need((count,) == out.sizes and (end - start) * step >= 0)
    # Modulo 2^64, as in the kernel.
    steps = np.arange(count, dtype=np.uint64) * np.uint64(int(step) % (1 << 64))
    numbers = steps + np.uint64(int(start) % (1 << 64))
    return Items(out.dtype, converted(numbers, out.dtype))


def _filled(number: Scalar, out: TensorValue) -> Items:
    item = item_of(number, out.dtype)
    return Items(out.dtype, np.broadcast_to(item, out.sizes))


def _float_range(start: float, end: float, step: float, out: TensorValue) -> Items:
    """`start + i * step` in double, rounded once."""
    need(isfinite(start) and isfinite(end) and isfinite(step) and step != 0)
    size = (end - start) / step
    need(size >= 0 and size <= out.sizes[0])
    need(int(size) + (int(size) < size) == out.sizes[0])
    numbers = start + np.arange(out.sizes[0], dtype=np.float64) * step
    return Items(out.dtype, converted(numbers, out.dtype))
