"""Samples of norms, products and distances that the database does not reach."""
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

import itertools
from math import prod
from typing import TYPE_CHECKING

import torch

from tests.opinfo.draw import Sample

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

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
            samples += [Sample([x, weight, bias]) for bias in (None, _random(out, dtype=dtype))]
    return samples


def _layer_norm() -> list[Sample]:
    return [
        Sample([x, list(x.shape[-last:]), weight, weight, 1e-5])
        for dtype in FLOATING
        for x in _inputs(dtype)
        for last in range(1, min(x.dim(), 3))
        for weight in (None, _random(*x.shape[-last:], dtype=dtype))
    ]


def _cdist() -> list[Sample]:
    """Dtypes that PyTorch does not compute have the results of Double."""
    shapes = (
        ((3, 2), (4, 2)),
        ((2, 1, 3, 2), (5, 2, 2)),
        ((2, 3, 0), (2, 4, 0)),
        ((0, 2), (3, 2)),
        ((1, 7), (1, 7)),
        ((2, 0, 3), (1, 4, 3)),
    )
    samples = []
    for dtype, (one, other), p, mode in itertools.product(
        FLOATING, shapes, (0.0, 1.0, 2.0, 0.5, 3.0, float("inf")), (None, 2)
    ):
        a, b = _random(*one, dtype=dtype), _random(*other, dtype=dtype)
        samples.append(_as_double([a, b], [p, mode], torch.ops.aten._cdist_forward))
    return samples


def _pdist() -> list[Sample]:
    samples = []
    for dtype, rows, p in itertools.product(
        FLOATING, ((5, 3), (1, 3), (0, 3), (4, 0)), (0.0, 1.0, 2.0, 1.5, float("inf"))
    ):
        x = _random(*rows, dtype=dtype)
        samples.append(_as_double([x], [p], torch.ops.aten._pdist_forward))
    return samples


def _as_double(
    tensors: list[torch.Tensor], others: list[float | None], compute: Callable[..., Any]
) -> Sample:
    """A call of halves with rounded results; other dtypes as PyTorch computes them."""
    dtype = tensors[0].dtype
    if dtype not in (torch.float16, torch.bfloat16):
        return Sample([*tensors, *others])
    result = compute(*(t.double() for t in tensors), *others)
    return Sample([*tensors, *others], results=[result.to(dtype)])


def _variance() -> list[Sample]:
    return [
        Sample([x, dim, unbiased, keepdim])
        for dtype in FLOATING
        for x in _inputs(dtype)
        for dim in (None, [], [0], [-1, 0])
        for unbiased, keepdim in ((True, False), (False, True))
    ]


ALL = (*FLOATING, torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32)


def _converted(others: list[Any]) -> list[Sample]:
    """Items become another dtype before they are summed or multiplied."""
    return [
        Sample([_random(2, 2, dtype=torch.int64).abs().to(start), *others, end], is_plain=True)
        for start in (*ALL, torch.int64)
        for end in (*ALL, torch.int64)
    ]


def _long(others: list[Any]) -> list[Sample]:
    """Many items, far from 0: errors add up."""
    return [
        Sample([_random(2, 2000, dtype=dtype) + 3, *others], is_plain=True) for dtype in FLOATING
    ]


def _different(*sizes: int, dtype: torch.dtype) -> torch.Tensor:
    """Items of which no two are equal."""
    count = prod(sizes)
    return (torch.randperm(count) - count // 2).to(dtype).reshape(sizes)


def _topk() -> list[Sample]:
    """Without equal items: PyTorch's order of those is not specified."""
    return [
        Sample([_different(*sizes, dtype=dtype), k, dim, largest, True], is_plain=True)
        for dtype in (*FLOATING, torch.int8, torch.uint8, torch.int32, torch.int64)
        for sizes, k, dim in (
            ((40,), 7, -1),
            ((40,), 40, 0),
            ((3, 5), 1, 0),
            ((2, 4, 3), 2, 1),
            ((2, 4, 3), 0, -1),
            ((), 1, 0),
            ((0, 3), 2, 1),
        )
        for largest in (True, False)
    ]


def _median() -> list[Sample]:
    return [
        Sample([_different(*sizes, dtype=dtype), dim, keepdim], is_plain=True)
        for dtype in (*FLOATING, torch.int8, torch.uint8, torch.int32, torch.int64)
        for sizes, dim in (((40,), 0), ((3, 5), 0), ((2, 4, 3), 1), ((), 0))
        for keepdim in (True, False)
    ]


SAMPLES = {
    "aten::_cdist_forward.out": _cdist,
    "aten::_log_softmax.out": lambda: _long([-1, False]),
    "aten::cumsum.out": lambda: [*_converted([1]), *_long([1, None])],
    "aten::mean.out": lambda: _long([[1], False, None]),
    "aten::prod.int_out": lambda: _converted([0, True]),
    "aten::prod.out": lambda: _converted([]),
    "aten::sum.IntList_out": lambda: [*_converted([[0], False]), *_long([[1], False, None])],
    "aten::var.correction_out": lambda: _long([[1], 1, False]),
    "aten::var_mean.correction_out": lambda: _long([[1], 1, False]),
    "aten::_pdist_forward.out": _pdist,
    "aten::median.dim_values": _median,
    "aten::topk.values": _topk,
    "aten::var.out": _variance,
    "aten::_native_batch_norm_legit.no_stats_out": _no_stats,
    "aten::_native_batch_norm_legit.out": lambda: _batch_norm(has_training=True),
    "aten::_native_batch_norm_legit_no_training.out": lambda: _batch_norm(has_training=False),
    "aten::linear.out": _linear,
    "aten::native_layer_norm.out": lambda: [*_layer_norm(), *_long([[2000], None, None, 1e-5])],
    "aten::native_group_norm.out": lambda: [
        Sample([_random(2, 4, 250, dtype=d) + 3, None, None, 2, 4, 250, 2, 1e-5]) for d in FLOATING
    ],
}
