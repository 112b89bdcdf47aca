"""Calls of operators on bits and truth values, and of gelu, with PyTorch's results.

A generator of its own makes the numbers, so that calls of other modules stay as they
are.
"""
# Flags by position, as PyTorch has them.
# ruff: noqa: FBT003
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch
from reference_format import EPSILON, FLOATING, INTEGRAL, LAST, REAL, In, Out, Writer

aten = torch.ops.aten
TRUTH = [*REAL, torch.bool]
ORDERS = [(), LAST[4], (3, 1, 0, 2)]
NAN, INF = float("nan"), float("inf")
Tensor = torch.Tensor

rng = np.random.default_rng(20250307)


def _whole(dtype: torch.dtype, *shape: int) -> Tensor:
    """Numbers over the whole range, some of them 0."""
    if dtype in EPSILON:
        x = rng.standard_normal(shape) * rng.integers(0, 2, shape)
        return torch.from_numpy(np.asarray(x)).to(dtype)
    if dtype == torch.bool:
        return torch.from_numpy(np.asarray(rng.integers(0, 2, shape))).to(dtype)
    info = torch.iinfo(dtype)
    name = str(dtype).split(".")[1]
    x = rng.integers(info.min, info.max, shape, dtype=name, endpoint=True)
    return torch.from_numpy(np.asarray(x)) * _whole(torch.bool, *shape).to(dtype)


def _plain(value: Any) -> Tensor:
    return value.tensor if isinstance(value, In) else value


def _two(w: Writer, name: str, fn: Any, dtypes: list[torch.dtype], outs: Any) -> None:
    """Pairs of dtypes, broadcasting, dim orders, wider outputs."""

    def call(a: Any, b: Any, out: Any = None, order: Any = ()) -> None:
        want = fn(_plain(a), _plain(b))
        result = Out(want.to(out or want.dtype), order)
        w.call(name, [a, b], [result], ulps=0, scale=0)

    for a, b in itertools.product(dtypes, dtypes):
        call(_whole(a, 6), _whole(b, 6))
        call(_whole(a, 2, 3), _whole(b))
    for a, b in [((2, 1, 4), (3, 1)), ((), ()), ((0, 3), (1, 3)), ((2, 0), ())]:
        call(_whole(torch.int32, *a), _whole(torch.int32, *b))
    x, y = _whole(torch.int16, 1, 3, 2, 2), _whole(torch.int16, 1, 3, 2, 2)
    for one, two, out in itertools.product(ORDERS[:2], repeat=3):
        call(In(x, one), In(y, two), order=out)
    for dtype, out in outs:
        call(_whole(dtype, 5), _whole(dtype, 5), out)


def _bits(w: Writer) -> None:
    bits = [*INTEGRAL, torch.bool]
    wider = [(torch.int8, torch.int64), (torch.bool, torch.int32)]
    _two(w, "aten::bitwise_or.Tensor_out", aten.bitwise_or.Tensor, bits, wider)
    for dtype, number in itertools.product(bits, (6, -1, True, False)):
        x = _whole(dtype, 5)
        want = aten.bitwise_or.Scalar(x, number)
        name = "aten::bitwise_or.Scalar_out"
        w.call(name, [x, number], [Out(want)], ulps=0, scale=0)
    name = "aten::bitwise_not.out"
    for dtype, shape in itertools.product(bits, [(7,), (), (0, 2), (2, 3)]):
        x = _whole(dtype, *shape)
        w.call(name, [x], [Out(aten.bitwise_not(x))], ulps=0, scale=0)
    x = _whole(torch.int64, 1, 3, 2, 2)
    for one, two in itertools.product(ORDERS, repeat=2):
        w.call(name, [In(x, one)], [Out(aten.bitwise_not(x), two)], ulps=0, scale=0)
    outs = [(a, b) for a in (torch.bool, torch.float32) for b in REAL]
    _two(w, "aten::logical_xor.out", aten.logical_xor, TRUTH, outs)
    x = torch.tensor([NAN, INF, -0.0, 1e-45, 0.0])
    want = aten.logical_xor(x, torch.zeros(5))
    args = [x, torch.zeros(5)]
    w.call("aten::logical_xor.out", args, [Out(want)], ulps=0, scale=0)


def _any(w: Writer) -> None:
    def call(op: str, x: Any, *more: Any, order: Any = (), out: Any = None) -> None:
        want = getattr(aten.any, op or "default")(_plain(x), *more)
        want = want.to(out or want.dtype)
        name = {"default": "all_out", "dim": "out", "dims": "dims_out"}[op]
        w.call(f"aten::any.{name}", [x, *more], [Out(want, order)], ulps=0, scale=0)

    few = torch.zeros(3, 4)
    few[1, 2] = 1
    for dtype in TRUTH:
        for x in (_whole(dtype, 3, 4), few.to(dtype), torch.zeros(3, 4).to(dtype)):
            call("default", x)
            call("dim", x, 0, False)
            call("dim", x, -1, True)
            call("dims", x, (0, 1), False)
        call("default", _whole(dtype, 5), out=torch.uint8)
        call("dims", _whole(dtype, 5), (0,), True, out=torch.uint8)
        call("dim", _whole(dtype, 5, 2), 1, False, out=torch.uint8)
    for dims, keep in itertools.product([None, (), (1,), (-1, 0)], (False, True)):
        call("dims", _whole(torch.float32, 2, 3, 2), dims, keep)
    for shape in [(), (0,), (2, 0), (0, 3)]:
        x = _whole(torch.int32, *shape)
        call("default", x)
        call("dim", x, -1, False)
        call("dims", x, None, True)
    call("default", torch.tensor([0.0, NAN]))
    call("default", torch.tensor([0.0, -0.0]))
    call("default", torch.tensor([256, 0], dtype=torch.int32), out=torch.uint8)
    x = _whole(torch.float64, 2, 3, 2, 3)
    for one, two in itertools.product(ORDERS, repeat=2):
        call("dim", In(x, one), 1, True, order=two)
        call("dims", In(x, one), (1, 3), True, order=two)
        call("default", In(x, one))


def _gelu(w: Writer) -> None:
    """Both forms. 1 + erf cancels below 0: errors are those of a number near 1.

    PyTorch's vectorized code makes NaN of infinity; it is left out here.
    """

    def call(x: Any, approximate: str, order: Any = ()) -> None:
        plain = _plain(x)
        want = aten.gelu(plain, approximate=approximate)
        outs = [Out(want, order)]
        w.call("aten::gelu.out", [x, approximate], outs, ulps=2, scale=4)

    special = [0.0, -0.0, 1e-30, -1e-8, 1.4, -1.5, 3, 5.9, 12, -40, 1e4, NAN]
    for dtype, approximate in itertools.product(FLOATING, ("none", "tanh")):
        call(torch.tensor(special, dtype=torch.float64).to(dtype), approximate)
        call(torch.linspace(-7, 7, 101, dtype=torch.float64).to(dtype), approximate)
        for shape in [(), (0,), (2, 3)]:
            x = torch.from_numpy(np.asarray(rng.standard_normal(shape))).to(dtype)
            call(x, approximate)
        x = torch.from_numpy(rng.standard_normal((1, 3, 2, 2))).to(dtype)
        for one, two in itertools.product(ORDERS, repeat=2):
            call(In(x, one), approximate, two)


def logic(w: Writer) -> None:
    """All of them."""
    _bits(w)
    _any(w)
    _gelu(w)
