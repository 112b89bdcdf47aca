"""Makes reference.bin: calls of aten operators and what PyTorch's CPU gives.

Run it with a Python that has torch (2.13.0 made the file that is checked in):

    python tests/data/kernels/make_reference.py

It writes reference.bin and reference.json (versions, counts, digest) beside itself.
Format, little-endian: "ORCHREF1", u32 count of calls; per call:

    u8 length, operator name, f64 atol, f64 rtol, u8 count of arguments, arguments

An argument is a u8 kind and: 0 None; 1 input tensor; 2 i64 Int; 3 f64 Double;
4 u8 Bool; 5 u32 count and i64 items (IntList); 6 output tensor, with the result to
expect. A tensor is u8 dtype code, u8 rank, i32 sizes, u8 dim order, and its items
in memory order.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch

aten = torch.ops.aten

CODES = {
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.float64: 7,
    torch.bool: 11,
    torch.bfloat16: 15,
    torch.uint16: 27,
    torch.uint32: 28,
    torch.uint64: 29,
}
INTEGRAL = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATING = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
REAL = INTEGRAL + FLOATING
UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]

# Relative distance of neighbouring numbers, at most.
EPSILON = {
    torch.float16: 2.0**-10,
    torch.bfloat16: 2.0**-7,
    torch.float32: 2.0**-23,
    torch.float64: 2.0**-52,
}

LAST = {3: (0, 2, 1), 4: (0, 2, 3, 1)}  # channels last


class Out:
    """A result to expect."""

    def __init__(self, tensor: torch.Tensor, order: tuple[int, ...] = ()) -> None:
        """Remember a tensor and the dim order its memory has in the call."""
        self.tensor = tensor
        self.order = order or tuple(range(tensor.dim()))


class In(Out):
    """An input with a dim order of its own."""


class Writer:
    """Collects calls."""

    def __init__(self) -> None:
        """Begin without calls."""
        self.calls: list[bytes] = []
        self.counts: dict[str, int] = {}

    def call(
        self, name: str, args: list[Any], outs: list[Out], *, ulps: float, scale: float
    ) -> None:
        """Add a call.

        Args:
            name: Operator, `aten::add.out`.
            args: Inputs in schema order.
            outs: Outputs, which follow the inputs.
            ulps: Errors allowed, in steps of the last place of the result.
            scale: Size of the terms that a result is summed from: an error of `ulps`
                steps at this size is allowed too.
        """
        dtype = outs[0].tensor.dtype
        step = EPSILON.get(dtype, 0.0)
        data = struct.pack("<B", len(name)) + name.encode()
        data += struct.pack("<ddB", ulps * step * scale, ulps * step, len(args + outs))
        for arg in args:
            data += self._argument(arg)
        for out in outs:
            data += b"\x06" + self._tensor(out)
        self.calls.append(data)
        self.counts[name] = self.counts.get(name, 0) + 1

    def _argument(self, value: Any) -> bytes:
        if value is None:
            return b"\x00"
        if isinstance(value, torch.Tensor):
            value = In(value)
        if isinstance(value, In):
            return b"\x01" + self._tensor(value)
        if isinstance(value, bool):
            return struct.pack("<BB", 4, value)
        if isinstance(value, int):
            return struct.pack("<Bq", 2, value)
        if isinstance(value, float):
            return struct.pack("<Bd", 3, value)
        return struct.pack(f"<BI{len(value)}q", 5, len(value), *value)

    @staticmethod
    def _tensor(item: Out) -> bytes:
        tensor, order = item.tensor.detach(), item.order
        dense = tensor.permute(order).contiguous() if order else tensor.contiguous()
        if tensor.dtype == torch.bfloat16:
            dense = dense.view(torch.int16)
        rank = tensor.dim()
        head = struct.pack(f"<BB{rank}i{rank}B", CODES[tensor.dtype], rank,
                           *tensor.shape, *order)  # fmt: skip
        return head + dense.numpy().tobytes()


rng = np.random.default_rng(20240601)


def rand(dtype: torch.dtype, *shape: int, low: int = -8, high: int = 9) -> torch.Tensor:
    """Random numbers: normal for floats, whole numbers in [low, high) else."""
    if dtype in EPSILON:
        return torch.from_numpy(rng.standard_normal(shape)).to(dtype)
    if dtype == torch.bool:
        return torch.from_numpy(rng.integers(0, 2, shape)).to(dtype)
    if dtype in (torch.uint8, *UNSIGNED):
        low = 0
    return torch.from_numpy(rng.integers(low, high, shape)).to(dtype)


def wide(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Whole numbers over the whole range of the dtype, so that sums wrap around."""
    if dtype in EPSILON or dtype == torch.bool:
        return rand(dtype, *shape)
    info = torch.iinfo(dtype)
    return torch.from_numpy(
        rng.integers(info.min, info.max, shape, dtype=str(dtype).split(".")[1],
                     endpoint=True)
    )  # fmt: skip


def add(w: Writer) -> None:
    """Every pair of dtypes; broadcasting; dim orders; alpha."""
    name = "aten::add.out"

    def call(a: Any, b: Any, alpha: Any, out_dtype: Any = None, order: Any = ()) -> None:
        x = a.tensor if isinstance(a, In) else a
        y = b.tensor if isinstance(b, In) else b
        out_dtype = out_dtype or torch.result_type(x, y)
        shape = torch.broadcast_shapes(x.shape, y.shape)
        out = torch.empty(shape, dtype=out_dtype)
        aten.add.out(x, y, alpha=alpha, out=out)
        # The CPU may round alpha * b + a once.
        w.call(name, [a, b, alpha], [Out(out, order)], ulps=1, scale=8)

    dtypes = [*REAL, torch.bool]
    for a, b in itertools.product(dtypes, dtypes):
        call(wide(a, 3, 2), wide(b, 3, 2), 1)
        call(rand(a, 2, 3), rand(b), 1)
        call(rand(a), rand(b, 4), 1)
        both = torch.promote_types(a, b)
        if both != torch.bool:
            call(rand(a, 2, 2), rand(b, 1, 2), 3 if both == torch.uint8 else -2)
        if both in EPSILON:
            call(rand(a, 5), rand(b, 1), 0.37)
    for dtype in dtypes:
        for out in dtypes:
            if torch.can_cast(dtype, out):
                call(wide(dtype, 5), wide(dtype, 5), 1, out)
    call(rand(torch.bool, 8), rand(torch.bool, 8), True)
    call(rand(torch.bool, 8), rand(torch.bool, 8), False)
    f = torch.float32
    shapes = [
        ((2, 3, 4), (4,)), ((2, 1, 4), (3, 1)), ((1,), (2, 2)), ((), ()), ((), (3,)),
        ((0, 3), (1, 3)), ((0,), (1,)), ((2, 0), ()), ((1, 1, 1, 1, 2), (3, 1)),
        ((2, 1, 2, 1, 2, 1, 2, 1), (1, 2, 1, 2, 1, 2, 1, 2)),
    ]  # fmt: skip
    for a, b in shapes:
        for dtype in (f, torch.int32, torch.float16):
            call(rand(dtype, *a), rand(dtype, *b), 2)
    x, y, bias = rand(f, 2, 3, 2, 2), rand(f, 2, 3, 2, 2), rand(f, 3, 1, 1)
    for one, two, out in itertools.product([(), LAST[4], (3, 0, 1, 2)], repeat=3):
        call(In(x, one), In(y, two), 1, order=out)
        call(In(x, one), bias, -1.5, order=out)


def matmul(w: Writer) -> None:
    """mm and addmm: sizes around the block of four, dim orders, beta and alpha."""
    for dtype in REAL:
        for m, k, n in [(1, 1, 1), (2, 3, 4), (3, 7, 9), (1, 40, 6), (4, 0, 3),
                        (0, 2, 3), (5, 2, 0)]:  # fmt: skip
            for orders in itertools.product([(0, 1), (1, 0)], repeat=3):
                small = m * n <= 4
                if orders != ((0, 1),) * 3 and (small or k == 40):
                    continue
                a, b = rand(dtype, m, k), rand(dtype, k, n)
                want = aten.mm(a, b)
                args = [In(a, orders[0]), In(b, orders[1])]
                w.call("aten::mm.out", args, [Out(want, orders[2])],
                       ulps=2, scale=2 * (k or 1))  # fmt: skip
                for shape in ((n,), (m, n), (m, 1), (), (1, n)):
                    if len(shape) != 1 and not small and orders != ((0, 1), (1, 0), (0, 1)):
                        continue
                    c = rand(dtype, *shape)
                    beta, alpha = (2, -3) if dtype in INTEGRAL[1:] else (1, 1)
                    if dtype in EPSILON and len(shape) != 1:
                        beta, alpha = 0.5, -1.25
                    try:
                        want = aten.addmm(c, a, b, beta=beta, alpha=alpha)
                    except RuntimeError:
                        continue  # not broadcastable
                    args = [c, In(a, orders[0]), In(b, orders[1]), beta, alpha]
                    w.call("aten::addmm.out", args, [Out(want, orders[2])],
                           ulps=2, scale=3 * (k or 1))  # fmt: skip
        ones = [rand(dtype, 2, 2), rand(dtype, 2, 2)]
        if dtype in EPSILON:
            c = torch.tensor([float("nan"), float("inf")], dtype=dtype)
            want = aten.addmm(c, *ones, beta=0, alpha=1)
            w.call("aten::addmm.out", [c, *ones, 0, 1], [Out(want)], ulps=2, scale=4)


def softmax(w: Writer) -> None:
    """Every dim; sizes 0 and 1; NaN, infinities, large values; dim orders."""
    inf, nan = float("inf"), float("nan")
    rows = [
        [1, 2, 3], [1e4, -1e4, 0], [inf, 1, 2], [-inf, 1, 2], [-inf, -inf, -inf],
        [nan, 1, 2], [0, 0, 0], [-120, 0, -90], [0, -104, -88],
    ]  # fmt: skip
    name = "aten::_softmax.out"
    for dtype in FLOATING:
        for row in rows:
            x = torch.tensor(row, dtype=torch.float64).to(dtype)
            w.call(name, [x, 0, False], [Out(aten._softmax(x, 0, False))],
                   ulps=2, scale=0)  # fmt: skip
        for shape in [(), (1,), (7,), (33,), (3, 4), (2, 3, 5), (0,), (2, 0), (0, 3),
                      (2, 3, 2, 2)]:  # fmt: skip
            x = rand(dtype, *shape) * 3
            for dim in range(-max(len(shape), 1), max(len(shape), 1)):
                want = aten._softmax(x, dim, False)
                w.call(name, [x, dim, False], [Out(want)], ulps=3, scale=0)
        x = rand(dtype, 2, 3, 2, 4)
        for one, two in itertools.product([(), LAST[4]], repeat=2):
            want = aten._softmax(x, 1, False)
            w.call(name, [In(x, one), 1, False], [Out(want, two)], ulps=3, scale=0)
    # The CPU has no conversion inside of softmax: made of two steps here.
    x = rand(torch.float16, 3, 9)
    want = aten._softmax(x.float(), -1, False)
    w.call(name, [x, -1, True], [Out(want)], ulps=3, scale=0)


def permute_copy(w: Writer) -> None:
    """All dtypes, permutations and dim orders."""
    name = "aten::permute_copy.out"
    for dtype in [*REAL, torch.bool, *UNSIGNED]:
        x = wide(dtype, 2, 3, 4)
        for dims in itertools.permutations(range(3)):
            w.call(name, [x, dims], [Out(aten.permute_copy(x, dims))], ulps=0, scale=0)
    x = wide(torch.int16, 2, 3, 4)
    for dims in ([-1, 0, 1], [1, -1, -3]):
        w.call(name, [x, dims], [Out(aten.permute_copy(x, dims))], ulps=0, scale=0)
    for shape in [(), (1,), (0, 2), (1, 5, 1), (2, 1, 2, 1, 3, 1, 2, 2)]:
        x = wide(torch.int32, *shape)
        dims = list(range(len(shape)))[::-1]
        w.call(name, [x, dims], [Out(aten.permute_copy(x, dims))], ulps=0, scale=0)
    x = wide(torch.uint8, 2, 3, 4, 5)
    orders = [(), LAST[4], (3, 1, 0, 2)]
    for one, two in itertools.product(orders, repeat=2):
        for dims in [(0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 2, 3), (3, 2, 1, 0)]:
            want = aten.permute_copy(x, dims)
            w.call(name, [In(x, one), dims], [Out(want, two)], ulps=0, scale=0)


def unary(w: Writer) -> None:
    """relu and tanh: all dtypes, special values, shapes, dim orders."""
    special = [0.0, -0.0, 1e-8, -1e-4, 0.1, 0.54, 0.55, -0.56, 1, -3, 8.9, 9.2, -30,
               100, 1e30, float("inf"), -float("inf"), float("nan")]  # fmt: skip
    for dtype in FLOATING:
        x = torch.tensor(special, dtype=torch.float64).to(dtype)
        for name, fn in (("relu", aten.relu), ("tanh", aten.tanh)):
            w.call(f"aten::{name}.out", [x], [Out(fn(x))], ulps=2, scale=0)
            for shape in [(), (0,), (1,), (3, 5), (2, 2, 2)]:
                y = rand(dtype, *shape)
                w.call(f"aten::{name}.out", [y], [Out(fn(y))], ulps=2, scale=0)
            y = rand(dtype, 2, 3, 2, 4)
            for one, two in itertools.product([(), LAST[4], (3, 2, 1, 0)], repeat=2):
                w.call(f"aten::{name}.out", [In(y, one)], [Out(fn(y), two)],
                       ulps=2, scale=0)  # fmt: skip
    for dtype in INTEGRAL:
        x = wide(dtype, 7)
        w.call("aten::relu.out", [x], [Out(aten.relu(x))], ulps=0, scale=0)
    for dtype, out in itertools.product([*REAL, torch.bool, *UNSIGNED], FLOATING):
        x = rand(dtype, 2, 4)
        want = torch.empty(2, 4, dtype=out)
        aten.tanh.out(x, out=want)
        coarse = max(EPSILON.get(dtype, 0), EPSILON[out]) / EPSILON[out]
        w.call("aten::tanh.out", [x], [Out(want)], ulps=2 * coarse, scale=0)


def convolution(w: Writer) -> None:
    """1-d and 2-d, groups, parameters around each other, transposed, dim orders."""
    name = "aten::convolution.out"

    def call(dtype: torch.dtype, x: Any, k: Any, bias: bool, stride: Any, padding: Any,
             dilation: Any, transposed: bool, output_padding: Any, groups: int,
             orders: Any = ((), (), ())) -> None:  # fmt: skip
        a, b = rand(dtype, *x, low=-4, high=5), rand(dtype, *k, low=-4, high=5)
        channels = k[1] * groups if transposed else k[0]
        c = rand(dtype, channels) if bias else None
        rest = [stride, padding, dilation, transposed, output_padding, groups]
        if dtype in INTEGRAL and (transposed or max(dilation) > 1):
            # The CPU lacks these for most integers. Doubles hold the small sums
            # exactly; the result wraps around as integer arithmetic would.
            doubles = [t if t is None else t.double() for t in (a, b, c)]
            want = aten.convolution(*doubles, *rest).long().to(dtype)
        else:
            want = aten.convolution(a, b, c, *rest)
        terms = b.numel() // k[0] if not transposed else b.numel() // k[1]
        args = [In(a, orders[0]), In(b, orders[1]), c, *rest]
        w.call(name, args, [Out(want, orders[2])], ulps=2, scale=2 * terms)

    one, two, none = [1, 1], [2, 2], [0, 0]
    for dtype in REAL:
        call(dtype, (1, 1, 5, 5), (1, 1, 3, 3), True, one, none, one, False, none, 1)
        call(dtype, (2, 3, 5, 4), (5, 3, 3, 2), True, [2, 1], [1, 0], one, False, none, 1)
        call(dtype, (1, 4, 5, 5), (4, 1, 3, 3), False, one, one, one, False, none, 4)
        call(dtype, (1, 4, 4, 4), (6, 2, 2, 2), True, one, one, one, False, none, 2)
        call(dtype, (2, 6, 3, 2), (9, 6, 1, 1), True, one, none, one, False, none, 1)
        call(dtype, (1, 2, 9), (4, 2, 3), True, [2], [1], [2], False, [0], 1)
        call(dtype, (1, 2, 3, 4), (2, 3, 3, 2), True, [2, 3], [1, 0], one, True, [1, 0], 1)
        call(dtype, (1, 4, 3), (4, 2, 3), True, [2], [1], [1], True, [1], 2)
        orders = (LAST[4], LAST[4], LAST[4])
        call(dtype, (2, 3, 5, 4), (5, 3, 3, 3), True, [1, 2], one, one, False, none, 1,
             orders)  # fmt: skip
    f = torch.float32
    for stride, padding, dilation in itertools.product((1, 2, 3), (0, 1, 3), (1, 2)):
        for groups, bias in ((1, True), (2, False)):
            call(f, (1, 2, 7, 6), (4, 2 // groups, 3, 2), bias, [stride, 1], [padding, 0],
                 [dilation, 1], False, none, groups)  # fmt: skip
            call(f, (1, 2, 6), (4, 2 // groups, 2), bias, [stride], [padding], [dilation],
                 False, [0], groups)  # fmt: skip
            for extra in (0, 1):
                if extra < max(stride, dilation) and padding < 3:
                    call(f, (1, 4, 4, 3), (4, 3, 3, 2), bias, [stride, 2],
                         [padding, 0], [dilation, 1], True, [extra, 0], groups)  # fmt: skip
                    call(f, (2, 2, 4), (2, 2, 3), bias, [stride], [padding], [dilation],
                         True, [extra], groups)  # fmt: skip
    for orders in itertools.product([(), LAST[4]], repeat=3):
        call(f, (1, 4, 4, 3), (5, 4, 2, 2), True, one, one, one, False, none, 1, orders)
        call(f, (1, 4, 4, 3), (4, 1, 3, 3), True, one, one, one, False, none, 4, orders)
        call(f, (1, 4, 4, 3), (8, 4, 1, 1), True, two, none, one, False, none, 1, orders)
        call(f, (1, 4, 3, 2), (4, 2, 2, 3), True, two, one, one, True, one, 2, orders)
    for orders in itertools.product([(), LAST[3]], repeat=3):
        call(f, (2, 3, 6), (4, 3, 3), True, [1], [1], [1], False, [0], 1, orders)
    # Padding wider than the input; kernels of one row or column; a single number
    # for both dimensions; an empty batch.
    call(f, (1, 2, 2, 2), (3, 2, 3, 3), True, one, [5, 4], one, False, none, 1)
    call(f, (1, 3, 4, 6), (4, 3, 1, 3), True, one, [0, 1], one, False, none, 1)
    call(f, (1, 3, 6, 4), (4, 3, 3, 1), True, one, [1, 0], one, False, none, 1)
    call(f, (1, 2, 5, 5), (4, 2, 3, 3), True, [2], [1], [1], False, [0], 1)
    call(f, (0, 2, 5, 5), (4, 2, 3, 3), True, one, one, one, False, none, 1)
    call(f, (1, 1, 20, 10), (8, 1, 10, 4), True, two, [5, 1], one, False, none, 1)
    call(f, (1, 16, 6, 5), (12, 16, 3, 3), True, one, one, one, False, none, 1)


def pooling(w: Writer) -> None:
    """max and average pooling: parameters, ceil mode, ranks, dim orders, NaN."""
    nan, inf = float("nan"), float("inf")

    def max_pool(x: torch.Tensor, rest: list[Any], orders: Any = ((), ())) -> None:
        want, indices = aten.max_pool2d_with_indices(x, *rest)
        outs = [Out(want, orders[1]), Out(indices, orders[1])]
        args = [In(x, orders[0]), *rest]
        w.call("aten::max_pool2d_with_indices.out", args, outs, ulps=0, scale=0)

    def avg_pool(x: torch.Tensor, rest: list[Any], orders: Any = ((), ())) -> None:
        want = aten.avg_pool2d(x, *rest)
        w.call("aten::avg_pool2d.out", [In(x, orders[0]), *rest], [Out(want, orders[1])],
               ulps=2, scale=2)  # fmt: skip

    both = [
        # kernel, stride, padding
        ([2, 2], [], [0, 0]), ([3, 2], [2, 1], [1, 1]), ([3, 3], [2, 2], [1, 0]),
        ([1, 1], [1, 1], [0, 0]), ([2], [3], [1]), ([4, 3], [3, 2], [2, 1]),
        ([5, 4], [1, 1], [2, 2]),
    ]  # fmt: skip
    for dtype in REAL:
        average = dtype in (*FLOATING, torch.int64)
        for kernel, stride, padding in both:
            for ceil in (False, True):
                shape = (2, 2, 6, 5) if ceil else (3, 5, 7)
                x = rand(dtype, *shape, low=-99, high=99)
                max_pool(x, [kernel, stride, padding, [1, 1], ceil])
                if not average:
                    continue
                for include, divisor in ((True, None), (False, None), (True, -3)):
                    avg_pool(x, [kernel, stride, padding, ceil, include, divisor])
        x = rand(dtype, 1, 3, 6, 5)
        for one, two in itertools.product([(), LAST[4]], repeat=2):
            max_pool(x, [[2, 3], [1, 2], [1, 1], [1, 1], True], (one, two))
            if average:
                avg_pool(x, [[2, 3], [1, 2], [1, 1], True, False, None], (one, two))
    f = torch.float32
    for dilation, ceil in itertools.product(([2, 1], [1, 3], [2, 2]), (False, True)):
        max_pool(rand(f, 1, 2, 8, 9), [[3, 2], [2, 3], [1, 1], dilation, ceil])
    max_pool(rand(torch.int8, 2, 1, 9), [[1, 2], [1, 2], [0, 1], [1, 4], False])
    values = torch.tensor([[1, nan, 2, -inf], [nan, 0, -inf, -inf], [3, 3, -inf, -inf]])
    for dtype in FLOATING:
        max_pool(values.to(dtype)[None], [[2, 2], [1, 1], [0, 0], [1, 1], False])
        avg_pool(values.to(dtype)[None], [[2, 2], [1, 1], [0, 0], False, True, None])
    x = rand(f, 0, 2, 4, 4)
    max_pool(x, [[2, 2], [], [0, 0], [1, 1], False])
    avg_pool(rand(f, 1, 3, 25, 5), [[25, 5], [25, 5], [0, 0], False, True, None])


def batch_norm(w: Writer) -> None:
    """Ranks 2 to 5, optional parameters, dim orders, mixed dtypes."""
    name = "aten::_native_batch_norm_legit_no_training.out"
    op = aten._native_batch_norm_legit_no_training
    for dtype in FLOATING:
        params = [dtype, torch.float32] if EPSILON[dtype] > 1e-4 else [dtype]
        for shape in [(4, 3), (2, 3, 5), (2, 3, 4, 2), (1, 2, 2, 1, 3), (0, 3, 2)]:
            for has_weight, has_bias in itertools.product((True, False), repeat=2):
                for param in params:
                    for one in [(), LAST[4]] if len(shape) == 4 else [()]:
                        if param != dtype and not (has_weight and has_bias):
                            continue
                        x, c = rand(dtype, *shape), shape[1]
                        args = [
                            rand(param, c) if has_weight else None,
                            rand(param, c) if has_bias else None,
                            rand(param, c),
                            rand(param, c).abs() + 0.05,
                            0.1,
                            1e-5,
                        ]
                        want = op(x, *args)
                        outs = [Out(want[0], one), Out(want[1]), Out(want[2])]
                        w.call(name, [In(x, one), *args], outs, ulps=3, scale=12)


def main() -> None:
    """Write both files."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    writer = Writer()
    for make in (add, matmul, softmax, permute_copy, unary, convolution, pooling,
                 batch_norm):  # fmt: skip
        make(writer)
    data = b"ORCHREF1" + struct.pack("<I", len(writer.calls)) + b"".join(writer.calls)
    here = Path(__file__).parent
    (here / "reference.bin").write_bytes(data)
    index = {
        "made_by": "make_reference.py",
        "torch": torch.__version__,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "script_sha256": hashlib.sha256(Path(__file__).read_bytes()).hexdigest(),
        "calls": writer.counts,
    }
    text = json.dumps(index, indent=2) + "\n"
    (here / "reference.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
