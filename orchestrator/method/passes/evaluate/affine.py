"""Affine quantization: q = round(x / scale) + zero_point, and back.

Source: kernels/util/affine.h. Scales are used as floats, zero points as 32-bit
integers, whatever they are stored in.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.dtype import FLOATING, ScalarType
from orchestrator.method.passes.arguments import dim_of, need
from orchestrator.method.passes.evaluate.numbers import (
    Array,
    Items,
    computed,
    converted,
)

if TYPE_CHECKING:
    from orchestrator.method.passes.evaluate.constant_call import ConstantCall
    from orchestrator.program.values import TensorValue

_S = ScalarType
_QUANTIZED: Final = frozenset({_S.Byte, _S.Char, _S.Short, _S.UInt16, _S.Int})
_UNSIGNED: Final = frozenset({_S.Byte, _S.UInt16})
_INT32: Final = 1 << 31


def _numbers(call: ConstantCall) -> tuple[Array, Array]:
    """Scale and zero point among the arguments 1 and 2."""
    zero_point = call.number(2)
    need(-_INT32 <= zero_point < _INT32)
    scale = np.asarray(float(call.scalar(1)), np.float64).astype(np.float32)
    return scale, np.asarray(zero_point, np.int32)


def _tensors(scales: Items, zero_points: Items | None) -> tuple[Array, Array]:
    """Scales and zero points from tensors; without the latter, zeros."""
    need(scales.dtype in (_S.Float, _S.Double))
    scale = scales.numbers.astype(np.float32)
    if zero_points is None:
        return scale, np.zeros(scale.shape, np.int32)
    need(zero_points.dtype in (_S.Int, _S.Long))
    return scale, zero_points.numbers.astype(np.int32)


def _one(call: ConstantCall) -> tuple[Array, Array]:
    """Tensors of one scale and one zero point."""
    scale, zero_point = _tensors(call.items(1), call.items(2))
    need(scale.size == zero_point.size == 1)
    return scale.reshape(()), zero_point.reshape(())


def _per_channel(call: ConstantCall) -> tuple[Array, Array]:
    """Tensors with a scale and a zero point for each index of a dimension."""
    items = call.items(0)
    scale, zero_point = _tensors(call.items(1), call.optional_items(2))
    need(items.rank > 0)
    axis = dim_of(call.number(3), items.rank)
    count = items.numbers.shape[axis]
    need(scale.shape == zero_point.shape == (count,))
    sizes = [count if d == axis else 1 for d in range(items.rank)]
    return scale.reshape(sizes), zero_point.reshape(sizes)


def _per_token(call: ConstantCall) -> tuple[Array, Array]:
    """Tensors with the sizes of the first, but 1 in the last dimension."""
    items = call.items(0)
    need(items.rank > 0)
    need(call.tensor(1).dim_order == call.tensor(2).dim_order)
    scale, zero_point = _tensors(call.items(1), call.items(2))
    need(scale.shape == zero_point.shape == (*items.numbers.shape[:-1], 1))
    return scale, zero_point


def _limits(low: int, high: int, dtype: ScalarType) -> tuple[int, int]:
    """Limits of quantized numbers of a dtype."""
    count = 1 << (8 * dtype.item_bytes)
    lowest = 0 if dtype in _UNSIGNED else -(count >> 1)
    need(lowest <= low <= high < lowest + count)
    return low, high


def _quantized(
    items: Items,
    affine: tuple[Array, Array],
    limits: tuple[int, int],
    out: TensorValue,
) -> tuple[Items, ...]:
    need(items.dtype in FLOATING and out.dtype in _QUANTIZED)
    low, high = _limits(*limits, out.dtype)
    scale, zero_point = affine
    numbers = computed(items.numbers, items.dtype)
    inverse = np.float32(1) / scale
    scaled = (inverse.astype(numbers.dtype) * numbers).astype(np.float32)
    value = np.rint(scaled) + zero_point.astype(np.float32)
    # Of two float32 the sum is a float32; as a double it compares exactly. NaN is
    # below everything.
    exact = value.astype(np.float64)
    if out.dtype is _S.Int:
        inside = np.clip(exact, -float(_INT32), float(_INT32 - 1))
        number = np.where(np.isnan(exact), -float(_INT32), inside)
        found = np.clip(number, low, high)
    else:
        found = np.where(exact > low, np.minimum(exact, high), low)
    return (Items(out.dtype, found.astype(np.int64).astype(_int_of(out))),)


def _int_of(out: TensorValue) -> str:
    kind = "u" if out.dtype in _UNSIGNED else "i"
    return f"<{kind}{out.dtype.item_bytes}"


def _dequantized(
    items: Items, affine: tuple[Array, Array], out: TensorValue
) -> tuple[Items, ...]:
    """The difference is exact as far as 32 bits hold it, the product rounded."""
    need(items.dtype in _QUANTIZED and out.dtype in FLOATING)
    scale, zero_point = affine
    number = items.numbers.astype(np.uint32) - zero_point.astype(np.uint32)
    value = number.astype(np.int32).astype(np.float32) * scale
    return (Items(out.dtype, converted(value, out.dtype)),)


def _quantize_per_tensor(call: ConstantCall) -> tuple[Items, ...]:
    need(call.number(5) == call.out(6).dtype)
    limits = call.number(3), call.number(4)
    return _quantized(call.items(0), _numbers(call), limits, call.out(6))


def _quantize_by_tensors(call: ConstantCall) -> tuple[Items, ...]:
    need(call.number(5) == call.out(6).dtype)
    limits = call.number(3), call.number(4)
    return _quantized(call.items(0), _one(call), limits, call.out(6))


def _quantize_per_channel(call: ConstantCall) -> tuple[Items, ...]:
    need(call.number(6) == call.out(7).dtype)
    limits = call.number(4), call.number(5)
    return _quantized(call.items(0), _per_channel(call), limits, call.out(7))


def _quantize_per_token(call: ConstantCall) -> tuple[Items, ...]:
    need(call.number(5) == call.out(6).dtype)
    limits = call.number(3), call.number(4)
    return _quantized(call.items(0), _per_token(call), limits, call.out(6))


def _check_dtypes(call: ConstantCall, position: int, out: TensorValue) -> None:
    """Dtypes that arguments name: of the input and, unless None, of the output."""
    need(call.number(position) == call.items(0).dtype)
    need(call.is_none(position + 1) or call.number(position + 1) == out.dtype)


def _dequantize_per_tensor(call: ConstantCall) -> tuple[Items, ...]:
    _check_dtypes(call, 5, call.out(7))
    return _dequantized(call.items(0), _numbers(call), call.out(7))


def _dequantize_by_tensors(call: ConstantCall) -> tuple[Items, ...]:
    _check_dtypes(call, 5, call.out(7))
    return _dequantized(call.items(0), _one(call), call.out(7))


def _dequantize_per_channel(call: ConstantCall) -> tuple[Items, ...]:
    _check_dtypes(call, 6, call.out(8))
    return _dequantized(call.items(0), _per_channel(call), call.out(8))


def _dequantize_per_token(call: ConstantCall) -> tuple[Items, ...]:
    _check_dtypes(call, 5, call.out(7))
    need(not call.is_none(6))
    return _dequantized(call.items(0), _per_token(call), call.out(7))


def _dequantize_int8(call: ConstantCall) -> tuple[Items, ...]:
    """`cortex_m::dequantize_per_tensor`: checks the limits, names no output dtype."""
    items, out = call.items(0), call.out(6)
    need(items.dtype in _QUANTIZED and call.number(5) == items.dtype)
    _limits(call.number(3), call.number(4), items.dtype)
    return _dequantized(items, _numbers(call), out)


EVALUATORS: Final = MappingProxyType(
    {
        "orch::cortex_m::dequantize_per_tensor_out": _dequantize_int8,
        "orch::cortex_m::quantize_per_tensor_out": _quantize_per_tensor,
        "orch::quantized::dequantize_per_channel_out": _dequantize_per_channel,
        "orch::quantized::dequantize_per_tensor_Tensor_out": _dequantize_by_tensors,
        "orch::quantized::dequantize_per_tensor_out": _dequantize_per_tensor,
        "orch::quantized::dequantize_per_token_out": _dequantize_per_token,
        "orch::quantized::quantize_per_channel_out": _quantize_per_channel,
        "orch::quantized::quantize_per_tensor_Tensor_out": _quantize_by_tensors,
        "orch::quantized::quantize_per_tensor_out": _quantize_per_tensor,
        "orch::quantized::quantize_per_token_out": _quantize_per_token,
    }
)
