"""Calls that quantize and dequantize.

Scales have few bits, so that PyTorch's multiplication by a reciprocal rounds as a
division does. `choose_qparams` follows ExecuTorch where the two differ, and so does
`quantize_per_token` halfway between two steps: docs/executorch-compatibility.md.
"""
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import torch

from tests.opinfo.draw import INF, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

ITEMS = (torch.uint8, torch.int8, torch.int16, torch.int32)
SHAPES = ((5,), (3, 4), (2, 3, 4), (0, 3), (1, 1))
SCALES = (0.5, 0.0625, 3.0, 1.0)


def limits(dtype: torch.dtype) -> Iterator[tuple[int, int]]:
    """The whole range, and a narrower one."""
    info = torch.iinfo(dtype)
    # Float holds no larger whole numbers exactly.
    low, high = max(info.min, -(1 << 23)), min(info.max, 1 << 23)
    yield low, high
    yield (low + 1 if low else 0), high // 2


def reals(*shape: int) -> torch.Tensor:
    """Numbers, halves between two steps, infinities."""
    made = torch.randn(shape) * 40
    flat = made.flatten()
    for i, special in enumerate((INF, -INF, 0.25, -0.75, 1.5, 0.0)):
        if i < flat.numel() and torch.rand(()) < 0.4:  # not all of them
            flat[i] = special
    return flat.reshape(shape)


def stored(dtype: torch.dtype, low: int, high: int, *shape: int) -> torch.Tensor:
    """Quantized items."""
    return torch.randint(low, high + 1, shape).to(dtype)


def per_tensor(*, tensors: bool, back: bool) -> list[Sample]:
    """quantize_per_tensor and dequantize_per_tensor."""
    found = []
    for dtype, shape, scale in itertools.product(ITEMS, SHAPES, SCALES):
        for low, high in limits(dtype):
            zero = (low + high) // 3
            given = [scale, zero]
            if tensors:
                given = [torch.tensor([scale], dtype=torch.float64)]
                given.append(torch.tensor([zero]))
            x = stored(dtype, low, high, *shape) if back else reals(*shape)
            args = [x, *given, low, high, dtype]
            found.append(Sample([*args, None] if back else args, is_plain=True))
    return found


def per_channel(*, back: bool) -> list[Sample]:
    """quantize_per_channel and dequantize_per_channel."""
    found = []
    for dtype, shape in itertools.product(ITEMS, ((3, 4), (2, 3, 4), (0, 3))):
        for (low, high), axis in itertools.product(limits(dtype), range(len(shape))):
            size = shape[axis]
            scales = torch.tensor([SCALES[i % 4] for i in range(size)]).double()
            zeros = torch.tensor([(low + high) // (i + 2) for i in range(size)])
            x = stored(dtype, low, high, *shape) if back else reals(*shape)
            args = [x, scales, zeros.long(), axis, low, high, dtype]
            found.append(Sample([*args, None] if back else args, is_plain=True))
    return found


def per_token(*, back: bool) -> list[Sample]:
    """quantize_per_token and dequantize_per_token."""
    found = []
    for dtype, shape in itertools.product(ITEMS, ((3, 4), (2, 3, 4), (1, 5))):
        for low, high in limits(dtype):
            rows = (*shape[:-1], 1)
            scales = torch.tensor(SCALES)[torch.randint(4, rows)].double()
            zeros = torch.randint(low // 2, high // 2 + 1, rows)
            x = stored(dtype, low, high, *shape) if back else torch.randn(shape) * 9
            args = [x, scales, zeros, low, high, dtype]
            args += [torch.float32] if back else []
            found.append(Sample(args, is_plain=True))
    return found


_Q = "quantized_decomposed::"
SAMPLES = {
    f"{_Q}dequantize_per_channel.out": lambda: per_channel(back=True),
    f"{_Q}dequantize_per_tensor.Tensor_out": lambda: per_tensor(tensors=True, back=True),
    f"{_Q}dequantize_per_tensor.out": lambda: per_tensor(tensors=False, back=True),
    f"{_Q}dequantize_per_token.out": lambda: per_token(back=True),
    f"{_Q}quantize_per_channel.out": lambda: per_channel(back=False),
    f"{_Q}quantize_per_tensor.Tensor_out": lambda: per_tensor(tensors=True, back=False),
    f"{_Q}quantize_per_tensor.out": lambda: per_tensor(tensors=False, back=False),
    f"{_Q}quantize_per_token.out": lambda: per_token(back=False),
}
