"""Matrix products, summed in the order of kernels/util/matmul.h."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.dtype import REAL
from orchestrator.method.passes.arguments import UnknownCallError, need
from orchestrator.method.passes.evaluate.numbers import (
    Array,
    Items,
    computed,
    computed_number,
    converted,
)
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.passes.evaluate.constant_call import ConstantCall

_MATRIX: Final = 2
_BATCH: Final = 3


def mm(call: ConstantCall) -> Items:
    """`self @ mat2`."""
    return _multiplied(call, _MATRIX)


def bmm(call: ConstantCall) -> Items:
    """`self @ mat2`, matrix by matrix."""
    return _multiplied(call, _BATCH)


def addmm(call: ConstantCall) -> Items:
    """`beta * self + alpha * (mat1 @ mat2)`."""
    added, a, b, out = call.items(0), call.items(1), call.items(2), call.tensor(5)
    dtype = out.dtype
    need(a.rank == b.rank == _MATRIX and added.dtype is dtype)
    beta, alpha = (computed_number(call.literal(i), dtype) for i in (3, 4))
    total = alpha * _product(a, b, out)
    try:
        start = np.broadcast_to(computed(added.numbers, dtype), total.shape)
    except ValueError:
        raise UnknownCallError from None
    # With beta 0 the kernel ignores NaN and infinity in `self`.
    if beta != 0:
        total = beta * start + total
    return Items(dtype, converted(total, dtype))


def _multiplied(call: ConstantCall, rank: int) -> Items:
    a, b, out = call.items(0), call.items(1), call.tensor(2)
    need(a.rank == b.rank == rank and a.numbers.shape[:-2] == b.numbers.shape[:-2])
    return Items(out.dtype, converted(_product(a, b, out), out.dtype))


def _product(a: Items, b: Items, out: TensorValue) -> Array:
    """[..., M, K] @ [..., K, N], in the type in which the kernel computes.

    K additions in order, starting from 0. `numpy.matmul` would sum in another order.
    """
    need(out.dtype in REAL and a.dtype is b.dtype is out.dtype)
    need(a.numbers.shape[-1] == b.numbers.shape[-2])
    x, y = (computed(t.numbers, out.dtype) for t in (a, b))
    total = np.zeros((*x.shape[:-1], y.shape[-1]), x.dtype)
    for k in range(x.shape[-1]):
        total += x[..., :, k, None] * y[..., None, k, :]
    return total
