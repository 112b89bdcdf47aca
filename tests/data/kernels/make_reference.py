"""Makes reference.bin: calls of operators and what PyTorch's CPU gives.

Run it with a Python that has torch and executorch (2.13.0 and 1.5.1 made the file that
is checked in):

    python tests/data/kernels/make_reference.py

It writes reference.bin and reference.json (versions, counts, digests) beside itself;
the format is described in reference_format.py.
"""
# Calls are written as in PyTorch: flags by position, names with underscores; lists of
# calls are long. mypy: torch is not there when the project is checked.
# ruff: noqa: C901, FBT003, SLF001
# mypy: ignore-errors

from __future__ import annotations

import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import torch
from reference_elementwise import elementwise
from reference_format import (
    EPSILON,
    FLOATING,
    INTEGRAL,
    LAST,
    REAL,
    UNSIGNED,
    In,
    Out,
    Writer,
    rand,
    wide,
)
from reference_images import batch_norm, convolution, pooling
from reference_logic import logic
from reference_quantized import quantized
from reference_shapes import shapes

aten = torch.ops.aten


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
        # The CPU may round alpha * b + a once, or alpha * b before.
        w.call(name, [a, b, alpha], [Out(out, order)], ulps=2, scale=4)

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
        ((2, 3, 4), (4,)),
        ((2, 1, 4), (3, 1)),
        ((1,), (2, 2)),
        ((), ()),
        ((), (3,)),
        ((0, 3), (1, 3)),
        ((0,), (1,)),
        ((2, 0), ()),
        ((1, 1, 1, 1, 2), (3, 1)),
        ((2, 1, 2, 1, 2, 1, 2, 1), (1, 2, 1, 2, 1, 2, 1, 2)),
    ]
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
        for m, k, n in [
            (1, 1, 1),
            (2, 3, 4),
            (3, 7, 9),
            (1, 40, 6),
            (4, 0, 3),
            (0, 2, 3),
            (5, 2, 0),
        ]:
            for orders in itertools.product([(0, 1), (1, 0)], repeat=3):
                small = m * n <= 4
                if orders != ((0, 1),) * 3 and (small or k == 40):
                    continue
                a, b = rand(dtype, m, k), rand(dtype, k, n)
                want = aten.mm(a, b)
                args = [In(a, orders[0]), In(b, orders[1])]
                w.call("aten::mm.out", args, [Out(want, orders[2])], ulps=2, scale=2 * (k or 1))
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
                    w.call(
                        "aten::addmm.out", args, [Out(want, orders[2])], ulps=2, scale=3 * (k or 1)
                    )
        ones = [rand(dtype, 2, 2), rand(dtype, 2, 2)]
        if dtype in EPSILON:
            c = torch.tensor([float("nan"), float("inf")], dtype=dtype)
            want = aten.addmm(c, *ones, beta=0, alpha=1)
            w.call("aten::addmm.out", [c, *ones, 0, 1], [Out(want)], ulps=2, scale=4)


def softmax(w: Writer) -> None:
    """Every dim; sizes 0 and 1; NaN, infinities, large values; dim orders."""
    inf, nan = float("inf"), float("nan")
    rows = [
        [1, 2, 3],
        [1e4, -1e4, 0],
        [inf, 1, 2],
        [-inf, 1, 2],
        [-inf, -inf, -inf],
        [nan, 1, 2],
        [0, 0, 0],
        [-120, 0, -90],
        [0, -104, -88],
    ]
    name = "aten::_softmax.out"
    for dtype in FLOATING:
        for row in rows:
            x = torch.tensor(row, dtype=torch.float64).to(dtype)
            w.call(name, [x, 0, False], [Out(aten._softmax(x, 0, False))], ulps=2, scale=0)
        for shape in [(), (1,), (7,), (33,), (3, 4), (2, 3, 5), (0,), (2, 0), (0, 3), (2, 3, 2, 2)]:
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
    special = [
        0.0,
        -0.0,
        1e-8,
        -1e-4,
        0.1,
        0.54,
        0.55,
        -0.56,
        1,
        -3,
        8.9,
        9.2,
        -30,
        100,
        1e30,
        float("inf"),
        -float("inf"),
        float("nan"),
    ]
    for dtype in FLOATING:
        x = torch.tensor(special, dtype=torch.float64).to(dtype)
        for name, fn in (("relu", aten.relu), ("tanh", aten.tanh)):
            w.call(f"aten::{name}.out", [x], [Out(fn(x))], ulps=2, scale=0)
            for shape in [(), (0,), (1,), (3, 5), (2, 2, 2)]:
                y = rand(dtype, *shape)
                w.call(f"aten::{name}.out", [y], [Out(fn(y))], ulps=2, scale=0)
            y = rand(dtype, 2, 3, 2, 4)
            for one, two in itertools.product([(), LAST[4], (3, 2, 1, 0)], repeat=2):
                w.call(f"aten::{name}.out", [In(y, one)], [Out(fn(y), two)], ulps=2, scale=0)
    for dtype in INTEGRAL:
        x = wide(dtype, 7)
        w.call("aten::relu.out", [x], [Out(aten.relu(x))], ulps=0, scale=0)
    for dtype, out in itertools.product([*REAL, torch.bool, *UNSIGNED], FLOATING):
        x = rand(dtype, 2, 4)
        want = torch.empty(2, 4, dtype=out)
        aten.tanh.out(x, out=want)
        coarse = max(EPSILON.get(dtype, 0), EPSILON[out]) / EPSILON[out]
        w.call("aten::tanh.out", [x], [Out(want)], ulps=2 * coarse, scale=0)


def main() -> None:
    """Write both files."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    writer = Writer()
    for make in (
        add,
        matmul,
        softmax,
        permute_copy,
        unary,
        convolution,
        pooling,
        batch_norm,
        quantized,
        elementwise,
        shapes,
        logic,
    ):
        make(writer)
    data = writer.file()
    here = Path(__file__).parent
    (here / "reference.bin").write_bytes(data)
    index = {
        "torch": torch.__version__,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "made_by": {
            name: hashlib.sha256((here / name).read_bytes()).hexdigest()
            for name in sorted(path.name for path in here.glob("*.py"))
        },
        "calls": writer.counts,
    }
    text = json.dumps(index, indent=2) + "\n"
    (here / "reference.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
