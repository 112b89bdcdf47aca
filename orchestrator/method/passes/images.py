"""Images and windows over them, as kernels/cortex_m/prepared.h has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from orchestrator.method.linked import Numbers
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.passes.arguments import Arguments

Image: TypeAlias = tuple[int, int, int, int]
"""Batch, height, width and channels."""


_NUMBERS: Final = ("size", "out", "kernel", "stride", "padding", "dilation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """As `Axis` of kernels/cortex_m/image.h; of windows along one dimension."""

    size: int
    out: int
    kernel: int = 1
    stride: int = 1
    padding: int = 0
    dilation: int = 1

    @classmethod
    def of(cls, words: Sequence[int]) -> Axis:
        """From what `words` gives, of which the last ones may be left out."""
        return cls(**dict(zip(_NUMBERS, words, strict=False)))

    @property
    def window(self) -> int:
        """Items from the first tap of a window to the last one."""
        return self.dilation * (self.kernel - 1) + 1

    @property
    def is_inside(self) -> bool:
        """Whether no window has padding."""
        windows = (self.out - 1) * self.stride + self.window
        return self.padding == 0 and windows <= self.size

    @property
    def reach(self) -> int:
        """Items from the first one that a window sees to the last one, or of all."""
        windows = (self.out - 1) * self.stride + self.window
        return max(windows, self.padding + self.size)

    def inputs(self, first: int, last: int) -> tuple[int, int]:
        """First and last input for some outputs, all inclusive.

        The last one is before the first one if all taps are padding.
        """
        low = first * self.stride - self.padding
        high = last * self.stride - self.padding + self.window - 1
        return max(low, 0), min(high, self.size - 1)

    def words(self) -> tuple[int, ...]:
        """As the kernels read them."""
        return (*(self.size, self.out, self.kernel), *(self.stride, self.padding, self.dilation))


def image_of(tensor: TensorValue, *, nhwc: bool) -> Image:
    """Batch, height, width and channels."""
    batch, height, width, channels = (
        tensor.sizes[d] for d in ((0, 1, 2, 3) if nhwc else (0, 2, 3, 1))
    )
    return batch, height, width, channels


def axes_of(
    arguments: Arguments, x: Image, y: Image, kernel: Sequence[int], lists: tuple[int, ...]
) -> tuple[Axis, Axis]:
    """Rows and columns of windows; `lists`: stride, padding and, if any, dilation."""
    pairs = [one_or_two(arguments.numbers(position)) for position in lists]
    return axes_along(x[1:3], y[1:3], kernel, *pairs)


def axes_along(*numbers: Sequence[int]) -> tuple[Axis, Axis]:
    """Windows along rows and along columns.

    Args:
        numbers: Each of both, in the order of `Axis`; the last ones may be left out.
    """
    rows, columns = map(Axis.of, zip(*numbers, strict=True))
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
