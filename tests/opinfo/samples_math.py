"""Calls of functions of real numbers that the OpInfo database does not reach.

Numbers of every exponent, and outputs of another dtype; powers with numbers in place of
a tensor.
"""
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from tests.opinfo.draw import DTYPES, INF, NAN, Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
UNARY = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "exp"),
    *("expm1", "log", "log10", "log1p", "log2", "reciprocal", "rsqrt", "sinh"),
    *("sqrt", "tan"),
)
SPECIAL = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -3.0, 1e-30]
EXPONENTS = (0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.0, -3, 1.5, 7, 100, True, NAN, INF, -INF)
EXPONENTS += (0.3125, -2.75, 0.0, 40.0)
"""Those of halves: PyTorch does not round the others at the end of a tensor."""
BASES = (0, 1, 2, -1, -3, 0.5, 2.5, -2.5, 10.0, 300, True, False, NAN, INF, -INF, -0.0)


def wide(dtype: torch.dtype, count: int = 300) -> torch.Tensor:
    """Numbers of all exponents, ordinary ones, and special ones."""
    generator = torch.Generator().manual_seed(count)
    if dtype not in FLOATS:
        limits = None if dtype == torch.bool else torch.iinfo(dtype)
        low, high = (0, 2) if limits is None else (max(limits.min, -99), 100)
        made = torch.randint(low, high, (count,), generator=generator)
        if limits is not None and dtype not in UNSIGNED:
            made[:2] = torch.tensor([limits.min, limits.max])
        return made.to(dtype)
    reach = torch.log2(torch.tensor(torch.finfo(dtype).max, dtype=torch.float64))
    signs = torch.randint(0, 2, (count,), generator=generator) * 2 - 1
    unit = torch.rand(count, generator=generator, dtype=torch.float64)
    made = torch.exp2((unit * 2 - 1) * reach) * signs
    made[: count // 2] = torch.randn(
        count // 2, generator=generator, dtype=torch.float64
    ) * torch.linspace(0.01, 20, count // 2, dtype=torch.float64)
    made[: len(SPECIAL)] = torch.tensor(SPECIAL, dtype=torch.float64)
    return made.to(dtype)


def unary(name: str) -> list[Sample]:
    """All dtypes; then outputs of another one."""
    samples = [Sample([wide(d)]) for d in DTYPES]
    samples += [Sample([wide(d)], is_plain=True) for d in UNSIGNED]
    samples.append(Sample([torch.tensor(0.75)]))
    samples.append(Sample([torch.empty(0, 3)]))
    function = getattr(torch.ops.aten, name).out
    for given, made in ((0, 1), (3, 0), (2, 1), (3, 2)):  # none has more digits
        self = wide(FLOATS[given])
        out = torch.empty(self.shape, dtype=FLOATS[made])
        samples.append(Sample([self], results=[function(self, out=out)]))
    return samples


def elu() -> Iterator[Sample]:
    """Numbers of all kinds."""
    for dtype in FLOATS:
        for numbers in ((1.0, 1.0, 1.0), (1.5, -2, 0.25), (-1, 1.7, True), (0, 0, 0)):
            yield Sample([wide(dtype), *numbers])


def leaky_relu() -> Iterator[Sample]:
    """Numbers of all kinds."""
    for dtype in FLOATS:
        for slope in (0.01, -0.5, 0, 3, True, INF):
            yield Sample([wide(dtype), slope])


def logit() -> Iterator[Sample]:
    """With and without limits."""
    for dtype in (*DTYPES, *UNSIGNED):
        for eps in (None, 0.0, 1e-6, 0.25, -1.0):
            self = wide(dtype)
            if dtype in FLOATS:
                self = torch.cat([self, torch.linspace(0, 1, 200).to(dtype)])
            yield Sample([self, eps], is_plain=dtype in UNSIGNED)


def pairs() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Two tensors of all dtypes, also mixed, also broadcast."""
    for one in DTYPES:
        for other in DTYPES:
            x, y = wide(one, 60), wide(other, 50)
            yield x[:40].reshape(40, 1), y[:40]
            yield x, torch.tensor(y[7].item(), dtype=other)
    for dtype in FLOATS:
        order = torch.randperm(400, generator=torch.Generator().manual_seed(1))
        yield wide(dtype, 400), wide(dtype, 400)[order]


def binary(name: str) -> Iterator[Sample]:
    """Pairs of tensors; then outputs of another dtype."""
    for pair in pairs():
        yield Sample([*pair])
    function = getattr(torch.ops.aten, name)
    out = function.Tensor_Tensor_out if name == "pow" else function.out
    for dtype, made in ((torch.int32, torch.float16), (torch.float64, torch.float32)):
        x, y = wide(dtype), wide(dtype).flip(0)
        result = out(x, y, out=torch.empty(x.shape, dtype=made))
        yield Sample([x, y], results=[result])


def pow_tensor_scalar() -> Iterator[Sample]:
    """All dtypes and kinds of exponents."""
    for dtype in DTYPES:
        for exponent in EXPONENTS:
            yield Sample([wide(dtype), exponent])
    for dtype, exponent, made in (
        (torch.int32, 3, torch.float32),
        (torch.int8, 5, torch.int64),
        (torch.float32, 2, torch.float16),
        (torch.uint8, 2.5, torch.bfloat16),
    ):
        self = wide(dtype)
        out = torch.empty(self.shape, dtype=made)
        result = torch.ops.aten.pow.Tensor_Scalar_out(self, exponent, out=out)
        yield Sample([self, exponent], results=[result])


def pow_scalar() -> Iterator[Sample]:
    """All dtypes and kinds of bases."""
    for dtype in DTYPES:
        for base in BASES:
            yield Sample([base, wide(dtype)])


SAMPLES: dict[str, Callable[[], Any]] = {
    **{f"aten::{name}.out": partial(unary, name) for name in UNARY},
    "aten::elu.out": elu,
    "aten::leaky_relu.out": leaky_relu,
    "aten::logit.out": logit,
    "aten::atan2.out": partial(binary, "atan2"),
    "aten::pow.Tensor_Tensor_out": partial(binary, "pow"),
    "aten::pow.Tensor_Scalar_out": pow_tensor_scalar,
    "aten::pow.Scalar_out": pow_scalar,
}
