"""Reference calls of operators on images: convolution, pooling, batch norm."""
# Calls are written as in PyTorch: flags by position, names with underscores; lists of
# calls are long. mypy: torch is not there when the project is checked.
# ruff: noqa: C901, FBT001, FBT003, PLR0917, SLF001
# mypy: ignore-errors

from __future__ import annotations

import itertools
from typing import Any

import torch
from reference_format import EPSILON, FLOATING, INTEGRAL, LAST, REAL, In, Out, Writer, rand

aten = torch.ops.aten


def convolution(w: Writer) -> None:
    """1-d and 2-d, groups, parameters around each other, transposed, dim orders."""
    name = "aten::convolution.out"

    def call(
        dtype: torch.dtype,
        x: Any,
        k: Any,
        bias: bool,
        stride: Any,
        padding: Any,
        dilation: Any,
        transposed: bool,
        output_padding: Any,
        groups: int,
        orders: Any = ((), (), ()),
    ) -> None:
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
        call(dtype, (2, 3, 5, 4), (5, 3, 3, 3), True, [1, 2], one, one, False, none, 1, orders)
    f = torch.float32
    for stride, padding, dilation in itertools.product((1, 2, 3), (0, 1, 3), (1, 2)):
        for groups, bias in ((1, True), (2, False)):
            call(
                f,
                (1, 2, 7, 6),
                (4, 2 // groups, 3, 2),
                bias,
                [stride, 1],
                [padding, 0],
                [dilation, 1],
                False,
                none,
                groups,
            )
            call(
                f,
                (1, 2, 6),
                (4, 2 // groups, 2),
                bias,
                [stride],
                [padding],
                [dilation],
                False,
                [0],
                groups,
            )
            for extra in (0, 1):
                if extra < max(stride, dilation) and padding < 3:
                    call(
                        f,
                        (1, 4, 4, 3),
                        (4, 3, 3, 2),
                        bias,
                        [stride, 2],
                        [padding, 0],
                        [dilation, 1],
                        True,
                        [extra, 0],
                        groups,
                    )
                    call(
                        f,
                        (2, 2, 4),
                        (2, 2, 3),
                        bias,
                        [stride],
                        [padding],
                        [dilation],
                        True,
                        [extra],
                        groups,
                    )
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
        w.call(
            "aten::avg_pool2d.out",
            [In(x, orders[0]), *rest],
            [Out(want, orders[1])],
            ulps=2,
            scale=2,
        )

    both = [
        # kernel, stride, padding
        ([2, 2], [], [0, 0]),
        ([3, 2], [2, 1], [1, 1]),
        ([3, 3], [2, 2], [1, 0]),
        ([1, 1], [1, 1], [0, 0]),
        ([2], [3], [1]),
        ([4, 3], [3, 2], [2, 1]),
        ([5, 4], [1, 1], [2, 2]),
    ]
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
