"""Samples of norms, products and distances that the database does not reach."""
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

import itertools

import torch

from tests.opinfo.draw import Sample

FLOATING = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def _random(*sizes: int, dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_floating_point:
        return torch.randn(sizes).to(dtype)
    return torch.randint(-9, 9, sizes).to(dtype)


def _inputs(dtype: torch.dtype) -> list[torch.Tensor]:
    shapes = ((2, 3), (0, 3), (4, 1), (2, 3, 5), (2, 4, 3, 3), (1, 2, 2, 2, 3))
    return [_random(*shape, dtype=dtype) * 3 + 1 for shape in shapes]


def _parameters(channels: int, dtype: torch.dtype) -> list[torch.Tensor | None]:
    given = [None, _random(channels, dtype=dtype)]
    if dtype in (torch.float16, torch.bfloat16):
        given.append(_random(channels, dtype=torch.float32))
    return given


def _batch_norm(*, has_training: bool) -> list[Sample]:
    """By given statistics."""
    samples = []
    for dtype in FLOATING:
        for x in _inputs(dtype):
            channels = x.shape[1]
            for weight in _parameters(channels, dtype):
                kind = dtype if weight is None else weight.dtype
                bias = None if weight is None else _random(channels, dtype=kind)
                mean = _random(channels, dtype=kind)
                var = _random(channels, dtype=kind).abs() + 0.1
                flags = [False] if has_training else []
                given = [x, weight, bias, mean, var, *flags, 0.1, 1e-5]
                samples.append(Sample(given))
    return samples


def _no_stats() -> list[Sample]:
    """By the statistics of the input."""
    return [
        Sample([x, weight, weight, True, 0.1, eps])
        for dtype in FLOATING
        for x in _inputs(dtype)
        for weight in _parameters(x.shape[1], dtype)[:2]
        for eps in (1e-5, 1e-3)
    ]


def _linear() -> list[Sample]:
    samples = []
    for dtype in (*FLOATING, torch.int32, torch.int8, torch.int64):
        for shape, out in itertools.product(
            ((3,), (2, 3), (2, 4, 3), (2, 0, 3), (2, 2, 2, 7), (5, 0)), (1, 4, 9)
        ):
            weight = _random(out, shape[-1], dtype=dtype)
            x = _random(*shape, dtype=dtype)
            samples += [
                Sample([x, weight, bias]) for bias in (None, _random(out, dtype=dtype))
            ]
    return samples


def _layer_norm() -> list[Sample]:
    return [
        Sample([x, list(x.shape[-last:]), weight, weight, 1e-5])
        for dtype in FLOATING
        for x in _inputs(dtype)
        for last in range(1, min(x.dim(), 3))
        for weight in (None, _random(*x.shape[-last:], dtype=dtype))
    ]


SAMPLES = {
    "aten::_native_batch_norm_legit.no_stats_out": _no_stats,
    "aten::_native_batch_norm_legit.out": lambda: _batch_norm(has_training=True),
    "aten::_native_batch_norm_legit_no_training.out": lambda: _batch_norm(
        has_training=False
    ),
    "aten::linear.out": _linear,
    "aten::native_layer_norm.out": _layer_norm,
}
