"""Decompositions that PyTorch does not have. Needs PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

aten = torch.ops.aten


def adaptive_avg_pool(x: Any, output_size: Sequence[int]) -> Any:
    """Means over windows, one dimension after the other."""
    for dim, size in zip(range(-len(output_size), 0), output_size, strict=True):
        x = torch.cat(
            [
                x.narrow(dim, start, end - start).mean(dim, keepdim=True)
                for start, end in _windows(x.shape[dim], size)
            ],
            dim,
        )
    return x


def _windows(items: int, windows: int) -> list[tuple[int, int]]:
    """First item, and the one after the last, of each window of an adaptive pooling."""
    return [
        (at * items // windows, -(-(at + 1) * items // windows))
        for at in range(windows)
    ]


def channel_shuffle(x: Any, groups: int) -> Any:
    """Channels of several groups, taken in turn from each."""
    batch, channels, *sizes = x.shape
    parts = x.reshape(batch, groups, channels // groups, *sizes)
    return parts.transpose(1, 2).reshape(x.shape)


def conv_tbc(x: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """A convolution of [time, batch, channels] with [width, in, out]."""
    found = torch.conv1d(
        x.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad
    )
    return found.permute(2, 0, 1)


def empty_permuted(size: Sequence[int], physical_layout: Any, **options: Any) -> Any:
    """Memory of whatever content; zeros are one."""
    del physical_layout
    return torch.zeros(size, dtype=options.get("dtype"))


def rrelu_without_noise(
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
        raise NotImplementedError("it is random")
    slope = (lower + upper) / 2
    return torch.nn.functional.leaky_relu(x, slope), noise.clone()


def trilinear(  # noqa: PLR0917  # as PyTorch's
    one: Any,
    two: Any,
    three: Any,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Any:
    """The sum of a product of three tensors, with dimensions added to each."""
    del unroll_dim
    factors = []
    for factor, dims in ((one, expand1), (two, expand2), (three, expand3)):
        for dim in sorted(dims):
            factor = factor.unsqueeze(dim)
        factors.append(factor)
    return (factors[0] * factors[1] * factors[2]).sum(list(sumdim))


OWN: dict[Any, Callable[..., Any]] = {
    aten._adaptive_avg_pool3d.default: adaptive_avg_pool,  # noqa: SLF001
    aten._trilinear.default: trilinear,  # noqa: SLF001
    aten.conv_tbc.default: conv_tbc,
    aten.empty_permuted.default: empty_permuted,
    aten.native_channel_shuffle.default: channel_shuffle,
    aten.rrelu_with_noise_functional.default: rrelu_without_noise,
}
"""By operator: a function of the same arguments."""
