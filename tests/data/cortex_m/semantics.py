"""What the int8 operators of Cortex-M compute, in NumPy.

Written from published definitions, not from the kernels: the fixed-point functions of
gemmlowp (`fixedpoint/fixedpoint.h`), the two roundings of CMSIS-NN's requantisation,
and the schemas of ExecuTorch. Integers have 64 bits here; where 32 would overflow,
results wrap around.

Images are [N, H, W, C], weights [out, H, W, in], those of depthwise convolution
[1, H, W, out].
"""
# Operators have as many parameters as they have.
# ruff: noqa: PLR0917
# mypy: ignore-errors
# (torch and the modules beside this are not there when the project is checked)

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Pair = tuple[int, int]


def wrap(values: Any) -> Ints:
    """The number of 32 bits that these are modulo 2^32."""
    return np.asarray(values).astype(np.int64).astype(np.int32).astype(np.int64)


def high_multiply(a: Any, b: Any) -> Ints:
    """A * b / 2^31, the nearest, ties up: SaturatingRoundingDoublingHighMul."""
    return (np.int64(a) * np.int64(b) + (1 << 30)) >> 31


def divide_by_power(value: Any, exponent: Any) -> Ints:
    """Value / 2^exponent, the nearest, ties away from zero: RoundingDivideByPOT."""
    values, exponents = np.int64(value), np.int64(exponent)
    half = (np.int64(1) << exponents) >> 1
    return np.sign(values) * ((np.abs(values) + half) >> exponents)


def requantize(value: Any, multiplier: Any, shift: Any) -> Ints:
    """Value * multiplier / 2^31 * 2^shift, rounded twice if the shift is negative."""
    shifts = np.int64(shift)
    shifted = wrap(np.int64(value) << np.maximum(shifts, 0))
    return divide_by_power(high_multiply(shifted, multiplier), np.maximum(-shifts, 0))


def to_int8(
    sums: Any, multiplier: Any, shift: Any, offset: int, low: int = -128, high: int = 127
) -> Any:
    """From sums to items of the output."""
    moved = wrap(requantize(wrap(sums), multiplier, shift) + offset)
    return np.clip(moved, low, high).astype(np.int8)


def add(a: Any, b: Any, scales: list[tuple[int, int, int]], low: int, high: int) -> Any:
    """Sum; zero point, multiplier and shift of both inputs and of the output."""
    parts = [
        requantize((np.int64(x) - zero) << 20, multiplier, shift)
        for x, (zero, multiplier, shift) in zip((a, b), scales[:2], strict=True)
    ]
    zero, multiplier, shift = scales[2]
    return to_int8(parts[0] + parts[1], multiplier, shift, zero, low, high)


def mul(a: Any, b: Any, zeros: Pair, zero: int, multiplier: int, shift: int) -> Any:
    """Product."""
    product = (np.int64(a) - zeros[0]) * (np.int64(b) - zeros[1])
    return to_int8(product, multiplier, shift, zero)


def div(a: Any, b: Any, zeros: Pair, zero: int, scale: float) -> Any:
    """Quotient, in floats; 0 where the divisor is. Ties are away from zero."""
    info = np.iinfo(a.dtype)
    x = (np.int32(a) - zeros[0]).astype(np.float32)
    y = (np.int32(b) - zeros[1]).astype(np.float32)
    with np.errstate(all="ignore"):
        quotient = np.where(y == 0, np.float32(0), x / y).astype(np.float32)
        value = quotient * np.float32(scale)
        whole = np.trunc(value)
        away = np.abs(value - whole) >= np.float32(0.5)
        rounded = whole + np.where(away, np.sign(value), np.float32(0))
        moved = rounded.astype(np.float32) + np.float32(zero)
        limited = np.clip(moved, info.min, info.max)
    return np.where(np.isnan(moved), info.max, limited).astype(a.dtype)


def softmax(x: Any, axis: int, multiplier: int, shift: int, diff_min: int) -> npt.NDArray[np.int8]:
    """Shares in steps of 1/256, less 128."""
    return np.apply_along_axis(_softmax_row, axis, x, multiplier, shift, diff_min)


def _softmax_row(row: Any, multiplier: int, shift: int, diff_min: int) -> Any:
    distances = np.int64(row) - int(row.max())
    inputs = high_multiply(wrap(distances << shift), multiplier)
    powers = np.array([_exp(int(v)) for v in inputs])
    powers = np.where(distances >= diff_min, powers, 0)
    total = int(divide_by_power(powers, 12).sum())
    if total == 0 or total >= 1 << 28:  # nothing is left, or no share is half a step
        return np.full(row.shape, -128, np.int8)
    headroom = 32 - total.bit_length()
    scale = _one_over_one_plus((total << headroom) - (1 << 31))
    shares = divide_by_power(high_multiply(scale, powers), 12 + 23 - headroom)
    return np.clip(shares - 128, -128, 127).astype(np.int8)


def _exp(value: int) -> int:
    """exp_on_negative_values, from 5 bits in front of the point to none."""
    if value == 0:
        return (1 << 31) - 1
    quarter = 1 << 24
    rest = (value & (quarter - 1)) - quarter
    eighth = _constant(math.exp(-1 / 8))
    x = (rest << 5) + (1 << 28)
    x2 = int(high_multiply(x, x))
    x3, x4 = int(high_multiply(x2, x)), int(high_multiply(x2, x2))
    third = int(high_multiply(int(divide_by_power(x4, 2)) + x3, _constant(1 / 3)))
    series = x + int(divide_by_power(third + x2, 1))
    result = eighth + int(high_multiply(eighth, series))
    for exponent in range(-2, 5):
        if (rest - value) & (1 << (26 + exponent)):
            factor = _constant(math.exp(-(2.0**exponent)))
            result = int(high_multiply(result, factor))
    return result


def _constant(value: float) -> int:
    return math.floor(value * 2.0**31 + 0.5)


def _one_over_one_plus(value: int) -> int:
    """one_over_one_plus_x_for_x_in_0_1: three steps of Newton and Raphson."""
    half = (value + (1 << 31)) // 2
    x = math.floor(48 / 17 * 2**29 + 0.5) + int(
        high_multiply(half, math.floor(-32 / 17 * 2**29 + 0.5))
    )
    for _ in range(3):
        error = (1 << 29) - int(high_multiply(half, x))
        x += _saturated(int(high_multiply(x, error)) << 2)
    return _saturated(x << 1)


def _saturated(value: int) -> int:
    return max(-(1 << 31), min((1 << 31) - 1, value))


def _taps(size: int, kernel: int, out: int, stride: int, pad: int, dil: int) -> Any:
    """Pairs (tap, input) that output `out` sees."""
    places = [(k, out * stride - pad + k * dil) for k in range(kernel)]
    return [(k, i) for k, i in places if 0 <= i < size]


def _out_size(size: int, kernel: int, stride: int, pad: int, dil: int) -> int:
    return (size + 2 * pad - dil * (kernel - 1) - 1) // stride + 1


def conv2d(x: Any, w: Any, bias: Any, stride: Pair, pad: Pair, dil: Pair, offset: int) -> Ints:
    """Sums of a convolution; the weights' depth tells the groups."""
    batch, height, width, channels = x.shape
    outputs, rows, columns, depth = w.shape
    groups = channels // depth
    out_h = _out_size(height, rows, stride[0], pad[0], dil[0])
    out_w = _out_size(width, columns, stride[1], pad[1], dil[1])
    sums = np.zeros((batch, out_h, out_w, outputs), np.int64)
    moved = (np.int64(x) + offset).reshape(batch, height, width, groups, depth)
    weights = np.int64(w).reshape(groups, outputs // groups, rows, columns, depth)
    for h in range(out_h):
        for v in range(out_w):
            for r, i in _taps(height, rows, h, stride[0], pad[0], dil[0]):
                for c, j in _taps(width, columns, v, stride[1], pad[1], dil[1]):
                    part = np.einsum("ngd,god->ngo", moved[:, i, j], weights[:, :, r, c])
                    sums[:, h, v] += part.reshape(batch, outputs)
    return sums if bias is None else sums + np.int64(bias)


def depthwise(x: Any, w: Any, bias: Any, stride: Pair, pad: Pair, dil: Pair, offset: int) -> Ints:
    """Sums of a depthwise convolution."""
    channels, outputs = x.shape[3], w.shape[3]
    repeated = np.repeat(x, outputs // channels, axis=3)
    single = np.moveaxis(w, 3, 0)[0:outputs].reshape(outputs, *w.shape[1:3], 1)
    return conv2d(repeated, single, bias, stride, pad, dil, offset)


def transpose_conv2d(
    x: Any, w: Any, bias: Any, stride: Pair, pad: Pair, more: Pair, dil: Pair, offset: int
) -> Ints:
    """Sums of a transposed convolution: every input adds to the outputs around it."""
    batch, height, width, _ = x.shape
    outputs, rows, columns, _ = w.shape
    sizes = [
        (n - 1) * s - 2 * p + d * (k - 1) + m + 1
        for n, k, s, p, d, m in zip(
            (height, width), (rows, columns), stride, pad, dil, more, strict=True
        )
    ]
    sums = np.zeros((batch, *sizes, outputs), np.int64)
    moved, weights = np.int64(x) + offset, np.int64(w)
    for i, j, r, c in np.ndindex(height, width, rows, columns):
        h = i * stride[0] - pad[0] + r * dil[0]
        v = j * stride[1] - pad[1] + c * dil[1]
        if 0 <= h < sizes[0] and 0 <= v < sizes[1]:
            sums[:, h, v] += moved[:, i, j] @ weights[:, r, c].T
    return sums if bias is None else sums + np.int64(bias)


def _pooled(size: int, kernel: int, stride: int, pad: int, dil: int, ceil: bool) -> int:  # noqa: FBT001
    """Size of a pooled dimension. Source: PyTorch, MaxPool2d."""
    span = size + 2 * pad - dil * (kernel - 1) - 1
    out = (span + stride - 1 if ceil else span) // stride + 1
    if ceil and (out - 1) * stride >= size + pad:
        out -= 1
    return out


def pool2d(
    x: Any,
    kernel: Pair,
    stride: Pair,
    pad: Pair,
    dil: Pair,
    *,
    ceil: bool,
    zero: int | None = None,
    scale: float = 0.0,
) -> Any:
    """The largest items, or averages of numbers with a zero point.

    Ties go away from zero, or with a scale where floats are. Padding does not count.
    """
    batch, height, width, channels = x.shape
    out_h = _pooled(height, kernel[0], stride[0], pad[0], dil[0], ceil)
    out_w = _pooled(width, kernel[1], stride[1], pad[1], dil[1], ceil)
    out = np.zeros((batch, out_h, out_w, channels), np.int8)
    for h, v in np.ndindex(out_h, out_w):
        rows = [i for _, i in _taps(height, kernel[0], h, stride[0], pad[0], dil[0])]
        columns = [j for _, j in _taps(width, kernel[1], v, stride[1], pad[1], dil[1])]
        window = np.int64(x)[:, rows][:, :, columns]
        if zero is not None:
            total, count = window.sum(axis=(1, 2)), len(rows) * len(columns)
            size = (np.abs(total) + count // 2) // count
            out[:, h, v] = np.sign(total) * size
            if not scale:
                continue
            is_tie = 2 * np.abs(total) % (2 * count) == count
            floats = quantize(_mean(window, scale, zero), scale, zero, -128, 127, "i1")
            out[:, h, v][is_tie] = floats[is_tie]
        else:
            out[:, h, v] = window.max(axis=(1, 2))
    return out


def _mean(window: Any, scale: float, zero: int) -> Any:
    """Of what integers stand for, added one after the other."""
    floats = dequantize(window, scale, zero)
    total = np.zeros_like(floats[:, 0, 0])
    for i, j in np.ndindex(*floats.shape[1:3]):
        total += floats[:, i, j]
    return total / np.float32(floats.shape[1] * floats.shape[2])


def linear(x: Any, w: Any, added: Any, x_offset: int, w_offset: int) -> Ints:
    """Sums of a linear layer."""
    sums = (np.int64(x) + x_offset) @ (np.int64(w) + w_offset).T
    return sums if added is None else sums + np.int64(added)


def quantize(x: Any, scale: float, zero: int, low: int, high: int, dtype: Any) -> Any:
    """Floats to integers, ties to even."""
    inverse = np.float32(1) / np.float32(scale)
    with np.errstate(all="ignore"):
        value = np.rint(x * inverse) + np.float32(zero)
        limited = np.clip(value, low, high)
    return np.where(np.isnan(value), low, limited).astype(dtype)


def dequantize(x: Any, scale: float, zero: int) -> Any:
    """And back."""
    return (np.int32(x) - zero).astype(np.float32) * np.float32(scale)
