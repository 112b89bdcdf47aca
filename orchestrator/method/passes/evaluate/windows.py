"""Windows over images: which inputs meet which outputs.

Source: kernels/util/check.h, pool2d.h; kernels/portable/convolve.h, op_convolution.cpp;
kernels/cortex_m/image.h, pool.h and transposed.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.method.passes.arguments import need

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_EXTENT: Final = 1 << 30
PLANE: Final = 2
"""Dimensions of an image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tap:
    """One item of a kernel, where it lies over the input.

    Args:
        index: In the kernel.
        outputs: Those that it is used for.
        inputs: Those that it then lies on.
    """

    index: int
    outputs: slice
    inputs: slice


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Windows along one dimension.

    Output o and tap k meet input o * stride - padding + k * dilation; in a transposed
    convolution input i and tap k meet output i * stride - padding + k * dilation.
    """

    size: int
    kernel: int
    stride: int
    padding: int
    dilation: int = 1

    @property
    def window(self) -> int:
        """Items from the first to the last tap."""
        return self.dilation * (self.kernel - 1) + 1

    @property
    def padded(self) -> int:
        """Items with the padding on both sides."""
        return self.size + 2 * self.padding

    @property
    def outputs(self) -> int:
        """Whole windows."""
        need(self.window <= self.padded <= MAX_EXTENT)
        return (self.padded - self.window) // self.stride + 1

    def taps(self, outputs: int) -> Iterator[Tap]:
        """Taps in their order, as far as they lie in the input."""
        for k in self._near(outputs):
            offset = k * self.dilation - self.padding
            first = max(0, -(offset // self.stride))
            end = min(outputs, (self.size - 1 - offset) // self.stride + 1)
            if first < end:
                begin = first * self.stride + offset
                last = begin + (end - first - 1) * self.stride
                yield Tap(
                    index=k,
                    outputs=slice(first, end),
                    inputs=slice(begin, last + 1, self.stride),
                )

    def _near(self, outputs: int) -> Sequence[int]:
        """Taps that may lie in the input: of a large kernel most do not."""
        if self.kernel <= self.size + outputs:
            return range(self.kernel)
        found: set[int] = set()
        for o in range(outputs):
            before = self.padding - o * self.stride
            first = max(0, -(-before // self.dilation))
            last = (before + self.size - 1) // self.dilation
            found.update(range(first, min(last + 1, self.kernel)))
        return sorted(found)

    def transposed_taps(self, outputs: int) -> Iterator[Tap]:
        """The same of a transposed convolution."""
        for k in range(self.kernel):
            offset = k * self.dilation - self.padding
            first = max(0, -(offset // self.stride))
            end = min(self.size, (outputs - 1 - offset) // self.stride + 1)
            if first < end:
                begin = first * self.stride + offset
                last = begin + (end - first - 1) * self.stride
                yield Tap(
                    index=k,
                    outputs=slice(begin, last + 1, self.stride),
                    inputs=slice(first, end),
                )

    def counts(self, outputs: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """How many taps of each output lie in the input."""
        found = np.zeros(outputs, np.int64)
        for tap in self.taps(outputs):
            found[tap.outputs] += 1
        return found


def read_ints(given: Sequence[int], low: int, count: int = PLANE) -> tuple[int, ...]:
    """A list of so many integers, none below `low`; a single one stands for all."""
    need(len(given) in (1, count))
    need(all(low <= value <= MAX_EXTENT for value in given))
    return tuple(given) if len(given) == count else tuple(given) * count
