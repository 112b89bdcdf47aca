"""Random calls of what networks are made of: functions, norms, images, indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.core.dtype import FLOATING, INTEGRAL, ScalarType
from tests.unit.method.recorded_calls import Call

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.random_calls import RandomCalls
    from tests.unit.method.recorded_calls import Tensor

_S = ScalarType
_FLOATS: Final = sorted(FLOATING)
_REAL: Final = sorted(INTEGRAL | FLOATING)
_ANY: Final = [*_REAL, _S.Bool]
_BOUNDS: Final = (
    *(88.72283, 88.72284, -103.97208, -103.97209, 709.782712893384, -745.13321910194),
    *(0.55, 0.5499999, 0.7853982, 0.785398163397448, 1.0, 0.99999994, 4.0, 1e22),
    *(-87.4, -708.5, 1.5707964, 3.14159265358979, 355.0, 1e38, 1.7e308, 5e-324),
)
"""Where functions change their formula, overflow, or lose most digits."""


def _floats(r: RandomCalls, dtype: ScalarType, count: int) -> Tensor:
    """Numbers of every size, and bounds, none of them NaN or infinite."""
    rng = r.generator
    form: Any = {_S.Float: np.float32, _S.Half: np.float16}.get(dtype, np.float64)
    spread = rng.choice([0.3, 1.0, 10.0, 90.0, 700.0, 1e5], count)
    numbers = rng.standard_normal(count) * spread
    edges = rng.choice(_BOUNDS, count) * rng.choice([1.0, -1.0], count)
    numbers = np.where(rng.random(count) < 0.3, edges, numbers)
    with np.errstate(over="ignore"):
        found = numbers.astype(form)
        found = np.where(np.isfinite(found), found, form(3))
    wild = np.frombuffer(rng.bytes(8 * count), "<u8").astype(f"<u{found.itemsize}")
    bits = wild.view(form)
    found = np.where((rng.random(count) < 0.3) & np.isfinite(bits), bits, found)
    if dtype is not _S.BFloat16:
        return r.of(dtype, found.astype(form))
    with np.errstate(over="ignore"):
        single = found.astype(np.float32)
    single = np.where(np.isfinite(single), single, np.float32(2))
    return r.raw(dtype, (single.view("<u4") >> np.uint32(16)).astype("<u2"))


def _functions(r: RandomCalls) -> Iterator[Call]:
    for base in ("cos", "sigmoid", "sin", "tanh"):
        a = r.tensor(r.one([*_ANY, _S.UInt16]), r.sizes())
        out = r.out(r.near(_FLOATS, a), a.sizes)
        yield Call(f"aten::{base}.out", (a, out))
        dtype = r.one(_FLOATS)
        out = r.out(r.one([dtype, dtype, r.one(_FLOATS)]), (24,))
        yield Call(f"aten::{base}.out", (_floats(r, dtype, 24), out))
    for approximate in ("none", "tanh"):
        dtype = r.one(_FLOATS)
        for a in (r.tensor(dtype, r.sizes()), _floats(r, dtype, 24)):
            out = r.out(dtype, a.sizes)
            yield Call("aten::gelu.out", (a, approximate, out))


def _softmax(r: RandomCalls) -> Iterator[Call]:
    sizes = r.one([(3, 5), (2, 4, 3), (17,), (), (0, 3), (3, 0)])
    dim = r.one([0, -1])
    dtype = r.one(_FLOATS)
    a = r.tensor(dtype, sizes)
    yield Call("aten::_softmax.out", (a, dim, False, r.out(dtype, sizes)))
    a = r.tensor(_S.Half, sizes)
    yield Call("aten::_softmax.out", (a, dim, True, r.out(_S.Float, sizes)))


def _norms(r: RandomCalls) -> Iterator[Call]:
    dtype = r.one(_FLOATS)
    sizes = r.one([(3, 4), (2, 3, 5), (7,), (2, 2, 2, 3)])
    first = r.one(range(len(sizes)))
    own = sizes[first:]
    groups = (*sizes[:first], *(1 for _ in own))
    order = r.order(len(sizes))
    a = r.tensor(dtype, sizes, order=order)
    weight, bias = (r.one([None, r.tensor(dtype, own)]) for _ in range(2))
    outs = (r.out(dtype, sizes, order), *(r.out(dtype, groups, order) for _ in "ab"))
    eps = r.one([1e-5, 0.0, 0.1, 1e-12])
    yield Call("aten::native_layer_norm.out", (a, own, weight, bias, eps, *outs))

    sizes = r.one([(2, 3), (2, 3, 4), (1, 3, 2, 2)])
    half = dtype in (_S.Half, _S.BFloat16)
    kinds = [dtype, _S.Float] if half else [dtype]
    weight, bias = (r.one([None, r.tensor(r.one(kinds), (3,))]) for _ in range(2))
    mean = r.tensor(r.one(kinds), (3,))
    spread = r.one([dtype, dtype, *kinds])
    if spread is _S.BFloat16:
        var = r.raw(spread, np.array([0x3F80, 0x4019, 0x3DCC], "<u2"))
    else:
        var = r.of(spread, r.one([[1.0, 2.39, 0.1], [0.0, 3e4, 1e-7]]))
    outs = (r.out(dtype, sizes), r.out(dtype, (0,)), r.out(dtype, (0,)))
    a = r.tensor(dtype, sizes)
    name = "aten::_native_batch_norm_legit_no_training.out"
    yield Call(name, (a, weight, bias, mean, var, 0.1, eps, *outs))


def _convolution(r: RandomCalls) -> Iterator[Call]:
    """One with one dimension or two; sizes of the output as PyTorch has them."""
    dtype = r.one(_REAL)
    rank, transposed = r.one([1, 2, 2]), r.one([False, True])
    groups, per_in, per_out = r.one([(1, 3, 5), (2, 1, 2), (3, 1, 1), (1, 1, 4)])
    batch = r.one([1, 2])
    image = [r.one([1, 4, 7]) for _ in range(rank)]
    kernel = [r.one([1, 2, 3]) for _ in range(rank)]
    stride, dilation = ([r.one([1, 2, 3]) for _ in range(rank)] for _ in range(2))
    padding = [r.one([0, 1, 2]) for _ in range(rank)]
    more = [r.one([0, 0, 1]) for _ in range(rank)]
    axes = [*zip(image, kernel, stride, padding, dilation, more, strict=True)]
    sizes = [
        (n - 1) * s - 2 * p + d * (k - 1) + 1 + m
        if transposed
        else (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d, m in axes
    ]
    sizes = [max(size, 1) for size in sizes]
    channels, outputs = groups * per_in, groups * per_out
    first = (channels, per_out) if transposed else (outputs, per_in)
    x = r.tensor(dtype, (batch, channels, *image))
    w = r.tensor(dtype, (*first, *kernel))
    bias = r.one([None, r.tensor(dtype, (outputs,))])
    if dtype in FLOATING and r.one([True, False]):
        # -0 must stay -0 where weights lie on padding only.
        bias = r.of(dtype, [-0.0] * outputs) if dtype is not _S.BFloat16 else bias
    out = r.out(dtype, (batch, outputs, *sizes))
    lists = (stride, padding, dilation)
    args = (x, w, bias, *(r.shorter(given) for given in lists), transposed)
    yield Call("aten::convolution.out", (*args, tuple(more), groups, out))


def _pools(r: RandomCalls) -> Iterator[Call]:
    image, kernel = ([r.one(of) for _ in "hw"] for of in ((3, 5, 8), (1, 2, 3)))
    stride = [r.one([1, 2, 3]) for _ in "hw"]
    padding = [r.one([0, k // 2]) for k in kernel]
    dilation = [r.one([1, 1, 2]) for _ in "hw"]
    around = r.one([(2,), (1, 3), (2, 2)])
    for average in (True, False):
        ceil_mode = r.one([False, True])
        own = [1, 1] if average else dilation
        sizes = []
        axes = zip(image, kernel, stride, padding, own, strict=True)
        for n, k, s, p, d in axes:
            room = n + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)
            count = room // s + 1
            if ceil_mode and (count - 1) * s >= n + p:
                count -= 1
            sizes.append(max(count, 1))
        shape = (*around, *sizes)
        dtype = r.one([*_FLOATS, _S.Long] if average else _REAL)
        x = r.tensor(dtype, (*around, *image))
        lists = (r.shorter(kernel), r.shorter(stride), r.shorter(padding))
        out = r.out(dtype, shape)
        if average:
            divisor = r.one([None, None, 3, -1])
            rest = (ceil_mode, r.one([False, True]), divisor, out)
            yield Call("aten::avg_pool2d.out", (x, *lists, *rest))
        else:
            rest = (r.shorter(dilation), ceil_mode, out, r.out(_S.Long, shape))
            yield Call("aten::max_pool2d_with_indices.out", (x, *lists, *rest))


def _upsample(r: RandomCalls) -> Iterator[Call]:
    dtype = r.one([*_ANY, _S.UInt16])
    x = r.tensor(dtype, (r.one([1, 2]), 2, r.one([1, 3]), r.one([2, 5])))
    sizes: Any = tuple(r.one([1, 2, 7, 13]) for _ in "hw")
    factors: Any = None
    found = sizes
    if r.one([False, True]):
        factors = tuple(r.one([1.0, 2.0, 1.7, 0.6, 3.3333333]) for _ in "hw")
        found = tuple(int(n * f) for n, f in zip(x.sizes[2:], factors, strict=True))
        found = tuple(max(n, 1) for n in found)
        sizes = None
    out = r.out(dtype, (*x.sizes[:2], *found))
    yield Call("aten::upsample_nearest2d.vec_out", (x, sizes, factors, out))


def _index_put(r: RandomCalls) -> Iterator[Call]:
    dtype = r.one(_ANY)
    rows = r.of(r.one([_S.Int, _S.Long]), r.one([[0, 2, 2, 0], [[1], [-2]], [2], []]))
    between = r.one([(None, rows), (rows,), (rows, None, rows), (None, rows, rows)])
    sizes: tuple[int, ...] = np.empty((3, 3, 3))[
        tuple(slice(None) if t is None else np.zeros(t.sizes, int) for t in between)
    ].shape
    values = r.tensor(dtype, r.one([sizes, sizes, (), (1,), sizes[-1:]]))
    a = r.tensor(dtype, (3, 3, 3))
    args = (a, between, values, r.one([False, True]), r.out(dtype, a.sizes))
    yield Call("aten::index_put.out", args)


def _choose(r: RandomCalls) -> Iterator[Call]:
    name = "quantized_decomposed::choose_qparams"
    sizes = r.one([(4,), (3, 5), (2, 3, 4), (1, 1)])
    count = int(np.prod(sizes))
    numbers = r.generator.standard_normal(count) * r.one([1.0, 1e-4, 1e-7, 1e20, 0.0])
    numbers += r.one([0.0, 0.0, 3.0, -3.0, 1e-6])
    x = r.of(_S.Float, numbers.reshape(sizes))
    if r.one([False, False, True]):
        x = r.tensor(_S.Float, sizes)
    low, high = r.one([(-128, 127), (0, 255), (-7, 8), (-(1 << 31), (1 << 31) - 1)])
    outs = (r.out(_S.Double, (1,)), r.out(_S.Long, (1,)))
    yield Call(f"{name}.Tensor_out", (x, low, high, 1e-7, int(_S.Char), *outs))
    rows = (*sizes[:-1], 1)
    outs = (r.out(_S.Double, rows), r.out(_S.Long, rows))
    args = (x, int(_S.Char), *outs)
    yield Call(f"{name}_per_token_asymmetric.out", args)


MAKERS: Final = (
    *(_functions, _softmax, _norms, _convolution, _pools, _upsample, _index_put),
    _choose,
)
