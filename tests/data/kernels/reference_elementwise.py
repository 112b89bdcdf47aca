"""Calls of elementwise and copying operators, with what PyTorch's CPU gives.

A generator of its own makes the numbers, so that calls of other modules stay as they
are. dim_order_ops are ExecuTorch's names for copies: PyTorch's `to` makes the results.
"""
# Flags by position, as PyTorch has them; what operators have in common is one function.
# ruff: noqa: C901, FBT003, PLR0912
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch
from reference_format import EPSILON, FLOATING, INTEGRAL, LAST, REAL, UNSIGNED, In, Out, Writer

aten = torch.ops.aten
F, B, I32, L = torch.float32, torch.bool, torch.int32, torch.int64
NAN, INF = float("nan"), float("inf")
TRUTH = [*REAL, torch.bool]
Tensor = torch.Tensor

MIXED = [
    (torch.uint8, torch.int8),
    (torch.int8, torch.float32),
    (torch.float16, torch.bfloat16),
    (torch.bfloat16, torch.float64),
    (torch.int32, torch.int64),
    (torch.bool, torch.int64),
    (torch.int64, torch.float16),
    (torch.float32, torch.bool),
]
"""Pairs of dtypes that are promoted, to one that neither has among them."""

SHAPES = [((2, 3, 4), (4,)), ((2, 1, 4), (3, 1)), ((), (3,)), ((0, 3), (1, 3)), ((2, 0), ())]
ORDERS = [(), LAST[4], (3, 1, 0, 2)]

rng = np.random.default_rng(20241121)


def _tensor(array: Any) -> Tensor:
    return torch.from_numpy(np.asarray(array))


def _numbers(dtype: torch.dtype, *shape: int) -> Tensor:
    """Normal numbers for floats, whole ones over the whole range else."""
    if dtype in EPSILON:
        return _tensor(rng.standard_normal(shape) * 3).to(dtype)
    if dtype == B:
        return _tensor(rng.integers(0, 2, shape)).to(dtype)
    info = torch.iinfo(dtype)
    name = str(dtype).split(".")[1]
    low, high = (info.min, info.max) if len(shape) % 2 else (max(info.min, -9), 9)
    return _tensor(rng.integers(low, high, shape, dtype=name, endpoint=True))


def _nonzero(tensor: Tensor) -> Tensor:
    return torch.where(tensor == 0, torch.ones_like(tensor), tensor)


def _special(dtype: torch.dtype) -> Tensor:
    values = [0.0, 1e-8, -1e-4, 0.75, -2.5, 3, -8.9, 30, -104, 1e4, INF, -INF, NAN]
    return torch.tensor(values, dtype=torch.float64).to(dtype)


def _step(inputs: list[torch.dtype], out: torch.dtype) -> float:
    """Steps of `out` in the coarsest step of the floats that take part."""
    steps = [EPSILON[d] for d in (*inputs, out) if d in EPSILON]
    return max(steps) / EPSILON[out] if out in EPSILON and steps else 1


def _binary(w: Writer, op: str, dtypes: list[torch.dtype], *, safe: bool) -> None:
    """Pairs of dtypes, wider outputs, broadcasting, dim orders, special values.

    Args:
        w: Gets the calls.
        op: `mul.out`, or with arguments between inputs and output `sub.out 2`.
        dtypes: That may be promoted to.
        safe: Whether the second input may not be 0.
    """
    name, *more = op.split()
    more = [int(m) if m.lstrip("-").isdigit() else m for m in more]
    packet, _, overload = name.partition(".")
    fn = getattr(getattr(aten, packet), overload)
    key = {"sub": "alpha", "div": "rounding_mode"}.get(packet)
    keywords = {key: more[0]} if more else {}

    def call(a: Any, b: Any, out_dtype: Any = None, order: Any = (), ulps: float = 1) -> None:
        x = a.tensor if isinstance(a, In) else a
        y = b.tensor if isinstance(b, In) else b
        common = torch.result_type(x, y)
        if common not in dtypes or (packet == "sub" and B in (x.dtype, y.dtype)):
            return
        if overload == "Tensor_out" and packet in COMPARISONS:
            result = B
        elif packet == "div" and not more and common not in EPSILON:
            result = F
        else:
            result = common
        shape = torch.broadcast_shapes(x.shape, y.shape)
        out = torch.empty(shape, dtype=out_dtype or result)
        fn(x, y, **keywords, out=out)
        # The CPU may round alpha * b before it takes that away.
        steps = ulps * _step([common], out.dtype) * (2 if packet == "sub" else 1)
        scale = 8 if packet == "sub" else 0
        w.call(f"aten::{name}", [a, b, *more], [Out(out, order)], ulps=steps, scale=scale)

    def second(dtype: torch.dtype, *shape: int) -> Tensor:
        return _nonzero(_numbers(dtype, *shape)) if safe else _numbers(dtype, *shape)

    every = [*dtypes, B] if B not in dtypes else dtypes
    for dtype in every:
        call(_numbers(dtype, 7), second(dtype, 7))
        call(_numbers(dtype, 2, 3), second(dtype, 1, 3))
        if dtype in FLOATING and packet not in ("maximum", "minimum"):
            s = _special(dtype)
            call(s, second(dtype))
            if not more:
                call(s, s.flip(0))
    for a, b in MIXED:
        if a in every and b in every:
            call(_numbers(a, 5), second(b, 5))
            call(_numbers(b, 2, 2), second(a))
            call(_numbers(a), second(b, 2))
    for out in (torch.float64, torch.float16):
        if out in dtypes and packet not in COMPARISONS:
            call(_numbers(F, 5), second(F, 5), out)
            call(_numbers(torch.int8, 5), second(torch.int8, 5), out)
    if packet in ("ne", "ge", "lt", "le", "minimum") or -3 in more:
        for out in REAL if packet in COMPARISONS else ():
            call(_numbers(out, 4), _numbers(out, 4), out)
        return
    kind = F if F in dtypes else I32
    for a, b in SHAPES:
        call(_numbers(kind, *a), second(kind, *b))
    x, y = _numbers(kind, 1, 3, 2, 2), second(kind, 1, 3, 2, 2)
    for one, two, out in itertools.product(ORDERS[:2], repeat=3):
        call(In(x, one), In(y, two), order=out)
    if packet in COMPARISONS:
        for out in REAL:
            call(_numbers(F, 4), _numbers(F, 4), out)
            call(_numbers(out, 4), _numbers(out, 4), out)


COMPARISONS = ("eq", "ne", "gt", "ge", "lt", "le")


def _unary(
    w: Writer,
    name: str,
    fn: Any,
    outs: Any,
    *,
    inputs: Any,
    ulps: float,
    args: Any = (),
    layouts: bool = True,
) -> None:
    """Dtypes in and out, shapes, dim orders, special values.

    Args:
        w: Gets the calls.
        name: Operator.
        fn: Gives the result.
        outs: Dtypes the output can have, or None for that of the result.
        inputs: Dtypes to call it with.
        ulps: Allowed errors.
        args: Between input and output.
        layouts: Whether shapes and dim orders are tried as well.
    """

    def call(a: Any, out_dtype: Any = None, order: Any = ()) -> None:
        x = a.tensor if isinstance(a, In) else a
        want = fn(x)
        steps = ulps * _step([x.dtype, want.dtype], out_dtype or want.dtype)
        want = want.to(out_dtype or want.dtype)
        w.call(name, [a, *args], [Out(want, order)], ulps=steps, scale=0)

    for dtype in inputs:
        call(_numbers(dtype, 5))
        if layouts:
            call(_numbers(dtype, 2, 3))
        if dtype in FLOATING and (layouts or dtype != torch.float64):
            call(_special(dtype))
        for out in outs if dtype in (I32, B, F, torch.float64) else ():
            call(_numbers(dtype, 3), out)
    if not layouts:
        return
    kind = F if F in inputs else I32
    for shape in ((), (0,), (1, 5, 1)):
        call(_numbers(kind, *shape))
    x = _numbers(kind, 1, 3, 2, 2)
    for one, two in itertools.product(ORDERS[1:], repeat=2):
        call(In(x, one), order=two)


def _with_numbers(w: Writer) -> None:
    """Operators of a tensor and a number."""
    for op in COMPARISONS:
        fn = getattr(aten, op).Scalar
        numbers = [0, -3, 1.5] if op in ("gt", "eq") else [2]
        for number in numbers:
            _unary(
                w,
                f"aten::{op}.Scalar_out",
                lambda x, fn=fn, number=number: fn(x, number),
                REAL if op == "gt" and number == 0 else [],
                inputs=TRUTH,
                ulps=0,
                args=(number,),
                layouts=op == "gt" and number == 0,
            )
            for dtype in TRUTH if number == numbers[0] else ():
                x = _numbers(dtype, 4)
                want = fn(x, number).to(dtype)
                w.call(f"aten::{op}.Scalar_out", [x, number], [Out(want)], ulps=0, scale=0)
    for op, number in itertools.product(("remainder", "fmod"), (3, -7, 2.5, -0.3)):
        fn = getattr(aten, op).Scalar
        # An integer is divided as a float of its own size.
        inputs = [*FLOATING, torch.uint8, torch.int8, torch.int16]
        if isinstance(number, int):
            inputs += [I32, L, B]
        _unary(
            w,
            f"aten::{op}.Scalar_out",
            lambda x, fn=fn, number=number: fn(x, number),
            [],
            inputs=inputs,
            ulps=1,
            args=(number,),
            layouts=number == 3,
        )
        for dtype in (B, I32):
            x, out = _numbers(dtype, 2, 2), torch.empty(2, 2)
            getattr(aten, op).Scalar_out(x, number, out=out)
            w.call(f"aten::{op}.Scalar_out", [x, number], [Out(out)], ulps=1, scale=1)
    for low, high in [(0, 6), (-1.5, None), (None, 2.25), (3, 1), (None, 5)]:
        whole = isinstance(low or 0, int) and isinstance(high or 0, int)
        _unary(
            w,
            "aten::clamp.out",
            lambda x, low=low, high=high: aten.clamp(x, low, high),
            [],
            inputs=[*REAL, B] if whole else FLOATING,
            ulps=0,
            args=(low, high),
            layouts=(low, high) == (0, 6),
        )
    x = torch.tensor([200, 3, 0], dtype=torch.uint8)
    w.call("aten::clamp.out", [x, 0.5, 9], [Out(aten.clamp(x, 0.5, 9))], ulps=0, scale=0)
    y = torch.tensor([True, False])
    want = torch.empty(2)
    aten.clamp.out(y, 0.25, None, out=want)
    w.call("aten::clamp.out", [y, 0.25, None], [Out(want)], ulps=0, scale=0)
    for number in (6, -1, True):
        _unary(
            w,
            "aten::bitwise_and.Scalar_out",
            lambda x, number=number: aten.bitwise_and.Scalar(x, number),
            [],
            inputs=[*INTEGRAL, B],
            ulps=0,
            args=(number,),
            layouts=number == 6,
        )
    x = torch.tensor([True, False])
    out = torch.empty(2, dtype=B)
    aten.bitwise_and.Scalar_out(x, True, out=out)
    w.call("aten::bitwise_and.Scalar_out", [x, True], [Out(out)], ulps=0, scale=0)


def _where(w: Writer) -> None:
    name = "aten::where.self_out"
    masks = (torch.tensor([[True], [False]]), torch.tensor([0, 2, 1], dtype=torch.uint8))

    def call(mask: Any, a: Tensor, b: Tensor, order: Any = ()) -> None:
        m = mask.tensor if isinstance(mask, In) else mask
        out = torch.where(m != 0, a, b)
        w.call(name, [mask, a, b], [Out(out, order)], ulps=0, scale=0)

    for dtype, mask in itertools.product(TRUTH, masks):
        call(mask, _numbers(dtype, 2, 3), _numbers(dtype, 3))
    for a, b in MIXED:
        call(masks[0], _numbers(a, 2, 2), _numbers(b, 2))
        call(masks[0], _numbers(b, 2, 2), _numbers(a))
    x, y = _numbers(F, 2, 3, 2, 2), _numbers(F, 3, 1, 1)
    for one, two in itertools.product(ORDERS, repeat=2):
        call(In(x > 0, one), x, y, two)
    for shape in ((), (0, 3), (2, 1, 3)):
        call(masks[1], _numbers(I32, *shape), _numbers(I32, 1))


def _fill(w: Writer) -> None:
    for dtype in TRUTH:
        for number in (3, 0.75, True):
            out = torch.empty((), dtype=dtype)
            aten.scalar_tensor.out(number, out=out)
            w.call("aten::scalar_tensor.out", [number], [Out(out)], ulps=0, scale=0)
            for size in ([2, 3], [], [0, 4]):
                out = torch.empty(size, dtype=dtype)
                aten.full.out(size, number, out=out)
                w.call("aten::full.out", [size, number], [Out(out)], ulps=0, scale=0)
    out = torch.full((1, 2, 2, 1), -7, dtype=I32)
    w.call("aten::full.out", [[1, 2, 2, 1], -7], [Out(out, LAST[4])], ulps=0, scale=0)
    ranges = [(0, 5, 1), (7, -4, -3), (2, 2, 1), (0, 100, 33), (-3, 10, 4)]
    for dtype in REAL:
        more = [(0.5, 3, 0.7), (1, -1.01, -0.25)] if dtype in EPSILON else []
        for start, end, step in ranges + more:
            if dtype == torch.uint8 and min(start, end) < 0:
                continue
            out = torch.empty(0, dtype=dtype)
            aten.arange.start_out(start, end, step, out=out)
            args = [start, end, step]
            w.call("aten::arange.start_out", args, [Out(out)], ulps=1, scale=4)


def _castable(dtype: torch.dtype, out: torch.dtype, *shape: int) -> Tensor:
    """Numbers that `out` has after rounding towards zero."""
    x = _numbers(dtype, *shape)
    if dtype in EPSILON and out not in EPSILON and out != B:
        x = x.abs() * 9
    return x


def _copies(w: Writer) -> None:
    to_copy = "dim_order_ops::_to_dim_order_copy.out"
    clone = "dim_order_ops::_clone_dim_order.out"
    every = [*TRUTH, *UNSIGNED]
    for dtype, out in itertools.product(every, every):
        x = _castable(dtype, out, 4)
        w.call(to_copy, [x, False, None], [Out(x.to(out))], ulps=0, scale=0)
        if dtype == out or F in (dtype, out) or L in (dtype, out):
            w.call("aten::copy_", [Out(x.to(out)), x, False], [], ulps=0, scale=0)
    for dtype in every:
        x = _numbers(dtype, 1, 3)
        w.call(clone, [x, False, None], [Out(x)], ulps=0, scale=0)
        want = torch.empty(2, 2, 3, dtype=dtype).copy_(x)
        w.call("aten::copy_", [Out(want), x, True], [], ulps=0, scale=0)
    x = _numbers(F, 1, 3, 2, 2)
    for one, two in itertools.product(ORDERS[:2], repeat=2):
        order = list(two or range(4))
        w.call(to_copy, [In(x, one), False, order], [Out(x, two)], ulps=0, scale=0)
        w.call(clone, [In(x, one), False, order], [Out(x, two)], ulps=0, scale=0)
        w.call("aten::copy_", [Out(x, one), In(x, two), False], [], ulps=0, scale=0)
        y = (x * 9).to(I32)
        w.call(to_copy, [In(x * 9, one), False, order], [Out(y, two)], ulps=0, scale=0)
    for shape in ((), (0, 3)):
        x = _numbers(I32, *shape)
        w.call(to_copy, [x, False, None], [Out(x.float())], ulps=0, scale=0)
        w.call(clone, [x, False, None], [Out(x)], ulps=0, scale=0)
        w.call("aten::copy_", [Out(x), x, False], [], ulps=0, scale=0)


def _real_functions(w: Writer) -> None:
    for name in ("sin", "cos", "sigmoid"):
        fn = getattr(aten, name)

        def exact(x: Tensor, fn: Any = fn) -> Tensor:
            dtype = x.dtype if x.dtype in EPSILON else F
            if x.dtype in (torch.float16, torch.bfloat16):
                return fn(x.float()).to(dtype)
            return fn(x.to(dtype))

        inputs = [*TRUTH, *UNSIGNED]
        _unary(w, f"aten::{name}.out", exact, FLOATING, inputs=inputs, ulps=2)
        for dtype in (F, torch.float64):
            x = torch.cat([_numbers(dtype, 9) * 10.0**e for e in (-6, -1, 0, 1, 3, 9, 30)])
            w.call(f"aten::{name}.out", [x], [Out(fn(x))], ulps=2, scale=0)


def _hardtanh(w: Writer) -> None:
    """Limits of PyTorch, of relu6, and the wrong way round."""
    for dtype, (low, high) in itertools.product(FLOATING, [(-1, 1), (0, 6), (-0.5, 0.7), (2, -3)]):
        x = torch.cat([torch.arange(-9, 10) / 8, torch.tensor([INF, -INF, NAN, 9])])
        x = x.to(dtype)
        want = aten.hardtanh(x, low, high)
        w.call("aten::hardtanh.out", [x, low, high], [Out(want)], ulps=0, scale=0)
    x = (torch.arange(48) / 8 - 3).reshape(2, 3, 2, 4)
    for one, two in itertools.product(ORDERS, repeat=2):
        want = Out(aten.hardtanh(x), two)
        w.call("aten::hardtanh.out", [In(x, one), -1, 1], [want], ulps=0, scale=0)
    for shape in [(), (0,), (2, 0)]:
        x = torch.ones(shape) * 3
        want = aten.hardtanh(x)
        w.call("aten::hardtanh.out", [x, -1, 1], [Out(want)], ulps=0, scale=0)


def elementwise(w: Writer) -> None:
    """All of them."""
    _binary(w, "sub.out 1", REAL, safe=False)
    _binary(w, "sub.out -3", [F, torch.float64, *INTEGRAL[1:]], safe=False)
    _binary(w, "mul.out", TRUTH, safe=False)
    _binary(w, "div.out", TRUTH, safe=False)
    _binary(w, "div.out_mode floor", REAL, safe=True)
    _binary(w, "div.out_mode trunc", REAL, safe=True)
    _binary(w, "maximum.out", TRUTH, safe=False)
    _binary(w, "minimum.out", TRUTH, safe=False)
    _binary(w, "bitwise_and.Tensor_out", [*INTEGRAL, B], safe=False)
    for op in COMPARISONS:
        _binary(w, f"{op}.Tensor_out", TRUTH, safe=False)
    x = torch.tensor([True, False, True])
    want = x / torch.tensor([2.0, 3.0, 0.5])
    args = [x, torch.tensor([2.0, 3.0, 0.5]), None]
    w.call("aten::div.out_mode", args, [Out(want)], ulps=1, scale=0)
    _unary(w, "aten::abs.out", aten.abs, [], inputs=REAL, ulps=0)
    _unary(w, "aten::neg.out", aten.neg, [], inputs=REAL, ulps=0)
    _unary(w, "aten::logical_not.out", aten.logical_not, REAL, inputs=TRUTH, ulps=0)
    for dtype in TRUTH:
        x = _numbers(dtype, 3)
        want = aten.logical_not(x).to(dtype)
        w.call("aten::logical_not.out", [x], [Out(want)], ulps=0, scale=0)
    _real_functions(w)
    _with_numbers(w)
    _where(w)
    _fill(w)
    _copies(w)
    _hardtanh(w)
