"""Calls with complex numbers, and Fourier transforms.

Lengths of every kind (powers of two, other products, primes), several dimensions,
normalizations; spectra that are not those of real numbers.
"""
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import torch

from tests.opinfo.draw import COMPLEX, DTYPES, INF, NAN, Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

A = torch.ops.aten
C64, C128 = torch.complex64, torch.complex128
PARTS = {torch.complex32: torch.float16, C64: torch.float32, C128: torch.float64}
LENGTHS = (
    *(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 25, 26),
    *(27, 30, 31, 32, 34, 37, 40, 49, 60, 64, 81, 97, 100, 101, 119, 120, 127, 128),
    *(131, 143, 169, 221, 243, 256, 289, 400, 480, 512, 625, 1000, 1024),
)
SHAPES = (
    *(([2, 3, 4], [0]), ([2, 3, 4], [1]), ([2, 8, 3], [1, 0]), ([4, 6], [0, 1])),
    *(([5, 7], [1, 0]), ([3, 4, 5], [0, 1, 2]), ([4, 2, 6], [2, 0]), ([0, 4], [1])),
    *(([17, 4], [0, 1]), ([19, 17], [0, 1]), ([2, 34, 23], [1, 2]), ([37, 3], [0])),
    *(([2, 3, 2, 4, 5], [1, 3, 4]), ([16, 8, 4], [0, 1, 2]), ([3, 4, 5], [2, 0])),
    *(([6, 5, 4, 3], [3, 2, 1, 0]), ([1, 1, 8], [0, 1, 2]), ([20, 1], [0])),
)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.5, 1e-20, -1e20, 3e-39, INF, -INF, NAN)
IMPLICIT = False
"""Whether `expand` is one that broadcasting asks for."""


def numbers(dtype: torch.dtype, shape: list[int], seed: int = 0) -> torch.Tensor:
    """Normal numbers; whole ones for dtypes that are not floats."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    if dtype in PARTS:
        made = torch.randn([*shape, 2], generator=generator, dtype=torch.float64)
        return torch.view_as_complex(made).to(dtype)
    if dtype.is_floating_point:
        made = torch.randn(shape, generator=generator, dtype=torch.float64)
        return made.to(dtype)
    return torch.randint(0, 2, shape, generator=generator).to(dtype)


def special(dtype: torch.dtype) -> torch.Tensor:
    """All pairs of special numbers."""
    pairs = torch.tensor([*itertools.product(SPECIAL, SPECIAL)], dtype=torch.float64)
    return torch.view_as_complex(pairs).to(dtype)


def transforms(dtypes: tuple[torch.dtype, ...]) -> Iterator[tuple[Any, list[int], int]]:
    """Input, dimensions, normalization."""
    for dtype in dtypes:
        for number, length in enumerate(LENGTHS):
            yield numbers(dtype, [length]), [0], number % 3
            if length < 200:
                yield numbers(dtype, [3, length]), [1], (number + 1) % 3
        for number, (shape, dims) in enumerate(SHAPES):
            yield numbers(dtype, shape), dims, number % 3
        yield numbers(dtype, [20, 64]), [1], 0


def r2c() -> Iterator[Sample]:
    """Half of the spectrum, or all of it."""
    every = transforms((torch.float32, torch.float64))
    for number, (x, dims, norm) in enumerate(every):
        for onesided in (True, False) if number % 2 else (True,):
            yield Sample([x, dims, norm, onesided], is_plain=True)


def c2c() -> Iterator[Sample]:
    """There and back."""
    for number, (x, dims, norm) in enumerate(transforms((C64, C128))):
        yield Sample([x, dims, norm, number % 2 == 0], is_plain=True)


def c2r() -> Iterator[Sample]:
    """From half of a spectrum, of real numbers or not; of even and odd lengths."""
    for number, (x, dims, norm) in enumerate(transforms((C64, C128))):
        size = 2 * x.shape[dims[-1]] - 1 - number % 2
        if size > 0:
            yield Sample([x, dims, norm, size], is_plain=True)
    for dtype in (torch.float32, torch.float64):
        for shape, dims in SHAPES:
            if 0 in shape:
                continue  # an error of PyTorch's library
            x = numbers(dtype, shape)
            half = A._fft_r2c(x, dims, 0, onesided=True)
            given = [half, dims, 2, shape[dims[-1]]]
            yield Sample(given, is_plain=True)


def unary(name: str) -> Callable[[], Iterator[Sample]]:
    """Complex tensors of several sizes, and special numbers."""

    def samples() -> Iterator[Sample]:
        for dtype in COMPLEX:
            for shape in ([], [5], [2, 3], [2, 0, 3], [2, 3, 4, 2]):
                yield Sample([numbers(dtype, shape)], is_plain=True)
            yield Sample([special(dtype)], is_plain=True)

    samples.__name__ = name
    return samples


def exp() -> Iterator[Sample]:
    """Also where the exponential of the real part is larger than the result."""
    yield from unary("exp")()
    for dtype in (C64, C128):
        limit = torch.finfo(PARTS[dtype]).max
        real = torch.linspace(-60, 0.34, 161, dtype=torch.float64) + math.log(limit)
        turns = torch.full_like(real, math.pi / 4)
        yield Sample([torch.complex(real, turns).to(dtype)], is_plain=True)


def parts_of() -> Iterator[Sample]:
    """Pairs of numbers as complex ones."""
    for dtype in PARTS.values():
        for shape in ([2], [5, 2], [2, 3, 2], [2, 0, 2]):
            yield Sample([numbers(dtype, shape)], is_plain=True)


def complexes() -> Iterator[Sample]:
    """Parts that are broadcast."""
    for dtype in PARTS.values():
        for a, b in (([], []), ([4], [4]), ([3, 1], [4]), ([2, 0], [1, 1]), ([], [2])):
            yield Sample([numbers(dtype, a), numbers(dtype, b, 1)], is_plain=True)


def binary(*more: Any) -> Callable[[], Iterator[Sample]]:
    """Two tensors, broadcast; one that is refused, as complex ones do not mix."""

    def samples() -> Iterator[Sample]:
        for dtype in COMPLEX:
            for a, b in (([], []), ([5], [5]), ([3, 1], [4]), ([2, 3], [2, 1])):
                x, y = numbers(dtype, a), numbers(dtype, b, 1)
                yield Sample([x, y, *more], is_plain=True)
        for alpha in (2, -0.5) if more else ():
            yield Sample([numbers(C64, [4]), numbers(C64, [4], 1), alpha])
        yield Sample([numbers(C64, [4]), numbers(torch.float32, [4]), *more])

    return samples


def products(function: Any, *shapes: tuple[list[int], list[int]]) -> Any:
    """Matrix products."""

    def samples() -> Iterator[Sample]:
        for dtype, (a, b) in itertools.product((C64, C128), shapes):
            yield Sample([numbers(dtype, a), numbers(dtype, b, 1)], is_plain=True)

    samples.__name__ = str(function)
    return samples


def moves(*more: Any) -> Callable[[], Iterator[Sample]]:
    """Tensors that keep their items."""

    def samples() -> Iterator[Sample]:
        for dtype in COMPLEX:
            yield Sample([numbers(dtype, [2, 3, 4]), *more], is_plain=True)

    return samples


def lists(*more: Any) -> Callable[[], Iterator[Sample]]:
    """Lists of tensors; one that is refused."""

    def samples() -> Iterator[Sample]:
        for dtype in COMPLEX:
            given = [numbers(dtype, [2, 3]), numbers(dtype, [2, 3], 1)]
            yield Sample([given, *more], is_plain=True)
        mixed = [numbers(C64, [2, 3]), numbers(torch.float32, [2, 3])]
        yield Sample([mixed, *more], is_plain=True)

    return samples


def sums() -> Iterator[Sample]:
    """Sums along dimensions."""
    for dtype in (C64, C128):
        for dims, keep in (([0], False), ([1, 2], True), ([], False), ([-1], True)):
            x = numbers(dtype, [3, 4, 5])
            yield Sample([x, dims, keep, None], is_plain=True)


def copies() -> Iterator[Sample]:
    """Into another dtype."""
    for one, other in itertools.product((*DTYPES, *COMPLEX), repeat=2):
        if one in PARTS or other in PARTS:
            x = numbers(one, [2, 3])
            out = x.to(other)
            yield Sample([x, False, None], results=[out], is_plain=True)


def copies_into() -> Iterator[Sample]:
    """Over a tensor of another dtype."""
    for one, other in itertools.product((*DTYPES, *COMPLEX), repeat=2):
        if one in PARTS or other in PARTS:
            given = [numbers(other, [2, 3]), numbers(one, [3]), False]
            out = given[1].to(other).expand(2, 3).clone()
            yield Sample(given, results=[out], is_plain=True)


SAMPLES = {
    "aten::_fft_r2c.out": r2c,
    "aten::_fft_c2c.out": c2c,
    "aten::_fft_c2r.out": c2r,
    "aten::abs.out": unary("abs"),
    "aten::angle.out": unary("angle"),
    "aten::exp.out": exp,
    "aten::_conj_physical.out": unary("conj_physical"),
    "aten::_conj_copy.out": unary("conj_copy"),
    "aten::view_as_real_copy.out": unary("view_as_real_copy"),
    "aten::view_as_complex_copy.out": parts_of,
    "aten::complex.out": complexes,
    "aten::add.out": binary(1),
    "aten::sub.out": binary(1),
    "aten::mul.out": binary(),
    "aten::div.out": binary(),
    "aten::mm.out": products(A.mm, ([3, 4], [4, 5]), ([1, 7], [7, 1])),
    "aten::bmm.out": products(A.bmm, ([2, 3, 4], [2, 4, 5]), ([1, 1, 9], [1, 9, 1])),
    "aten::sum.IntList_out": sums,
    "aten::cat.out": lists(1),
    "aten::stack.out": lists(0),
    "aten::_to_copy.out": copies,
    "aten::copy.out": copies_into,
    "aten::permute_copy.out": moves([2, 0, 1]),
    "aten::view_copy.out": moves([4, 6]),
    "aten::clone.out": moves(None),
    "aten::constant_pad_nd.out": moves([1, 2, -1, 1], 1.5),
    "aten::slice_copy.Tensor_out": moves(1, 1, 3, 1),
    "aten::select_copy.int_out": moves(1, 2),
    "aten::unsqueeze_copy.out": moves(0),
    "aten::transpose_copy.int_out": moves(0, 2),
    "aten::expand_copy.out": moves([2, 2, 3, 4], IMPLICIT),
    "aten::flip.out": moves([0, 2]),
    "aten::roll.out": moves([1], [1]),
    "aten::tril.out": moves(0),
}
