"""Random calls of the kernels that the build can compute, edge values among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.core.dtype import FLOATING, INTEGRAL, ScalarType
from tests.unit.method.recorded_calls import Call, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Maker = Callable[["RandomCalls"], Iterator[Call]]

_S = ScalarType
_REAL: Final = sorted(INTEGRAL | FLOATING)
_ANY: Final = [*_REAL, _S.Bool]
_WHOLE: Final = [*sorted(INTEGRAL), _S.Bool]
_FLOATS: Final = sorted(FLOATING)
_QUANTIZED: Final = [_S.Byte, _S.Char, _S.Short, _S.UInt16, _S.Int]
_FORMATS: Final = {
    _S.Byte: "u1",
    _S.Char: "i1",
    _S.Short: "i2",
    _S.Int: "i4",
    _S.Long: "i8",
    _S.Half: "f2",
    _S.Float: "f4",
    _S.Double: "f8",
    _S.UInt16: "u2",
    _S.UInt32: "u4",
    _S.UInt64: "u8",
}
_EDGES: Final = (
    *(0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 0.1, -3.7, 127.5, -128.5),
    *(255.0, 256.0, 65504.0, 65520.0, 2.0**24 + 2, 2.0**31, -(2.0**31), 2.0**63),
    *(float("nan"), 1 + 2.0**-11 + 2.0**-40, -1 - 2.0**-11 - 2.0**-40),
    *(3e38, -3e38, 1e-40, 1e-8, 6e-8, 1e-5, float("inf"), float("-inf")),
)
_SIZES: Final = ((3, 4), (1, 4), (4,), (), (3, 1), (2, 3, 4), (2, 1, 4), (0, 4), (1,))
_NUMBERS: Final[tuple[Any, ...]] = (
    *(0, 1, -1, 2, 3, -7, 127, 128, 255, -128, 300, 1 << 31, (1 << 63) - 1),
    *(-(1 << 63), True, False, 0.0, -0.0, 0.5, -1.5, 2.7, 1e30, -1e300, 1e-45, 3.0),
    *(float("inf"), float("-inf"), 16777217, (1 << 53) + 1, 1.00000001),
)


class RandomCalls:
    """Draws calls.

    Args:
        seed: The same one gives the same calls.
    """

    def __init__(self, seed: int) -> None:
        self.generator = self._rng = np.random.default_rng(seed)

    def one(self, items: Iterable[Any]) -> Any:
        """One of some."""
        found = [*items]
        return found[int(self._rng.integers(len(found)))]

    def order(self, rank: int) -> tuple[int, ...]:
        """A dim order; mostly that of C."""
        if rank > 1 and self._rng.random() < 0.3:
            return tuple(int(d) for d in self._rng.permutation(rank))
        return tuple(range(rank))

    def items(self, dtype: ScalarType, count: int) -> bytes:
        """Items in memory: edges, small numbers, and any bits."""
        if dtype is _S.Bool:
            return self._rng.integers(0, 2, count).astype("u1").tobytes()
        if dtype is _S.BFloat16:
            wide = np.frombuffer(self.items(_S.Float, count), "<u4")
            return (wide >> np.uint32(16)).astype("<u2").tobytes()
        form = np.dtype(_FORMATS[dtype])
        small = self._rng.integers(-9, 10, count).astype("f8")
        if form.kind == "f":
            small = np.where(self._rng.random(count) < 0.5, small * 0.37, small)
            small *= self._rng.choice([1.0, -1.0], count)  # -0 among them
            edges = self._rng.choice(_EDGES, count)
            # Of edges that are numbers only, so that not everything becomes NaN.
            rare = self._rng.random(count) < self.one((0.0, 0.0, 0.1, 0.5))
            with np.errstate(over="ignore"):
                return np.where(rare, edges, small).astype(form).tobytes()
        whole = small.astype("i8").astype(form)
        limits = np.iinfo(form)
        edges = self._rng.choice(np.array([limits.min, limits.max, 0, 1], form), count)
        bits = np.frombuffer(self._rng.bytes(count * form.itemsize), form)
        draw = self._rng.random(count)
        return np.where(draw < 0.5, whole, np.where(draw < 0.75, edges, bits)).tobytes()

    def tensor(
        self, dtype: ScalarType, sizes: Sequence[int], *, order: tuple[int, ...] = ()
    ) -> Tensor:
        """An input."""
        own = order or self.order(len(sizes))
        count = int(np.prod(sizes, dtype=int))
        return Tensor(dtype, tuple(sizes), own, self.items(dtype, count))

    def of(self, dtype: ScalarType, numbers: Any) -> Tensor:
        """An input with these numbers."""
        found = np.asarray(numbers)
        data = found.astype(_FORMATS[dtype]).tobytes()
        return Tensor(dtype, found.shape, tuple(range(found.ndim)), data)

    def raw(self, dtype: ScalarType, items: Any) -> Tensor:
        """An input with these bits."""
        return Tensor(dtype, items.shape, tuple(range(items.ndim)), items.tobytes())

    def shorter(self, items: Sequence[int]) -> tuple[int, ...]:
        """A list of parameters; sometimes one stands for all that are equal."""
        if len({*items}) == 1 and self._rng.random() < 0.5:
            return (items[0],)
        return tuple(items)

    def out(self, dtype: ScalarType, sizes: Sequence[int], order: tuple[int, ...] = ()) -> Tensor:
        """An output."""
        count = int(np.prod(sizes, dtype=int)) * dtype.item_bytes
        own = order or self.order(len(sizes))
        return Tensor(dtype, tuple(sizes), own, bytes(count), is_out=True)

    def sizes(self) -> tuple[int, ...]:
        """Sizes of an input."""
        found: tuple[int, ...] = self.one(_SIZES)
        return found

    def pair(self, dtypes: Sequence[ScalarType]) -> tuple[Tensor, Tensor]:
        """Two inputs, often of one dtype, that can be broadcast."""
        a = self.one(dtypes)
        b = self.one([a, a, self.one(dtypes)])
        while True:
            one, other = self.sizes(), self.sizes()
            try:
                np.broadcast_shapes(one, other)
            except ValueError:
                continue
            return self.tensor(a, one), self.tensor(b, other)

    def wide(self, *tensors: Tensor) -> tuple[int, ...]:
        """Sizes they are broadcast to."""
        return np.broadcast_shapes(*(t.sizes for t in tensors))

    def near(self, dtypes: Sequence[ScalarType], *tensors: Tensor) -> ScalarType:
        """The dtype of an output: mostly one of the inputs'."""
        own = [t.dtype for t in tensors for _ in range(3)]
        found: ScalarType = self.one([*own, *(self.one(dtypes) for _ in range(2))])
        return found


def _binary(r: RandomCalls) -> Iterator[Call]:
    for name, dtypes in (
        ("aten::mul.out", _ANY),
        ("aten::maximum.out", _ANY),
        ("aten::minimum.out", _ANY),
        ("aten::div.out", _ANY),
        ("aten::bitwise_and.Tensor_out", _WHOLE),
        ("aten::bitwise_or.Tensor_out", _WHOLE),
        ("cortex_m::maximum.out", [_S.Char]),
        ("cortex_m::minimum.out", [_S.Char]),
    ):
        a, b = r.pair(dtypes)
        outs = _FLOATS if "div" in name else dtypes
        yield Call(name, (a, b, r.out(r.near(outs, a, b), r.wide(a, b))))
    for base, dtypes in (("add", _ANY), ("sub", _REAL)):
        a, b = r.pair(dtypes)
        alpha = r.one([1, 1, r.one(_NUMBERS)])
        out = r.out(r.near(dtypes, a, b), r.wide(a, b))
        yield Call(f"aten::{base}.out", (a, b, alpha, out))
    a, b = r.pair(_REAL)
    mode = r.one(["floor", "floor", "trunc", "trunc", None])
    out = r.out(r.near(_REAL, a, b), r.wide(a, b))
    yield Call("aten::div.out_mode", (a, b, mode, out))
    for base in ("eq", "ne", "lt", "le", "gt", "ge", "logical_xor"):
        a, b = r.pair(_ANY)
        out = r.out(r.one([_S.Bool, _S.Bool, r.one(_ANY)]), r.wide(a, b))
        overload = "out" if base == "logical_xor" else "Tensor_out"
        yield Call(f"aten::{base}.{overload}", (a, b, out))


def _with_numbers(r: RandomCalls) -> Iterator[Call]:
    for base in ("eq", "ne", "lt", "le", "gt", "ge"):
        a = r.tensor(r.one(_ANY), r.sizes())
        out = r.out(r.one([_S.Bool, _S.Bool, r.one(_ANY)]), a.sizes)
        yield Call(f"aten::{base}.Scalar_out", (a, r.one(_NUMBERS), out))
    for base in ("bitwise_and", "bitwise_or"):
        a = r.tensor(r.one(_WHOLE), r.sizes())
        out = r.out(r.near(_WHOLE, a), a.sizes)
        yield Call(f"aten::{base}.Scalar_out", (a, r.one(_NUMBERS), out))
    for base in ("fmod", "remainder"):
        a = r.tensor(r.one(_REAL), r.sizes())
        out = r.out(r.near(_FLOATS, a), a.sizes)
        yield Call(f"aten::{base}.Scalar_out", (a, r.one(_NUMBERS), out))
    a = r.tensor(r.one(_REAL), r.sizes())
    limits = [r.one([None, r.one(_NUMBERS), -2, 3, 0.0, -0.0]) for _ in range(2)]
    out = r.out(r.near(_FLOATS, a), a.sizes)
    yield Call("aten::clamp.out", (a, *limits, out))
    low, high = r.one([-1.0, -3, -0.0]), r.one([1.0, 4, 2.5, 0.0])
    a = r.tensor(r.one(_FLOATS), r.sizes())
    yield Call("aten::hardtanh.out", (a, low, high, r.out(a.dtype, a.sizes)))


def _unary(r: RandomCalls) -> Iterator[Call]:
    for base, dtypes in (("abs", _REAL), ("neg", _REAL), ("relu", _REAL), ("bitwise_not", _WHOLE)):
        a = r.tensor(r.one(dtypes), r.sizes())
        yield Call(f"aten::{base}.out", (a, r.out(a.dtype, a.sizes)))
    a = r.tensor(r.one(_ANY), r.sizes())
    out = r.out(r.one([_S.Bool, r.one(_ANY)]), a.sizes)
    yield Call("aten::logical_not.out", (a, out))


def _create(r: RandomCalls) -> Iterator[Call]:
    dtype, sizes = r.one(_ANY), r.sizes()
    yield Call("aten::full.out", (sizes, r.one(_NUMBERS), r.out(dtype, sizes)))
    yield Call("aten::scalar_tensor.out", (r.one(_NUMBERS), r.out(dtype, ())))
    start, step = r.one([0, 3, -5, 120, 1 << 62]), r.one([1, 2, -1, -3, 100])
    count = r.one([0, 1, 2, 5])
    bounds: tuple[Any, ...] = (start, start + count * step, step)
    dtype = r.one(_REAL)
    if dtype in FLOATING and r.one([True, False]):
        bounds = (start + 0.1, start + 0.1 + count * step * 0.3, step * 0.3)
    yield Call("aten::arange.start_out", (*bounds, r.out(dtype, (count,))))


def _pick(r: RandomCalls) -> Iterator[Call]:
    every = [*_ANY, _S.UInt16, _S.UInt32, _S.UInt64]
    a = r.tensor(r.one(_REAL if r.one([True, False]) else every), r.sizes())
    out = r.out(r.one(every), a.sizes)
    order = r.one([out.order, None])
    yield Call("dim_order_ops::_to_dim_order_copy.out", (a, False, order, out))
    a, b = r.pair(_ANY)
    mask = r.tensor(r.one([_S.Bool, _S.Byte]), r.one([a.sizes, b.sizes, ()]))
    wide = r.wide(mask, a, b)
    out = r.out(r.near(_ANY, a, b), wide)
    yield Call("aten::where.self_out", (mask, a, b, out))
    dtype = r.one(_ANY)
    parts = tuple(r.tensor(r.one([dtype, dtype, r.one(_ANY)]), (2, n, 3)) for n in (1, 3, 2))
    yield Call("aten::cat.out", (parts, r.one([1, -2]), r.out(dtype, (2, 6, 3))))
    a = r.tensor(dtype, (2, 3, 4))
    dims = r.one([(), (0,), (1, -1), (0, 1, 2), (1, 1)])
    yield Call("aten::flip.out", (a, dims, r.out(dtype, a.sizes)))
    rows = r.of(r.one([_S.Int, _S.Long]), r.one([[0, 2, 1], [[1], [-2]], [2, 3], []]))
    between = r.one([(None, rows), (rows,), (rows, None, rows), (None, rows, rows)])
    sizes: tuple[int, ...] = np.empty((3, 3, 3))[
        tuple(slice(None) if t is None else np.zeros(t.sizes, int) for t in between)
    ].shape
    a = r.tensor(dtype, (3, 3, 3))
    yield Call("aten::index.Tensor_out", (a, between, r.out(dtype, sizes)))
    a = r.tensor(dtype, (3, 5))
    out = r.out(dtype, (*rows.sizes, 5))
    yield Call("aten::embedding.out", (a, rows, -1, False, False, out))


def _matrix(r: RandomCalls) -> Iterator[Call]:
    m, k, n = r.one([1, 3, 5]), r.one([0, 1, 7, 33]), r.one([1, 4, 6])
    dtype = r.one(_REAL)
    a, b = r.tensor(dtype, (m, k)), r.tensor(dtype, (k, n))
    yield Call("aten::mm.out", (a, b, r.out(dtype, (m, n))))
    added = r.tensor(dtype, r.one([(n,), (m, n), (m, 1), ()]))
    factors = [r.one([1, 1, 2, 0, 0.5, -1.3]) for _ in range(2)]
    yield Call("aten::addmm.out", (added, a, b, *factors, r.out(dtype, (m, n))))
    a, b = r.tensor(dtype, (2, m, k)), r.tensor(dtype, (2, k, n))
    yield Call("aten::bmm.out", (a, b, r.out(dtype, (2, m, n))))


def _reduced(sizes: Sequence[int], dims: Iterable[int], *, keep: bool) -> tuple[int, ...]:
    gone = {d % len(sizes) for d in dims}
    return tuple(1 if d in gone else size for d, size in enumerate(sizes) if keep or d not in gone)


def _reduce(r: RandomCalls) -> Iterator[Call]:
    sizes = r.one([(2, 3, 5), (4, 40), (3, 0, 2), (7,)])
    keep = r.one([True, False])
    some = r.one([None, (), (0,), (-1,), tuple(range(len(sizes)))])
    every = range(len(sizes))
    found = _reduced(sizes, some or every, keep=keep)
    a = r.tensor(r.one(_ANY), sizes)
    out = r.out(r.near(_ANY, a), found)
    yield Call("aten::sum.IntList_out", (a, some, keep, None, out))
    out = r.out(r.near(_FLOATS, a), found)
    named = r.one([None, int(out.dtype)])
    yield Call("aten::mean.out", (a, some, keep, named, out))
    out = r.out(r.near(_FLOATS, a), ())
    yield Call("aten::mean.dtype_out", (a, r.one([None, int(out.dtype)]), out))
    a = r.tensor(r.one(_FLOATS), sizes)
    correction = r.one([None, 0, 1, 2, 1.5, 1000])
    out = r.out(a.dtype, found)
    yield Call("aten::var.correction_out", (a, some, correction, keep, out))
    a = r.tensor(r.one(_ANY), sizes)
    own = _reduced(sizes, every if some is None else some, keep=keep)
    out = r.out(r.one([_S.Bool, _S.Byte]), own)
    yield Call("aten::any.dims_out", (a, some, keep, out))
    yield Call("aten::any.all_out", (a, r.out(_S.Bool, ())))
    dim = r.one([0, -1])
    found = _reduced(sizes, (dim,), keep=keep)
    yield Call("aten::any.out", (a, dim, keep, r.out(_S.Bool, found)))
    a = r.tensor(r.one(_REAL), sizes)
    yield Call("aten::argmax.out", (a, dim, keep, r.out(_S.Long, found)))
    order = r.order(len(found))
    outs = (r.out(a.dtype, found, order), r.out(_S.Long, found, order))
    yield Call("aten::max.dim_max", (a, dim, keep, *outs))


def _limits(r: RandomCalls, dtype: ScalarType) -> tuple[int, int]:
    ends = np.iinfo(_FORMATS[dtype])
    found: tuple[int, int] = r.one(
        [(int(ends.min), int(ends.max))] * 2 + [(max(-7, int(ends.min)), 8), (0, 1)]
    )
    return found


def _affine(r: RandomCalls) -> Iterator[Call]:
    name = "quantized_decomposed::"
    sizes = r.one([(2, 3), (2, 3, 4), (5,)])
    back = r.one([False, True])
    dtype, floating = r.one(_QUANTIZED), r.one(_FLOATS)
    a, out = (dtype, floating) if back else (floating, dtype)
    x, to = r.tensor(a, sizes), r.out(out, sizes)
    if a is _S.Float and r.one([False, True]):
        # Close to ties, which an inverse in place of the scale decides.
        ties = np.float32(0.1) * (np.arange(int(np.prod(sizes))) + 15.5).astype("f4")
        x = r.of(a, np.nextafter(ties, np.float32(0)).reshape(sizes))
    word = "dequantize" if back else "quantize"
    ends = (*_limits(r, dtype), int(dtype))
    scale = r.one([0.1, 1.0, 0.003, 3e-39, 1e30, 0.0, 0.1])
    zero = r.one([0, 3, -128, 70000, -(1 << 31)])
    named = (r.one([None, int(out)]),) if back else ()
    yield Call(f"{name}{word}_per_tensor.out", (x, scale, zero, *ends, *named, to))
    kinds = r.one([_S.Float, _S.Double]), r.one([_S.Int, _S.Long])
    scales, zeros = r.of(kinds[0], [scale]), r.of(kinds[1], [zero])
    yield Call(f"{name}{word}_per_tensor.Tensor_out", (x, scales, zeros, *ends, *named, to))
    axis = r.one([0, -1])
    count = sizes[axis]
    scales = r.of(kinds[0], [scale * (i + 1) for i in range(count)])
    high = r.one([0, 1 << 32]) if kinds[1] is _S.Long else 0  # dropped
    zeros = r.of(kinds[1], [zero + high] * count)
    maybe = r.one([zeros, None]) if back else zeros
    yield Call(f"{name}{word}_per_channel.out", (x, scales, maybe, axis, *ends, *named, to))
    rows = (*sizes[:-1], 1)
    total = int(np.prod(rows))
    scales = r.of(kinds[0], np.reshape([scale * (i + 1) for i in range(total)], rows))
    zeros = r.of(kinds[1], np.full(rows, zero))
    last = (int(out),) if back else ()
    yield Call(f"{name}{word}_per_token.out", (x, scales, zeros, *ends, *last, to))
    narrow = r.one([_S.Char, _S.Short])
    a, out = (narrow, _S.Float) if back else (_S.Float, narrow)
    ends = (*_limits(r, narrow), int(narrow))
    order = r.order(len(sizes))
    x, to = r.tensor(a, sizes, order=order), r.out(out, sizes, order)
    yield Call(f"cortex_m::{word}_per_tensor.out", (x, scale, zero, *ends, to))


_MAKERS: Final[tuple[Maker, ...]] = (
    *(_binary, _with_numbers, _unary, _create, _pick, _matrix, _reduce, _affine),
)


def random_calls(rounds: int, seed: int = 5, makers: Sequence[Maker] = _MAKERS) -> list[Call]:
    """Calls of every kernel, so many rounds."""
    r = RandomCalls(seed)
    return [call for _ in range(rounds) for make in makers for call in make(r)]
