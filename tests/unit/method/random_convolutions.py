"""Random calls of int8 convolutions and matrix products, for packed kernels and others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from orchestrator.core.dtype import ScalarType
from tests.unit.method.recorded_calls import Call, Tensor

NHWC: Final = (0, 2, 3, 1)
_S: Final = ScalarType


def tensor(data: Any, dtype: ScalarType, order: tuple[int, ...] = ()) -> Tensor:
    """A tensor of these items; images are given as they lie in memory."""
    form = {_S.Char: "i1", _S.Int: "<i4"}[dtype]
    sizes = dict(zip(order, data.shape, strict=True)) if order else {}
    return Tensor(
        dtype=dtype,
        sizes=tuple(sizes[d] for d in range(data.ndim)) if order else data.shape,
        order=order or tuple(range(data.ndim)),
        data=np.ascontiguousarray(data, form).tobytes(),
    )


class Images(NamedTuple):
    size: Sequence[int]
    channels: int
    groups: int
    outputs: int


class Windows(NamedTuple):
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]


class RandomCalls:
    """Random calls; every third has something that the packed kernel does not take."""

    def __init__(self, seed: int = 18) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def fours(self) -> int:
        """1 to 33, half of them a multiple of 4."""
        return 4 * self.one(1, 8) if self.one(0, 1) else self.one(1, 33)

    def items(self, *sizes: int) -> Any:
        """Anything, and often the limits."""
        anything = self.rng.integers(-128, 128, sizes)
        edges = self.rng.choice([-128, -127, -1, 0, 127], sizes)
        return np.where(self.rng.random(sizes) < 0.2, edges, anything)

    def weights(self, *sizes: int) -> Any:
        """As quantizers make them: few are -128; or many are."""
        if self.one(0, 5) == 0:
            return self.items(*sizes)
        found = np.clip(self.rng.normal(0, 45, sizes).round(), -127, 127)
        flat = found.reshape(-1)
        flat[self.rng.integers(0, flat.size, self.one(0, 3))] = -128
        return found

    def scales(self, outputs: int) -> tuple[Any, Any, Any]:
        """Biases, multipliers and shifts."""
        bias = self.rng.integers(-20000, 20000, outputs)
        multipliers = self.rng.integers(1 << 30, 1 << 31, outputs)
        if outputs % 3 == 0:
            multipliers[:] = 1 << 30  # products that end with ties
        shifts = -self.rng.integers(0 if self.one(0, 9) == 0 else 5, 12, outputs)
        if self.one(0, 9) == 0:
            shifts[0] = 1
        if self.one(0, 3) == 0:
            # Some exporters leave all of the scale to the multiplier.
            return bias, multipliers >> self.one(4, 10), shifts * 0
        return bias, multipliers, shifts

    def limits(self) -> tuple[int, int, int]:
        """Offset, lowest and highest of the outputs."""
        offset = int(self.rng.choice([-128, 0, self.one(-128, 127)]))
        return offset, *self.range(offset)

    def range(self, offset: int) -> tuple[int, int]:
        """Lowest and highest output: most often all there are, or as after a ReLU."""
        if self.one(0, 2):
            return -128, 127
        low = offset if self.one(0, 2) else self.one(-128, 127)
        return low, max(low, self.one(-128, 127), 127 * self.one(0, 1))

    def image(self) -> Call:
        depthwise = self.one(0, 1) == 0
        groups = self.one(1, 2) if not depthwise and self.one(0, 5) == 0 else 1
        channels, multiplier = self.one(1, 17), self.one(1, 33)
        if depthwise and self.one(0, 2):
            channels, multiplier = self.fours(), 1
        elif depthwise:
            channels, multiplier = self.one(1, 9), self.one(1, 6)
        outputs = (channels if depthwise else groups) * multiplier
        kernel = (self.one(1, 4), self.one(1, 4))
        stride, dilation = (self.one(1, 2), self.one(1, 3)), (self.one(1, 2), 1)
        padding = (self.one(0, 2), self.one(0, 1))
        size = [(k - 1) * d + 1 + self.one(0, 5) for k, d in zip(kernel, dilation, strict=True)]
        if self.one(0, 3) == 0:
            # A pixel at a time.
            kernel, padding = (1, 1), (0, 0)
            channels = channels if depthwise else 16
        return self.call(
            Images(size, channels, groups, outputs),
            Windows(kernel, stride, padding, dilation),
            self.limits(),
            depthwise=depthwise,
        )

    def depthwise(self) -> Call:
        """Most with outputs as after a ReLU, over images of all sizes."""
        channels = self.one(2, 40)
        kernel = (self.one(1, 5), self.one(1, 5)) if self.one(0, 2) == 0 else (3, 3)
        stride = (self.one(1, 3), self.one(1, 3)) if self.one(0, 1) else (1, 1)
        dilation = (self.one(1, 3), self.one(1, 2)) if self.one(0, 2) == 0 else (1, 1)
        padding = (self.one(0, 2), self.one(0, 2))
        # Small enough to lie in the padding on both sides, or wide.
        size = [
            max((k - 1) * d + 1 - 2 * p, 1) + self.one(0, 40 if self.one(0, 2) == 0 else 8)
            for k, d, p in zip(kernel, dilation, padding, strict=True)
        ]
        if size[0] * size[1] > 250:
            size[self.one(0, 1)] = 6 + (max(kernel) - 1) * 3
        return self.call(
            Images(size, channels, 1, channels),
            Windows(kernel, stride, padding, dilation),
            (-128, *self.range(-128)) if self.one(0, 5) else self.limits(),
            depthwise=True,
        )

    def words(self) -> Call:
        """Depthwise windows of 3 x 3 over images of words, most whole, as after a ReLU."""
        stride = self.one(1, 2)
        padding = (self.one(0, 2), self.one(0, 2))
        size = [max(3 - 2 * p, 1) + self.one(6, 15) for p in padding]
        channels = 4 * self.one(2, 8) + self.one(1, 3) * (self.one(0, 2) == 0)
        return self.call(
            Images(size, channels, 1, channels),
            Windows((3, 3), (stride, stride), padding, (1, 1)),
            (-128, *self.range(-128)),
            depthwise=True,
        )

    def first(self) -> Call:
        """The first layers of nets: few channels."""
        kernel = (self.one(1, 5), self.one(2, 5))
        padding = (self.one(0, 2), self.one(0, 2))
        stride = (self.one(1, 2), self.one(1, 2))
        size = [k + self.one(0, 9) for k in kernel]
        return self.call(
            Images(size, self.one(1, 5), 1, self.one(1, 33)),
            Windows(kernel, stride, padding, (1, 1)),
            self.limits(),
            depthwise=False,
        )

    def narrow(self) -> Call:
        """Windows along one axis, dilated as well, over images of few lines."""
        along = self.one(0, 1)
        k, d, p = self.one(1, 5), self.one(1, 3), self.one(0, 2)
        # Across: a pixel, or three that reach into the padding.
        across = (3, 1) if self.one(0, 1) else (1, 0)
        length = max((k - 1) * d + 1 - 2 * p, 1) + self.one(0, 9)
        axes = [(length, k, self.one(1, 2), p, d), (self.one(1, 2), across[0], 1, across[1], 1)]
        size, kernel, stride, padding, dilation = zip(axes[along], axes[1 - along], strict=True)
        return self.call(
            Images(size, self.one(1, 17), 1, self.one(1, 9)),
            Windows(kernel, stride, padding, dilation),
            self.limits(),
            depthwise=False,
        )

    def lines(self) -> Call:
        """Windows of three lines, over whole vectors of channels."""
        channels, outputs = 16 * self.one(1, 4), self.one(1, 9)
        kernel, dilation = (3, self.one(1, 4)), (1, self.one(1, 2))
        padding = (self.one(0, 2), self.one(0, 2))
        size = [
            max((k - 1) * d + 1 - 2 * p, 1) + more
            for k, d, p, more in zip(
                kernel, dilation, padding, (self.one(0, 12), self.one(0, 3)), strict=True
            )
        ]
        return self.call(
            Images(size, channels, 1, outputs),
            Windows(kernel, (1, self.one(1, 2)), padding, dilation),
            self.limits(),
            depthwise=False,
        )

    def squares(self) -> Call:
        """Windows of 3 x 3 over whole vectors of channels, which may go along rows as well."""
        size = (self.one(3, 14), self.one(3, 9))
        return self.call(
            Images(size, 16 * self.one(1, 2), 1, self.one(1, 9)),
            Windows((3, 3), (1, 1), (self.one(0, 1), self.one(0, 1)), (1, 1)),
            self.limits(),
            depthwise=False,
        )

    def transposed(self) -> Call:
        """Kernels may be smaller than the stride, and outputs end in padding."""
        channels, outputs = self.one(1, 20), self.one(1, 12)
        kernel = (self.one(1, 4), self.one(1, 4))
        stride, dilation = (self.one(1, 3), self.one(1, 3)), (self.one(1, 2), 1)
        more = tuple(self.one(0, s - 1) for s in stride)
        size = (self.one(2, 6), self.one(2, 6))
        whole = [
            (n - 1) * s + (k - 1) * d + 1 + m
            for n, k, s, d, m in zip(size, kernel, stride, dilation, more, strict=True)
        ]
        padding = tuple(
            min(self.one(0, k - 1), (n - 1) // 2) for k, n in zip(kernel, whole, strict=True)
        )
        out = [n - 2 * p for n, p in zip(whole, padding, strict=True)]
        bias, multipliers, shifts = self.scales(outputs)
        offset, low, high = self.limits()
        batch = self.one(1, 2)
        y = np.zeros((batch, *out, outputs))
        return Call(
            "cortex_m::quantized_transpose_conv2d.out",
            (
                tensor(self.items(batch, *size, channels), _S.Char, NHWC),
                tensor(self.weights(outputs, *kernel, channels), _S.Char),
                tensor(bias, _S.Int) if self.one(0, 3) else None,
                *(stride, padding, more, dilation),
                *(self.one(-127, 128), offset),
                tensor(multipliers, _S.Int),
                tensor(shifts, _S.Int),
                *(low, high),
                Tensor(_S.Byte, (0,), (0,), b""),
                Tensor(_S.Byte, (0,), (0,), b""),
                replace(tensor(y, _S.Char, NHWC), is_out=True),
            ),
        )

    def call(
        self, images: Images, windows: Windows, limits: tuple[int, int, int], *, depthwise: bool
    ) -> Call:
        size, channels, groups, outputs = images
        kernel, stride, padding, dilation = windows
        batch = self.one(1, 2)
        out = [
            (n + 2 * p - (k - 1) * d - 1) // s + 1
            for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
        ]
        bias, multipliers, shifts = self.scales(outputs)
        offset, low, high = limits
        x = self.items(batch, *size, channels * groups)
        w = self.weights(outputs, *kernel, 1 if depthwise else channels)
        y = replace(tensor(np.zeros((batch, *out, outputs)), _S.Char, NHWC), is_out=True)
        name = "quantized_depthwise_conv2d" if depthwise else "quantized_conv2d"
        return Call(
            f"cortex_m::{name}.out",
            (
                tensor(x, _S.Char, NHWC),
                tensor(w.transpose(3, 1, 2, 0) if depthwise else w, _S.Char),
                tensor(bias, _S.Int) if self.one(0, 3) else None,
                *(stride, padding, dilation),
                *((outputs // channels,) if depthwise else ()),
                *(self.one(-127, 128), offset),
                tensor(multipliers, _S.Int),
                tensor(shifts, _S.Int),
                *(low, high),
                Tensor(_S.Byte, (0,), (0,), b""),
                y,
            ),
        )

    def matrix(self) -> Call:
        rows, depth, outputs = self.one(1, 4), self.one(1, 70), self.fours()
        bias, multipliers, shifts = self.scales(outputs)
        offset, low, high = self.limits()
        has_sums = self.one(0, 1) == 1
        sums = tensor(bias, _S.Int)
        y = replace(tensor(np.zeros((rows, outputs)), _S.Char), is_out=True)
        return Call(
            "cortex_m::quantized_linear.out",
            (
                tensor(self.items(rows, depth), _S.Char),
                tensor(self.weights(outputs, depth), _S.Char),
                None if has_sums else sums,
                sums if has_sums else None,
                *(self.one(-127, 128), int(self.one(0, 9) == 0), offset),
                (int(multipliers[0]),),
                (int(shifts[0]),),
                *(high, low),
                y,
            ),
        )
