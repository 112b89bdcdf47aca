"""Sums, products and quotients of items, with promotion and broadcasting.

Source: kernels/util/promote.h, binary.h and unary.h; kernels/portable/op_add.cpp,
op_sub.cpp, op_mul.cpp, op_div.cpp and op_neg.cpp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from orchestrator.core.dtype import FLOATING, REAL, ScalarType
from orchestrator.method.passes.arguments import UnknownCallError, need
from orchestrator.method.passes.evaluate.numbers import (
    Array,
    Items,
    Scalar,
    computed,
    converted,
    item_of,
)
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.passes.evaluate.constant_call import ConstantCall

    Binary: TypeAlias = Callable[[Array, Array, ScalarType], Array]

_REAL_OR_BOOL: Final = REAL | {ScalarType.Bool}


def add(call: ConstantCall) -> Items:
    """`self + alpha * other`."""
    return _scaled(call, _REAL_OR_BOOL, np.add)


def sub(call: ConstantCall) -> Items:
    """`self - alpha * other`."""
    return _scaled(call, REAL, np.subtract)


def mul(call: ConstantCall) -> Items:
    """`self * other`."""

    def product(x: Array, y: Array, dtype: ScalarType) -> Array:
        return converted(computed(x, dtype) * computed(y, dtype), dtype)

    return _binary(call.items(0), call.items(1), call.tensor(2), _REAL_OR_BOOL, product)


def div(call: ConstantCall) -> Items:
    """`self / other`; integers are divided as floats."""
    a, b, out = call.items(0), call.items(1), call.tensor(2)
    need(out.dtype in FLOATING)
    common = _result_type(a, b)
    common = common if common in FLOATING else ScalarType.Float
    return _pairwise(a, b, out, common, lambda x, y, dtype: converted(x / y, dtype))


def neg(call: ConstantCall) -> Items:
    """`-self`."""
    items, out = call.items(0), call.tensor(1)
    need(items.dtype is out.dtype)
    negative = np.negative(computed(items.numbers, out.dtype))
    return Items(out.dtype, converted(negative, out.dtype))


def _scaled(
    call: ConstantCall, accepted: frozenset[ScalarType], fn: Callable[[Array, Array], Array]
) -> Items:
    """fn(self, alpha * other); alpha is rounded to the dtype of the tensors."""
    a, b, alpha, out = call.items(0), call.items(1), call.literal(2), call.tensor(3)
    need(_alpha_fits(alpha, _result_type(a, b)))
    need({a.dtype, b.dtype, out.dtype} <= accepted)

    def scaled(x: Array, y: Array, dtype: ScalarType) -> Array:
        factor = computed(item_of(alpha, dtype), dtype)
        return converted(fn(computed(x, dtype), factor * computed(y, dtype)), dtype)

    return _binary(a, b, out, accepted, scaled)


def _binary(
    a: Items, b: Items, out: TensorValue, accepted: frozenset[ScalarType], fn: Binary
) -> Items:
    """fn(a, b) in the dtype to which both promote, which must be in `accepted`."""
    common = _result_type(a, b)
    if a.dtype is b.dtype is out.dtype:
        common = out.dtype
    # A result may not be stored in a lower category, such as a float in an integer.
    need(common in accepted and _category(common) <= _category(out.dtype))
    return _pairwise(a, b, out, common, fn)


def _pairwise(a: Items, b: Items, out: TensorValue, common: ScalarType, fn: Binary) -> Items:
    """fn(a, b, common) of items converted to `common`, as items of the output."""
    try:
        sizes = np.broadcast_shapes(a.numbers.shape, b.numbers.shape)
    except ValueError:
        raise UnknownCallError from None
    need(sizes == out.sizes)
    x, y = np.broadcast_arrays(*(converted(t.numbers, common) for t in (a, b)))
    return Items(out.dtype, converted(fn(x, y, common), out.dtype))


def _category(dtype: ScalarType) -> int:
    """0 for Bool, 1 for integers, 2 for floats."""
    if dtype is ScalarType.Bool:
        return 0
    return 2 if dtype in FLOATING else 1


def _result_type(a: Items, b: Items) -> ScalarType:
    """The dtype of an operator on two tensors.

    A tensor without dimensions counts only if its category is higher.
    """
    if (a.rank == 0) != (b.rank == 0):
        strong, weak = (b.dtype, a.dtype) if a.rank == 0 else (a.dtype, b.dtype)
        if _category(weak) <= _category(strong):
            return strong
    return _promoted(a.dtype, b.dtype)


def _promoted(a: ScalarType, b: ScalarType) -> ScalarType:
    """The dtype that holds both. Source: PyTorch, torch.promote_types."""
    need({a, b} <= _REAL_OR_BOOL)
    if _category(a) != _category(b):
        return a if _category(a) > _category(b) else b
    if a is b:
        return a
    if a in FLOATING:
        wide = ScalarType.Double in (a, b)
        return ScalarType.Double if wide else ScalarType.Float
    if {a, b} == {ScalarType.Byte, ScalarType.Char}:
        return ScalarType.Short
    return max(a, b)


def _alpha_fits(alpha: Scalar, dtype: ScalarType) -> bool:
    """Whether a factor can multiply tensors of a dtype."""
    if isinstance(alpha, float):
        return dtype in FLOATING
    return not isinstance(alpha, bool) or dtype is ScalarType.Bool
