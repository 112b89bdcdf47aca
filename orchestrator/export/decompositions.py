"""Decompositions that PyTorch does not have. Needs PyTorch.

One that raises `NotImplementedError` leaves the call as it is: the build then reports
an operator without a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten


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
    return torch.where(one.isnan(), two, torch.where(two.isnan(), one, torch.maximum(one, two)))


def fmin(one: Any, two: Any) -> Any:
    """The smaller number; what is not a number is passed over."""
    return torch.where(one.isnan(), two, torch.where(two.isnan(), one, torch.minimum(one, two)))


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
    aten.conv_tbc.default: conv_tbc,
    aten.dequantize.self: torch.clone,
    aten.empty_permuted.default: empty_permuted,
    aten.exp2.default: exp2,
    aten.fmax.default: fmax,
    aten.fmin.default: fmin,
    aten.native_channel_shuffle.default: channel_shuffle,
    aten.rrelu_with_noise_functional.default: rrelu_without_noise,
}
"""By operator: a function of the same arguments."""
