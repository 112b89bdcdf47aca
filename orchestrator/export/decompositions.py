"""Decompositions that PyTorch does not have. Needs PyTorch.

One that raises `NotImplementedError` leaves the call as it is: the build then reports
an operator without a kernel.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

aten = torch.ops.aten


def bucketize(
    x: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False
) -> Any:
    """The number of boundaries below each item, or not above it."""
    items = x.unsqueeze(-1)
    above = boundaries > items if right else boundaries >= items
    # What is not a number is above all.
    found = (~above).sum(-1)
    return found.to(torch.int32) if out_int32 else found


def searchsorted(
    boundaries: Any,
    x: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    """As `bucketize`, with boundaries for each row."""
    if sorter is not None:
        raise NotImplementedError("searchsorted with a sorter")
    if boundaries.dim() > 1:
        boundaries = boundaries.unsqueeze(-2)
    right = right or side == "right"
    return bucketize(x, boundaries, out_int32=out_int32, right=right)


def channel_shuffle(x: Any, groups: int) -> Any:
    """Channels of several groups, taken in turn from each."""
    batch, channels, *sizes = x.shape
    parts = x.reshape(batch, groups, channels // groups, *sizes)
    return parts.transpose(1, 2).reshape(x.shape)


def conv_tbc(x: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """A convolution of [time, batch, channels] with [width, in, out]."""
    found = torch.conv1d(x.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return found.permute(2, 0, 1)


def empty_permuted(size: Sequence[int], physical_layout: Any, **options: Any) -> Any:
    """Memory of whatever content; zeros are one."""
    del physical_layout
    return torch.zeros(size, dtype=options.get("dtype"))


def exp2(x: Any) -> Any:
    """Powers of 2."""
    return torch.pow(2.0, x)


def fmax(one: Any, two: Any) -> Any:
    """The larger number; what is not a number is passed over."""
    return torch.where(
        one.isnan(), two, torch.where(two.isnan(), one, torch.maximum(one, two))
    )


def fmin(one: Any, two: Any) -> Any:
    """The smaller number; what is not a number is passed over."""
    return torch.where(
        one.isnan(), two, torch.where(two.isnan(), one, torch.minimum(one, two))
    )


def hypot(one: Any, two: Any) -> Any:
    """The length of a vector; squares do not overflow."""
    one, two = one.abs(), two.abs()
    large, small = torch.maximum(one, two), torch.minimum(one, two)
    is_plain = (large > 0) & (large < math.inf)
    ratio = torch.where(is_plain, small / large, 0.0)
    found = large * torch.sqrt(1 + ratio * ratio)
    is_infinite = (one == math.inf) | (two == math.inf)
    return torch.where(is_infinite, math.inf, found)


def median(x: Any) -> Any:
    """The lower one of the middle items; not a number if any item is not."""
    items = x.flatten().sort().values
    middle = _middle(items, torch.ones_like(items, dtype=torch.int64).sum())
    if not x.is_floating_point():
        return middle
    return torch.where(items[-1].isnan(), items[-1], middle)


def nanmedian(x: Any) -> Any:
    """The lower one of the middle items; what is not a number is passed over."""
    if not x.is_floating_point():
        return median(x)
    return _middle(x.flatten().sort().values, (~x.isnan()).sum())


def _middle(items: Any, count: Any) -> Any:
    """The lower one of the middle of the first items; `count` is a tensor."""
    at = torch.clamp(torch.div(count - 1, 2, rounding_mode="floor"), min=0)
    return items.index_select(0, at.reshape(1)).reshape(())


def rrelu_without_noise(  # noqa: PLR0917  # as PyTorch's
    x: Any,
    noise: Any,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,  # noqa: FBT001, FBT002  # as PyTorch's
    generator: Any = None,
) -> Any:
    """A leaky ReLU, which it is outside of training; the noise as it was."""
    del generator
    if training:
        raise NotImplementedError("rrelu in training draws random slopes")
    slope = (lower + upper) / 2
    return torch.nn.functional.leaky_relu(x, slope), noise.clone()


OWN: dict[Any, Callable[..., Any]] = {
    aten.bucketize.Tensor: bucketize,
    aten.conv_tbc.default: conv_tbc,
    aten.dequantize.self: torch.clone,
    aten.empty_permuted.default: empty_permuted,
    aten.exp2.default: exp2,
    aten.fmax.default: fmax,
    aten.fmin.default: fmin,
    aten.hypot.default: hypot,
    aten.median.default: median,
    aten.nanmedian.default: nanmedian,
    aten.native_channel_shuffle.default: channel_shuffle,
    aten.rrelu_with_noise_functional.default: rrelu_without_noise,
    aten.searchsorted.Tensor: searchsorted,
}
"""By operator: a function of the same arguments."""
