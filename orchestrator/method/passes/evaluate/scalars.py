"""Numbers from numbers, and from sizes and items of tensors.

Ints have 64 bits: what does not fit is refused, as by the kernels. Python's numbers
compare, divide and round as the kernels have it from there.

Source: kernels/prim_ops/op_scalar_*.cpp and op_sizes.cpp.
"""

from __future__ import annotations

from math import ceil, copysign, inf, isinf, nan, prod, trunc
from operator import eq, ge, gt, le, lt
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.method.passes.arguments import dim_of, need
from orchestrator.method.passes.evaluate.promote import REAL_OR_BOOL
from orchestrator.program.values import BoolValue, DoubleValue, IntValue

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.method.passes.evaluate.constant_call import ConstantCall
    from orchestrator.method.passes.evaluate.numbers import Scalar

    Number = int | float
    Evaluate = Callable[[ConstantCall], Scalar]

_INT64: Final = 1 << 63


def as_value(number: Scalar) -> BoolValue | IntValue | DoubleValue:
    """A number as a slot holds it.

    Raises:
        UnknownCallError: It does not fit, or is NaN, whose bits depend on the machine.
    """
    if isinstance(number, bool):
        return BoolValue(number)
    if isinstance(number, int):
        need(-_INT64 <= number < _INT64)
        return IntValue(number)
    need(number == number)  # noqa: PLR0124  # NaN
    return DoubleValue(number)


def _number(call: ConstantCall, position: int) -> Number:
    """An int or double, no truth value."""
    found = call.scalar(position)
    need(not isinstance(found, bool))
    return found


def _of_two(fn: Callable[[Number, Number], Number]) -> Evaluate:
    """fn(a, b): both ints, or both doubles if one of them is."""

    def evaluate(call: ConstantCall) -> Scalar:
        a, b = _number(call, 0), _number(call, 1)
        if isinstance(a, float) or isinstance(b, float):
            return fn(float(a), float(b))
        return fn(a, b)

    return evaluate


def _add(a: Number, b: Number) -> Number:
    return a + b


def _sub(a: Number, b: Number) -> Number:
    return a - b


def _mul(a: Number, b: Number) -> Number:
    return a * b


def _floordiv(a: Number, b: Number) -> Number:
    if not isinstance(a, float):
        need(b != 0)
        return a // b
    if b == 0:
        return nan if a != a else copysign(inf, a)  # noqa: PLR0124  # NaN
    return nan if isinf(a) else a // b


def _neg(call: ConstantCall) -> Scalar:
    return -_number(call, 0)


def _truediv(call: ConstantCall) -> Scalar:
    a, b = float(_number(call, 0)), float(_number(call, 1))
    if b != 0:
        return a / b
    return nan if a == 0 or a != a else copysign(inf, a) * copysign(1, b)  # noqa: PLR0124  # NaN


def _compared(fn: Callable[[Scalar, Scalar], bool]) -> Evaluate:
    """By exact values; truth values with each other only."""

    def evaluate(call: ConstantCall) -> Scalar:
        a, b = call.scalar(0), call.scalar(1)
        need(isinstance(a, bool) == isinstance(b, bool))
        return fn(a, b)

    return evaluate


def _to_int(fn: Callable[[float], int]) -> Evaluate:
    def evaluate(call: ConstantCall) -> Scalar:
        number = call.scalar(0)
        if not isinstance(number, float):
            return int(number)
        need(-_INT64 <= number < _INT64)
        return fn(number)

    return evaluate


def _sym_float(call: ConstantCall) -> Scalar:
    return float(call.scalar(0))


def _floordiv_int(call: ConstantCall) -> Scalar:
    return _floordiv(call.number(0), call.number(1))


def _mod(call: ConstantCall) -> Scalar:
    need(call.number(1) != 0)
    return call.number(0) % call.number(1)


def _sym_max(call: ConstantCall) -> Scalar:
    return max(call.number(0), call.number(1))


def _sym_min(call: ConstantCall) -> Scalar:
    return min(call.number(0), call.number(1))


def _sym_not(call: ConstantCall) -> Scalar:
    return not call.truth(0)


def _sym_ite(call: ConstantCall) -> Scalar:
    """The one that is not chosen may be any number."""
    return call.scalar(1 if call.truth(0) else 2)


def _sym_size(call: ConstantCall) -> Scalar:
    sizes = call.steady_tensor(0).sizes
    need(sizes)
    return sizes[dim_of(call.number(1), len(sizes))]


def _sym_numel(call: ConstantCall) -> Scalar:
    return prod(call.steady_tensor(0).sizes)


def _local_scalar_dense(call: ConstantCall) -> Scalar:
    """The first item."""
    items = call.items(0)
    need(items.dtype in REAL_OR_BOOL and items.numbers.size > 0)
    found: Scalar = items.numbers.reshape(-1)[0].item()
    return found


EVALUATORS: Final = MappingProxyType(
    {
        "orch::prim_ops::_local_scalar_dense": _local_scalar_dense,
        "orch::prim_ops::add_Scalar": _of_two(_add),
        "orch::prim_ops::ceil_Scalar": _to_int(ceil),
        "orch::prim_ops::eq_Scalar": _compared(eq),
        "orch::prim_ops::floordiv_Scalar": _of_two(_floordiv),
        "orch::prim_ops::floordiv_int": _floordiv_int,
        "orch::prim_ops::ge_Scalar": _compared(ge),
        "orch::prim_ops::gt_Scalar": _compared(gt),
        "orch::prim_ops::le_Scalar": _compared(le),
        "orch::prim_ops::lt_Scalar": _compared(lt),
        "orch::prim_ops::mod_int": _mod,
        "orch::prim_ops::mul_Scalar": _of_two(_mul),
        "orch::prim_ops::neg_Scalar": _neg,
        "orch::prim_ops::round_Scalar": _to_int(round),
        "orch::prim_ops::sub_Scalar": _of_two(_sub),
        "orch::prim_ops::sym_float_Scalar": _sym_float,
        "orch::prim_ops::sym_int_Scalar": _to_int(trunc),
        "orch::prim_ops::sym_ite_Scalar": _sym_ite,
        "orch::prim_ops::sym_max_Scalar": _sym_max,
        "orch::prim_ops::sym_min_Scalar": _sym_min,
        "orch::prim_ops::sym_not_Scalar": _sym_not,
        "orch::prim_ops::sym_numel": _sym_numel,
        "orch::prim_ops::sym_size_int": _sym_size,
        "orch::prim_ops::truediv_Scalar": _truediv,
    }
)
"""By kernel: gives the number that a call returns."""
