"""Makes calls.bin: calls of the int8 operators and what semantics.py says of them.

    python tests/data/cortex_m/make_calls.py

needs NumPy only. With a Python that has ExecuTorch (1.5.1) every result is besides
compared with its Python operators, apart from where they are no reference (softmax and
average pooling in floats, overflows, dilated pooling): `checked` in calls.json says how
many were.
"""
# Operators have as many parameters as they have.
# ruff: noqa: PLR0917
# mypy: ignore-errors
# (torch and the modules beside this are not there when the project is checked)

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import semantics as s
from elementwise_calls import elementwise
from maker import (
    DEPTHS,
    NONE,
    Maker,
    any_bias,
    any_int8,
    any_limits,
    any_scales,
    any_zero,
    pick,
    rng,
)


def _window(limit: int) -> tuple[tuple[int, int], ...]:
    """Kernel, stride, padding, dilation."""
    pairs = [(int(pick(1, 1, 2, 3, limit)), int(pick(1, 1, 2, 3))) for _ in range(2)]
    kernel = (pairs[0][0], pairs[1][0])
    dilation = (int(pick(1, 1, 1, 2)), int(pick(1, 1, 1, 3)))
    padding = tuple(
        int(rng.integers(0, d * (k - 1) + 1)) for k, d in zip(kernel, dilation, strict=True)
    )
    return kernel, (pairs[0][1], pairs[1][1]), (padding[0], padding[1]), dilation


def _image_size(kernel: Any, padding: Any, dilation: Any) -> list[int]:
    least = [
        max(1, d * (k - 1) + 1 - 2 * p) for k, p, d in zip(kernel, padding, dilation, strict=True)
    ]
    return [n + int(rng.integers(0, 8)) for n in least]


def conv2d(m: Maker, count: int) -> None:
    """Groups, every tail of a tile, windows."""
    for number in range(count):
        kernel, stride, padding, dilation = _window(5)
        if number % 4 == 0:
            kernel, stride, padding = (1, 1), (1, 1), (0, 0)
        groups = int(pick(1, 1, 1, 2, 3))
        depth = DEPTHS[number % len(DEPTHS)] if groups == 1 else int(rng.integers(1, 9))
        outputs = groups * int(rng.integers(1, 10))
        size = _image_size(kernel, padding, dilation)
        x = any_int8(int(pick(1, 1, 2, 3)), *size, depth * groups)
        w = any_int8(outputs, *kernel, depth)
        bias, offset = any_bias(outputs), -any_zero()
        sums = s.conv2d(x, w, bias, stride, padding, dilation, offset)
        _finish(m, "quantized_conv2d", [x, w, bias, stride, padding, dilation], offset, sums)


def _finish(
    m: Maker, name: str, args: list[Any], offset: int, sums: Any, scratches: int = 1
) -> None:
    """Requantizes the sums of a convolution and adds the call."""
    multipliers, shifts = any_scales(sums.shape[3], sums)
    zero, (low, high) = any_zero(), any_limits()
    want = s.to_int8(sums, multipliers, shifts, zero, low, high)
    rest = [offset, zero, multipliers, shifts, low, high, *[NONE] * scratches]
    m.image(name, [*args, *rest], want)


def depthwise(m: Maker, count: int) -> None:
    """Multipliers of depth, every tail."""
    for number in range(count):
        kernel, stride, padding, dilation = _window(5)
        if number % 3 == 0:
            kernel, padding, dilation = (3, 3), (1, 1), (1, 1)
        multiplier = int(pick(1, 1, 1, 2, 3, 4, 8))
        channels = DEPTHS[number % len(DEPTHS)] if multiplier == 1 else int(rng.integers(1, 7))
        outputs = channels * multiplier
        x = any_int8(int(pick(1, 1, 2)), *_image_size(kernel, padding, dilation), channels)
        w = any_int8(1, *kernel, outputs)
        bias, offset = any_bias(outputs), -any_zero()
        sums = s.depthwise(x, w, bias, stride, padding, dilation, offset)
        args = [x, w, bias, stride, padding, dilation, multiplier]
        _finish(m, "quantized_depthwise_conv2d", args, offset, sums)


def transpose_conv2d(m: Maker, count: int) -> None:
    """Strides that do and do not divide the dilation, paddings, gaps."""
    for number in range(count):
        kernel = (int(rng.integers(1, 5)), int(rng.integers(1, 5)))
        stride = (int(pick(1, 2, 3)), int(pick(1, 2, 2, 4)))
        dilation = (int(pick(1, 1, 2)), int(pick(1, 1, 2, 3)))
        size = (int(rng.integers(1, 6)), int(rng.integers(1, 7)))
        most = [
            ((n - 1) * t + d * (k - 1)) // 2
            for n, t, d, k in zip(size, stride, dilation, kernel, strict=True)
        ]
        padding = (
            int(rng.integers(0, min(most[0], 3) + 1)),
            int(rng.integers(0, min(most[1], 3) + 1)),
        )
        more = tuple(int(rng.integers(0, max(t, d))) for t, d in zip(stride, dilation, strict=True))
        depth, outputs = DEPTHS[number % len(DEPTHS)], int(rng.integers(1, 9))
        x = any_int8(int(pick(1, 1, 2)), *size, depth)
        w = any_int8(outputs, *kernel, depth)
        bias, offset = any_bias(outputs), -any_zero()
        sums = s.transpose_conv2d(x, w, bias, stride, padding, more, dilation, offset)
        args = [x, w, bias, stride, padding, more, dilation]
        _finish(m, "quantized_transpose_conv2d", args, offset, sums, scratches=2)


def pools(m: Maker, count: int) -> None:
    """Both kinds, up to where a window is empty; clamps; dilation and ceil_mode."""
    made = 0
    while made < count:
        kernel, stride, padding, dilation = _window(4)
        average, ceil = made % 2 == 0, bool(rng.random() < 0.3)
        if average:
            dilation = (1, 1)
        padding = (min(padding[0], kernel[0] // 2), min(padding[1], kernel[1] // 2))
        size = _image_size(kernel, padding, dilation)
        x = any_int8(int(pick(1, 2)), *size, DEPTHS[made % len(DEPTHS)])
        made += 1
        if average:
            # 24 bits are a float; a few scales are powers of two, without rounding.
            # Scratch of Char asks for them.
            zero, shift = any_zero(), -int(rng.integers(0, 8))
            multiplier = int(rng.integers(1 << 23, 1 << 24)) << 7
            multiplier = pick(1 << 30, multiplier, multiplier)
            scratch = pick(NONE, NONE.astype(np.int8))
            scale = multiplier * 2.0 ** (shift - 31) * (scratch is not NONE)
            want = s.pool2d(x, kernel, stride, padding, dilation, ceil=ceil, zero=zero, scale=scale)
            args = [x, kernel, stride, padding, ceil, zero, multiplier, shift, scratch]
            m.image("quantized_avg_pool2d", args, want, same=False)
        else:
            (low, high), zero = any_limits(), any_zero()
            want = s.pool2d(x, kernel, stride, padding, dilation, ceil=ceil)
            want = np.clip(want, low, high)
            args = [x, kernel, stride, padding, dilation, ceil, zero, zero, low, high]
            same = dilation == (1, 1) and not ceil
            m.image("quantized_max_pool2d", args, want, same=same)


def linear(m: Maker, count: int) -> None:
    """Bias or kernel_sum, offsets of the weights, ranks, batches."""
    for number in range(count):
        depth, outputs = DEPTHS[number % len(DEPTHS)], int(rng.integers(1, 20))
        if number % 5 == 0:
            depth = int(rng.integers(68, 300))
        lead = pick((1,), (1,), (3,), (2, 3), (), (0,), (2, 1, 2))
        x, w = any_int8(*lead, depth), any_int8(outputs, depth)
        offset, w_offset = -any_zero(), pick(0, 0, 0, int(rng.integers(-128, 129)))
        bias, kernel_sum = any_bias(outputs), None
        sums = s.linear(x, w, bias, offset, w_offset)
        if number % 3 == 0:
            # What programs for MVE hold.
            folded = s.linear(np.zeros((1, depth), np.int8), w, bias, offset, 0)
            kernel_sum, bias = folded[0].astype(np.int32), None
            sums = s.linear(x, w, kernel_sum, 0, w_offset)
        multipliers, shifts = any_scales(1, sums)
        zero, (low, high) = any_zero(), any_limits()
        want = s.to_int8(sums, multipliers[0], shifts[0], zero, low, high)
        args = [x, w, bias, kernel_sum, offset, w_offset, zero]
        rest = [[multipliers[0]], [shifts[0]], high, low]
        m.call("quantized_linear", [*args, *rest], want, same=lead != (0,))


def batch_matmul(m: Maker, count: int) -> None:
    """Offsets on both sides."""
    for number in range(count):
        depth = DEPTHS[number % len(DEPTHS)]
        batch, rows, columns = (int(v) for v in rng.integers(1, 7, 3))
        if number % 10 == 9:
            batch = 0
        a, b = any_int8(batch, rows, depth), any_int8(batch, columns, depth)
        x_offset, w_offset = -any_zero(), pick(0, -any_zero())
        sums = (np.int64(a) + x_offset) @ (np.int64(b) + w_offset).transpose(0, 2, 1)
        multipliers, shifts = any_scales(1, sums)
        zero = any_zero()
        want = s.to_int8(sums, multipliers[0], shifts[0], zero)
        args = [a, x_offset, b, w_offset, zero, multipliers[0], shifts[0], NONE]
        m.call("quantized_batch_matmul", args, want, same=batch > 0)


def extremes(m: Maker) -> None:
    """Sums, multipliers and shifts at the ends of their ranges; sums that wrap."""
    int32 = np.array([-(2**31), 2**31 - 1, -(2**31) + 1, -1, 0, 1, 2**30, -(2**30)])
    bias = np.concatenate([int32, rng.integers(-(2**31), 2**31, 9)]).astype(np.int32)
    outputs = len(bias)
    multipliers = [1, 2, (1 << 30) - 1, 1 << 30, (1 << 30) + 1, (1 << 31) - 2]
    for multiplier in (*multipliers, (1 << 31) - 1, -(1 << 31) + 1, 0):
        for shift in (-31, -30, -17, -8, -2, -1, 0, 1, 2, 9, 29, 30):
            x, w = any_int8(1, 1, 2, 3), any_int8(outputs, 1, 1, 3)
            sums = s.conv2d(x, w, bias, (1, 1), (0, 0), (1, 1), 128)
            per = [np.full(outputs, v, np.int32) for v in (multiplier, shift)]
            want = s.to_int8(sums, *per, -5)
            args = [x, w, bias, (1, 1), (0, 0), (1, 1), 128, -5, *per, -128, 127, NONE]
            m.calls.add("quantized_conv2d_nhwc", args, want)


def main() -> None:
    """Write both files."""
    m = Maker()
    conv2d(m, 60)
    depthwise(m, 60)
    transpose_conv2d(m, 60)
    pools(m, 50)
    linear(m, 50)
    batch_matmul(m, 30)
    extremes(m)
    elementwise(m)
    data = m.calls.file()
    here = Path(__file__).parent
    (here / "calls.bin").write_bytes(data)
    index = {
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "made_by": {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(here.glob("*.py"))
        },
        "calls": m.calls.counts,
        "checked": m.oracle.counts,
    }
    text = json.dumps(index, indent=2) + "\n"
    (here / "calls.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
