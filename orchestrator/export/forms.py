"""Operators on images in the forms that int8 kernels have. Needs PyTorch.

Each takes the arguments of PyTorch's function of its name, and gives the same.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import torch
from torch.nn import functional

# Chosen by hand; docs/export.md names it. Each part is a pool and an operand of a
# concatenation: beyond that the float operator is cheaper.
_MOST_PARTS: Final = 16
"""Pools of one axis in whose place an adaptive pool may be."""
CHANNELS_LAST: Final = (0, 2, 3, 1)
_RANK: Final = len(CHANNELS_LAST)


def conv2d(  # noqa: PLR0917  # PyTorch's
    image: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Convolve with padding in numbers, and a pad of its own if sides differ."""
    if padding == "valid":
        padding = 0
    elif padding == "same":
        apart = zip(_pair(dilation), weight.shape[2:], strict=True)
        rows, columns = (step * (length - 1) for step, length in apart)
        # PyTorch puts the odd row or column behind the image, which no padding argument
        # of a kernel can say.
        if rows % 2 or columns % 2:
            sides = (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2)
            image, rows, columns = functional.pad(image, sides), 0, 0
        padding = (rows // 2, columns // 2)
    return torch.conv2d(image, weight, bias, stride, padding, dilation, groups)


def conv_transpose2d(  # noqa: PLR0917  # PyTorch's
    image: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """Convolve with zeros behind the weights in the place of padding of the output."""
    rows, columns = _pair(output_padding)
    # A weight that is zero adds nothing to the sums: the output only becomes larger, by
    # as much as output_padding asks.
    if (rows or columns) and _pair(dilation) == (1, 1):
        weight, output_padding = functional.pad(weight, (0, columns, 0, rows)), 0
    return torch.conv_transpose2d(
        image, weight, bias, stride, padding, output_padding, groups, dilation
    )


def max_pool2d(  # noqa: PLR0917  # PyTorch's
    image: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: Any = 0,
    return_indices: Any = 0,
) -> Any:
    """Pool without `ceil_mode`: the last row or column again fills the last window."""
    steps = _pair(stride or kernel_size)
    # ExecuTorch 1.5.1 leaves pools with ceil_mode in float
    # (backends/cortex_m/quantizer/pattern_checkers.py). The largest of a window does
    # not change if an item of it is there twice.
    for axis, size in enumerate(image.shape[2:] if ceil_mode else ()):
        window = _pair(dilation)[axis] * (_pair(kernel_size)[axis] - 1) + 1
        if not isinstance(size, int) or _pair(dilation)[axis] != 1:
            break
        border = _pair(padding)[axis]
        left = size + 2 * border - window  # behind the first window
        begin = -(-left // steps[axis]) * steps[axis]
        # PyTorch drops a window that would begin behind the image and its left padding.
        if left < begin < size + border:
            last = _taken(image, axis + 2, size - 1, size)
            image = torch.cat([image, *[last] * (begin - left)], axis + 2)
    else:
        ceil_mode = 0
    more = bool(ceil_mode), bool(return_indices)
    return functional.max_pool2d(image, kernel_size, stride, padding, dilation, *more)


def avg_pool2d(  # noqa: PLR0917  # PyTorch's
    image: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: Any = 0,
    count_include_pad: Any = 1,
    divisor_override: Any = None,
) -> Any:
    """Pool so that ExecuTorch pads nothing, which is a copy, if there is no padding."""
    # Without padding both say the same, and only False is left alone: for True
    # ExecuTorch 1.5.1 writes a pad of zeros before the pool.
    counts = bool(count_include_pad) and _pair(padding) != (0, 0)
    if stride is None:
        stride = kernel_size
    # Pools with a divisor stay float, too; as a factor it goes into a scale.
    if divisor_override and not ceil_mode:
        found = functional.avg_pool2d(image, kernel_size, stride, padding)
        return found * (prod(_pair(kernel_size)) / divisor_override)
    return functional.avg_pool2d(
        image, kernel_size, stride, padding, bool(ceil_mode), counts, divisor_override
    )


def adaptive_avg_pool2d(image: Any, output_size: Any) -> Any:
    """Pool with a window, or part by part if their lengths differ."""
    found = None
    if _pair(output_size) != (1, 1):
        found = _adapted(image, output_size, avg_pool2d)
    return functional.adaptive_avg_pool2d(image, output_size) if found is None else found


def adaptive_max_pool2d(image: Any, output_size: Any, return_indices: Any = 0) -> Any:
    """Likewise, the largest items."""
    found = None
    if not return_indices:
        found = _adapted(image, output_size, max_pool2d)
    if found is None:
        more = bool(return_indices)
        return functional.adaptive_max_pool2d(image, output_size, more)
    return found


def pad(image: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """Take what is left where sizes are negative, and join parts that are around it."""
    # From the last dimension on, as PyTorch lists them.
    axes = range(image.ndim - 1, -1, -1)
    if min(pad) < 0:  # kernels only add items
        for axis, *sizes in zip(axes, pad[::2], pad[1::2], strict=False):
            if min(sizes) < 0:
                begin, end = (max(-size, 0) for size in sizes)
                image = _taken(image, axis, begin, image.shape[axis] - end)
        pad = [max(size, 0) for size in pad]
        if not any(pad):
            return image
    if mode == "constant" or not any(pad):
        return functional.pad(image, pad, value=value)
    for axis, before, behind in zip(axes, pad[::2], pad[1::2], strict=False):
        size = image.shape[axis]
        if mode == "replicate":
            first, last = (_taken(image, axis, at, at + 1) for at in (0, size - 1))
            parts = [*[first] * before, image, *[last] * behind]
        else:
            wraps = mode == "circular"
            begins = (size - before, 0) if wraps else (1, size - 1 - behind)
            counts = zip(begins, (before, behind), strict=True)
            sides = [_taken(image, axis, begin, begin + n) for begin, n in counts]
            first, last = sides if wraps else (side.flip(axis) for side in sides)
            parts = [part for part in (first, image, last) if part.shape[axis]]
        image = torch.cat(parts, axis) if len(parts) > 1 else image
    return image


def glu(image: Any, dim: int = -1) -> Any:
    """A product of two parts, in their layout."""
    at, half = dim % image.ndim, image.shape[dim] // 2
    parts = (image.narrow(at, begin, half) for begin in (0, half))
    value, gate = (part.clone(memory_format=torch.channels_last) for part in parts)
    return value * gate.sigmoid()


def mean(image: Any, dim: Any, keepdim: Any = 0) -> Any:
    """Pool, or convolve with equal weights where channels are among the dimensions."""
    dims = _dims(image, dim)
    area = [image.shape[d] if d in dims else 1 for d in (1, 2, 3)]
    if 1 in dims:
        sizes = (1, *image.shape[1:2], *area[1:])
        # A pool has no mean over channels; a convolution with equal weights has.
        weight = torch.full(sizes, 1 / prod(area), dtype=image.dtype)
        found = torch.conv2d(image, weight, None, area[1:])
    else:
        found = avg_pool2d(image, area[1:])
    return found if keepdim else found.contiguous().squeeze(sorted(dims))


def total(image: Any, dim: Any, keepdim: Any = 0) -> Any:
    """The sum: a mean times the number of items."""
    dims = _dims(image, dim)
    return mean(image, dim, keepdim) * prod(image.shape[d] for d in dims)


def _adapted(image: Any, output_size: Any, pool: Callable[..., Any]) -> Any:
    """An adaptive pool with a window, or part by part; None if it has no such form."""
    sizes = image.shape[2:]
    counts = [
        n if wanted is None else wanted for n, wanted in zip(sizes, _pair(output_size), strict=True)
    ]
    axes = [*zip(sizes, counts, strict=True)]
    if not all(
        isinstance(size, int) and (size % count == 0 or count <= _MOST_PARTS)
        for size, count in axes
    ):
        return None
    for axis, (size, count) in enumerate(axes):
        if size % count:
            parts = _parts(image, axis, size, count, pool)
            image = torch.cat([*parts], axis + 2)
    window = [1 if size % count else size // count for size, count in axes]
    return image if window == [1, 1] else pool(image, window)


def _parts(image: Any, axis: int, size: int, count: int, pool: Callable[..., Any]) -> Any:
    """What a pool gives for each part of an axis."""
    for part in range(count):
        # PyTorch's definition of an adaptive pool's windows
        # (aten/src/ATen/native/AdaptivePooling.h): floor and ceiling.
        begin, end = part * size // count, -(-(part + 1) * size // count)
        window = [end - begin if at == axis else 1 for at in range(2)]
        yield pool(_taken(image, axis + 2, begin, end), window)


def _taken(image: Any, axis: int, begin: int, end: int) -> Any:
    """Some items along an axis, in the layout of the image."""
    part = image.narrow(axis, begin, end - begin)
    # A view would be contiguous in ExecuTorch's program, and its items in another
    # order. With one channel, a copy that names an order would be one too many.
    if image.ndim == _RANK and part.shape[1] != 1 and image.dim_order() == CHANNELS_LAST:
        return part.clone(memory_format=torch.channels_last)
    return part.contiguous()


def _pair(value: Any) -> tuple[Any, Any]:
    if isinstance(value, list | tuple):
        return (value[0], value[-1])
    return (value, value)


def _dims(image: Any, dim: Any) -> set[int]:
    return {d % image.ndim for d in ([dim] if isinstance(dim, int) else dim)}
