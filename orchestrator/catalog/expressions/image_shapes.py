"""Sizes of int8 images, computed as in kernels/cortex_m; see `shapes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.catalog.expressions.shapes import (
    MAX_EXTENT,
    Sizes,
    item,
    known,
    require,
    window_extent,
)
from orchestrator.catalog.expressions.values import same_number

if TYPE_CHECKING:
    from orchestrator.catalog.expressions.values import Number, TensorFacts


def _taps(
    position: Number, size: int, kernel: int, padding: int, dilation: int, stride: int
) -> bool:
    """Whether a window contains an item of the input."""
    first = known(position) * stride - padding
    return any(0 <= first + tap * dilation < size for tap in (0, kernel - 1)) or (
        first < 0
        and first + (kernel - 1) * dilation >= size
        # With a large dilation, all taps may lie in the padding on both sides.
        and any(0 <= first + tap * dilation < size for tap in range(kernel))
    )


def pooled_image(
    sizes: Sizes,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,  # the operator's argument
) -> Sizes:
    """Sizes [N, H, W, C] of a pooled int8 image. Source: kernels/cortex_m/pool.h."""
    found = [sizes[0]]
    for axis in range(2):
        size, taps = sizes[1 + axis], item(kernel, axis)
        step, pad, apart = (item(x, axis) for x in (stride, padding, dilation))
        require(size > 0, "the image is empty")
        padded, window = window_extent(size, taps, step, pad, apart)
        require(
            window <= padded <= MAX_EXTENT, f"the window has {window} items, the input {padded}"
        )
        room = padded - window
        count = room // step + 1
        if ceil_mode and not same_number(room % step, 0) and count * step < size + pad:
            count = count + 1
        for place in (0, count - 1):
            reached = _taps(place, *(known(x) for x in (size, taps, pad, apart, step)))
            require(reached, "a window lies in the padding")
        found.append(count)
    return (*found, sizes[3])


def convolved_image(
    sizes: Sizes,
    weight: TensorFacts,
    outputs: Number,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
) -> Sizes:
    """Sizes [N, H, W, C] of a convolved int8 image; the weight has [.., H, W, ..]."""
    found = [sizes[0]]
    for axis in range(2):
        step = item(stride, axis)
        padded, window = window_extent(
            sizes[1 + axis], weight.sizes[1 + axis], step, item(padding, axis), item(dilation, axis)
        )
        require(
            window <= padded <= MAX_EXTENT, f"the window has {window} items, the input {padded}"
        )
        found.append((padded - window) // step + 1)
    return (*found, outputs)


def transposed_image(
    sizes: Sizes,
    weight: TensorFacts,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    dilation: Sizes,
) -> Sizes:
    """Sizes [N, H, W, C] of a transposed convolution of an int8 image."""
    found = [sizes[0]]
    for axis in range(2):
        size, kernel = sizes[1 + axis], weight.sizes[1 + axis]
        require(size > 0, "the image is empty")
        end = (
            (size - 1) * item(stride, axis)
            + item(dilation, axis) * (kernel - 1)
            + item(output_padding, axis)
            + 1
        )
        require(end <= MAX_EXTENT, "the output is too large")
        end = end - 2 * item(padding, axis)
        require(end > 0, f"the output would have {end}")
        found.append(end)
    return (*found, weight.sizes[0])


def from_nhwc(sizes: Sizes) -> Sizes:
    """Sizes [N, C, H, W] from those in memory order."""
    n, h, w, c = sizes
    return n, c, h, w


def padded_tensor(tensor: TensorFacts, before: Sizes, after: Sizes, nhwc: bool) -> Sizes:
    """Sizes of a padded int8 tensor. Source: kernels/cortex_m/op_pad.cpp.

    Args:
        tensor: The input, of at most four dimensions.
        before: Padding before each of four dimensions, in memory order.
        after: Padding after them.
        nhwc: Memory is NHWC, of sizes [N, C, H, W].
    """
    order = (0, 2, 3, 1) if nhwc else range(tensor.rank)
    found: list[Number] = [0] * tensor.rank
    for place in range(4 - tensor.rank):
        for items in (before, after):
            require(
                same_number(items[place], 0), "a dimension that the tensor does not have is padded"
            )
    for place, dim in enumerate(order, start=4 - tensor.rank):
        found[dim] = before[place] + tensor.sizes[dim] + after[place]
        require(found[dim] < 1 << 31, f"dimension {dim} would have {found[dim]}")
    return tuple(found)
