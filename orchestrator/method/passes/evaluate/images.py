"""Poolings of images, and images scaled up.

Source: kernels/util/pool2d.h; kernels/portable/op_avg_pool2d.cpp,
op_max_pool2d_with_indices.cpp and op_upsample_nearest2d.cpp.
"""

from __future__ import annotations

from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.dtype import FLOATING, REAL, ScalarType
from orchestrator.method.passes.arguments import need
from orchestrator.method.passes.evaluate.numbers import (
    Array,
    Items,
    computed,
    converted,
)
from orchestrator.method.passes.evaluate.windows import (
    MAX_EXTENT,
    PLANE,
    Axis,
    read_ints,
)

if TYPE_CHECKING:
    from orchestrator.method.passes.evaluate.constant_call import ConstantCall
    from orchestrator.program.values import TensorValue

_RANKS: Final = (3, 4)
_IMAGE: Final = 4


def _windows(axis: Axis, *, ceil_mode: bool) -> int:
    """How many there are; one that starts in the padding behind does not count."""
    need(2 * axis.padding <= axis.window)
    need(axis.padded + axis.window + axis.stride <= MAX_EXTENT)
    room = axis.padded - axis.window + (axis.stride - 1 if ceil_mode else 0)
    need(room >= 0)
    count = room // axis.stride + 1
    if ceil_mode and (count - 1) * axis.stride >= axis.size + axis.padding:
        count -= 1
    need(count > 0)
    return count


def _axes(
    call: ConstantCall, out: TensorValue, dilations: tuple[int, ...], *, ceil_mode: bool
) -> tuple[list[Axis], list[int]]:
    """H and W, and how many windows they have, as many as the output."""
    items = call.items(0)
    need(items.rank in _RANKS and all(items.numbers.shape[1:]))
    need(items.rank == _IMAGE or items.numbers.shape[0] > 0)
    kernels = read_ints(call.numbers(1), 1)
    strides = read_ints(call.numbers(2) or call.numbers(1), 1)
    paddings = read_ints(call.numbers(3), 0)
    axes = [
        Axis(
            size=items.numbers.shape[items.rank - PLANE + i],
            kernel=kernels[i],
            stride=strides[i],
            padding=paddings[i],
            dilation=dilations[i],
        )
        for i in range(PLANE)
    ]
    counts = [_windows(axis, ceil_mode=ceil_mode) for axis in axes]
    need((*items.numbers.shape[:-PLANE], *counts) == out.sizes)
    return axes, counts


def _padded_counts(axis: Axis, outputs: int) -> Array:
    """Positions of each window that lie in the padded input."""
    first = np.arange(outputs) * axis.stride - axis.padding
    return np.minimum(first + axis.kernel, axis.size + axis.padding) - first


def _avg_pool2d(call: ConstantCall) -> tuple[Items, ...]:
    """Windows are summed row by row; one without any input gives 0."""
    items, out = call.items(0), call.out(7)
    need(items.dtype is out.dtype)
    need(out.dtype in FLOATING or out.dtype is ScalarType.Long)
    axes, sizes = _axes(call, out, (1, 1), ceil_mode=call.truth(4))
    x = computed(items.numbers, out.dtype)
    sums = np.zeros((*x.shape[:-PLANE], *sizes), x.dtype)
    taps = (axis.taps(size) for axis, size in zip(axes, sizes, strict=True))
    for row, column in product(*taps):
        at = (..., row.outputs, column.outputs)
        sums[at] += x[..., row.inputs, column.inputs]

    inside = np.multiply.outer(*(a.counts(s) for a, s in zip(axes, sizes, strict=True)))
    count = inside
    if call.truth(5):
        pairs = zip(axes, sizes, strict=True)
        count = np.multiply.outer(*(_padded_counts(a, s) for a, s in pairs))
    if not call.is_none(6):
        need(call.number(6) != 0)
        count = np.full_like(inside, call.number(6))
    divisor = np.where(inside == 0, 1, count)
    if out.dtype in FLOATING:
        found = sums / divisor.astype(x.dtype)
    else:
        found = _truncated_quotient(sums.astype(np.int64), divisor)
    return (Items(out.dtype, converted(found, out.dtype)),)


def _truncated_quotient(a: Array, b: Array) -> Array:
    """Rounded towards 0; the lowest integer divided by -1 wraps around."""
    negative = b == -1
    divisor = np.where(negative, 1, b)
    quotient = (a - np.fmod(a, divisor)) // divisor
    return np.where(negative, np.negative(a), quotient)


def _max_pool2d(call: ConstantCall) -> tuple[Items, ...]:
    """The first of the largest, and its place in the plane."""
    items, out, indices = call.items(0), call.out(6), call.out(7)
    need(items.dtype is out.dtype and indices.dtype is ScalarType.Long)
    need(out.dtype in REAL)
    dilations = read_ints(call.numbers(4), 1)
    axes, sizes = _axes(call, out, dilations, ceil_mode=call.truth(5))
    x = items.numbers
    largest = np.full(
        (*x.shape[:-PLANE], *sizes),
        -np.inf if out.dtype in FLOATING else np.iinfo(x.dtype).min,
        x.dtype,
    )
    firsts = [_first_inside(a, s) for a, s in zip(axes, sizes, strict=True)]
    at = np.add.outer(firsts[0] * axes[1].size, firsts[1])
    places = np.broadcast_to(at, largest.shape).astype(np.int64)
    taps = (axis.taps(size) for axis, size in zip(axes, sizes, strict=True))
    plane = np.arange(axes[0].size * axes[1].size).reshape(x.shape[-PLANE:])
    for row, column in product(*taps):
        where = (..., row.outputs, column.outputs)
        seen = x[..., row.inputs, column.inputs]
        # NaN stays, unless another NaN follows.
        larger = (seen > largest[where]) | (seen != seen)  # noqa: PLR0124  # NaN
        largest[where] = np.where(larger, seen, largest[where])
        own = plane[row.inputs, column.inputs]
        places[where] = np.where(larger, own, places[where])
    return Items(out.dtype, largest), Items(indices.dtype, places)


def _first_inside(axis: Axis, outputs: int) -> Array:
    """The first position of each window that is not in front of the input."""
    first = np.arange(outputs) * axis.stride - axis.padding
    steps = (axis.dilation - 1 - first) // axis.dilation
    return np.where(first < 0, first + steps * axis.dilation, first)


def _nearest(size: int, outputs: int, step: np.float32) -> Array:
    """Inputs nearest to the outputs, rounded down."""
    at = np.arange(outputs).astype(np.float32) * step
    inside = at < np.float32(MAX_EXTENT)
    whole = np.where(inside, at, np.float32(0)).astype(np.int64)
    return np.minimum(np.where(inside, whole, MAX_EXTENT), size - 1)


def _by_sizes(
    call: ConstantCall, shape: tuple[int, ...], wanted: tuple[int, ...]
) -> list[Array]:
    sizes = call.numbers(1)
    need(sizes == wanted and all(1 <= size <= MAX_EXTENT for size in sizes))
    steps = [np.float32(n) / np.float32(s) for n, s in zip(shape, sizes, strict=True)]
    pairs = zip(shape, sizes, steps, strict=True)
    return [_nearest(n, s, np.float32(step)) for n, s, step in pairs]


def _by_factors(
    call: ConstantCall, shape: tuple[int, ...], wanted: tuple[int, ...]
) -> list[Array]:
    factors = call.reals(2)
    need(len(factors) == PLANE)
    found = []
    for size, factor, count in zip(shape, factors, wanted, strict=True):
        need(1 <= size * factor <= MAX_EXTENT and int(size * factor) == count)
        found.append(_nearest(size, count, np.float32(1 / factor)))
    return found


def _upsample_nearest2d(call: ConstantCall) -> tuple[Items, ...]:
    """Either sizes or factors are given."""
    items, out = call.items(0), call.out(3)
    need(items.dtype is out.dtype and items.rank == len(out.sizes) == _IMAGE)
    shape = items.numbers.shape[PLANE:]
    need(call.is_none(1) != call.is_none(2) and all(shape))
    taken = _by_sizes if call.is_none(2) else _by_factors
    rows, columns = taken(call, shape, out.sizes[PLANE:])
    return (Items(out.dtype, items.numbers[:, :, rows[:, None], columns]),)


EVALUATORS: Final = MappingProxyType(
    {
        "orch::portable::avg_pool2d_out": _avg_pool2d,
        "orch::portable::max_pool2d_with_indices_out": _max_pool2d,
        "orch::portable::upsample_nearest2d_vec_out": _upsample_nearest2d,
    }
)
