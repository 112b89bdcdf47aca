"""Items of tensors as NumPy arrays, and conversions that round as kernels do.

Half and BFloat16 are held as float32, which they are computed in; Bool as bool.

Source: runtime/include/orch/half.h, kernels/util/types.h and kernels/util/truncate.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from orchestrator.core.dtype import FLOATING, ScalarType
from orchestrator.method.passes.arguments import need

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.program.values import TensorValue

Array: TypeAlias = "npt.NDArray[Any]"
Scalar: TypeAlias = "int | float | bool"

_S = ScalarType
_MEMORY: Final[Mapping[ScalarType, str]] = {
    _S.Byte: "<u1",
    _S.Char: "<i1",
    _S.Short: "<i2",
    _S.Int: "<i4",
    _S.Long: "<i8",
    _S.Half: "<f2",
    _S.Float: "<f4",
    _S.Double: "<f8",
    _S.Bool: "<u1",
    _S.BFloat16: "<u2",
    _S.UInt16: "<u2",
    _S.UInt32: "<u4",
    _S.UInt64: "<u8",
}
_HALVES: Final = frozenset({_S.Half, _S.BFloat16})
_WIDE: Final = 8
_INT32: Final = 1 << 31
_INT64: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class Items:
    """Items of a tensor.

    Args:
        dtype: Of the tensor.
        numbers: With the sizes of the tensor, whatever its dim order.
    """

    dtype: ScalarType
    numbers: Array

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return self.numbers.ndim


def read_items(data: bytes, tensor: TensorValue) -> Items:
    """Items from the memory of a tensor."""
    need(len(data) == tensor.size_bytes)
    raw = np.frombuffer(data, _MEMORY[tensor.dtype])
    in_memory = raw.reshape([tensor.sizes[d] for d in tensor.dim_order])
    raw = in_memory.transpose(np.argsort(tensor.dim_order).tolist())
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
    """The memory of a tensor with these items, which are of its dtype."""
    need(numbers.shape == tensor.sizes)
    if tensor.dtype in FLOATING:
        need(not np.isnan(numbers).any())
    raw = numbers.transpose(tensor.dim_order)
    if tensor.dtype is _S.BFloat16:
        bits = np.ascontiguousarray(raw).view(np.uint32)
        raw = np.right_shift(bits, np.uint32(16))
    return raw.astype(_MEMORY[tensor.dtype]).tobytes()


def converted(numbers: Array, dtype: ScalarType) -> Array:
    """Items of another dtype: rounded, wrapped around, or whether they are not 0.

    Raises:
        UnknownCallError: Floats would become integers: operators differ in that.
    """
    if dtype is _S.Bool:
        return np.asarray(numbers != 0)
    if dtype not in FLOATING:
        need(numbers.dtype.kind in "iub")
        return numbers.astype(_MEMORY[dtype])
    if dtype not in _HALVES:
        return numbers.astype(_MEMORY[dtype])
    single = numbers.astype(np.float32)
    if dtype is _S.Half:
        return single.astype(np.float16).astype(np.float32)
    bits = np.ascontiguousarray(single).view(np.uint32).reshape(single.shape)
    odd = np.right_shift(bits, np.uint32(16)) & np.uint32(1)
    rounded = (bits + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(single), single, rounded.view(np.float32))


def truncated(numbers: Array, dtype: ScalarType) -> Array:
    """As `converted`; floats become integers by dropping the fraction.

    Those out of range become the nearest limit of 32 bits, or of 64 for items of 8
    bytes; what is narrower wraps around from there. NaN becomes 0.
    """
    if numbers.dtype.kind != "f" or dtype in FLOATING or dtype is _S.Bool:
        return converted(numbers, dtype)
    wide = dtype.item_bytes == _WIDE
    limit, integer = (_INT64, np.int64) if wide else (_INT32, np.int32)
    whole = np.trunc(numbers.astype(np.float64))
    inside = (whole >= -float(limit)) & (whole < float(limit))
    kept = np.where(inside, whole, 0.0).astype(integer)
    ends = np.where(whole > 0, integer(limit - 1), integer(-limit))
    found = np.where(inside | np.isnan(whole), kept, ends)
    return found.astype(_MEMORY[dtype])


def computed(numbers: Array, dtype: ScalarType) -> Array:
    """Items in the type that sums and products of them are computed in.

    Integers become unsigned: they wrap around, as `converted` makes them again.
    """
    if dtype in FLOATING:
        return numbers.astype(np.float64 if dtype is _S.Double else np.float32)
    return numbers.astype(np.uint64 if dtype.item_bytes == _WIDE else np.uint32)


def computed_number(value: Scalar, dtype: ScalarType) -> Array:
    """A number among the arguments, in the type that items are computed in.

    Source: scalar_as in kernels/util/scalar.h.
    """
    if dtype is _S.Bool:
        return np.asarray(value != 0).astype(np.uint32)
    if dtype in FLOATING:
        whole = not isinstance(value, float)
        exact = np.asarray(value, dtype=np.int64 if whole else np.float64)
        return exact.astype(np.float64 if dtype is _S.Double else np.float32)
    return computed(truncated(np.asarray(value), _S.Long), dtype)


def number_of(value: Scalar, dtype: ScalarType) -> Array:
    """A number among the arguments as an item: an array without dimensions."""
    return converted(computed_number(value, dtype), dtype)
