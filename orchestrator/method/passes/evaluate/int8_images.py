"""int8 convolutions and poolings of images.

Sums of integers do not depend on their order: where float64 holds them exactly, they
are made in it. Images are [N, H, W, C] here, whatever the operator calls its
dimensions; weights are [out, H, W, in].

Source: kernels/cortex_m/image.h, convolve.h, depthwise.cpp, prepare_convolution.cpp,
op_quantized_transpose_conv2d.cpp, pool.h and the poolings.
"""

from __future__ import annotations

from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.method.passes.arguments import need, strides_of
from orchestrator.method.passes.evaluate.fixed_point import (
    CHAR,
    Output,
    Scale,
    ints,
    item,
    limited,
    limits,
    offset,
)
from orchestrator.method.passes.evaluate.numbers import Array, Items
from orchestrator.method.passes.evaluate.windows import (
    MAX_EXTENT,
    PLANE,
    Axis,
    Tap,
    read_ints,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from orchestrator.method.passes.evaluate.constant_call import ConstantCall
    from orchestrator.program.values import TensorValue

    Evaluate = Callable[[ConstantCall, tuple[int, ...]], tuple[Items, ...]]

_RANK: Final = 4
_NHWC: Final = (0, 1, 2, 3)
_CHANNELS_LAST: Final = (0, 2, 3, 1)
"""Dimensions of an image in the order of its memory, by what sizes mean."""
_BACK: Final[Mapping[tuple[int, ...], tuple[int, ...]]] = {
    _NHWC: _NHWC,
    _CHANNELS_LAST: (0, 3, 1, 2),
}


def _need_image(tensor: TensorValue, layout: tuple[int, ...]) -> None:
    """Memory must be [N, H, W, C]; where a size is 1, its stride means nothing."""
    need(tensor.dtype is CHAR and len(tensor.sizes) == _RANK)
    strides, stride = strides_of(tensor), 1
    for d in reversed(layout):
        need(tensor.sizes[d] <= 1 or strides[d] == stride)
        stride *= tensor.sizes[d]


def _image(call: ConstantCall, position: int, layout: tuple[int, ...]) -> Array:
    """Items of an argument, [N, H, W, C], as int64."""
    _need_image(call.tensor(position), layout)
    return call.items(position).numbers.transpose(layout).astype(np.int64)


def _need_out(
    call: ConstantCall, position: int, layout: tuple[int, ...], sizes: Sequence[int]
) -> None:
    """The output must be an image of sizes [N, H, W, C]."""
    out = call.out(position)
    _need_image(out, layout)
    need(tuple(out.sizes[d] for d in layout) == tuple(sizes))


def _result(layout: tuple[int, ...], items: Array) -> tuple[Items, ...]:
    return (Items(CHAR, items.transpose(_BACK[layout])),)


def _axes(
    call: ConstantCall, first: int, kernel: Sequence[int], x: Array, *, dilated: bool
) -> list[Axis]:
    """H and W; `first`: argument with the strides."""
    strides = read_ints(call.numbers(first), 1)
    paddings = read_ints(call.numbers(first + 1), 0)
    dilations = read_ints(call.numbers(first + 2), 1) if dilated else (1, 1)
    return [
        Axis(
            size=x.shape[1 + i],
            kernel=kernel[i],
            stride=strides[i],
            padding=paddings[i],
            dilation=dilations[i],
        )
        for i in range(PLANE)
    ]


def _output(call: ConstantCall, first: int, outputs: int, clip: int) -> Output:
    """Offset `first`, multipliers and shifts behind it, and limits from `clip` on."""
    multipliers, shifts = (ints(call.items(first + i), outputs) for i in (1, 2))
    return Output(
        scale=Scale(multiplier=multipliers, shift=shifts),
        offset=item(call, first),
        limits=limits(call, clip, clip + 1),
    )


def _bias(call: ConstantCall, outputs: int) -> Array:
    bias = call.optional_items(2)
    return np.zeros(outputs, np.int64) if bias is None else ints(bias, outputs)


def _products(x: Array, w: Array) -> Array:
    """[N, H, W, groups, in] x [groups, out, in] -> [N, H, W, groups * out].

    Sums have fewer than 2^53 in size: exact in any order.
    """
    found = np.matmul(x.swapaxes(2, 3), w.swapaxes(1, 2).astype(np.float64))
    sums = found.swapaxes(2, 3).reshape(*x.shape[:3], -1)
    return np.asarray(sums.astype(np.int64))


def _sums(
    x: Array, w: Array, sizes: Sequence[int], taps: Sequence[Sequence[Tap]]
) -> Array:
    """Sums of all taps that lie in the input, [N, H, W, out]."""
    batch, height, width, channels = x.shape
    outputs, _, _, depth = w.shape
    groups = channels // depth
    inputs = x.reshape(batch, height, width, groups, depth).astype(np.float64)
    weights = w.reshape(groups, outputs // groups, *w.shape[1:])
    sums = np.zeros((batch, *sizes, outputs), np.int64)
    rows, columns = taps
    for row, column in product(rows, columns):
        seen = inputs[:, row.inputs, column.inputs]
        factor = weights[:, :, row.index, column.index]
        sums[:, row.outputs, column.outputs] += _products(seen, factor)
    return sums


def _conv2d(call: ConstantCall, layout: tuple[int, ...]) -> tuple[Items, ...]:
    x, w = _image(call, 0, layout), _image(call, 1, _NHWC)
    outputs, *kernel, depth = w.shape
    need(w.size > 0 and x.shape[3] % depth == 0)
    groups = x.shape[3] // depth
    need(groups > 0 and outputs % groups == 0)
    call.scratch(12)
    axes = _axes(call, 3, kernel, x, dilated=True)
    return _convolved(call, layout, (x, w), axes, 6)


def _depthwise_conv2d(call: ConstantCall, layout: tuple[int, ...]) -> tuple[Items, ...]:
    """Weights are [1, H, W, out]."""
    x, w = _image(call, 0, layout), _image(call, 1, _NHWC)
    need(w.size > 0 and w.shape[0] == 1)
    multiplier = call.number(6)
    need(multiplier >= 1 and x.shape[3] * multiplier == w.shape[3])
    call.scratch(13)
    axes = _axes(call, 3, w.shape[1:3], x, dilated=True)
    return _convolved(call, layout, (x, w.transpose(3, 1, 2, 0)), axes, 7)


def _convolved(
    call: ConstantCall,
    layout: tuple[int, ...],
    factors: tuple[Array, Array],
    axes: list[Axis],
    after: int,
) -> tuple[Items, ...]:
    """Image and weights; `after`: first argument behind dilation and multiplier."""
    x, w = factors
    outputs = w.shape[0]
    output = _output(call, after + 1, outputs, after + 4)
    sizes = [axis.outputs for axis in axes]
    _need_out(call, after + 7, layout, (len(x), *sizes, outputs))
    taps = [[*axis.taps(size)] for axis, size in zip(axes, sizes, strict=True)]
    sums = _sums(x + offset(call, after), w, sizes, taps) + _bias(call, outputs)
    return _result(layout, output.of(sums))


def _transpose_conv2d(call: ConstantCall, layout: tuple[int, ...]) -> tuple[Items, ...]:
    x, w = _image(call, 0, layout), _image(call, 1, _NHWC)
    outputs, *kernel, depth = w.shape
    need(w.size > 0 and x.shape[3] == depth)
    more = read_ints(call.numbers(5), 0)
    strides, paddings = read_ints(call.numbers(3), 1), read_ints(call.numbers(4), 0)
    dilations = read_ints(call.numbers(6), 1)
    sizes, taps = [], []
    for i in range(PLANE):
        axis = Axis(
            size=x.shape[1 + i],
            kernel=kernel[i],
            stride=strides[i],
            padding=paddings[i],
            dilation=dilations[i],
        )
        end = (axis.size - 1) * axis.stride + axis.window + more[i]
        size = end - 2 * axis.padding
        need(axis.size > 0 and size > 0 and end <= MAX_EXTENT)
        sizes.append(size)
        taps.append([*axis.transposed_taps(size)])
    _need_out(call, 15, layout, (len(x), *sizes, outputs))
    call.scratch(13)
    call.scratch(14)
    output = _output(call, 8, outputs, 11)
    sums = _sums(x + offset(call, 7), w, sizes, taps) + _bias(call, outputs)
    return _result(layout, output.of(sums))


def _pool_axes(
    call: ConstantCall, x: Array, *, dilated: bool, ceil_mode: bool
) -> tuple[list[Axis], list[int]]:
    """Axes and how many outputs they have."""
    kernel = read_ints(call.numbers(1), 1)
    axes = _axes(call, 2, kernel, x, dilated=dilated)
    sizes = []
    for axis in axes:
        need(axis.size > 0)
        size = axis.outputs
        if ceil_mode and (axis.padded - axis.window) % axis.stride != 0:
            size += size * axis.stride < axis.size + axis.padding
        sizes.append(size)
    return axes, sizes


def _counts(axes: list[Axis], sizes: list[int]) -> list[Array]:
    """How many taps of each output lie in the input, at least one."""
    counts = [axis.counts(size) for axis, size in zip(axes, sizes, strict=True)]
    need(all(count.all() for count in counts))
    return counts


def _avg_pool2d(call: ConstantCall, layout: tuple[int, ...]) -> tuple[Items, ...]:
    """Rounded to nearest, ties away from zero; padding does not count."""
    x = _image(call, 0, layout)
    axes, sizes = _pool_axes(call, x, dilated=False, ceil_mode=call.truth(4))
    _need_out(call, 9, layout, (len(x), *sizes, x.shape[3]))
    counts = _counts(axes, sizes)
    call.scratch(8)
    sums = np.zeros((x.shape[0], *sizes, x.shape[3]), np.int64)
    pairs = zip(axes, sizes, strict=True)
    for row, column in product(*(axis.taps(size) for axis, size in pairs)):
        sums[:, row.outputs, column.outputs] += x[:, row.inputs, column.inputs]
    count = np.multiply.outer(*counts)[..., None]
    found = np.sign(sums) * ((np.abs(sums) + count // 2) // count)
    return _result(layout, found.astype(np.int8))


def _max_pool2d(call: ConstantCall, layout: tuple[int, ...]) -> tuple[Items, ...]:
    x = _image(call, 0, layout)
    need(call.number(7) == item(call, 6))
    clip = limits(call, 8, 9)
    axes, sizes = _pool_axes(call, x, dilated=True, ceil_mode=call.truth(5))
    _need_out(call, 10, layout, (len(x), *sizes, x.shape[3]))
    _counts(axes, sizes)
    largest = np.full((x.shape[0], *sizes, x.shape[3]), -128, np.int64)
    pairs = zip(axes, sizes, strict=True)
    for row, column in product(*(axis.taps(size) for axis, size in pairs)):
        at = slice(None), row.outputs, column.outputs
        largest[at] = np.maximum(largest[at], x[:, row.inputs, column.inputs])
    return _result(layout, limited(largest, clip))


def _both(name: str, evaluate: Evaluate) -> dict[str, Callable[..., tuple[Items, ...]]]:
    """A kernel, and the one whose images have sizes [N, H, W, C]."""
    return {
        f"orch::cortex_m::{name}_out": lambda call: evaluate(call, _CHANNELS_LAST),
        f"orch::cortex_m::{name}_nhwc_out": lambda call: evaluate(call, _NHWC),
    }


EVALUATORS: Final = MappingProxyType(
    {
        **_both("quantized_avg_pool2d", _avg_pool2d),
        **_both("quantized_conv2d", _conv2d),
        **_both("quantized_depthwise_conv2d", _depthwise_conv2d),
        **_both("quantized_max_pool2d", _max_pool2d),
        **_both("quantized_transpose_conv2d", _transpose_conv2d),
    }
)
