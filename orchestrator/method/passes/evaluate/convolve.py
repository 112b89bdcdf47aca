"""Convolutions, summed in the order of kernels/portable/convolve.h.

Vectors (convolve_mve.h) give the same bits.
"""

from __future__ import annotations

from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.dtype import REAL
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
    Tap,
    read_ints,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.method.passes.evaluate.constant_call import ConstantCall

_IMAGE: Final = 4
_RANKS: Final = (3, _IMAGE)
_LINE: Final = Axis(size=1, kernel=1, stride=1, padding=0)
"""The rows of a convolution with one dimension."""


def _axes(call: ConstantCall, items: Items, weight: Items) -> list[Axis]:
    """Along H and W."""
    count = items.rank - PLANE
    strides, paddings, dilations = (
        read_ints(call.numbers(i), low, count) for i, low in ((3, 1), (4, 0), (5, 1))
    )
    need(all(size > 0 for size in weight.numbers.shape[PLANE:]))
    found = [
        Axis(
            size=items.numbers.shape[PLANE + i],
            kernel=weight.numbers.shape[PLANE + i],
            stride=strides[i],
            padding=paddings[i],
            dilation=dilations[i],
        )
        for i in range(count)
    ]
    return [_LINE] * (PLANE - count) + found


def _taps(
    call: ConstantCall, axes: list[Axis], count: int, *, transposed: bool
) -> tuple[list[int], list[list[Tap]]]:
    """Sizes of the output, and the taps; `count`: axes that the program names."""
    more = read_ints(call.numbers(7), 0, count)
    more = (0,) * (PLANE - count) + more
    if not transposed:
        sizes = [axis.outputs for axis in axes]
        return sizes, [
            [*axis.taps(size)] for axis, size in zip(axes, sizes, strict=True)
        ]
    sizes = []
    for axis, beyond in zip(axes, more, strict=True):
        need(beyond == 0 or beyond < axis.stride or beyond < axis.dilation)
        size = (axis.size - 1) * axis.stride - 2 * axis.padding + axis.window + beyond
        need(0 < size <= MAX_EXTENT and axis.window <= MAX_EXTENT)
        sizes.append(size)
    return sizes, [
        [*axis.transposed_taps(size)] for axis, size in zip(axes, sizes, strict=True)
    ]


def _summed(
    x: Array, weight: Array, start: Array, taps: Sequence[Sequence[Tap]]
) -> Array:
    """Products in order of input channel, kernel row, kernel column.

    Args:
        x: [N, groups, channels, H, W].
        weight: [groups, outputs, channels, rows, columns].
        start: [N, groups, outputs, H, W]: what sums begin with.
        taps: Along H and W.
    """
    rows, columns = taps
    for c, row, column in product(range(x.shape[2]), rows, columns):
        at = (..., row.outputs, column.outputs)
        seen = x[:, :, None, c, row.inputs, column.inputs]
        factor = weight[:, :, c, row.index, column.index]
        start[at] += seen * factor[:, :, None, None]
    return start


def _convolution(call: ConstantCall) -> tuple[Items, ...]:
    items, weight, bias = call.items(0), call.items(1), call.optional_items(2)
    transposed, groups, out = call.truth(6), call.number(8), call.out(9)
    need(items.rank in _RANKS and weight.rank == items.rank)
    need(items.dtype is weight.dtype is out.dtype and out.dtype in REAL)
    need(groups >= 1)
    first, second = weight.numbers.shape[:PLANE]
    need(first > 0 and first % groups == 0)
    channels = first if transposed else second * groups
    outputs = second * groups if transposed else first
    need(items.numbers.shape[1] == channels)
    axes = _axes(call, items, weight)
    sizes, taps = _taps(call, axes, items.rank - PLANE, transposed=transposed)

    batch = items.numbers.shape[0]
    wanted = (batch, outputs, *sizes[_IMAGE - items.rank :])
    need(wanted == out.sizes)
    x = computed(items.numbers, out.dtype)
    x = x.reshape(batch, groups, channels // groups, axes[0].size, axes[1].size)
    w = computed(weight.numbers, out.dtype)
    w = w.reshape(groups, first // groups, second, axes[0].kernel, axes[1].kernel)
    start = np.zeros((batch, groups, outputs // groups, *sizes), x.dtype)
    if bias is not None:
        need(bias.dtype is out.dtype and bias.numbers.shape == (outputs,))
        added = computed(bias.numbers, out.dtype).reshape(groups, -1)
        start[...] = added[:, :, None, None]
    found = _summed(x, w.swapaxes(1, 2) if transposed else w, start, taps)
    return (Items(out.dtype, converted(found, out.dtype).reshape(wanted)),)


EVALUATORS: Final = MappingProxyType({"orch::portable::convolution_out": _convolution})
