"""Functions of real numbers, item by item, and along a dimension.

Source: kernels/util/unary.h; kernels/portable/op_gelu.cpp, op_sigmoid.cpp,
op__softmax.cpp and the like.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.dtype import FLOATING, ScalarType
from orchestrator.method.passes.arguments import dim_of, need
from orchestrator.method.passes.evaluate import real_math
from orchestrator.method.passes.evaluate.numbers import (
    Array,
    Items,
    computed,
    converted,
)
from orchestrator.method.passes.evaluate.promote import unary, unary_same
from orchestrator.method.passes.evaluate.reduce import sums_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.method.passes.evaluate.constant_call import ConstantCall

    Function = Callable[[Array], Array]


def _rounded(fn: Function, x: Array, dtype: ScalarType) -> Array:
    """Items fn(x) of a dtype, of any rank."""
    numbers = computed(np.asarray(x), dtype)
    return converted(fn(np.atleast_1d(numbers)).reshape(numbers.shape), dtype)


def _floating(fn: Function) -> Callable[[ConstantCall], tuple[Items, ...]]:
    """fn(self): any dtype in, floats out. Integers are computed in Float."""

    def evaluate(call: ConstantCall) -> tuple[Items, ...]:
        items, out = call.items(0), call.out(1)
        need(out.dtype in FLOATING)
        common = items.dtype if items.dtype in FLOATING else ScalarType.Float
        return unary(items, out, common, lambda x, dtype: _rounded(fn, x, dtype))

    return evaluate


def _sigmoid(x: Array) -> Array:
    one = x.dtype.type(1)
    return np.asarray(one / (one + real_math.exp(-x)))


def _gelu_of(approximate: str) -> Function:
    def gelu(x: Array) -> Array:
        number = x.dtype.type
        if approximate == "tanh":
            cube = number(0.044715) * (x * x * x)
            share = real_math.tanh(number(0.79788456080286535588) * (x + cube))
        else:
            share = real_math.erf(x * number(0.7071067811865475244))
        return np.asarray(number(0.5) * x * (number(1) + share))

    return gelu


def _gelu(call: ConstantCall) -> tuple[Items, ...]:
    items, approximate = call.items(0), call.text(1)
    need(items.dtype in FLOATING and approximate in ("none", "tanh"))
    gelu = _gelu_of(approximate)
    return unary_same(items, call.out(2), lambda x, dtype: _rounded(gelu, x, dtype))


def _softmax(call: ConstantCall) -> tuple[Items, ...]:
    """Exponentials are summed in the order of their indices."""
    items, widens, out = call.items(0), call.truth(2), call.out(3)
    dim = dim_of(call.number(1), max(items.rank, 1))
    need(items.dtype in FLOATING)
    if widens:
        need(items.dtype is ScalarType.Half and out.dtype is ScalarType.Float)
    else:
        need(items.dtype is out.dtype)
    numbers = np.atleast_1d(computed(items.numbers, items.dtype))
    if numbers.size == 0:
        return (Items(out.dtype, items.numbers),)
    lines = np.moveaxis(numbers, dim, 0)
    powers = real_math.exp(lines - lines.max(axis=0))
    shares = np.moveaxis(powers / sums_of(powers), 0, dim)
    return (Items(out.dtype, converted(shares, out.dtype).reshape(out.sizes)),)


EVALUATORS: Final = MappingProxyType(
    {
        "orch::portable::_softmax_out": _softmax,
        "orch::portable::cos_out": _floating(real_math.cos),
        "orch::portable::gelu_out": _gelu,
        "orch::portable::sigmoid_out": _floating(_sigmoid),
        "orch::portable::sin_out": _floating(real_math.sin),
        "orch::portable::tanh_out": _floating(real_math.tanh),
    }
)
