"""Calls of quantized_decomposed operators.

Results are those of ExecuTorch's kernels (the package executorch has them as PyTorch
operators); they must be those of PyTorch's decomposed operators, too, where the two
agree on what they compute. docs/executorch-compatibility.md tells where they do not.
"""
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

import itertools
from typing import Any

import executorch.kernels.quantized  # noqa: F401 (registers the operators)
import torch
import torch.ao.quantization.fx._decomposed
from reference_format import CODES, FLOATING, LAST, In, Out, Writer, rand

ops = torch.ops.quantized_decomposed
F, D, BF = torch.float32, torch.float64, torch.bfloat16
QUANTIZED = [torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32]
Tensor = torch.Tensor


def _limits(dtype: torch.dtype) -> tuple[int, int]:
    info = torch.iinfo(dtype)
    return info.min, info.max


def _zero_point(dtype: torch.dtype) -> int:
    return 3 if dtype in (torch.int8, torch.int16, torch.int32) else 131


def _floats(dtype: torch.dtype, *shape: int) -> Tensor:
    """Multiples of a quarter, so that halves of the scales used here occur."""
    return (rand(F, *shape) * 40).round().div(4).to(dtype)


def _numbers(dtype: torch.dtype, *shape: int) -> Tensor:
    """Numbers that a float holds exactly, also after a zero point is taken away."""
    low, high = _limits(dtype)
    return rand(torch.int64, *shape, low=max(low, -(2**22)), high=min(high, 2**22)).to(dtype)


def _scales(count: int) -> Tensor:
    """Powers of two and others, all exact as floats."""
    return torch.tensor([0.5, 0.1, 0.25, 0.7, 2.0, 0.03, 1.0][:count], dtype=F)


def _same(found: Tensor, other: Tensor) -> Tensor:
    assert torch.equal(found, other), (found, other)
    return found


def _per_dtype(w: Writer) -> None:
    """Every pair of dtypes, one scale: from arguments and from tensors."""
    for a, b in itertools.product(FLOATING, QUANTIZED):
        low, high = _limits(b)
        zero = _zero_point(b)
        for scale in (0.5, float(torch.tensor(0.1))):
            x = _floats(a, 13)
            exact = x.float() if a == BF else x  # ExecuTorch has no bfloat16
            rest = (low, high, b)
            want = torch.empty(13, dtype=b)
            ops.quantize_per_tensor.out(exact, scale, zero, *rest, out=want)
            if a != D:  # PyTorch refuses it
                _same(want, ops.quantize_per_tensor(x, scale, zero, *rest))
            numbers = [low, high, CODES[b]]
            w.call(_Q, [x, scale, zero, *numbers], [Out(want)], ulps=0, scale=0)
            tensors = [torch.tensor([scale], dtype=D), torch.tensor([zero])]
            w.call(_QT, [x, *tensors, *numbers], [Out(want)], ulps=0, scale=0)

            y = _numbers(b, 9)
            back = torch.empty(9, dtype=F if a == BF else a)
            how = {"out_dtype": back.dtype, "out": back}
            ops.dequantize_per_tensor.out(y, scale, zero, *rest, **how)
            if a == F:
                _same(back, ops.dequantize_per_tensor(y, scale, zero, *rest))
            back = back.to(a)  # rounded once, at the end
            for code in (None, CODES[a]) if a == F else (CODES[a],):
                args = [y, scale, zero, *numbers, code]
                w.call(_D, args, [Out(back)], ulps=0, scale=0)
            args = [y, *tensors, *numbers, CODES[a]]
            w.call(_DT, args, [Out(back)], ulps=0, scale=0)


_NAME = "quantized_decomposed::"
_Q, _QT = f"{_NAME}quantize_per_tensor.out", f"{_NAME}quantize_per_tensor.Tensor_out"
_D, _DT = (f"{_NAME}dequantize_per_tensor.out", f"{_NAME}dequantize_per_tensor.Tensor_out")


def _per_tensor(w: Writer) -> None:
    """Limits, scales that are no floats, shapes, dim orders, tensors of scalars."""
    x = _floats(F, 40) * 8
    for low, high, zero, scale in [
        (-127, 127, 0, 0.05),
        (-8, 7, -2, 0.3),
        (-128, 127, -128, 1 / 3),
        (5, 5, 4, 0.1),
        (-128, 127, 400, 0.02),
        (-128, 127, 3, -0.5),
    ]:
        want = torch.empty(40, dtype=torch.int8)
        ops.quantize_per_tensor.out(x, scale, zero, low, high, torch.int8, out=want)
        w.call(_Q, [x, scale, zero, low, high, 1], [Out(want)], ulps=0, scale=0)
    big = torch.tensor([1e9, -1e9, 2.2e9, -2.2e9, 3e7, 123456.5, 8388609.0, 4194303.5])
    for low, high in [_limits(torch.int32), (-16777217, 16777217)]:
        want = torch.empty(8, dtype=torch.int32)
        ops.quantize_per_tensor.out(big, 1.0, 1, low, high, torch.int32, out=want)
        w.call(_Q, [big, 1.0, 1, low, high, 3], [Out(want)], ulps=0, scale=0)
    for shape in [(), (0,), (2, 0), (1,), (2, 3, 4)]:
        x, y = _floats(F, *shape), _numbers(torch.int8, *shape)
        args = (0.25, -3, -128, 127, torch.int8)
        want = ops.quantize_per_tensor(x, *args)
        w.call(_Q, [x, *args[:4], 1], [Out(want)], ulps=0, scale=0)
        want = ops.dequantize_per_tensor(y, *args)
        w.call(_D, [y, *args[:4], 1, None], [Out(want)], ulps=0, scale=0)
    x, y = _floats(F, 2, 3, 2, 2), _numbers(torch.int8, 2, 3, 2, 2)
    for one, two in itertools.product([(), LAST[4], (3, 1, 0, 2)], repeat=2):
        args = (0.1, 5, -128, 127, torch.int8)
        want = Out(ops.quantize_per_tensor(x, *args), two)
        w.call(_Q, [In(x, one), *args[:4], 1], [want], ulps=0, scale=0)
        want = Out(ops.dequantize_per_tensor(y, *args), two)
        w.call(_D, [In(y, one), *args[:4], 1, None], [want], ulps=0, scale=0)
    for scale, zero in itertools.product((F, D), (torch.int32, torch.int64)):
        scales, zeros = torch.tensor(0.1, dtype=scale), torch.tensor([[7]], dtype=zero)
        args = (float(torch.tensor(0.1)), 7, -128, 127, torch.int8)
        want = Out(ops.quantize_per_tensor(x, *args))
        w.call(_QT, [x, scales, zeros, -128, 127, 1], [want], ulps=0, scale=0)
        want = Out(ops.dequantize_per_tensor(y, *args))
        w.call(_DT, [y, scales, zeros, -128, 127, 1, None], [want], ulps=0, scale=0)


def _channels(
    w: Writer, a: torch.dtype, b: torch.dtype, shape: tuple[int, ...], axis: int
) -> tuple[list[Any], list[Any], Out, Out]:
    """Both ways; returns the arguments that others can be made from."""
    low, high = _limits(b)
    count = shape[axis]
    scales = _scales(count)
    zeros = torch.tensor([(_zero_point(b) + 5 * i) % 120 for i in range(count)])
    x, y = _floats(a, *shape), _numbers(b, *shape)
    exact = x.float() if a == BF else x
    want = torch.empty(shape, dtype=b)
    rest = (axis, low, high, b)
    ops.quantize_per_channel.out(exact, scales.double(), zeros, *rest, out=want)
    if a != D:
        _same(want, ops.quantize_per_channel(x, scales, zeros, *rest))
    back = torch.empty(shape, dtype=F if a == BF else a)
    how = {"out_dtype": back.dtype, "out": back}
    wide = (axis, min(low, 0), max(high, 200), b)  # zero points must be within
    ops.dequantize_per_channel.out(y, scales, zeros, *wide, **how)
    if a == F and b != torch.uint16:  # PyTorch cannot take zero points from it
        _same(back, ops.dequantize_per_channel(y, scales, zeros, *rest))
    numbers = [axis, low, high, CODES[b]]
    quantize = [x, scales, zeros, *numbers]
    dequantize = [y, scales, zeros, *numbers, CODES[a]]
    w.call(_QC, quantize, [Out(want)], ulps=0, scale=0)
    w.call(_DC, dequantize, [Out(back.to(a))], ulps=0, scale=0)
    return quantize, dequantize, Out(want), Out(back)


_QC, _DC = f"{_NAME}quantize_per_channel.out", f"{_NAME}dequantize_per_channel.out"


def _per_channel(w: Writer) -> None:
    """Every pair of dtypes; axes; dim orders; dtypes of the parameters."""
    for a, b in itertools.product(FLOATING, QUANTIZED):
        _channels(w, a, b, (3, 4), 0)
    for shape, axis in [
        ((5,), 0),
        ((3, 4), 1),
        ((3, 4), -1),
        ((2, 3, 4), 1),
        ((2, 1, 3), 1),
        ((0, 3), 1),
        ((2, 3, 2, 4), -4),
    ]:
        _channels(w, F, torch.int8, shape, axis)
    for axis in range(4):
        made = _channels(w, F, torch.int8, (2, 3, 2, 4), axis)
        for one, two in itertools.product([(), LAST[4]], repeat=2):
            for name, args, want in ((_QC, made[0], made[2]), (_DC, made[1], made[3])):
                out = Out(want.tensor, two)
                w.call(name, [In(args[0], one), *args[1:]], [out], ulps=0, scale=0)
    quantize, dequantize, want, back = _channels(w, F, torch.int8, (4, 3), 0)
    for scale, zero in itertools.product((F, D), (torch.int32, torch.int64)):
        for name, args, out in ((_QC, quantize, want), (_DC, dequantize, back)):
            parameters = [args[1].to(scale), args[2].to(zero)]
            w.call(name, [args[0], *parameters, *args[3:]], [out], ulps=0, scale=0)
    y, scales, _, *numbers, _ = dequantize
    want = ops.dequantize_per_channel(y, scales, None, *numbers[:3], torch.int8)
    w.call(_DC, [y, scales, None, *numbers, None], [Out(want)], ulps=0, scale=0)


_QK, _DK = f"{_NAME}quantize_per_token.out", f"{_NAME}dequantize_per_token.out"


def _per_token(w: Writer) -> None:
    """Every pair of dtypes; shapes; dtypes of the parameters."""
    pairs = itertools.product(FLOATING, QUANTIZED)
    shapes = [(5,), (0, 3), (2, 0), (1, 4), (2, 3, 4), (2, 1, 2, 3)]
    cases = [(a, b, (2, 5)) for a, b in pairs]
    cases += [(F, torch.int8, shape) for shape in shapes]
    for a, b, shape in cases:
        low, high = _limits(b)
        tokens = torch.Size(shape[:-1]).numel()
        sizes = (*shape[:-1], 1)
        scales = _scales(tokens).reshape(sizes)
        zeros = torch.arange(tokens).reshape(sizes) * 3 + 1
        x, y = _floats(a, *shape), _numbers(b, *shape)
        want, back = torch.empty(shape, dtype=b), torch.empty(shape, dtype=a)
        rows = x.float() if a == BF else x
        if x.numel():
            rest = (low, high, b)
            ops.quantize_per_token.out(rows, scales.double(), zeros, *rest, out=want)
            floats = torch.empty(shape, dtype=F if a == BF else a)
            wide = (min(low, 0), max(high, 200), b)
            ops.dequantize_per_token.out(y, scales, zeros, *wide, floats.dtype, out=floats)
            if a == F and b != torch.uint16:
                _same(floats, ops.dequantize_per_token(y, scales, zeros, *rest, F))
            back = floats.to(a)
        numbers = [low, high, CODES[b]]
        for scale, zero in ((D, torch.int64), (F, torch.int32)):
            tensors = [scales.to(scale), zeros.to(zero)]
            w.call(_QK, [x, *tensors, *numbers], [Out(want)], ulps=0, scale=0)
            args = [y, *tensors, *numbers, CODES[a]]
            w.call(_DK, args, [Out(back)], ulps=0, scale=0)
            if x.numel() > 10:
                break
    x, scales = _floats(F, 2, 3, 4, 2), _scales(24 // 4).reshape(2, 3, 1, 1)
    scales = scales.repeat(1, 1, 4, 1)
    zeros = torch.arange(24).reshape(2, 3, 4, 1)
    want = torch.empty(2, 3, 4, 2, dtype=torch.int8)
    limits = (-128, 127, torch.int8)
    ops.quantize_per_token.out(x, scales.double(), zeros, *limits, out=want)
    args = [In(t, LAST[4]) for t in (x, scales, zeros)]
    w.call(_QK, [*args, -128, 127, 1], [Out(want, LAST[4])], ulps=0, scale=0)


def _choose(w: Writer) -> None:
    """Ranges of every kind: on one side of 0, tiny, huge, of one number."""
    rows = [
        [1.0, 2.0, -3.0],
        [0.0, 0.0],
        [1e-6, 2e-6, 0.0],
        [-1e-7, -1e-6],
        [1e-6, -3e-6],
        [1e-45, 0.0],
        [5.0, 6.0],
        [-5.0, -6.0],
        [3e38, -3e38],
        [0.0155, -0.00003],
        [-1e-3, 0.7],
        [7.0],
    ]
    tensors = [torch.tensor(row) for row in rows]
    tensors += [rand(F, 9) * 10.0**e for e in range(-7, 8)]
    for x in tensors:
        for low, high in ((-128, 127), (0, 255), (-8, 7), _limits(torch.int16)):
            scale, zero = torch.empty(1, dtype=D), torch.empty(1, dtype=torch.int64)
            ops.choose_qparams.Tensor_out(
                x, low, high, 1e-5, torch.int8, scale_out=scale, zero_point_out=zero
            )
            args = [x, low, high, 1e-5, 1]
            name = f"{_NAME}choose_qparams.Tensor_out"
            w.call(name, args, [Out(scale), Out(zero)], ulps=0, scale=0)
    tensors += [rand(F, 3, 5), rand(F, 2, 3, 4), rand(F, 0, 3), rand(F, 1, 1)]
    images = [In(rand(F, 2, 3, 2, 4), LAST[4])]
    for x in (*map(In, tensors), *images):
        sizes = (*x.tensor.shape[:-1], 1)
        scale = torch.empty(sizes, dtype=D)
        zero = torch.empty(sizes, dtype=torch.int64)
        if x.tensor.numel():
            ops.choose_qparams_per_token_asymmetric.out(
                x.tensor, torch.int8, scale_out=scale, zero_point_out=zero
            )
        order = LAST[4] if len(sizes) == 4 else ()
        name = f"{_NAME}choose_qparams_per_token_asymmetric.out"
        w.call(name, [x, 1], [Out(scale, order), Out(zero)], ulps=0, scale=0)


def quantized(w: Writer) -> None:
    """All of them."""
    _per_dtype(w)
    _per_tensor(w)
    _per_channel(w)
    _per_token(w)
    _choose(w)
