"""Calls of operators that move items, sum them or look them up.

Tensors are small: what counts is which item goes where.
"""
# mypy: ignore-errors
# (torch is not there when the project is checked)
# Flags by position, as in PyTorch; lists of calls are long.
# ruff: noqa: C901, FBT001, FBT003

from __future__ import annotations

import itertools
from typing import Any

import torch
from reference_format import (
    CODES,
    EPSILON,
    FLOATING,
    LAST,
    REAL,
    UNSIGNED,
    In,
    Out,
    Writer,
    rand,
    wide,
)

aten = torch.ops.aten
B, C, S, I, L = torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64  # noqa: E741
H, BF, F, D = FLOATING
BOOL = torch.bool
EVERY = [*REAL, BOOL, *UNSIGNED]
ORDERS = [(), LAST[4], (3, 1, 0, 2)]


def _exact(w: Writer, name: str, args: list[Any], want: Any, order: Any = ()) -> None:
    """A call whose results are moved, not computed."""
    w.call(f"aten::{name}", args, [Out(want, order)], ulps=0, scale=0)


def _unsigned(x: torch.Tensor) -> torch.Tensor:
    """Signed numbers of the same bits: PyTorch moves few unsigned ones."""
    signed = {torch.uint16: S, torch.uint32: I, torch.uint64: L}
    return x.view(signed[x.dtype]) if x.dtype in signed else x


def _cat(w: Writer) -> None:
    """Equal and mixed dtypes, dims, empty tensors, dim orders."""

    def call(parts: Any, dim: int, order: Any = ()) -> None:
        plain = [p.tensor if isinstance(p, In) else p for p in parts]
        _exact(w, "cat.out", [parts, dim], torch.cat(plain, dim), order)

    for a in [*REAL, BOOL]:
        call([wide(a, 2, 1), wide(a, 2, 3)], 1)
        for b in [*REAL, BOOL]:
            if a != b:
                call([rand(a, 2, low=0), rand(b, 3, low=0)], 0)
    x, y, none = wide(I, 2, 3, 2), wide(I, 2, 3, 2), torch.empty(0, dtype=I)
    for dim in range(-3, 3):
        call([x, y, x], dim)
    call([none, x, none], 1)
    call([none, none], 0)
    call([x, torch.empty(2, 0, 2, dtype=I)], 1)
    p, q = wide(S, 2, 2, 3, 2), wide(S, 2, 2, 3, 2)
    for one, two, dim in itertools.product(ORDERS, ORDERS, (1, 3)):
        call([In(p, one), q], dim, two)


def _views(w: Writer) -> None:
    """Slices, selected indices, splits, dimensions of size 1, views, expansion."""
    x = wide(S, 5, 4)
    for dim, start, end, step in [
        (0, None, None, 1),
        (0, 1, 4, 2),
        (1, -3, -1, 1),
        (-1, -100, 100, 3),
        (0, 3, 1, 1),
        (0, 5, 9, 1),
        (1, 0, 2**63 - 1, 2**62),
        (-2, 4, None, 7),
    ]:
        want = aten.slice_copy.Tensor(x, dim, start, end, step)
        _exact(w, "slice_copy.Tensor_out", [x, dim, start, end, step], want)
    for dim, index in [(0, 0), (0, -1), (1, 3), (-2, 2), (-1, -4)]:
        want = aten.select_copy.int(x, dim, index)
        _exact(w, "select_copy.int_out", [x, dim, index], want)
    y = wide(C, 2, 3, 2, 3)
    for one, two in itertools.product(ORDERS, ORDERS):
        want = aten.slice_copy.Tensor(y, 3, 0, 3, 2)
        _exact(w, "slice_copy.Tensor_out", [In(y, one), 3, 0, 3, 2], want, two)
        want = aten.view_copy(y, (3, 2, 3, 2))
        _exact(w, "view_copy.out", [In(y, one), (3, 2, -1, 2)], want, two)
        want = aten.select_copy.int(y, 1, 1)
        _exact(w, "select_copy.int_out", [In(y, one), 1, 1], want)
        _exact(w, "flip.out", [In(y, one), (1, -1)], aten.flip(y, (1, -1)), two)
    for sizes, dim in [((1, 0, 4), 0), ((2, 2), -1), ((4,), 1)]:
        wants = torch.split_with_sizes(x, sizes, dim)
        outs = [Out(want) for want in wants]
        args = [x, sizes, dim]
        name = "aten::split_with_sizes_copy.out"
        w.call(name, args, outs, ulps=0, scale=0, outs_are_list=True)
    outs = [Out(want, LAST[4]) for want in torch.split_with_sizes(y, (1, 2), 1)]
    name = "aten::split_with_sizes_copy.out"
    w.call(name, [y, (1, 2), 1], outs, ulps=0, scale=0, outs_are_list=True)
    z = wide(I, 1, 3, 1, 1)
    for dims in [(), (0,), (1,), (2, -4), (0, 1, 2, 3)]:
        want = aten.squeeze_copy.dims(z, dims)
        _exact(w, "squeeze_copy.dims_out", [z, dims], want)
    for dim in range(-3, 3):
        _exact(w, "unsqueeze_copy.out", [x, dim], aten.unsqueeze_copy(x, dim))
    for dtype in EVERY:
        v = wide(dtype, 2, 3)
        _exact(w, "view_copy.out", [v, (-1,)], v.view(-1))
        _exact(w, "flip.out", [v, (0,)], _same_bits(v, lambda t: t.flip(0)))
        _exact(w, "expand_copy.out", [v, (2, -1, 3), False], v.expand(2, 2, 3))
    for shape, size in [((), ()), ((1,), ()), ((0, 2), (2, 0, 3)), ((6,), (1, 6, 1))]:
        v = wide(I, *shape)
        _exact(w, "view_copy.out", [v, size], v.view(size))
    for shape, size in [((3, 1), (3, 4)), ((1,), (0,)), ((), (2,)), ((1, 2), (-1, 2))]:
        v = wide(I, *shape)
        want = aten.expand_copy(v, size)
        _exact(w, "expand_copy.out", [v, size, False], want)
    for shape, dims in [((), ()), ((0, 2), (0,)), ((4,), (-1,)), ((2, 3), (0, 1))]:
        v = wide(I, *shape)
        _exact(w, "flip.out", [v, dims], aten.flip(v, dims))


def _same_bits(x: torch.Tensor, fn: Any) -> torch.Tensor:
    return fn(_unsigned(x)).view(x.dtype)


def _indices(w: Writer) -> None:
    """index, index_put and embedding."""

    def longs(*items: Any) -> torch.Tensor:
        return torch.tensor(items, dtype=L)

    x = wide(S, 3, 4, 2)
    one, two = longs(2, -1, 0), longs(1, 1, -4)
    lists: list[list[Any]] = [
        [one],
        [one, two],
        [None, two],
        [None, None, longs(1, 0)],
        [one, None, longs(0, 1, -2)],
        [longs([0], [2]), longs(3, 1)],
        [None, longs([0, 1], [2, 3]), longs(1)],
        [one.to(I), two, longs(0)],
        [torch.tensor(1), None, torch.tensor(0)],
        [longs()],
    ]
    for indices in lists:
        want = aten.index.Tensor(x, indices)
        _exact(w, "index.Tensor_out", [x, indices], want)
        last = want.shape[-1:]
        for shape in dict.fromkeys([tuple(want.shape), tuple(last), ()]):
            values = wide(S, *shape)
            for accumulate in (False, True):
                put = aten.index_put(x, indices, values, accumulate)
                _exact(w, "index_put.out", [x, indices, values, accumulate], put)
    y = wide(C, 2, 3, 2, 3)
    for a, b in itertools.product(ORDERS, ORDERS):
        indices = [None, longs(2, 0, 0), longs(1)]
        want = aten.index.Tensor(y, indices)
        _exact(w, "index.Tensor_out", [In(y, a), indices], want)
        values = wide(C, *want.shape)
        put = aten.index_put(y, indices, values, False)
        _exact(w, "index_put.out", [In(y, a), indices, values, False], put, b)
    for dtype in [*REAL, BOOL]:
        z, indices, values = rand(dtype, 4), [longs(1, 3, 1)], rand(dtype, 3)
        for accumulate in (False, True):
            put = aten.index_put(z, indices, values, accumulate)
            w.call(
                "aten::index_put.out",
                [z, indices, values, accumulate],
                [Out(put)],
                ulps=1,
                scale=4 if dtype in EPSILON else 0,
            )
    weight = wide(I, 5, 3)
    for indices in [longs(4, 0, 4), longs([0], [1]), torch.tensor(3), longs()]:
        for at in (indices, indices.to(I)):
            args = [weight, at, -1, False, False]
            _exact(w, "embedding.out", args, aten.embedding(weight, at))
    at = longs([0, 1], [2, 4])
    for a, b in itertools.product([(), (1, 0)], repeat=2):
        want = aten.embedding(weight, at)
        args = [In(weight, a), In(at, b), 2, True, False]
        _exact(w, "embedding.out", args, want, (2, 0, 1) if a else ())


def _sums(w: Writer) -> None:
    """sum and mean: dims, dtypes in and out, dim orders."""

    def call(x: Any, dims: Any, keep: bool, dtype: Any = None, order: Any = ()) -> None:
        plain = x.tensor if isinstance(x, In) else x
        count = max(plain.numel(), 1)
        coarse = max(EPSILON.get(plain.dtype, 0), EPSILON.get(dtype, 0))
        want = plain.sum(dims, keep, dtype=dtype)
        step = EPSILON.get(want.dtype, 0)
        ulps = 2 * max(coarse / step, 1) if step else 0
        args = [x, dims, keep, None]
        if dtype == want.dtype:
            args[3] = CODES[dtype]
        outs = [Out(want, order)]
        w.call("aten::sum.IntList_out", args, outs, ulps=ulps, scale=count)
        if dtype not in (None, *FLOATING) or (dtype is None and plain.dtype not in FLOATING):
            return
        want = plain.mean(dims, keep, dtype=dtype)
        if want.dtype in (H, BF):
            # PyTorch rounds the sum of halves, which may overflow; ours is a float.
            want = plain.to(want.dtype).float().mean(dims, keep).to(want.dtype)
        outs = [Out(want, order)]
        w.call("aten::mean.out", args, outs, ulps=ulps, scale=2)
        if dims is None and not keep:
            args = [x, args[3]]
            w.call("aten::mean.dtype_out", args, outs, ulps=ulps, scale=2)

    for a in [*REAL, BOOL]:
        call(rand(a, 3, 4), (1,), False)
        for out in [*REAL, BOOL]:
            if out in FLOATING or out == BOOL or a not in FLOATING:
                call(rand(a, 3, 2), (0,), False, out)
                if out in FLOATING:
                    call(rand(a, 5), None, False, out)
    for dtype in FLOATING:
        call(rand(dtype, 3, 2), None, False)
    x = rand(F, 2, 3, 4)
    every = [None, (), (0,), (1,), (-1,), (0, 2), (-1, -2), (0, 1, 2)]
    for dims, keep in itertools.product(every, (False, True)):
        call(x, dims, keep)
    for shape, dims in [((), None), ((), (0,)), ((0,), None), ((2, 0), (1,))]:
        call(rand(F, *shape), dims, False)
    call(rand(F, 0, 3), (1,), True)
    y = rand(D, 2, 3, 2, 3)
    for one, two in itertools.product(ORDERS, repeat=2):
        call(In(y, one), (1, 3), True, None, two)
        call(In(y, one), (2,), False)
    call(rand(F, 700) + 3, None, False)


def _argmax(w: Writer) -> None:
    """The first of several; NaN; flattened; dim orders."""

    def call(x: Any, dim: Any, keep: bool, order: Any = ()) -> None:
        plain = x.tensor if isinstance(x, In) else x
        want = aten.argmax(plain, dim, keep)
        _exact(w, "argmax.out", [x, dim, keep], want, order)

    inf, nan = float("inf"), float("nan")
    for dtype in REAL:
        for dim, keep in itertools.product((None, 0, 1, -1), (False, True)):
            call(rand(dtype, 3, 4, low=-2, high=3), dim, keep)
    for dtype in FLOATING:
        for row in [[1, nan, inf, nan], [-inf, -inf], [-0.0, 0.0], [nan]]:
            call(torch.tensor(row, dtype=dtype), 0, False)
    call(wide(L, 9), None, False)
    call(wide(B, 9), None, False)
    call(rand(F), None, False)
    call(rand(F), 0, False)
    call(rand(F, 0, 3), 1, False)
    x = rand(F, 2, 3, 2, 3)
    for one, two in itertools.product(ORDERS, repeat=2):
        call(In(x, one), None, True, two)
        call(In(x, one), 1, True, two)


def _max(w: Writer) -> None:
    """Values and indices of the largest."""

    def call(x: torch.Tensor, dim: int, keep: bool) -> None:
        outs = [Out(want) for want in aten.max.dim(x, dim, keep)]
        w.call("aten::max.dim_max", [x, dim, keep], outs, ulps=0, scale=0)

    for dtype in [*REAL, BOOL]:
        for dim, keep in [(0, False), (1, True), (-1, False)]:
            call(rand(dtype, 3, 4, low=-2, high=3), dim, keep)
    for dtype in FLOATING:
        call(torch.tensor([1, float("nan"), 3, float("nan")], dtype=dtype), 0, False)
    call(rand(F), -1, True)
    call(rand(F, 0, 3), 1, False)
    x = rand(F, 2, 3, 2, 3)
    outs = [Out(want, LAST[4]) for want in aten.max.dim(x, 3, True)]
    args = [In(x, LAST[4]), 3, True]
    w.call("aten::max.dim_max", args, outs, ulps=0, scale=0)


def _var(w: Writer) -> None:
    """Corrections, dims, dim orders."""

    def call(x: Any, dims: Any, correction: Any, keep: bool, order: Any = ()) -> None:
        plain = x.tensor if isinstance(x, In) else x
        want = aten.var.correction(plain, dims, correction=correction, keepdim=keep)
        args = [x, dims, correction, keep]
        outs = [Out(want, order)]
        w.call("aten::var.correction_out", args, outs, ulps=4, scale=4)

    for dtype in FLOATING:
        for correction in (None, 0, 1, 2, 0.5):
            call(rand(dtype, 3, 4) + 1, (1,), correction, False)
        call(rand(dtype, 3, 4), None, 1, True)
    for shape, dims in [((), None), ((1,), (0,)), ((0,), None), ((2, 0), (1,))]:
        for correction in (0, 1, 3):
            call(rand(F, *shape), dims, correction, False)
    x = rand(D, 2, 3, 2, 3)
    for one, two in itertools.product(ORDERS, repeat=2):
        call(In(x, one), (1, 3), 0, True, two)


def _products(w: Writer) -> None:
    """bmm: sizes around the block of four, dim orders."""
    for dtype in REAL:
        for b, m, k, n in [(2, 2, 3, 5), (1, 1, 1, 1), (2, 1, 0, 2), (0, 1, 2, 1)]:
            x, y = rand(dtype, b, m, k), rand(dtype, b, k, n)
            outs = [Out(aten.bmm(x, y))]
            w.call("aten::bmm.out", [x, y], outs, ulps=2, scale=2 * (k or 1))
    x, y = rand(F, 2, 3, 4), rand(F, 2, 4, 5)
    orders = [(), (1, 0, 2), (2, 1, 0)]
    for one, two, three in itertools.product(orders, repeat=3):
        outs = [Out(aten.bmm(x, y), three)]
        w.call("aten::bmm.out", [In(x, one), In(y, two)], outs, ulps=2, scale=8)


def _layer_norm(w: Writer) -> None:
    """One and more dimensions, with and without weights, dim orders."""

    def call(x: Any, rank: int, weight: Any, bias: Any, eps: float) -> None:
        plain = x.tensor if isinstance(x, In) else x
        order = x.order if isinstance(x, In) else ()
        shape = plain.shape[plain.dim() - rank :]
        a, b = (t.tensor if isinstance(t, In) else t for t in (weight, bias))
        # Means of halves are stored as halves; they are computed from floats.
        wants = aten.native_layer_norm(plain, shape, a, b, eps)
        outs = [Out(want.to(plain.dtype), order) for want in wants]
        args = [x, tuple(shape), weight, bias, eps]
        w.call("aten::native_layer_norm.out", args, outs, ulps=8, scale=4)

    for dtype in FLOATING:
        x = rand(dtype, 3, 2, 5) * 3 + 1
        a, b = rand(dtype, 5), rand(dtype, 5)
        for weight, bias in itertools.product((None, a), (None, b)):
            call(x, 1, weight, bias, 1e-5)
        call(x, 3, rand(dtype, 3, 2, 5), None, 0.5)
    x = rand(F, 2, 3, 2, 4)
    a, b = rand(F, 3, 2, 4), rand(F, 3, 2, 4)
    for order in ORDERS:
        call(In(x, order), 3, In(a, (1, 2, 0)), b, 1e-3)
        call(In(x, order), 2, None, b[0], 1e-3)
    call(rand(F, 0, 4), 1, None, None, 1e-5)
    call(rand(F, 1), 1, None, None, 1e-5)
    call(torch.full((2, 3), 1e4), 1, None, None, 1e-5)


def _upsample(w: Writer) -> None:
    """Sizes and factors, up and down, dim orders."""
    name = "upsample_nearest2d.vec_out"
    x = wide(S, 1, 2, 3, 4)
    given = [
        ((6, 8), None),
        ((3, 4), None),
        ((2, 9), None),
        ((1, 1), None),
        (None, (2.0, 1.5)),
        (None, (0.7, 3.3)),
        (None, (1.0, 0.25)),
    ]
    for size, factors in given:
        want = aten.upsample_nearest2d.vec(x.float(), size, factors).to(S)
        _exact(w, name, [x, size, factors], want)
    for one, two in itertools.product(ORDERS, repeat=2):
        want = aten.upsample_nearest2d.vec(x.float(), (5, 6), None).to(S)
        _exact(w, name, [In(x, one), (5, 6), None], want, two)
    for dtype in FLOATING:
        y = rand(dtype, 2, 1, 2, 2)
        want = aten.upsample_nearest2d.vec(y, None, (1.5, 2.0))
        _exact(w, name, [y, None, (1.5, 2.0)], want)


def shapes(w: Writer) -> None:
    """All of them."""
    _cat(w)
    _views(w)
    _indices(w)
    _sums(w)
    _argmax(w)
    _max(w)
    _var(w)
    _products(w)
    _layer_norm(w)
    _upsample(w)
