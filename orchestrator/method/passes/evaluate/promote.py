"""Operators on items, one by one: promotion, broadcasting and conversion.

Source: kernels/util/promote.h, scalar.h, binary.h and unary.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from orchestrator.core.dtype import FLOATING, INTEGRAL, REAL, ScalarType
from orchestrator.method.passes.arguments import UnknownCallError, need
from orchestrator.method.passes.evaluate.numbers import Array, Items, Scalar, converted

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.program.values import TensorValue

    Binary: TypeAlias = Callable[[Array, Array, ScalarType], Array]
    Unary: TypeAlias = Callable[[Array, ScalarType], Array]

BOOL: Final = frozenset({ScalarType.Bool})
REAL_OR_BOOL: Final = REAL | BOOL
INTEGRAL_OR_BOOL: Final = INTEGRAL | BOOL


def category(dtype: ScalarType) -> int:
    """0 for Bool, 1 for integers, 2 for floats."""
    if dtype is ScalarType.Bool:
        return 0
    return 2 if dtype in FLOATING else 1


def promoted(a: ScalarType, b: ScalarType) -> ScalarType:
    """The dtype that holds both. Source: PyTorch, torch.promote_types."""
    need({a, b} <= REAL_OR_BOOL)
    if category(a) != category(b):
        return a if category(a) > category(b) else b
    if a is b:
        return a
    if a in FLOATING:
        wide = ScalarType.Double in (a, b)
        return ScalarType.Double if wide else ScalarType.Float
    if {a, b} == {ScalarType.Byte, ScalarType.Char}:
        return ScalarType.Short
    return max(a, b)


def result_type(a: Items, b: Items) -> ScalarType:
    """The dtype of an operator on two tensors.

    One without dimensions counts only where its category is higher.
    """
    if (a.rank == 0) != (b.rank == 0):
        strong, weak = (b.dtype, a.dtype) if a.rank == 0 else (a.dtype, b.dtype)
        if category(weak) <= category(strong):
            return strong
    return promoted(a.dtype, b.dtype)


def number_type(dtype: ScalarType, number: Scalar) -> ScalarType:
    """The dtype of an operator on a tensor and a number."""
    if isinstance(number, float):
        return dtype if dtype in FLOATING else ScalarType.Float
    if dtype is ScalarType.Bool and not isinstance(number, bool):
        return ScalarType.Long
    return dtype


def can_cast(dtype: ScalarType, to: ScalarType) -> bool:
    """Whether a result may be stored in an output: categories must not fall."""
    return category(dtype) <= category(to)


def alpha_fits(alpha: Scalar, dtype: ScalarType) -> bool:
    """Whether a factor may multiply tensors of a dtype without losing its kind."""
    if isinstance(alpha, float):
        return dtype in FLOATING
    return not isinstance(alpha, bool) or dtype is ScalarType.Bool


def broadcast(*tensors: Items) -> tuple[int, ...]:
    """Sizes that tensors have together."""
    try:
        return np.broadcast_shapes(*(t.numbers.shape for t in tensors))
    except ValueError:
        raise UnknownCallError from None


def pairwise(
    a: Items,
    b: Items,
    out: TensorValue,
    common: ScalarType,
    fn: Binary,
) -> tuple[Items]:
    """fn(a, b) for all items, which it gets as items of the dtype `common`.

    Args:
        a: One tensor.
        b: Another one, broadcast.
        out: What is written; results are converted to its dtype.
        common: What both are converted to.
        fn: Gives items of any dtype; its third argument is `common`.
    """
    need(broadcast(a, b) == out.sizes)
    x, y = (converted(t.numbers, common) for t in (a, b))
    wide_x, wide_y = np.broadcast_arrays(x, y)
    result = fn(wide_x, wide_y, common)
    return (Items(out.dtype, converted(np.asarray(result), out.dtype)),)


def binary(
    a: Items, b: Items, out: TensorValue, taken: frozenset[ScalarType], fn: Binary
) -> tuple[Items]:
    """`pairwise` in the dtype that both promote to, one of `taken`."""
    common = result_type(a, b)
    if a.dtype is b.dtype is out.dtype:
        common = out.dtype
    need(common in taken and can_cast(common, out.dtype))
    return pairwise(a, b, out, common, fn)


def unary(
    items: Items, out: TensorValue, common: ScalarType, fn: Unary
) -> tuple[Items]:
    """fn(items), computed in the dtype `common`."""
    need(items.numbers.shape == out.sizes)
    result = fn(converted(items.numbers, common), common)
    return (Items(out.dtype, converted(np.asarray(result), out.dtype)),)


def unary_with_number(
    items: Items,
    out: TensorValue,
    common: ScalarType,
    taken: frozenset[ScalarType],
    fn: Unary,
) -> tuple[Items]:
    """`unary` where numbers besides decide the dtype `common`, one of `taken`."""
    need(common in taken and can_cast(common, out.dtype))
    return unary(items, out, common, fn)


def unary_same(items: Items, out: TensorValue, fn: Unary) -> tuple[Items]:
    """`unary`, all of one dtype, which is a number's."""
    need(items.dtype is out.dtype)
    return unary(items, out, out.dtype, fn)
