"""Images and windows over them, as kernels/cortex_m/prepared.h has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from orchestrator.method.linked import Numbers
from orchestrator.method.passes.arguments import Arguments, Name
from orchestrator.method.windows import Axis
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
    arguments: Arguments, x: Image, y: Image, kernel: Sequence[int], lists: Sequence[Name]
) -> tuple[Axis, Axis]:
    """Rows and columns of windows; `lists`: stride, padding and, if any, dilation."""
    pairs = [one_or_two(arguments.numbers(name)) for name in lists]
    return axes_along(x[1:3], y[1:3], kernel, *pairs)


def axes_along(*numbers: Sequence[int]) -> tuple[Axis, Axis]:
    """Windows along rows and along columns.

    Args:
        numbers: Each of both, in the order of `Axis`; the last ones may be left out.
    """
    rows, columns = map(Axis.of, zip(*numbers, strict=True))
    return rows, columns


def axis_members(axis: Axis) -> Numbers:
    """An `Axis` of kernels/util/prepared.h."""
    names = ("in", "out", "kernel", "stride", "padding", "dilation")
    return tuple(zip(names, axis.words(), strict=True))


def one_or_two(numbers: tuple[int, ...]) -> tuple[int, int]:
    """Numbers for rows and columns; one stands for both."""
    return numbers[0], numbers[-1]


def image_members(image: Image) -> Numbers:
    """An `Image`."""
    return tuple(zip(("batch", "height", "width", "channels"), image, strict=True))
