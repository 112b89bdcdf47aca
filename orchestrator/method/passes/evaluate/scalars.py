"""Numbers computed from numbers, and from sizes and items of tensors.

Integers have 64 bits; a kernel reports an error if a result does not fit. Otherwise
Python's numbers compare, divide and round as those of kernels do.

Source: kernels/prim_ops/op_scalar_*.cpp and op_sizes.cpp.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from math import copysign, inf, isinf, nan, prod
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import REAL, ScalarType
from orchestrator.method.passes.arguments import dim_of, need
from orchestrator.program.values import BoolValue, DoubleValue, IntValue

if TYPE_CHECKING:
    from orchestrator.method.passes.evaluate.constant_call import ConstantCall
    from orchestrator.method.passes.evaluate.numbers import Scalar

    Number = int | float
    Evaluator = Callable[[ConstantCall], Scalar]

_INT64: Final = 1 << 63


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
    if b == 0:
        return nan if math.isnan(a) else copysign(inf, a)
    return nan if isinf(a) else a // b


add: Final = _binary(operator.add)
sub: Final = _binary(operator.sub)
mul: Final = _binary(operator.mul)
floordiv: Final = _binary(_quotient_down)
eq: Final = _comparison(operator.eq)
ge: Final = _comparison(operator.ge)
gt: Final = _comparison(operator.gt)
le: Final = _comparison(operator.le)
lt: Final = _comparison(operator.lt)
ceil: Final = _to_int(math.ceil)
round_even: Final = _to_int(round)
trunc: Final = _to_int(math.trunc)


def neg(call: ConstantCall) -> Scalar:
    """`-a`."""
    return -_number(call, 0)


def truediv(call: ConstantCall) -> Scalar:
    """`a / b` as doubles."""
    a, b = float(_number(call, 0)), float(_number(call, 1))
    if b != 0:
        return a / b
    return nan if a == 0 or math.isnan(a) else copysign(inf, a) * copysign(1, b)


def floordiv_int(call: ConstantCall) -> Scalar:
    """`a // b` of integers."""
    return _quotient_down(call.number(0), call.number(1))


def mod(call: ConstantCall) -> Scalar:
    """`a % b` of integers, with the sign of `b`."""
    need(call.number(1) != 0)
    return call.number(0) % call.number(1)


def sym_float(call: ConstantCall) -> Scalar:
    """A number as a double."""
    return float(call.literal(0))


def sym_max(call: ConstantCall) -> Scalar:
    """The larger integer."""
    return max(call.number(0), call.number(1))


def sym_min(call: ConstantCall) -> Scalar:
    """The smaller integer."""
    return min(call.number(0), call.number(1))


def sym_not(call: ConstantCall) -> Scalar:
    """The negation of a bool."""
    return not call.truth(0)


def sym_ite(call: ConstantCall) -> Scalar:
    """One of two numbers; the other may be unknown."""
    return call.literal(1 if call.truth(0) else 2)


def sym_size(call: ConstantCall) -> Scalar:
    """Size of a dimension."""
    sizes = call.static_tensor(0).sizes
    need(sizes)
    return sizes[dim_of(call.number(1), len(sizes))]


def sym_numel(call: ConstantCall) -> Scalar:
    """Number of items."""
    return prod(call.static_tensor(0).sizes)


def local_scalar_dense(call: ConstantCall) -> Scalar:
    """The first item."""
    items = call.items(0)
    need(items.dtype in REAL | {ScalarType.Bool} and items.numbers.size > 0)
    number: Scalar = items.numbers.reshape(-1)[0].item()
    return number
