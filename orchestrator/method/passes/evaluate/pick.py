"""Items that are taken from tensors, and converted.

Source: kernels/util/copy.h, kernels/util/indexing.h; kernels/portable/op_where.cpp,
op_cat.cpp, op_embedding.cpp, op_flip.cpp, op_index_put.cpp.
"""

from __future__ import annotations

from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from orchestrator.method.passes.arguments import UnknownCallError, dim_of, need
from orchestrator.method.passes.evaluate.numbers import (
    Array,
    Items,
    computed,
    converted,
    truncated,
)
from orchestrator.method.passes.evaluate.promote import (
    REAL_OR_BOOL,
    broadcast,
    can_cast,
    result_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.method.passes.evaluate.constant_call import ConstantCall

_INDICES: Final = (ScalarType.Int, ScalarType.Long)
_MASKS: Final = (ScalarType.Bool, ScalarType.Byte)
_MATRIX: Final = 2
_MOST: Final = 1 << 26
"""Values that are put: they may be many more than items, where one stands for all."""


def _to_dim_order_copy(call: ConstantCall) -> tuple[Items, ...]:
    tensor, out = call.tensor(0), call.out(3)
    wanted = tensor.dim_order if call.is_none(2) else call.numbers(2)
    need(wanted == out.dim_order)
    numbers = call.items(0).numbers
    if tensor.dtype is not out.dtype:
        numbers = truncated(numbers, out.dtype)
    return (Items(out.dtype, numbers),)


def _where(call: ConstantCall) -> tuple[Items, ...]:
    mask, a, b, out = call.items(0), call.items(1), call.items(2), call.out(3)
    need(mask.dtype in _MASKS and result_type(a, b) is out.dtype)
    need(broadcast(mask, a, b) == out.sizes)
    x, y = (converted(t.numbers, out.dtype) for t in (a, b))
    return (Items(out.dtype, np.where(mask.numbers != 0, x, y)),)


def _cat(call: ConstantCall) -> tuple[Items, ...]:
    out = call.out(2)
    parts = []
    for items in call.lists(0):
        if items is None or items.rank == 0 or not can_cast(items.dtype, out.dtype):
            raise UnknownCallError
        if items.numbers.shape != (0,):
            parts.append(items)
    if not parts:
        need(-1 <= call.number(1) <= 0)
        return (Items(out.dtype, converted(np.zeros(0, np.uint8), out.dtype)),)
    dim = dim_of(call.number(1), parts[0].rank)
    shapes = {(p.rank, *np.delete(p.numbers.shape, dim).tolist()) for p in parts}
    need(len({p.rank for p in parts}) == 1 and len(shapes) == 1)
    numbers = [converted(p.numbers, out.dtype) for p in parts]
    return (Items(out.dtype, np.concatenate(numbers, axis=dim)),)


def _flip(call: ConstantCall) -> tuple[Items, ...]:
    items, out = call.items(0), call.out(2)
    dims = [dim_of(d, max(items.rank, 1)) for d in call.numbers(1)]
    need(items.dtype is out.dtype and len(set(dims)) == len(dims))
    axes = tuple(d for d in dims if d < items.rank)
    return (Items(out.dtype, np.flip(items.numbers, axes)),)


def _indexed(numbers: Array, indices: tuple[Items | None, ...]) -> Array:
    """numbers[indices]; None stands for a whole dimension."""
    need(len(indices) <= numbers.ndim)
    taken: list[Any] = []  # slices and arrays
    for index in indices:
        if index is None:
            taken.append(slice(None))
            continue
        need(index.dtype in _INDICES)
        taken.append(index.numbers)
    try:
        return np.asarray(numbers[tuple(taken)])
    except IndexError:
        raise UnknownCallError from None


def _count(numbers: Array, indices: tuple[Items | None, ...]) -> int:
    """Items of numbers[indices]."""
    kept = [
        size
        for d, size in enumerate(numbers.shape)
        if d >= len(indices) or indices[d] is None
    ]
    shared = broadcast(*(index for index in indices if index is not None))
    return prod((*shared, *kept))


def _index(call: ConstantCall) -> tuple[Items, ...]:
    items, out = call.items(0), call.out(2)
    need(items.dtype is out.dtype)
    return (Items(out.dtype, _indexed(items.numbers, call.lists(1))),)


def _index_put(call: ConstantCall) -> tuple[Items, ...]:
    """Values for one item are written, or added, in their order."""
    items, values, out = call.items(0), call.items(2), call.out(4)
    need(items.dtype is values.dtype is out.dtype and out.dtype in REAL_OR_BOOL)
    accumulates = call.truth(3)
    numbers = items.numbers
    need(_count(numbers, call.lists(1)) <= _MOST)
    places = _indexed(np.arange(numbers.size).reshape(numbers.shape), call.lists(1))
    try:
        given = np.broadcast_to(values.numbers, places.shape).reshape(-1)
    except ValueError:
        raise UnknownCallError from None
    found, places = numbers.reshape(-1).copy(), places.reshape(-1)
    for turn in _turns(places):
        at, new = places[turn], given[turn]
        if accumulates:
            sums = computed(found[at], out.dtype) + computed(new, out.dtype)
            new = converted(sums, out.dtype)
        found[at] = new
    return (Items(out.dtype, found.reshape(numbers.shape)),)


def _turns(places: Array) -> Iterator[Array]:
    """Positions in `places`, so that each turn has a place once, in their order."""
    order = np.argsort(places, kind="stable")
    sorted_places = places[order]
    begins = np.flatnonzero(np.diff(sorted_places, prepend=-1))
    counts = np.diff(begins, append=len(places))
    for turn in range(int(counts.max(initial=0))):
        yield order[begins[counts > turn] + turn]


def _embedding(call: ConstantCall) -> tuple[Items, ...]:
    weight, indices, out = call.items(0), call.items(1), call.out(5)
    need(weight.dtype is out.dtype and indices.dtype in _INDICES)
    need(weight.rank == _MATRIX)
    rows = indices.numbers
    need(((rows >= 0) & (rows < len(weight.numbers))).all())
    return (Items(out.dtype, weight.numbers[rows]),)


EVALUATORS: Final = MappingProxyType(
    {
        "orch::portable::_to_dim_order_copy_out": _to_dim_order_copy,
        "orch::portable::cat_out": _cat,
        "orch::portable::embedding_out": _embedding,
        "orch::portable::flip_out": _flip,
        "orch::portable::index_Tensor_out": _index,
        "orch::portable::index_put_out": _index_put,
        "orch::portable::where_self_out": _where,
    }
)
