"""Affine quantization: q = round(x / scale) + zero_point, and back.

Kernels use scales as float32 and zero points as 32-bit integers, whatever dtype they
have. Source: kernels/util/affine.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.dtype import FLOATING, ScalarType
from orchestrator.method.passes.arguments import dim_of, need
from orchestrator.method.passes.evaluate.numbers import Array, Items, computed, converted
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.passes.evaluate.constant_call import ConstantCall

_S = ScalarType
_QUANTIZED: Final = frozenset({_S.Byte, _S.Char, _S.Short, _S.UInt16, _S.Int})
_UNSIGNED: Final = frozenset({_S.Byte, _S.UInt16})
_INT32: Final = 1 << 31


def quantize_per_tensor(call: ConstantCall) -> Items:
    """Floats to integers, with one scale."""
    items, out = call.items(0), call.tensor(6)
    need(items.dtype in FLOATING and out.dtype in _QUANTIZED)
    need(call.number(5) == out.dtype)
    low, high = call.number(3), call.number(4)
    _check_limits(low, high, out.dtype)
    scale, zero_point = _numbers(call)
    numbers = computed(items.numbers, items.dtype)
    inverse = np.float32(1) / scale
    scaled = (inverse.astype(numbers.dtype) * numbers).astype(np.float32)
    value = np.rint(scaled) + zero_point.astype(np.float32)
    # The sum of two float32 is rounded to float32; as a double it compares exactly.
    exact = value.astype(np.float64)
    if out.dtype is _S.Int:
        inside = np.clip(exact, -float(_INT32), float(_INT32 - 1))
        number = np.where(np.isnan(exact), -float(_INT32), inside)
        clipped = np.clip(number, low, high)
    else:
        # In the kernel, NaN counts as below every limit.
        clipped = np.where(exact > low, np.minimum(exact, high), low)
    kind = "u" if out.dtype in _UNSIGNED else "i"
    integers = clipped.astype(np.int64).astype(f"<{kind}{out.dtype.item_bytes}")
    return Items(out.dtype, integers)


def dequantize_per_tensor(call: ConstantCall) -> Items:
    """Integers to floats, with one scale."""
    _check_dtypes(call, 5, call.tensor(7))
    return _dequantized(call.items(0), *_numbers(call), call.tensor(7))


def dequantize_int8(call: ConstantCall) -> Items:
    """`cortex_m::dequantize_per_tensor`: checks limits, has no output dtype."""
    items, out = call.items(0), call.tensor(6)
    need(items.dtype in _QUANTIZED and call.number(5) == items.dtype)
    _check_limits(call.number(3), call.number(4), items.dtype)
    return _dequantized(items, *_numbers(call), out)


def dequantize_per_channel(call: ConstantCall) -> Items:
    """Integers to floats, with a scale and a zero point per index of a dimension."""
    _check_dtypes(call, 6, call.tensor(8))
    items, scales, zero_points = call.items(0), call.items(1), call.optional_items(2)
    need(items.rank > 0 and scales.dtype in (_S.Float, _S.Double))
    axis = dim_of(call.number(3), items.rank)
    count = items.numbers.shape[axis]
    scale = scales.numbers.astype(np.float32)
    zero_point = np.zeros(count, np.int32)
    if zero_points is not None:
        need(zero_points.dtype in (_S.Int, _S.Long))
        zero_point = zero_points.numbers.astype(np.int32)
    need(scale.shape == zero_point.shape == (count,))
    sizes = [count if d == axis else 1 for d in range(items.rank)]
    return _dequantized(items, scale.reshape(sizes), zero_point.reshape(sizes), call.tensor(8))


def _numbers(call: ConstantCall) -> tuple[Array, Array]:
    """Scale and zero point, the arguments 1 and 2."""
    zero_point = call.number(2)
    need(-_INT32 <= zero_point < _INT32)
    scale = np.asarray(float(call.literal(1)), np.float64).astype(np.float32)
    return scale, np.asarray(zero_point, np.int32)


def _check_limits(low: int, high: int, dtype: ScalarType) -> None:
    count = 1 << (8 * dtype.item_bytes)
    lowest = 0 if dtype in _UNSIGNED else -(count >> 1)
    need(lowest <= low <= high < lowest + count)


def _check_dtypes(call: ConstantCall, position: int, out: TensorValue) -> None:
    """Check dtype arguments: of the input and, unless None, of the output."""
    need(call.number(position) == call.items(0).dtype)
    need(call.is_none(position + 1) or call.number(position + 1) == out.dtype)


def _dequantized(items: Items, scale: Array, zero_point: Array, out: TensorValue) -> Items:
    """As in the kernel, the difference wraps at 32 bits and the product is rounded."""
    need(items.dtype in _QUANTIZED and out.dtype in FLOATING)
    difference = items.numbers.astype(np.uint32) - zero_point.astype(np.uint32)
    value = difference.astype(np.int32).astype(np.float32) * scale
    return Items(out.dtype, converted(value, out.dtype))
