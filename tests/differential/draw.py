"""Random models: what ordinary programs have, and the corners of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from tests.differential.program import (
    FORMS,
    NHWC,
    Block,
    Cond,
    Map,
    Method,
    Model,
    Op,
    Put,
    Statement,
    Store,
    Value,
    View,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_S = ScalarType
_MOST_STATEMENTS: Final = 7


def equivalent_order(
    rng: np.random.Generator, order: tuple[int, ...], sizes: tuple[int, ...]
) -> tuple[int, ...]:
    """A dim order that means the same, as dimensions of one item may stand anywhere."""
    if rng.random() < 0.5:
        return order
    rest = [d for d in order if sizes[d] != 1]
    for dim in rng.permutation([d for d in order if sizes[d] == 1]):
        rest.insert(int(rng.integers(len(rest) + 1)), int(dim))
    return tuple(rest)


class Drawer:
    """Draws a model from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self._pool: list[Value] = []
        self._statements: list[Statement] = []
        self._constants: dict[tuple[object, ...], list[Value]] = {}
        self._depth = 0

    def one(self, low: int, high: int) -> int:
        """A number, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def maybe(self, times: int) -> bool:
        """True once in so many times."""
        return self.one(1, times) == 1

    def choice(self, items: Sequence[Any]) -> Any:
        return items[self.one(0, len(items) - 1)]

    # --- values

    def items(self, dtype: ScalarType, count: int) -> bytes:
        """Items of a constant or an input: small numbers, for integers any."""
        if dtype is _S.Bool:
            return self.rng.integers(0, 2, count).astype("?").tobytes()
        if dtype in (_S.Float, _S.Double, _S.Half):
            numbers = self.rng.normal(0, 2, count).round(2)
            return numbers.astype(FORMS[dtype]).tobytes()
        low, high = (0, 5) if dtype is _S.Byte else (-100, 101)
        return self.rng.integers(low, high, count).astype(FORMS[dtype]).tobytes()

    def value(self, sizes: Sequence[int], dtype: ScalarType, order: Sequence[int] = ()) -> Value:
        return Value(tuple(sizes), dtype, tuple(order) or tuple(range(len(sizes))))

    def constant(
        self, sizes: Sequence[int], dtype: ScalarType, data: Any = None, *, purpose: str = ""
    ) -> Value:
        """A constant in the order of its dimensions, or in one that means the same.

        It may be one that another call has for this purpose.
        """
        kind = (tuple(sizes), dtype)
        known = self._constants.setdefault((*kind, purpose), [])
        if known and self.maybe(3):
            shared: Value = self.choice(known)
            return shared
        count = int(np.prod(sizes, dtype=int))
        stored = self.items(dtype, count) if data is None else None
        if stored is None:
            stored = np.ascontiguousarray(data, FORMS[dtype]).tobytes()
        order = equivalent_order(self.rng, tuple(range(len(sizes))), tuple(sizes))
        known.append(Value(*kind, order, data=stored))
        return known[-1]

    def op(self, operator: str, *args: Any) -> Value:
        """Add a call; its output is the last argument."""
        out = args[-1]
        assert isinstance(out, Value)
        self._statements.append(Op(operator, args, (out,)))
        self._pool.append(out)
        return out

    def like(self, value: Value, dtype: ScalarType | None = None) -> Value:
        return self.value(value.sizes, dtype or value.dtype, value.order)

    def alike(self, value: Value) -> Value:
        """A value of the same kind: another one, if there is some."""
        kind = (value.sizes, value.dtype, value.order)
        found = [v for v in self._pool if (v.sizes, v.dtype, v.order) == kind]
        other: Value = self.choice(found or [value])
        return other

    # --- a model

    def model(self) -> Model:
        kind = self.choice(("rows", "rows", "rows", "image", "image", "float image"))
        several = self.maybe(2)
        shared = several and not self.maybe(5)
        buffers = self._buffers(kind) if not self.maybe(4) or several else []
        count = self.one(2, 4) if several else 1
        methods = [self._method(kind, f"m{n}", buffers, n) for n in range(count)]
        session = []
        for number in (*range(count), *self.rng.integers(0, count, self.one(2, 4))):
            inputs = tuple(
                self.items(v.dtype, int(np.prod(v.sizes, dtype=int)))
                if v.dtype is not _S.Long or len(v.sizes) != 1
                else self.rng.permutation(2)[: v.sizes[0]].astype("<i8").tobytes()
                for v in methods[number].inputs
            )
            session.append((int(number), inputs))
        return Model(
            methods=tuple(methods),
            session=tuple(session),
            traits={
                "shared": shared,
                "unsound": self.maybe(2),
                "constant": shared and self.maybe(2),
            },
        )

    def _kind(self, kind: str) -> Value:
        """A value as inputs and buffers are."""
        if kind == "rows":
            dtypes = (_S.Float,) * 4 + (_S.Int, _S.Long, _S.Half, _S.Short, _S.Double)
            dtype = self._dtype = getattr(self, "_dtype", None) or self.choice(dtypes)
            return self.value((self.one(2, 3), 4), dtype)
        batch, height, width = self.one(1, 3), self.one(1, 7), self.one(1, 7)
        channels = self.choice((1, 1, 2, 3, 4, 5, 8, 8, 9, 16, 33))
        sizes = (batch, channels, height, width)
        if kind == "image":
            return self.value(
                sizes,
                self.choice((_S.Char, _S.Char, _S.Short)),
                equivalent_order(self.rng, NHWC, sizes),
            )
        return self.value(sizes, _S.Float)

    def _buffers(self, kind: str) -> list[Value]:
        """Buffers, with initial data or without."""
        self._main = self._kind(kind)
        found = []
        has_data = self.maybe(2)
        for number in range(self.one(1, 2)):
            main = self._main
            data = self.items(main.dtype, int(np.prod(main.sizes, dtype=int)))
            found.append(
                Value(
                    main.sizes,
                    main.dtype,
                    main.order,
                    data=data if has_data else None,
                    buffer=f"state{number}",
                )
            )
        return found

    def _method(self, kind: str, name: str, buffers: list[Value], number: int) -> Method:
        self._pool, self._statements = [], []
        main = getattr(self, "_main", None) or self._kind(kind)
        inputs = [self.like(main) for _ in range(self.one(1, 2))]
        self._pool += inputs
        mine = [b for b in buffers if not self.maybe(3)]
        if number == 1 and self.maybe(2) and buffers:
            # It only writes state, and reads none.
            self._statements.append(Store(buffers[0], inputs[0]))
            self._grow(kind, self.one(1, 2))
            return self._done(name, inputs, [])
        if mine and self.maybe(2):
            self._pool += mine
        self._grow(kind, self.one(1, _MOST_STATEMENTS))
        if mine and not set(mine) & set(self._pool):
            self._pool += mine  # read late, when memory was used by others
        self._grow(kind, self.one(1, 3))
        rows = self._put(mine) if kind == "rows" else None
        for buffer in mine:
            found = [
                v
                for v in self._pool
                if (v.sizes, v.dtype, v.order) == (buffer.sizes, buffer.dtype, buffer.order)
                and not v.buffer
            ]
            if found and not self.maybe(4):
                self._statements.append(Store(buffer, self.choice(found)))
                if self.maybe(3):
                    self._grow(kind, 1)  # which may read it again
        return self._done(name, [*inputs, *([rows] if rows else [])], mine)

    def _put(self, mine: list[Value]) -> Value | None:
        """Write rows of a buffer that an input names."""
        if not mine or self.maybe(2):
            return None
        buffer = self.choice(mine)
        rows = self.value((self.one(1, 2),), _S.Long)
        values = self.value((rows.sizes[0], *buffer.sizes[1:]), buffer.dtype)
        whole = self.alike(self.value(buffer.sizes, buffer.dtype))
        if whole.buffer or whole.sizes != buffer.sizes or whole.order != buffer.order:
            return None
        args = (whole, 0, 0, rows.sizes[0], 1, values)
        if whole not in self._pool:
            return None
        self.op("aten::slice_copy.Tensor_out", *args)
        self._statements.append(Put(buffer, rows, values))
        return rows

    def _done(self, name: str, inputs: list[Value], mine: list[Value]) -> Method:
        made = [v for v in self._pool if v not in inputs and not v.buffer]
        outputs = [self.choice(made[-3:])] if made else [inputs[0]]
        while self.maybe(3):
            outputs.append(self.choice([*made, *inputs, *outputs]))
        if mine and self.maybe(6):
            outputs.append(self.choice(mine))
        return Method(name, tuple(inputs), tuple(self._statements), tuple(outputs))

    def _grow(self, kind: str, count: int) -> None:
        layers: dict[str, tuple[Callable[[], None], ...]] = {
            "rows": (
                *(self._two, self._two, self._one, self._one, self._columns),
                *(self._turn, self._branches, self._branches, self._each, self._view),
                self._join,
            ),
            "image": (
                *(self._convolution, self._convolution, self._sum, self._table),
                *(self._pool_, self._two_convolutions),
            ),
            "float image": (self._float_convolution, self._float_convolution, self._two, self._one),
        }
        for _ in range(count):
            self.choice(layers[kind])()

    # --- rows

    def _any(self) -> Value:
        found: Value = self.choice(self._pool[-5:])
        return found

    def _two(self) -> None:
        a = self._any()
        b = self.alike(a)
        name = self.choice(("add", "sub", "mul", "maximum"))
        alpha = (1,) if name in ("add", "sub") else ()
        out = self.like(a)
        self.op(f"aten::{name}.out", a, b, *alpha, out)

    def _one(self) -> None:
        a = self._any()
        floats = ("sigmoid", "tanh") if a.dtype in (_S.Float, _S.Double) else ()
        name = self.choice(("neg", "abs", "relu", *floats))
        self.op(f"aten::{name}.out", a, self.like(a))

    def _columns(self, given: Value | None = None) -> None:
        a = given or self._any()
        if len(a.sizes) != 2 or a.sizes[1] < 2:
            return self._one()
        begin = self.one(0, a.sizes[1] - 2)
        end = self.one(begin + 1, a.sizes[1])
        out = self.value((a.sizes[0], end - begin), a.dtype)
        self.op("aten::slice_copy.Tensor_out", a, 1, begin, end, 1, out)
        return None

    def _join(self, given: Value | None = None) -> None:
        a = given or self._any()
        b = self.alike(a)
        dim = self.one(0, len(a.sizes) - 1)
        sizes = [*a.sizes]
        sizes[dim] *= 2
        self.op("aten::cat.out", (a, b), dim, self.value(sizes, a.dtype))

    def _turn(self, given: Value | None = None) -> None:
        a = given or self._any()
        if len(a.sizes) != 2:
            return self._two()
        out = self.value(a.sizes[::-1], a.dtype)
        self.op("aten::permute_copy.out", a, (1, 0), out)
        if a.dtype is _S.Float and self.maybe(2):
            weights = self.constant((a.sizes[0], 4), a.dtype)
            self.op("aten::mm.out", out, weights, self.value((a.sizes[1], 4), a.dtype))
        return None

    def _view(self, given: Value | None = None) -> None:
        written = {o for s in self._statements if isinstance(s, Op) for o in s.outs}
        found = [v for v in self._pool if v in written and v.order == (0, 1)]
        if given and given.order == (0, 1):
            found = [given]
        if not found:
            return self._one()
        base = self.choice(found)
        sizes = (base.sizes[0] * base.sizes[1],)
        out = self.value(sizes, base.dtype)
        # What a move gives has no place of its own: its view is made by a call.
        is_called = base not in written or self.maybe(2)
        self._statements.append(View(base, out, is_called=is_called))
        self._pool.append(out)
        return None

    def _block(self, given: Value, kind: Value) -> Block:
        """A few statements on a value that give another of a kind."""
        outer = self._pool, self._statements
        self._pool, self._statements = [given], []
        self._depth += 1
        for _ in range(self.one(0, 2)):
            self.choice((self._two, self._one))()
        if self._depth == 1 and self.maybe(4):
            self.choice((self._branches, self._branches, self._each))()
        result = self._pool[-1]
        is_inner = self._statements and isinstance(self._statements[-1], (Cond, Map))
        if not is_inner or self.maybe(2):
            last, result = result, self.like(kind)
            self.op("aten::mul.out", last, self.alike(last), result)
        block = Block(tuple(self._statements), result)
        self._pool, self._statements = outer
        self._depth -= 1
        return block

    def _branches(self) -> None:
        a = self._any()
        if a.dtype not in (_S.Float, _S.Double):
            return self._two()
        total = self.op("aten::sum.IntList_out", a, (), False, None, self.value((), a.dtype))
        flag = self.op("aten::gt.Scalar_out", total, 0.0, self.value((), _S.Bool))
        self._pool = [v for v in self._pool if v is not total and v is not flag]
        for _ in range(self.one(1, 2)):
            out = self.like(a)
            blocks = (self._block(a, out), self._block(a, out))
            self._statements.append(Cond(flag, blocks, out))
            self._pool.append(out)
        if self._depth == 0 and self.maybe(2):
            # It must not write over what a branch gave.
            self.choice((self._turn, self._columns, self._join, self._view))(out)
        return None

    def _each(self) -> None:
        a = self._any()
        if len(a.sizes) != 2:
            return self._one()
        row = self.value(a.sizes[1:], a.dtype)
        out = self.value(a.sizes, a.dtype)
        self._statements.append(Map(a, row, self._block(row, row), out))
        self._pool.append(out)
        return None

    # --- images of int8 or int16 items; zero points of int16 are 0

    def _windows(self, a: Value) -> tuple[list[list[int]], list[int]]:
        """Kernel, stride, padding and dilation; the sizes of the output."""
        while True:
            kernel = [self.choice((1, 2, 3, 3, 3, 4, 5)) for _ in "hw"]
            stride = [self.one(1, 3) if self.maybe(3) else 1 for _ in "hw"]
            padding = [self.one(0, k // 2) for k in kernel]
            dilation = [2 if self.maybe(6) else 1 for _ in "hw"]
            axes = zip(a.sizes[2:], kernel, stride, padding, dilation, strict=True)
            out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in axes]
            if min(out) > 0:
                return [kernel, stride, padding, dilation], out

    def _convolution(self) -> None:
        a = self._any()
        (kernel, *rest), out = self._windows(a)
        batch, channels = a.sizes[:2]
        outputs, groups = self.choice((1, 2, 3, 4, 8, 9, 12)), 1
        form = self.one(0, 3)
        if form == 0:
            groups, outputs = channels, channels * self.choice((1, 1, 1, 2))
        elif form == 1 and channels % 2 == 0:
            groups, outputs = 2, 2 * self.one(1, 4)
        is_depthwise = groups == channels and batch == 1 and self.maybe(2)
        sizes = (outputs, *kernel, channels // groups)
        weights = np.clip(self.rng.normal(0, 40, sizes), -127, 127).round()
        if is_depthwise:
            weights = weights.transpose(3, 1, 2, 0)
        y = (batch, outputs, *out)
        name = "quantized_depthwise_conv2d" if is_depthwise else "quantized_conv2d"
        wide = a.dtype is _S.Short
        kind = self.choice((_S.Int, _S.Long)) if wide else _S.Int
        bias = self.constant((outputs,), kind) if self.one(0, 2) else None
        self.op(
            f"cortex_m::{name}.out",
            a,
            self.constant(weights.shape, _S.Char, weights, purpose="weights"),
            bias,
            *map(tuple, rest),
            *((outputs // channels,) if is_depthwise else ()),
            *(self._zero_point(a), self._zero_point(a)),
            self.constant((outputs,), _S.Int, self._multipliers(outputs), purpose="multipliers"),
            self.constant((outputs,), _S.Int, -self.rng.integers(6, 10, outputs), purpose="shifts"),
            *self._limits(a),
            self.value((0,), _S.Byte),
            self.value(y, a.dtype, equivalent_order(self.rng, NHWC, y)),
        )

    def _two_convolutions(self) -> None:
        self._convolution()
        self._convolution()

    def _multipliers(self, count: int) -> Any:
        return self.rng.integers(1 << 30, (1 << 31) - 1, count)

    def _limits(self, a: Value) -> tuple[int, int]:
        """Least and largest item of a result."""
        found = self.choice(((-128, 127), (-128, 127), (0, 127), (-100, 90)))
        if a.dtype is _S.Short:
            found = self.choice(((-32768, 32767), (0, 32767), (-100, 9000)))
        return (found[0], found[1])

    def _zero_point(self, a: Value) -> int:
        return 0 if a.dtype is _S.Short else self.one(-128, 127)

    def _sum(self) -> None:
        a = self._any()
        b, out = self.alike(a), self.like(a)
        scale = (int(self._multipliers(1)[0]), self.one(-3, 0))
        one, other = self._zero_point(a), self._zero_point(a)
        zero = 0 if a.dtype is _S.Short else self.one(-20, 20)
        self.op(
            "cortex_m::quantized_add.out",
            *(a, one, *scale, b, other, *scale, zero),
            *(1 << 30, self.one(-19, -17), *self._limits(a), out),
        )

    def _table(self) -> None:
        a = self._any()
        count = 256 if a.dtype is _S.Char else self.choice((257, 513))
        table = self.constant((count,), a.dtype)
        self.op("cortex_m::quantized_activation.out", a, table, self.like(a))

    def _pool_(self) -> None:
        a = self._any()
        (kernel, stride, padding, _), _ = self._windows(a)
        kernel = [min(k, n) for k, n in zip(kernel, a.sizes[2:], strict=True)]
        padding = [min(p, k // 2) for p, k in zip(padding, kernel, strict=True)]
        axes = zip(a.sizes[2:], kernel, stride, padding, strict=True)
        out = [(n + 2 * p - k) // s + 1 for n, k, s, p in axes]
        if min(out) <= 0:
            return self._table()
        y = (*a.sizes[:2], *out)
        self.op(
            "cortex_m::quantized_max_pool2d.out",
            *(a, tuple(kernel), tuple(stride), tuple(padding), (1, 1), False),
            *(self._zero_point(a),) * 2,
            *(*self._limits(a), self.value(y, a.dtype, NHWC)),
        )
        return None

    # --- images of floats

    def _float_convolution(self) -> None:
        a = self._any()
        (kernel, stride, padding, dilation), out = self._windows(a)
        batch, channels = a.sizes[:2]
        groups = self.choice([g for g in (1, 1, 2, 3, channels) if channels % g == 0])
        outputs = groups * self.one(1, 3)
        weights = self.constant((outputs, channels // groups, *kernel), a.dtype)
        bias = self.constant((outputs,), a.dtype) if self.maybe(2) else None
        self.op(
            "aten::convolution.out",
            *(a, weights, bias, tuple(stride), tuple(padding), tuple(dilation)),
            *(False, (0, 0), groups, self.value((batch, outputs, *out), a.dtype)),
        )
