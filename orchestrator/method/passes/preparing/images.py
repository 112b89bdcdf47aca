"""Images and windows over them, as kernels/cortex_m/prepared.h has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from orchestrator.method.passes.packing.convolution import Axis

if TYPE_CHECKING:
    from orchestrator.method.linked import Numbers
    from orchestrator.method.passes.arguments import Arguments
    from orchestrator.program.values import TensorValue

Image: TypeAlias = tuple[int, int, int, int]
"""Batch, height, width and channels."""


def image_of(tensor: TensorValue, *, nhwc: bool) -> Image:
    """Batch, height, width and channels."""
    batch, height, width, channels = (
        tensor.sizes[d] for d in ((0, 1, 2, 3) if nhwc else (0, 2, 3, 1))
    )
    return batch, height, width, channels


def axes_of(
    arguments: Arguments,
    x: Image,
    y: Image,
    kernel: tuple[int, int],
    lists: tuple[int, ...],
) -> tuple[Axis, Axis]:
    """Rows and columns of windows; `lists`: stride, padding and, if any, dilation."""
    pairs = [one_or_two(arguments.numbers(position)) for position in lists]
    rows, columns = (
        Axis(
            size=x[1 + i],
            out=y[1 + i],
            kernel=kernel[i],
            stride=pairs[0][i],
            padding=pairs[1][i],
            dilation=pairs[2][i] if len(pairs) > 2 else 1,  # noqa: PLR2004
        )
        for i in range(2)
    )
    return rows, columns


def axis_members(axis: Axis) -> Numbers:
    """An `Axis` of kernels/cortex_m/prepared.h."""
    names = ("in", "out", "kernel", "stride", "padding", "dilation")
    return tuple(zip(names, axis.words(), strict=True))


def one_or_two(numbers: tuple[int, ...]) -> tuple[int, int]:
    """Numbers for rows and columns; one stands for both."""
    return numbers[0], numbers[-1]


def image_members(image: Image) -> Numbers:
    """An `Image`."""
    return tuple(zip(("batch", "height", "width", "channels"), image, strict=True))
