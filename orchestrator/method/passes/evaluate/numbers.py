"""Items of tensors as NumPy arrays, and conversions that round as kernels do.

Half and BFloat16 become float32, in which kernels compute; Bool becomes bool.

Source: runtime/include/orch/half.h, kernels/util/types.h and kernels/util/scalar.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from orchestrator.core.dtype import FLOATING, ScalarType
from orchestrator.core.layout import FORMATS, logical_items, stored_items
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.method.passes.arguments import need
from orchestrator.program.values import TensorValue

Array: TypeAlias = "npt.NDArray[Any]"
Scalar: TypeAlias = "int | float | bool"

_S = ScalarType
_HALVES: Final = frozenset({_S.Half, _S.BFloat16})
_WIDE: Final = 8
"""Bytes of integers that need 64 bits to compute in."""
_INT64: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class Items:
    """Items of a tensor.

    Args:
        dtype: Of the tensor.
        numbers: An array with the sizes of the tensor, in any dim order.
    """

    dtype: ScalarType
    numbers: Array

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return self.numbers.ndim


def read_items(data: Bytes, tensor: TensorValue) -> Items:
    """Items from the memory of a tensor."""
    need(len(data) == tensor.size_bytes and tensor.dtype in FORMATS)
    form = FORMATS[tensor.dtype]
    raw = logical_items(data, form, tensor.sizes, tensor.dim_order)
    match tensor.dtype:
        case ScalarType.Bool:
            need((raw <= 1).all())
            return Items(tensor.dtype, raw != 0)
        case ScalarType.BFloat16:
            wide = np.left_shift(raw.astype(np.uint32), np.uint32(16))
            return Items(tensor.dtype, wide.view(np.float32))
        case ScalarType.Half:
            return Items(tensor.dtype, raw.astype(np.float32))
        case _:
            return Items(tensor.dtype, raw)


def write_items(numbers: Array, tensor: TensorValue) -> bytes:
    """The memory of a tensor with these items, which have its dtype.

    Raises:
        UnknownCallError: An item is NaN, whose bits depend on the machine.
    """
    need(numbers.shape == tensor.sizes)
    need(tensor.dtype in FORMATS)
    if tensor.dtype in FLOATING:
        need(not np.isnan(numbers).any())
    if tensor.dtype is _S.BFloat16:
        bits = np.ascontiguousarray(numbers).view(np.uint32).reshape(numbers.shape)
        numbers = np.right_shift(bits, np.uint32(16))
    return stored_items(numbers.astype(FORMATS[tensor.dtype]), tensor.dim_order)


def converted(numbers: Array, dtype: ScalarType) -> Array:
    """Items of another dtype: floats are rounded, integers wrap around.

    Raises:
        UnknownCallError: Floats would become integers: kernels differ in how. Or
            complex numbers are computed with.
    """
    need(dtype in FORMATS)
    if dtype is _S.Bool:
        return np.asarray(numbers != 0)
    if dtype not in FLOATING:
        need(numbers.dtype.kind in "iub")
        return numbers.astype(FORMATS[dtype])
    if dtype not in _HALVES:
        return numbers.astype(FORMATS[dtype])
    single = numbers.astype(np.float32)
    if dtype is _S.Half:
        return single.astype(np.float16).astype(np.float32)
    bits = np.ascontiguousarray(single).view(np.uint32).reshape(single.shape)
    odd = np.right_shift(bits, np.uint32(16)) & np.uint32(1)
    rounded = (bits + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(single), single, rounded.view(np.float32))


def computed(numbers: Array, dtype: ScalarType) -> Array:
    """Items in the type in which kernels add and multiply.

    Integers become unsigned, so that they wrap around; `converted` reverses it.
    """
    if dtype in FLOATING:
        return numbers.astype(np.float64 if dtype is _S.Double else np.float32)
    return numbers.astype(np.uint64 if dtype.item_bytes == _WIDE else np.uint32)


def computed_number(value: Scalar, dtype: ScalarType) -> Array:
    """A number argument in the type in which kernels compute.

    Source: scalar_as in kernels/util/scalar.h.
    """
    if dtype is _S.Bool:
        return np.asarray(value != 0).astype(np.uint32)
    if dtype in FLOATING:
        whole = not isinstance(value, float)
        exact = np.asarray(value, dtype=np.int64 if whole else np.float64)
        return exact.astype(np.float64 if dtype is _S.Double else np.float32)
    return computed(np.asarray(_whole(value), np.int64), dtype)


def _whole(value: Scalar) -> int:
    """An integer of 64 bits: floats lose their fraction, NaN is 0, others saturate."""
    if isnan(value):
        return 0
    return int(max(-_INT64, min(value, _INT64 - 1)))


def item_of(value: Scalar, dtype: ScalarType) -> Array:
    """A number argument as an item: an array without dimensions."""
    return converted(computed_number(value, dtype), dtype)
