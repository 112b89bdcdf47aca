"""Items of tensors as NumPy arrays, and conversions that round as kernels do.

Half and BFloat16 become float32, in which kernels compute; Bool becomes bool.

Source: runtime/include/orch/half.h, kernels/util/types.h and kernels/util/scalar.h.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import copysign, inf, isinf, isnan, nan, prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from orchestrator.core.dtype import FLOATING, REAL, ScalarType
from orchestrator.core.layout import FORMATS, logical_items, stored_items
from orchestrator.core.lazy_bytes import Bytes, settled
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import Arguments, Name, UnknownCallError, dim_of, need
from orchestrator.program.values import (
    BoolValue,
    DoubleValue,
    IntValue,
    NoneValue,
    OptionalTensorListValue,
    TensorListValue,
    TensorValue,
)

if TYPE_CHECKING:
    Number = int | float
    Evaluator: TypeAlias = "Callable[[ConstantCall], Scalar]"

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
            # Other bytes are undefined as a bool: kernels may read any of them in their own way.
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
    # To the nearest, ties to even: half less one, and one more where the last bit that stays is
    # odd.
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


# Numbers computed from numbers, and from sizes and items of tensors.
#
# Integers have 64 bits; a kernel reports an error if a result does not fit. Otherwise Python's
# numbers compare, divide and round as those of kernels do.
#
# Source: kernels/prim_ops/op_scalar_*.cpp and op_sizes.cpp.


def as_value(number: Scalar) -> BoolValue | IntValue | DoubleValue:
    """A number as a value of a slot.

    Raises:
        UnknownCallError: It does not fit, or is NaN, whose bits depend on the machine.
    """
    if isinstance(number, bool):
        return BoolValue(number)
    if isinstance(number, int):
        need(-_INT64 <= number < _INT64)
        return IntValue(number)
    need(not math.isnan(number))
    return DoubleValue(number)


def _number(call: ConstantCall, position: int) -> Number:
    """An int or double, not a bool."""
    number = call.literal(position)
    need(not isinstance(number, bool))
    return number


def _binary(fn: Callable[[Number, Number], Number]) -> Evaluator:
    """fn(a, b): both ints, or both doubles if one of them is."""

    def evaluate(call: ConstantCall) -> Scalar:
        a, b = _number(call, 0), _number(call, 1)
        if isinstance(a, float) or isinstance(b, float):
            return fn(float(a), float(b))
        return fn(a, b)

    return evaluate


def _comparison(fn: Callable[[Scalar, Scalar], bool]) -> Evaluator:
    """Compares exact values; bools compare with each other only."""

    def evaluate(call: ConstantCall) -> Scalar:
        a, b = call.literal(0), call.literal(1)
        need(isinstance(a, bool) == isinstance(b, bool))
        return fn(a, b)

    return evaluate


def _to_int(fn: Callable[[float], int]) -> Evaluator:
    def evaluate(call: ConstantCall) -> Scalar:
        number = call.literal(0)
        if not isinstance(number, float):
            return int(number)
        need(-_INT64 <= number < _INT64)
        return fn(number)

    return evaluate


def _quotient_down(a: Number, b: Number) -> Number:
    if not isinstance(a, float):
        need(b != 0)
        return a // b
    # As C++ divides doubles: Python would raise an error.
    if b == 0:
        return nan if math.isnan(a) else copysign(inf, a)
    return nan if isinf(a) else a // b


def _truediv(call: ConstantCall) -> Scalar:
    a, b = float(_number(call, 0)), float(_number(call, 1))
    if b != 0:
        return a / b
    return nan if a == 0 or math.isnan(a) else copysign(inf, a) * copysign(1, b)


def _mod(call: ConstantCall) -> Scalar:
    need(call.number(1) != 0)
    return call.number(0) % call.number(1)


def _sym_size(call: ConstantCall) -> Scalar:
    sizes = call.static_tensor(0).sizes
    need(sizes)
    return sizes[dim_of(call.number(1), len(sizes))]


def _first_item(call: ConstantCall) -> Scalar:
    items = call.items(0)
    need(items.dtype in REAL | {ScalarType.Bool} and items.numbers.size > 0)
    number: Scalar = items.numbers.reshape(-1)[0].item()
    return number


_KERNELS: Final[Mapping[str, Evaluator]] = {
    "_local_scalar_dense": _first_item,
    "add_Scalar": _binary(operator.add),
    "ceil_Scalar": _to_int(math.ceil),
    "eq_Scalar": _comparison(operator.eq),
    "floordiv_Scalar": _binary(_quotient_down),
    "floordiv_int": lambda call: _quotient_down(call.number(0), call.number(1)),
    "ge_Scalar": _comparison(operator.ge),
    "gt_Scalar": _comparison(operator.gt),
    "le_Scalar": _comparison(operator.le),
    "lt_Scalar": _comparison(operator.lt),
    "mod_int": _mod,
    "mul_Scalar": _binary(operator.mul),
    "neg_Scalar": lambda call: -_number(call, 0),
    "round_Scalar": _to_int(round),  # halves to even
    "sub_Scalar": _binary(operator.sub),
    "sym_float_Scalar": lambda call: float(call.literal(0)),
    "sym_int_Scalar": _to_int(math.trunc),
    # One of two numbers; the other may be unknown.
    "sym_ite_Scalar": lambda call: call.literal(1 if call.truth(0) else 2),
    "sym_max_Scalar": lambda call: max(call.number(0), call.number(1)),
    "sym_min_Scalar": lambda call: min(call.number(0), call.number(1)),
    "sym_not_Scalar": lambda call: not call.truth(0),
    "sym_numel": lambda call: prod(call.static_tensor(0).sizes),
    "sym_size_int": _sym_size,
    "truediv_Scalar": _truediv,
}
NUMBERS: Final = MappingProxyType({f"orch::prim_ops::{k}": fn for k, fn in _KERNELS.items()})
"""Kernels that return a number: the function that computes it."""


# Arguments of a call with constant inputs.


class ConstantCall(Arguments):
    """Arguments of a call, by position or name in the op schema.

    Every method raises UnknownCallError if the argument has another kind, or may
    differ from run to run.

    Args:
        method: The method of the call.
        call: The call.
        unknown: Values that an instruction writes or moves.
        moved: Values that moves read or write.
    """

    def __init__(
        self,
        method: LinkedMethod,
        call: LinkedCall,
        unknown: frozenset[int],
        moved: Collection[int] = (),
    ) -> None:
        super().__init__(method, call, unknown)
        self._outs = call.outs
        self._moved = moved

    def items(self, name: Name) -> Items:
        """Items of a constant tensor."""
        return self._items_at(self.index(name))

    def optional_items(self, name: Name) -> Items | None:
        """Items of a constant tensor, or None."""
        return None if self.is_none(name) else self.items(name)

    def optional_tensors(self, name: Name) -> tuple[Items | None, ...]:
        """Items of the constant tensors in a list that may hold None."""
        value = self._values[self.index(name)]
        if not isinstance(value, (TensorListValue, OptionalTensorListValue)):
            raise UnknownCallError
        return tuple(
            None
            if index < 0 or isinstance(self._values[index], NoneValue)
            else self._items_at(index)
            for index in value.items
        )

    def static_tensor(self, name: Name) -> TensorValue:
        """A tensor of constant sizes; its items may change."""
        need(self.index(name) not in self._moved)
        return self.tensor(name)

    def computed(self, evaluator: Callable[[ConstantCall], Items]) -> dict[int, Bytes]:
        """By value index: the memory of the output, from an evaluator's items."""
        need(len(self._outs) == 1)
        # Overflow and division by 0 give the same as on the device, without warnings.
        with np.errstate(all="ignore"):
            items = evaluator(self)
        (out,) = self._outs
        tensor = self.tensor_at(out)
        need(items.dtype is tensor.dtype)
        return {out: settled(write_items(items.numbers, tensor))}

    def _items_at(self, index: int) -> Items:
        return read_items(self.constant_at(index), self.tensor_at(index))
