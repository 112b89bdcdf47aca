"""Calls of elementwise operators, softmax, pad, transpose, quantize, dequantize."""
# Operators have as many parameters as they have.
# ruff: noqa: PERF401, PLR0917, RUF046
# mypy: ignore-errors
# (torch and the modules beside this are not there when the project is checked)

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import semantics as s
from file_format import CODES, Stored
from maker import LAST, any_int8, any_limits, any_zero, pick

if TYPE_CHECKING:
    from maker import Maker

rng = np.random.default_rng(20250318)
SHAPES = [(1,), (7,), (33,), (3, 5), (2, 3, 4, 5), (1, 1), (0,), (2, 0), (), (2, 1, 3, 2, 2)]
CHANNEL = [((2, 3, 4, 5), (1, 3, 1, 1)), ((1, 17, 1, 1), (2, 17, 2, 3))]
WIDER = [((3, 4), (4,)), ((3, 1), (1, 5)), ((2, 1, 4), (3, 1)), ((0, 3), (1, 3)), ((), (5,))]
BROADCAST = [*CHANNEL, *WIDER]


def _scale(high_shift: int = 0) -> tuple[int, int]:
    multiplier = int(pick((1 << 31) - 1, 1 << 30, rng.integers(1 << 30, 1 << 31)))
    return multiplier, int(rng.integers(high_shift - 3, high_shift + 1))


def _pairs() -> list[tuple[Any, Any, Any]]:
    """Two inputs and the dim order of the output."""
    found = []
    for shape in SHAPES:
        found.append((any_int8(*shape), any_int8(*shape), None))
    for a, b in BROADCAST:
        found += [(any_int8(*a), any_int8(*b), None), (any_int8(*b), any_int8(*a), None)]
    a, b = any_int8(2, 3, 4, 5), any_int8(2, 3, 4, 5)
    for one, two, three in itertools.product([(0, 1, 2, 3), LAST], repeat=3):
        found.append((Stored(a, one), Stored(b, two), three))
    c = any_int8(1, 3, 1, 1)
    found.append((Stored(a, LAST), Stored(c, LAST), LAST))
    found.append((Stored(c, LAST), Stored(a, LAST), LAST))
    return found


def _plain(value: Any) -> Any:
    return value.array if isinstance(value, Stored) else value


def add(m: Maker) -> None:
    """Scales from far apart to equal, zero points, clamps."""
    for number, (x, y, order) in enumerate(_pairs() * 3):
        a, b = _plain(x), _plain(y)
        # Inputs that are at the ends of the range stay below 2^31 in sum.
        scales = [(any_zero(), *_scale(0)), (any_zero(), *_scale(-1)), (any_zero(), *_scale(-17))]
        scales[2] = (scales[2][0], scales[2][1], int(rng.integers(-21, -16)))
        low, high = any_limits()
        want = s.add(a, b, scales, low, high)
        args = [x, *scales[0], y, *scales[1], *scales[2], low, high]
        out = Stored(want, order) if order else want
        parts = [
            s.requantize((np.int64(v) - z) << 20, f, t)
            for v, (z, f, t) in zip((a, b), scales[:2], strict=True)
        ]
        fits = np.abs(parts[0] + parts[1]).max(initial=0) < 1 << 31
        m.call("quantized_add", args, out, same=bool(fits) and a.shape == b.shape and number < 99)
    x = any_int8(64)
    for shift in (-31, -12, 1, 3, 5, 31):
        scales = [(-128, (1 << 31) - 1, shift), (127, 1 << 30, 0), (3, (1 << 31) - 1, -20)]
        want = s.add(x, x[::-1].copy(), scales, -128, 127)
        args = [x, *scales[0], x[::-1].copy(), *scales[1], *scales[2], -128, 127]
        m.call("quantized_add", args, want, same=False)


def mul(m: Maker) -> None:
    """Products of the whole range."""
    for x, y, order in _pairs() * 2:
        a, b = _plain(x), _plain(y)
        zeros, zero = (any_zero(), any_zero()), any_zero()
        multiplier, shift = _scale(-5)
        want = s.mul(a, b, zeros, zero, multiplier, shift)
        args = [x, zeros[0], y, zeros[1], zero, multiplier, shift]
        out = Stored(want, order) if order else want
        m.call("quantized_mul", args, out, same=a.shape == b.shape)
    every = np.append(np.arange(-128, 128, 3), 127).astype(np.int8)
    for multiplier, shift in ((1 << 30, -31), ((1 << 31) - 1, -8), (1 << 30, 2)):
        want = s.mul(every[:, None], every[None, :], (-7, 9), -1, multiplier, shift)
        args = [every[:, None], -7, every[None, :], 9, -1, multiplier, shift]
        m.call("quantized_mul", args, want, same=False)


def limits(m: Maker) -> None:
    """minimum and maximum."""
    for x, y, order in _pairs():
        a, b = _plain(x), _plain(y)
        for name, fn in (("minimum", np.minimum), ("maximum", np.maximum)):
            want = fn(a, b)
            out = Stored(want, order) if order else want
            m.call(name, [x, y], out)


def div(m: Maker) -> None:
    """Ties, division by the zero point, scales that are none."""

    def call(x: Any, y: Any, zeros: Any, zero: int, scale: float, order: Any = None) -> None:
        a, b = _plain(x), _plain(y)
        want = s.div(a, b, zeros, zero, scale)
        with np.errstate(all="ignore"):
            value = (np.float32(a) - zeros[0]) / (np.float32(b) - zeros[1]) * np.float32(scale)
            tie = np.abs(value) % 1 == 0.5
        same = not tie.any() and a.shape == b.shape and np.isfinite(scale)
        # The operator multiplies by a double.
        same = same and scale == np.float32(scale)
        out = Stored(want, order) if order else want
        args = [x, zeros[0], y, zeros[1], zero, scale]
        m.call("quantized_div", args, out, same=bool(same))

    for x, y, order in _pairs():
        call(x, y, (any_zero(), any_zero()), any_zero(), float(pick(0.5, 1.0, 7.3, 0.125)), order)
    every = np.arange(-128, 128).astype(np.int8)
    for scale in (0.5, 3.0, 1e30, -2.5, float("nan"), float("inf"), 0.1):
        call(every, np.full(256, 6, np.int8), (3, 2), -4, scale)
        call(np.full(256, 100, np.int8), every, (0, 5), 1, scale)
    wide = rng.integers(-32768, 32768, 120).astype(np.int16)
    for scale in (1.0, 777.5, 0.3, 1e20):
        call(wide, wide[::-1].copy(), (-32768, 12), 32767, scale)


def activation(m: Maker) -> None:
    """Tables."""
    for shape in SHAPES:
        x, lut = any_int8(*shape), any_int8(256)
        m.call("quantized_activation", [x, lut], lut[np.int32(x) + 128])
    x, lut = any_int8(2, 3, 4, 5), np.arange(-128, 128).astype(np.int8)[::-1].copy()
    for one, two in itertools.product([(0, 1, 2, 3), LAST], repeat=2):
        want = lut[np.int32(x) + 128]
        m.call("quantized_activation", [Stored(x, one), lut], Stored(want, two))


def softmax(m: Maker) -> None:
    """Scales from flat to steep, long rows, any dimension."""

    def call(x: Any, dim: int, scale: float, order: Any = None, cut: int | None = None) -> None:
        mantissa, exponent = np.frexp(scale * 2.0**26)
        multiplier, shift = int(round(float(mantissa) * 2**31)), int(exponent)
        if multiplier == 1 << 31:
            multiplier, shift = 1 << 30, shift + 1
        # As programs have it: the smallest distance that fits 5 bits.
        diff_min = -int(((1 << 5) - 1) * 2.0**26 / 2.0**shift) if cut is None else cut
        want = s.softmax(_plain(x), dim, multiplier, shift, diff_min)
        real = np.exp((np.float64(_plain(x)) - _plain(x).max(dim, keepdims=True)) * scale)
        share = real / real.sum(dim, keepdims=True) * 256 - 128
        if cut is None:
            assert np.abs(np.clip(share, -128, 127) - want).max(initial=0) < 1.1
        out = Stored(want, order) if order else want
        args = [x, dim, any_zero(), -128, multiplier, shift, diff_min]
        m.call("softmax", args, out, same=False)

    for scale in (0.001, 0.02, 0.1, 0.25, 1.0, 3.7):
        for shape in [(1,), (2,), (10,), (3, 7), (2, 3, 12), (1, 257), (600,)]:
            call(any_int8(*shape), -1, scale)
        call(np.full((2, 5), 7, np.int8), 1, scale)
        for length in (255, 256, 257, 511, 512, 513):
            call(np.full(length, -9, np.int8), 0, scale)
    x = any_int8(2, 3, 4, 5)
    for dim, one, two in itertools.product(
        range(-4, 4), [(0, 1, 2, 3), LAST], [(0, 1, 2, 3), LAST]
    ):
        call(Stored(x, one), dim, 0.05, two)
    every = np.arange(-128, 128).astype(np.int8)
    for cut in (1, 0, -1, -100, -(2**31)):
        call(every, 0, 0.03, None, cut)


def pad(m: Maker) -> None:
    """Every rank; channels last counts as NHWC."""
    for shape in [(5,), (3, 4), (2, 3, 4), (2, 3, 4, 5), (1, 1, 1, 1), (0, 3)]:
        for _ in range(4):
            widths = rng.integers(0, 4, (2, 4))
            widths[:, : 4 - len(shape)] = 0
            if 0 in shape:
                widths[:] = 0
            x, value = any_int8(*shape), any_zero()
            rank = len(shape)
            logical = widths[:, 4 - rank :]
            ambiguous = rank == 4 and (shape[1] == 1 or shape[2:] == (1, 1))
            if ambiguous:
                logical = logical[:, [0, 3, 1, 2]]
            want = np.pad(x, logical.T, constant_values=value)
            args = [x, list(widths[0]), list(widths[1]), value]
            order = LAST if ambiguous else tuple(range(rank))
            m.call("pad", [Stored(x, order), *args[1:]], Stored(want, order))
            plain = np.pad(x, widths[:, 4 - rank :].T, constant_values=value)
            m.call("pad_contiguous", args, plain, same=False)
            if rank == 4 and not ambiguous:
                logical = widths[:, [0, 3, 1, 2]]
                want = np.pad(x, logical.T, constant_values=value)
                m.call("pad", [Stored(x, LAST), *args[1:]], Stored(want, LAST))


def transpose(m: Maker) -> None:
    """All permutations, dim orders, negative dimensions."""
    for rank in range(1, 5):
        x = any_int8(*(2, 3, 4, 5)[:rank])
        for perm in itertools.permutations(range(rank)):
            m.call("transpose", [x, perm], x.transpose(perm).copy())
    x = any_int8(2, 3, 4, 5)
    for perm, one, two in itertools.product(
        [(0, 2, 3, 1), (3, 2, 1, 0)], [(0, 1, 2, 3), LAST], [LAST]
    ):
        m.call("transpose", [Stored(x, one), perm], Stored(x.transpose(perm), two))
    m.call("transpose", [x, (-1, 0, -2, 1)], x.transpose(3, 0, 2, 1).copy())
    y = any_int8(2, 1, 3, 2, 2)
    m.call("transpose", [y, (4, 0, 3, 1, 2)], y.transpose(4, 0, 3, 1, 2).copy())
    m.call("transpose", [any_int8(0, 3), (1, 0)], any_int8(3, 0))


def quantizers(m: Maker) -> None:
    """int8 and int16, there and back."""
    for dtype, low, high in ((np.int8, -128, 127), (np.int16, -32768, 32767)):
        code = CODES[np.dtype(dtype).name]
        for shape in SHAPES:
            scale = float(np.float32(pick(0.5, 0.1, 0.0078125)))
            zero = any_zero()
            x = rng.integers(-400, 400, shape) / 4 * scale
            x = np.asarray(x, np.float32)
            want = np.asarray(s.quantize(x, scale, zero, low, high, dtype))
            m.call("quantize_per_tensor", [x, scale, zero, low, high, code], want, same=False)
            y = np.asarray(rng.integers(low, high + 1, shape), dtype)
            back = np.asarray(s.dequantize(y, scale, zero))
            m.call("dequantize_per_tensor", [y, scale, zero, low, high, code], back, same=False)
        special = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, -0.0], np.float32)
        want = s.quantize(special, 0.5, 3, low, high, dtype)
        m.call("quantize_per_tensor", [special, 0.5, 3, low, high, code], want, same=False)


def elementwise(m: Maker) -> None:
    """All of them."""
    for make in (add, mul, limits, div, activation, softmax, pad, transpose, quantizers):
        make(m)
