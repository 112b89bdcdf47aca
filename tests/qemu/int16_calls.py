"""Random calls of the int16 kernels of Cortex-M, with their results.

Results are computed in NumPy and in Python's integers, from what docs/kernels.md says:
sums of 64 bits, rounded once.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from tests.data.cortex_m import semantics
from tests.unit.method.recorded_calls import Call, Tensor

_S = ScalarType
_NHWC: Final = (0, 2, 3, 1)
_DTYPES: Final = {
    np.dtype("i1"): _S.Char,
    np.dtype("i2"): _S.Short,
    np.dtype("i4"): _S.Int,
    np.dtype("i8"): _S.Long,
}
_EDGES: Final = np.array([-32768, -32767, -1, 0, 1, 32767], "i2")
_SCRATCH: Final = Tensor(_S.Byte, (0,), (0,), b"")


def scaled(value: int, multiplier: int, shift: int) -> int:
    """Value * multiplier / 2^31 * 2^shift, the nearest, ties up."""
    bits = 31 + max(-shift, 0)
    product = (value << max(shift, 0)) * multiplier
    return (product + (1 << (bits - 1))) >> bits


def plain(items: Any, *, is_out: bool = False) -> Tensor:
    """A tensor whose dimensions lie in their order."""
    array = np.ascontiguousarray(items)
    order = tuple(range(array.ndim))
    return Tensor(_DTYPES[array.dtype], array.shape, order, array.tobytes(), is_out)


def image(items: Any, *, is_out: bool = False) -> Tensor:
    """A tensor [N, C, H, W] of items [N, H, W, C]."""
    array = np.ascontiguousarray(items)
    n, h, w, c = array.shape
    return Tensor(_DTYPES[array.dtype], (n, c, h, w), _NHWC, array.tobytes(), is_out)


class Int16Calls:
    """Makes calls; the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, low: int, high: int) -> int:
        """Anything between two numbers."""
        return int(self.rng.integers(low, high + 1))

    def items(self, *sizes: int, dtype: str = "i2") -> Any:
        """Anything, often limits; in some calls one of them, so that sums are large."""
        limits = np.iinfo(dtype)
        anything = self.rng.integers(limits.min, limits.max + 1, sizes)
        edges = self.rng.choice([limits.min, limits.max, 0, 1, -1], sizes)
        if self.one(0, 5) == 0:
            return np.full(sizes, self.rng.choice([limits.min, limits.max]), dtype)
        often = self.rng.choice([0.0, 0.2, 1.0])
        return np.where(self.rng.random(sizes) < often, edges, anything).astype(dtype)

    def limits(self) -> tuple[int, int]:
        """Of the output."""
        if self.one(0, 1):
            return -32767, 32767
        low, high = sorted((self.one(-32768, 32767), self.one(-32768, 32767)))
        return low, high

    def bias(self, count: int) -> Any:
        """Of 32 bits, of 64 bits, or none."""
        match self.one(0, 3):
            case 0:
                return None
            case 1:
                return self.rng.integers(-(2**46), 2**46, count)
        return self.rng.integers(-(2**31), 2**31, count).astype("i4") >> self.one(0, 16)

    def scales(self, sums: Any) -> tuple[Any, Any]:
        """Multipliers and shifts for the last dimension of sums; some too large."""
        count = sums.shape[-1]
        most = np.abs(sums.reshape(-1, count)).max(axis=0)
        bits = [int(m).bit_length() for m in most]
        shifts = [max(-31, 15 - b + self.one(-3, 2)) for b in bits]
        shifts = [min(8, s) if self.one(0, 5) else self.one(-31, 8) for s in shifts]
        multipliers = self.rng.integers(1 << 30, 1 << 31, count)
        if self.one(0, 7) == 0:
            multipliers[self.one(0, count - 1)] = 0
        return multipliers.astype("i4"), np.array(shifts, "i4")

    def finished(self, sums: Any, scales: Any, limits: tuple[int, int]) -> Any:
        """What is stored for sums."""
        multipliers, shifts = (np.broadcast_to(s, sums.shape).flat for s in scales)
        numbers = zip(sums.flat, multipliers, shifts, strict=True)
        found = [scaled(int(v), int(m), int(s)) for v, m, s in numbers]
        low, high = limits
        stored = [min(max(v, low), high) for v in found]
        return np.array(stored, "i2").reshape(sums.shape)

    def _window(self, most: int) -> tuple[Any, Any, Any, Any]:
        kernel = (self.one(1, most), self.one(1, most))
        stride = (self.one(1, 3), self.one(1, 3))
        dilation = (self.one(1, 2), 1) if self.one(0, 3) == 0 else (1, self.one(1, 2))
        padding = tuple(self.one(0, d * (k - 1)) for k, d in zip(kernel, dilation, strict=True))
        return kernel, stride, padding, dilation

    def _sizes(self, kernel: Any, padding: Any, dilation: Any) -> list[int]:
        window = zip(kernel, padding, dilation, strict=True)
        return [max(1, d * (k - 1) + 1 - 2 * p) + self.one(0, 5) for k, p, d in window]

    def convolution(self) -> Call:
        """Groups, rests of tiles, sums beyond 32 bits."""
        kernel, stride, padding, dilation = self._window(4)
        if self.one(0, 3) == 0:
            kernel, stride, padding, dilation = (1, 1), (1, 1), (0, 0), (1, 1)
        groups = self.one(2, 3) if self.one(0, 3) == 0 else 1
        deep = kernel == (1, 1) and self.one(0, 1)
        depth = self.one(500, 1100) if deep else self.one(1, 19)
        outputs = groups * self.one(1, 9)
        sizes = [1, 2] if deep else self._sizes(kernel, padding, dilation)
        x = self.items(self.one(1, 2), *sizes, depth * groups)
        w = self.items(outputs, *kernel, depth, dtype="i1")
        if deep:
            x[:], w[:] = -32768, -128
        bias = self.bias(outputs)
        sums = semantics.conv2d(x, w, bias, stride, padding, dilation, 0)
        window = (stride, padding, dilation)
        return self._convolved("quantized_conv2d", (x, w, bias, *window), sums)

    def _convolved(self, name: str, args: tuple[Any, ...], sums: Any) -> Call:
        x, w, bias, *window = args
        scales, limits = self.scales(sums), self.limits()
        given = (image(x), plain(w), None if bias is None else plain(bias), *window)
        out = image(self.finished(sums, scales, limits), is_out=True)
        scaling = (0, 0, *map(plain, scales), *limits, _SCRATCH, out)
        return Call(f"cortex_m::{name}.out", (*given, *scaling))

    def depthwise(self) -> Call:
        """Several outputs of an input, too; windows of more than 511 taps."""
        kernel, stride, padding, dilation = self._window(5)
        channels, multiplier = self.one(1, 21), 1
        if self.one(0, 3) == 0:
            channels, multiplier = self.one(1, 4), self.one(2, 5)
        elif self.one(0, 7) == 0:
            kernel, padding, dilation = (24, 23), (0, 0), (1, 1)
            channels = self.one(1, 3)
        x = self.items(self.one(1, 2), *self._sizes(kernel, padding, dilation), channels)
        w = self.items(1, *kernel, channels * multiplier, dtype="i1")
        bias = self.bias(channels * multiplier)
        sums = semantics.depthwise(x, w, bias, stride, padding, dilation, 0)
        args = (x, w, bias, stride, padding, dilation, multiplier)
        return self._convolved("quantized_depthwise_conv2d", args, sums)

    def linear(self) -> Call:
        """One scale for all outputs."""
        depth, outputs = self.one(1, 1200), self.one(1, 13)
        rows = (self.one(1, 3),) if self.one(0, 1) else (2, self.one(1, 2))
        x, w = self.items(*rows, depth), self.items(outputs, depth, dtype="i1")
        if self.one(0, 3) == 0:
            x[:], w[:] = -32768, -128  # what 32 bits hold 511 products of
        bias = self.bias(outputs)
        sums = semantics.linear(x, w, bias, 0, 0)
        scales = tuple(s[:1] for s in self.scales(sums.reshape(-1, 1)))
        low, high = limits = self.limits()
        out = plain(self.finished(sums, scales, limits), is_out=True)
        given = (plain(x), plain(w), None if bias is None else plain(bias), None)
        scaling = (0, 0, 0, *((int(s[0]),) for s in scales), high, low, out)
        return Call("cortex_m::quantized_linear.out", (*given, *scaling))

    def _pair(self) -> tuple[Any, Any]:
        if self.one(0, 2):
            sizes = tuple(self.one(1, 6) for _ in range(self.one(1, 3)))
            return self.items(*sizes), self.items(*sizes)
        rows, columns = self.one(1, 4), self.one(1, 9)
        pair = self.items(rows, columns), self.items(1, columns)
        return pair if self.one(0, 1) else pair[::-1]

    def addition(self) -> Call:
        """As exporters write them: the larger scale is a half."""
        a, b = self._pair()
        half = (1 << 30, 0)
        other = (self.one(1 << 30, (1 << 31) - 1), self.one(-8, -1))
        if self.one(0, 1):
            other = (-other[0], other[1])
        of_a, of_b = (half, other) if self.one(0, 1) else (other, half)
        total, limits = (self.one(1 << 30, (1 << 31) - 1), self.one(-18, -13)), None
        limits = self.limits()
        sums = [
            scaled(int(x) << 15, *of_a) + scaled(int(y) << 15, *of_b)
            for x, y in zip(*(m.flat for m in np.broadcast_arrays(a, b)), strict=True)
        ]
        shape = np.broadcast_shapes(a.shape, b.shape)
        stored = [min(max(scaled(v, *total), limits[0]), limits[1]) for v in sums]
        out = plain(np.array(stored, "i2").reshape(shape), is_out=True)
        args = (plain(a), 0, *of_a, plain(b), 0, *of_b, 0, *total, *limits, out)
        return Call("cortex_m::quantized_add.out", args)

    def product(self) -> Call:
        """Items times items."""
        a, b = self._pair()
        scale = (self.one(1 << 30, (1 << 31) - 1), self.one(-18, -12))
        products = np.multiply(a, b, dtype="i8")
        stored = self.finished(products, scale, (-32768, 32767))
        out = plain(stored, is_out=True)
        args = (plain(a), 0, plain(b), 0, 0, *scale, out)
        return Call("cortex_m::quantized_mul.out", args)

    def pooling(self) -> Call:
        """Largest items, and averages whose ties go away from zero."""
        kernel, stride, padding, _ = self._window(4)
        # No window has only padding.
        padding = tuple(min(p, k // 2) for p, k in zip(padding, kernel, strict=True))
        sizes = self._sizes(kernel, padding, (1, 1))
        x = self.items(self.one(1, 2), *sizes, self.one(1, 9))
        ceil = self.one(0, 1) == 1
        low, high = self.limits()
        largest = self.one(0, 1) == 1

        def of_window(window: Any) -> Any:
            if largest:
                return np.clip(window.max(axis=(1, 2)), low, high)
            total, count = window.sum(axis=(1, 2)), window[0, :, :, 0].size
            return np.sign(total) * ((np.abs(total) + count // 2) // count)

        out = image(_pooled(x, (kernel, stride, padding), of_window, ceil=ceil), is_out=True)
        if largest:
            args = (image(x), kernel, stride, padding, (1, 1), ceil, 0, 0, low, high)
            return Call("cortex_m::quantized_max_pool2d.out", (*args, out))
        scale = (0, 1 << 30, -3)
        given = (image(x), kernel, stride, padding, ceil, *scale, _SCRATCH, out)
        return Call("cortex_m::quantized_avg_pool2d.out", given)

    def softmax(self) -> Call:
        """Rows along any dimension."""
        x = self.items(*(self.one(1, 7) for _ in range(self.one(1, 3))))
        dim = self.one(0, x.ndim - 1)
        multiplier, shift = self.one(1 << 30, (1 << 31) - 1), self.one(6, 20)
        farthest = -(31 * 2**26 >> shift)
        scaling = (multiplier, shift, farthest)
        out = plain(np.apply_along_axis(_shares, dim, x, *scaling), is_out=True)
        return Call("cortex_m::softmax.out", (plain(x), dim, 0, 0, *scaling, out))

    def table(self) -> Call:
        """Tables of all sizes."""
        bits = self.one(1, 12)
        shift = 16 - bits
        entries = self.items((1 << bits) + 1)
        x = self.items(self.one(1, 60))
        at = x.astype("i8") + 32768
        first, rest = at >> shift, at & ((1 << shift) - 1)
        wide = entries.astype("i8")
        step = wide[first + 1] - wide[first]
        stored = wide[first] + ((step * rest + (1 << shift >> 1)) >> shift)
        out = plain(stored.astype("i2"), is_out=True)
        args = (plain(x), plain(entries), out)
        return Call("cortex_m::quantized_activation.out", args)


def _pooled(x: Any, given: Any, of_window: Any, *, ceil: bool) -> Any:
    kernel, stride, padding = given
    axes = [*zip(x.shape[1:3], kernel, stride, padding, strict=True)]
    outs = []
    for n, k, s, p in axes:
        span = n + 2 * p - k
        out = (span + s - 1 if ceil else span) // s + 1
        outs.append(out - (ceil and (out - 1) * s >= n + p))
    found = np.zeros((x.shape[0], *outs, x.shape[3]), "i2")
    for places in np.ndindex(*outs):
        rows, columns = (
            [i for i in range(o * s - p, o * s - p + k) if 0 <= i < n]
            for o, (n, k, s, p) in zip(places, axes, strict=True)
        )
        found[:, *places] = of_window(x.astype("i8")[:, rows][:, :, columns])
    return found


def _shares(row: Any, multiplier: int, shift: int, farthest: int) -> Any:
    """Shares in steps of 1/32768, of exponentials in 31 bits."""
    distances = row.astype("i8") - int(row.max())
    inputs = semantics.high_multiply(distances << shift, multiplier)
    exponential = semantics._exp  # noqa: SLF001  # what these kernels have in common
    powers = [
        exponential(int(v)) if d >= farthest else 0
        for v, d in zip(inputs, distances.tolist(), strict=True)
    ]
    total = 1 + sum(powers)
    bits = total.bit_length() - 32
    scale = semantics._one_over_one_plus((total >> bits) - (1 << 31))  # noqa: SLF001
    shares = [
        int(semantics.high_multiply(scale, p)) + (1 << (15 + bits)) >> (16 + bits) for p in powers
    ]
    return np.minimum(shares, 32767).astype("i2")


def int16_calls(count: int, seed: int) -> list[Call]:
    """Calls of all operators in turn."""
    made = Int16Calls(seed)
    kinds = (
        *(made.convolution, made.depthwise, made.convolution, made.linear),
        *(made.addition, made.product, made.pooling, made.softmax, made.table),
    )
    return [kinds[number % len(kinds)]() for number in range(count)]
