"""Random calls of kernels of floats that have prepared forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from tests.unit.method.recorded_calls import Call, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SPECIAL: Final = ((), (np.nan,), (np.inf, -np.inf), (1e-40, -3e-39, 1e-38), (-0.0,))
"""What some items of a call are; not NaN and infinity at once, as which of two NaN a
sum is may depend on the compiler."""
_NHWC: Final = (0, 2, 3, 1)


class _Floats:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.special: Sequence[float] = ()

    def one(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def of(self, *items: Any) -> Any:
        return items[self.one(0, len(items) - 1)]

    def truth(self) -> bool:
        return self.one(0, 1) == 1

    def tensor(self, *sizes: int, order: tuple[int, ...] = ()) -> Tensor:
        count = int(np.prod(sizes))
        items = self.rng.normal(0, 3, count).astype("<f4")
        if self.special:
            rare = self.rng.random(count) < self.of(0.03, 0.5)
            items[rare] = self.rng.choice(self.special, int(rare.sum()))
        order = order or tuple(range(len(sizes)))
        return Tensor(ScalarType.Float, sizes, order, items.tobytes())

    def out(self, *sizes: int, order: tuple[int, ...] = ()) -> Tensor:
        order = order or tuple(range(len(sizes)))
        data = bytes(4 * int(np.prod(sizes)))
        return Tensor(ScalarType.Float, sizes, order, data, is_out=True)

    def matrix(self, rows: int, columns: int) -> Tensor:
        return self.tensor(rows, columns, order=self.of((0, 1), (1, 0)))


def _convolution(r: _Floats) -> Iterator[Call]:
    rank, transposed = r.of(1, 2, 2), not r.one(0, 3)
    groups, per_in, per_out = r.of(
        *((1, r.one(1, 9), r.one(1, 9)), (r.one(2, 9), 1, 1), (2, 3, 5)),
        *((1, r.of(4, 8), r.of(4, 8)), (4, 1, 1), (3, 1, 4)),
    )
    order = r.of((), _NHWC) if rank > 1 else ()
    axes = []
    for _ in range(rank):
        size, kernel = r.one(1, 9), r.of(1, 1, 2, 3, 3, 4, 5)
        stride, padding, dilation = r.one(1, 3), r.one(0, 2), r.one(1, 2)
        span = dilation * (kernel - 1) + 1
        if transposed:
            out = (size - 1) * stride - 2 * padding + span
        else:
            out = (size + 2 * padding - span) // stride + 1
        axes.append((size, kernel, stride, padding, dilation, out))
    if min(axis[-1] for axis in axes) < 1:
        return
    sizes, kernels, strides, paddings, dilations, outs = zip(*axes, strict=True)
    channels, outputs = groups * per_in, groups * per_out
    first = (channels, per_out) if transposed else (outputs, per_in)
    batch = r.one(1, 2)
    x = r.tensor(batch, channels, *sizes, order=order)
    w = r.tensor(*first, *kernels, order=r.of((), _NHWC) if rank > 1 else ())
    bias = r.of(None, r.tensor(outputs))
    y = r.out(batch, outputs, *outs, order=order)
    args = (x, w, bias, strides, paddings, dilations, transposed, (0,) * rank, groups)
    yield Call("aten::convolution.out", (*args, y))


def _products(r: _Floats) -> Iterator[Call]:
    rows, inner, columns = (r.of(1, 2, 5, 9), r.one(1, 17), r.of(1, 3, 4, 8, r.one(1, 19)))
    a, b = r.matrix(rows, inner), r.matrix(inner, columns)
    out = r.out(rows, columns, order=r.of((), (1, 0)))
    yield Call("aten::mm.out", (a, b, out))
    added = r.tensor(*r.of((columns,), (rows, 1), (1, columns), (rows, columns), ()))
    beta, alpha = r.of((1, 1), (1.0, 1.0), (0.0, 1), (2, 0.5))
    yield Call("aten::addmm.out", (added, a, b, beta, alpha, out))
    weight = r.matrix(columns, inner)
    sizes = r.of((rows,), (2, rows), ())
    bias = r.of(None, r.tensor(columns), r.tensor(1))
    yield Call("aten::linear.out", (r.tensor(*sizes, inner), weight, bias, r.out(*sizes, columns)))
    batch, orders = r.one(1, 3), [(0, 1, 2), (0, 2, 1)]
    a = r.tensor(batch, rows, inner, order=r.of(*orders))
    b = r.tensor(batch, inner, columns, order=r.of(*orders))
    yield Call("aten::bmm.out", (a, b, r.out(batch, rows, columns)))


def _averages(r: _Floats) -> Iterator[Call]:
    order = r.of((), _NHWC)
    batch, channels, size = r.one(1, 2), r.one(1, 9), (r.one(1, 7), r.one(1, 7))
    kernel = r.of(size, (r.one(1, size[0]), r.one(1, size[1])))
    stride = r.of((), (1, 2))
    padding = r.of((0, 0), tuple(k // 2 for k in kernel))
    out = [
        (n + 2 * p - k) // s + 1
        for n, k, s, p in zip(size, kernel, stride or kernel, padding, strict=True)
    ]
    x = r.tensor(batch, channels, *size, order=order)
    y = r.out(batch, channels, *out, order=order)
    args = (x, kernel, stride, padding, False, r.truth(), r.of(None, 3), y)
    yield Call("aten::avg_pool2d.out", args)


def _items(r: _Floats) -> Iterator[Call]:
    order = tuple(int(n) for n in r.rng.permutation(3))
    sizes = r.one(1, 3), r.one(1, 5), r.one(1, 7)
    x, out = r.tensor(*sizes, order=order), r.out(*sizes, order=order)
    for name in ("relu", "sigmoid", "tanh"):
        yield Call(f"aten::{name}.out", (x, out))
    low, high = r.of((-1.0, 1), (0, 6), (2.5, -1.5))
    yield Call("aten::hardtanh.out", (x, low, high, out))
    limits = r.of((low, None), (None, high), (low, high))
    yield Call("aten::clamp.out", (x, *limits, out))
    number = r.of(0.1, 3, -7.5)
    yield Call("aten::leaky_relu.out", (x, number, out))
    yield Call("aten::mul.Scalar_out", (x, number, out))
    yield Call("aten::div.Scalar_out", (x, number, out))
    yield Call("aten::add.Scalar_out", (x, number, r.of(1, 2, 0.3), out))


def _pairs(r: _Floats) -> Iterator[Call]:
    sizes = r.one(1, 3), r.one(1, 5), r.one(1, 40)
    other = r.of(sizes, sizes[1:], sizes[2:], (1,), (sizes[0], 1, 1))
    a, b = r.tensor(*sizes), r.tensor(*other)
    if r.truth():
        a, b = b, a
    alpha = r.of(1, 1.0, 2)
    out = r.out(*sizes)
    for name in ("add", "mul", "div"):
        between = (alpha,) if name == "add" else ()
        yield Call(f"aten::{name}.out", (a, b, *between, out))
    # gcc subtracts products, of alpha, with an instruction that negates NaN.
    if r.special is not _SPECIAL[1]:
        yield Call("aten::sub.out", (a, b, alpha, out))


def _moves(r: _Floats) -> Iterator[Call]:
    """Rows of a tensor, or single items."""
    rank = r.one(1, 4)
    sizes = [r.one(1, 6) for _ in range(rank)]
    order = tuple(int(d) for d in r.rng.permutation(rank)) if r.truth() else ()
    x = r.tensor(*sizes, order=order)
    dim, step = r.one(0, rank - 1), r.of(1, 1, 2)
    first = r.one(0, sizes[dim] - 1)
    last = r.one(first + 1, sizes[dim])
    taken = [*sizes]
    taken[dim] = len(range(first, last, step))
    begin = first - sizes[dim] if first and r.truth() else first
    out = r.out(*taken, order=order)
    yield Call("aten::slice_copy.Tensor_out", (x, dim, begin, last, step, out))
    x = r.tensor(*sizes)
    rest = sizes[:dim] + sizes[dim + 1 :]
    yield Call("aten::select_copy.int_out", (x, dim, begin, r.out(*rest)))
    dims = [int(d) for d in r.rng.permutation(rank)]
    if r.truth():
        dims = [*(d for d in dims if d != rank - 1), rank - 1]
    out = r.out(*(sizes[d] for d in dims))
    yield Call("aten::permute_copy.out", (x, tuple(dims), out))
    other = r.one(0, rank - 1)
    swapped = [*sizes]
    swapped[dim], swapped[other] = sizes[other], sizes[dim]
    yield Call("aten::transpose_copy.int_out", (x, dim, other, r.out(*swapped)))
    counts = [r.one(1, 4) for _ in range(r.one(1, 3))]
    parts = [(*sizes[:dim], count, *sizes[dim + 1 :]) for count in counts]
    whole = (*sizes[:dim], sum(counts), *sizes[dim + 1 :])
    joined = tuple(r.tensor(*part) for part in parts)
    yield Call("aten::cat.out", (joined, dim, r.out(*whole)))


def float_calls(seed: int, rounds: int) -> Iterator[Call]:
    """Random calls; in each round four convolutions and one of each other operator."""
    r = _Floats(seed)
    for number in range(rounds):
        r.special = _SPECIAL[number % len(_SPECIAL)]
        for _ in range(4):
            yield from _convolution(r)
        yield from _products(r)
        yield from _averages(r)
        yield from _items(r)
        yield from _pairs(r)
        yield from _moves(r)
