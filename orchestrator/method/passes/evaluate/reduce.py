"""One number of the items along some dimensions, in the order of their indices.

Source: kernels/util/reduce.h; kernels/portable/op_sum.cpp, op_mean.cpp, op_var.cpp,
op_any.cpp, op_argmax.cpp and op_max.cpp.
"""

from __future__ import annotations

from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.dtype import FLOATING, ScalarType
from orchestrator.method.passes.arguments import dim_of, need
from orchestrator.method.passes.evaluate.numbers import (
    Array,
    Items,
    computed,
    computed_number,
    converted,
)
from orchestrator.method.passes.evaluate.promote import REAL_OR_BOOL

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.method.passes.evaluate.constant_call import ConstantCall
    from orchestrator.program.values import TensorValue

    Finish = Callable[[Array, int], Array]


def _dims(call: ConstantCall, position: int, rank: int) -> tuple[int, ...]:
    """Dimensions of an `int[]? dim`; all of them if it is None or empty."""
    if call.is_none(position):
        return tuple(range(rank))
    found = [dim_of(d, max(rank, 1)) for d in call.numbers(position)]
    need(len(set(found)) == len(found))
    return tuple(sorted(d for d in found if d < rank)) or tuple(range(rank))


def _rows(numbers: Array, dims: tuple[int, ...]) -> Array:
    """[items of one result, results...]: the items in the order of their indices."""
    kept = [d for d in range(numbers.ndim) if d not in dims]
    count = prod(numbers.shape[d] for d in dims)
    sizes = [numbers.shape[d] for d in kept]
    return numbers.transpose([*dims, *kept]).reshape([count, *sizes])


def _sizes(numbers: Array, dims: tuple[int, ...], *, keep: object) -> tuple[int, ...]:
    """Sizes of the results."""
    return tuple(
        1 if d in dims else size
        for d, size in enumerate(numbers.shape)
        if keep or d not in dims
    )


def sums_of(rows: Array) -> Array:
    """Sums over the first dimension, one addition after the other, from 0 on."""
    start = np.zeros((1, *rows.shape[1:]), rows.dtype)
    found = np.add.accumulate(np.concatenate([start, rows]), dtype=rows.dtype)
    return np.asarray(found[-1])


def _summed(
    items: Items,
    dims: tuple[int, ...],
    out: TensorValue,
    finish: Finish,
    *,
    keep: object,
) -> tuple[Items, ...]:
    need({items.dtype, out.dtype} <= REAL_OR_BOOL)
    own = converted(items.numbers, out.dtype)
    rows = _rows(computed(own, out.dtype), dims)
    total = finish(sums_of(rows), len(rows))
    numbers = converted(total, out.dtype)
    return (Items(out.dtype, numbers.reshape(_sizes(own, dims, keep=keep))),)


def _check_dtype(call: ConstantCall, position: int, out: TensorValue) -> None:
    need(call.is_none(position) or call.number(position) == out.dtype)


def _sum(call: ConstantCall) -> tuple[Items, ...]:
    items, out = call.items(0), call.out(4)
    _check_dtype(call, 3, out)
    dims = _dims(call, 1, items.rank)
    return _summed(items, dims, out, lambda s, _: s, keep=call.scalar(2))


def _mean(call: ConstantCall) -> tuple[Items, ...]:
    items, out = call.items(0), call.out(4)
    dims = _dims(call, 1, items.rank)
    return _averaged(call, 3, items, dims, out, keep=call.scalar(2))


def _mean_of_all(call: ConstantCall) -> tuple[Items, ...]:
    items, out = call.items(0), call.out(2)
    return _averaged(call, 1, items, tuple(range(items.rank)), out, keep=False)


def _averaged(
    call: ConstantCall,
    dtype: int,
    items: Items,
    dims: tuple[int, ...],
    out: TensorValue,
    *,
    keep: object,
) -> tuple[Items, ...]:
    _check_dtype(call, dtype, out)
    need(out.dtype in FLOATING)
    need(items.dtype in FLOATING or not call.is_none(dtype))
    return _summed(items, dims, out, lambda s, n: s / s.dtype.type(n), keep=keep)


def _var(call: ConstantCall) -> tuple[Items, ...]:
    items, out = call.items(0), call.out(4)
    need(items.dtype is out.dtype and items.dtype in FLOATING)
    dims = _dims(call, 1, items.rank)
    correction = call.optional_scalar(2)
    rows = _rows(computed(items.numbers, out.dtype), dims)
    count = np.asarray(len(rows), rows.dtype)
    taken = computed_number(1 if correction is None else correction, out.dtype)
    divisor = np.maximum(count - taken, rows.dtype.type(0))
    mean = sums_of(rows) / count
    total = sums_of((rows - mean) * (rows - mean))
    numbers = converted(total / divisor, out.dtype)
    sizes = _sizes(items.numbers, dims, keep=call.scalar(3))
    return (Items(out.dtype, numbers.reshape(sizes)),)


def _one_dim(call: ConstantCall, position: int, rank: int) -> tuple[int, ...]:
    dim = dim_of(call.number(position), max(rank, 1))
    return (dim,) if dim < rank else ()


def _any_of(
    items: Items, dims: tuple[int, ...], out: TensorValue, *, keep: object
) -> tuple[Items, ...]:
    need(out.dtype in (ScalarType.Bool, ScalarType.Byte))
    found = (_rows(items.numbers, dims) != 0).any(axis=0)
    sizes = _sizes(items.numbers, dims, keep=keep)
    return (Items(out.dtype, converted(found.reshape(sizes), out.dtype)),)


def _any_all(call: ConstantCall) -> tuple[Items, ...]:
    items = call.items(0)
    return _any_of(items, tuple(range(items.rank)), call.out(1), keep=False)


def _any_dims(call: ConstantCall) -> tuple[Items, ...]:
    items, dims = call.items(0), tuple(range(call.items(0).rank))
    if not call.is_none(1):
        # An empty list is no dimension here.
        dims = _dims(call, 1, items.rank) if call.numbers(1) else ()
    return _any_of(items, dims, call.out(3), keep=call.scalar(2))


def _any(call: ConstantCall) -> tuple[Items, ...]:
    items = call.items(0)
    dims = _one_dim(call, 1, items.rank)
    return _any_of(items, dims, call.out(3), keep=call.scalar(2))


def _largest(items: Items, dims: tuple[int, ...]) -> Array:
    """Numbers of the largest items, the first of several; NaN is above all."""
    rows = _rows(items.numbers, dims)
    need(len(rows) > 0 and items.dtype in REAL_OR_BOOL)
    return np.asarray(rows.argmax(axis=0)).astype(np.int64)


def _argmax(call: ConstantCall) -> tuple[Items, ...]:
    items, out = call.items(0), call.out(3)
    need(out.dtype is ScalarType.Long)
    dims = tuple(range(items.rank))
    if not call.is_none(1):
        dims = _one_dim(call, 1, items.rank)
    sizes = _sizes(items.numbers, dims, keep=call.scalar(2))
    return (Items(out.dtype, _largest(items, dims).reshape(sizes)),)


def _max(call: ConstantCall) -> tuple[Items, ...]:
    items, values, indices = call.items(0), call.out(3), call.out(4)
    need(values.dtype is items.dtype and indices.dtype is ScalarType.Long)
    need(values.dim_order == indices.dim_order)
    dims = _one_dim(call, 1, items.rank)
    found = _largest(items, dims)
    taken = np.take_along_axis(_rows(items.numbers, dims), found[None], axis=0)
    sizes = _sizes(items.numbers, dims, keep=call.scalar(2))
    return (
        Items(values.dtype, taken.reshape(sizes)),
        Items(indices.dtype, found.reshape(sizes)),
    )


EVALUATORS: Final = MappingProxyType(
    {
        "orch::portable::any_all_out": _any_all,
        "orch::portable::any_dims_out": _any_dims,
        "orch::portable::any_out": _any,
        "orch::portable::argmax_out": _argmax,
        "orch::portable::max_dim_max": _max,
        "orch::portable::mean_dtype_out": _mean_of_all,
        "orch::portable::mean_out": _mean,
        "orch::portable::sum_IntList_out": _sum,
        "orch::portable::var_correction_out": _var,
    }
)
