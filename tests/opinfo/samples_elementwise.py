"""Calls of elementwise operators that the OpInfo database does not reach.

Overloads with numbers (PyTorch's functions take the overloads with tensors), outputs of
another dtype, copies, and integers at their limits.
"""
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import torch

from tests.opinfo.draw import DTYPES, INF, NAN, Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
SHAPES = ((), (0,), (5,), (3, 4), (2, 3, 1, 5))
NUMBERS = (0, 1, -3, 7, 100, True, 0.1, -1.7, 3.3, INF, NAN, -0.0, 2.5, 1 << 40)


def wide(dtype: torch.dtype, *shape: int, whole: bool = False) -> torch.Tensor:
    """Small numbers, and extreme ones among them."""
    made = (torch.randn(shape) * 5).to(torch.float64)
    if dtype == torch.bool:
        return made > 0
    if dtype in FLOATS:
        limits = torch.finfo(dtype)
        extreme = [INF, -INF, NAN, -0.0, 0.5, 1.5, -2.5, limits.max, limits.tiny]
        made = made.round() if whole else made
        made = made.to(dtype)
    else:
        limits = torch.iinfo(dtype)
        most = min(limits.max, (1 << 63) - 1)  # PyTorch sets no larger items
        extreme = [0, 1, most, limits.min, most - 1, limits.min + 1]
        made = (made.abs() if dtype in (torch.uint8, *UNSIGNED) else made).to(dtype)
    flat = made.flatten()
    for i in range(flat.numel()):
        if torch.rand(()) < 0.3:  # some of them
            at = int(torch.randint(len(extreme), ()))
            flat[i] = extreme[at]
    return flat.reshape(shape)


def tame(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Small numbers."""
    made = torch.randn(shape) * 5
    if dtype == torch.bool:
        return made > 0
    return (made.abs() if dtype in (torch.uint8, *UNSIGNED) else made).to(dtype)


def each(dtypes: tuple[torch.dtype, ...] | list[torch.dtype] = DTYPES) -> Iterator[torch.Tensor]:
    """Tensors of all shapes, wide and tame."""
    for dtype, shape in itertools.product(dtypes, SHAPES):
        yield wide(dtype, *shape)
        yield tame(dtype, *shape)


def with_number(*, alpha: bool) -> Callable[[], list[Sample]]:
    """Tensors and numbers; with a factor."""

    def samples() -> list[Sample]:
        found = []
        for x, y in itertools.product(each(), NUMBERS):
            found.append(Sample([x, y, 1] if alpha else [x, y], is_plain=True))
        if alpha:
            # Whether products overflow or are rounded depends on PyTorch's vectors.
            for x, y in itertools.product(DTYPES, NUMBERS):
                for shape, factor in itertools.product(SHAPES[1:], (3, -0.7)):
                    found.append(Sample([tame(x, *shape), y, factor], is_plain=True))
        return found

    return samples


def divided_by_number() -> list[Sample]:
    """Every mode."""
    modes = (None, "floor", "trunc")
    return [
        Sample([x, y, mode], is_plain=True)
        for x, y, mode in itertools.product(each(), NUMBERS, modes)
    ]


PAIRS = (((5,), (5,)), ((3, 4), (4,)), ((), (3,)), ((2, 1), (1, 3)), ((0,), (1,)))


def pairs(
    dtypes: tuple[torch.dtype, ...] | list[torch.dtype] = DTYPES, *, nonzero: bool = False
) -> Callable[[], list[Sample]]:
    """Tensors of all pairs of dtypes that broadcast."""

    def samples() -> list[Sample]:
        found = []
        for (a, b), (left, right) in itertools.product(itertools.product(dtypes, dtypes), PAIRS):
            for make in (wide, tame):
                x, y = make(a, *left), make(b, *right)
                if nonzero and y.dtype not in FLOATS:
                    y = torch.where(y == 0, torch.ones_like(y), y)
                found.append(Sample([x, y], is_plain=True))
        return found

    return samples


def truths(function: Callable[..., torch.Tensor]) -> Callable[[], list[Sample]]:
    """All pairs; also truth values as other dtypes have them."""

    def samples() -> list[Sample]:
        found = pairs()()
        for a, b in itertools.product(DTYPES, DTYPES):
            x, y = tame(a, 3, 2), tame(torch.bool, 2).to(a)
            found.append(Sample([x, y], [function(x, y).to(b)], is_plain=True))
        return found

    return samples


def shifts() -> list[Sample]:
    """By amounts within and outside of the width."""
    amounts = torch.tensor([0, 1, 3, 7, 8, 15, 16, 31, 32, 63, 64, 100, 127])
    found = []
    for a, b in itertools.product(INTEGERS, INTEGERS):
        by = amounts.to(b)
        found.append(Sample([wide(a, 13), by], is_plain=True))
        found.append(Sample([wide(a, 3, 13), by], is_plain=True))
        if b != torch.uint8:
            found.append(Sample([wide(a, 13), -by], is_plain=True))
    return found


def shifts_by_number() -> list[Sample]:
    """The same."""
    amounts = (0, 1, 7, 8, 31, 32, 63, 64, 100, -1, 300, 1 << 40, True)
    return [
        Sample([x, y], is_plain=True)
        for x, y in itertools.product(each((*INTEGERS, torch.bool)), amounts)
    ]


def single(
    dtypes: tuple[torch.dtype, ...] | list[torch.dtype] = DTYPES, *more: Any
) -> Callable[[], list[Sample]]:
    """One tensor, and further arguments."""
    return lambda: [Sample([x, *more], is_plain=True) for x in each(dtypes)]


def copies(*more: Any) -> Callable[[], list[Sample]]:
    """A tensor and the same again; also of the larger unsigned integers."""

    def samples() -> list[Sample]:
        dtypes = (*DTYPES, *UNSIGNED)
        return [Sample([x, *more], [x.clone()], is_plain=True) for x in each(dtypes)]

    return samples


def conversions() -> Callable[[], list[Sample]]:
    """From every dtype to every other; floats out of range are left out."""

    def samples() -> list[Sample]:
        found = []
        for a, b in itertools.product((*DTYPES, *UNSIGNED), repeat=2):
            narrows = a in FLOATS and b not in FLOATS and b != torch.bool
            for shape in SHAPES:
                x = tame(a, *shape) if narrows else wide(a, *shape)
                found.append(Sample([x, False, None], [x.to(b)], is_plain=True))
        return found

    return samples


def copies_into() -> list[Sample]:
    """copy: broadcast, and converted."""
    shapes = (((3, 4), (4,)), ((2, 3), ()), ((2, 3), (2, 1)), ((0, 3), (3,)))
    shapes = (*shapes, ((3, 4), (3, 4)))
    found = []
    for a, b in itertools.product((*DTYPES, *UNSIGNED), repeat=2):
        for left, right in shapes:
            x, y = tame(a, *left), tame(b, *right)
            found.append(Sample([x, y, False], is_plain=True))
    return found


BLOCKING = (False, None)
"""non_blocking, and no dim order."""
FILLS = (0, 1, 100, True, 3.7, -0.0)


def filled(*more: Any) -> list[Sample]:
    """One number."""
    return [Sample([x, y, *more], is_plain=True) for x, y in itertools.product(each(), FILLS)]


def filled_by_tensor() -> list[Sample]:
    """Every pair of dtypes."""
    return [
        Sample([wide(a, *shape), tame(b)], is_plain=True)
        for a, b, shape in itertools.product(DTYPES, DTYPES, SHAPES)
    ]


def full() -> list[Sample]:
    """full: numbers of every kind into every dtype."""
    return [
        Sample([list(shape), number], [torch.full(shape, number, dtype=dtype)])
        for dtype, number, shape in itertools.product(DTYPES, FILLS, SHAPES)
    ]


def scalar_tensor() -> list[Sample]:
    """The same, without dimensions."""
    return [
        Sample([number], [torch.full((), number, dtype=dtype)])
        for dtype, number in itertools.product(DTYPES, FILLS)
    ]


def made(number: int) -> Callable[[], list[Sample]]:
    """Tensors of one number."""
    return lambda: [
        Sample([list(shape)], [torch.full(shape, number, dtype=dtype)])
        for dtype, shape in itertools.product(DTYPES, SHAPES)
    ]


def ranges() -> list[Sample]:
    """arange: into every dtype, also from floats."""
    bounds = [(0, 5, 1), (5, -5, -3), (-7, 100, 13), (3, 3, 1), (0, 1 << 40, 1 << 38)]
    bounds += [(0.5, 5.5, 1.5), (5.75, -3.25, -1.25), (0, 5.5, 1), (0, 3, 0.5), (0, 2.0, 1)]
    return _ranges(bounds)


def ranges_from_zero() -> list[Sample]:
    """arange with an end only."""
    found = _ranges((0, end, 1) for end in (0, 1, 7, 100, 5.5, 3.0))
    return [Sample([s.args[1]], s.results) for s in found]


def _ranges(bounds: Iterable[tuple[Any, Any, Any]]) -> list[Sample]:
    found = []
    for (start, end, step), dtype in itertools.product(bounds, DTYPES):
        if dtype == torch.bool:
            continue
        try:
            made = torch.arange(start, end, step, dtype=dtype)
        except (RuntimeError, ValueError):
            continue
        found.append(Sample([start, end, step], [made]))
    return found


def clamped() -> list[Sample]:
    """By one tensor or two, broadcast, of all dtypes."""
    found = []
    for a, b in itertools.product(DTYPES, DTYPES):
        for left, right in PAIRS:
            low, high = wide(b, *right), wide(b, *right)
            found += [
                Sample([wide(a, *left), *limits], is_plain=True)
                for limits in ((low, high), (low, None), (None, high))
            ]
        mixed = [wide(a, 2, 3, 4), wide(b, 3, 1), wide(a, 4)]
        found.append(Sample(mixed, is_plain=True))
    return found


def clamped_by_numbers() -> list[Sample]:
    """By one number or two, also NaN."""
    limits = [(0, 5), (None, 3), (1, None), (-2.5, 2), (NAN, 1), (0, NAN), (3, 1)]
    return [Sample([x, *pair], is_plain=True) for x, pair in itertools.product(each(), limits)]


def hard() -> list[Sample]:
    """hardtanh: integers, and NaN."""
    limits = [(0, 5), (-1, 1), (-1.7, 2.9), (0.5, NAN), (NAN, 1), (3, 1)]
    return [
        Sample([x, *pair], is_plain=True)
        for x, pair in itertools.product(each(), limits)
        if x.dtype != torch.bool
    ]


def masked() -> list[Sample]:
    """Masks that broadcast, and are broadcast to."""
    shapes = (((3, 4), (4,)), ((4,), (3, 4)), ((), (3,)), ((2, 3), ()), ((0,), (1,)))
    return [
        Sample([wide(a, *left), tame(torch.bool, *right), value], is_plain=True)
        for a, (left, right), value in itertools.product(DTYPES, shapes, (0, 1, True, 3.7, -INF))
    ]


def extremes(function: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The largest or smallest item, also into a dtype that holds it."""

    def samples() -> list[Sample]:
        found = []
        for x in each():
            # Which zero is found depends on PyTorch's vectors.
            x = torch.where(x == 0, torch.ones_like(x), x)  # noqa: PLW2901
            if x.numel() == 0:
                continue
            found.append(Sample([x], [function(x)], is_plain=True))
            for dtype in (torch.float32, torch.float64, torch.int64):
                if torch.can_cast(x.dtype, dtype) and x.dtype != torch.float64:
                    wider = function(x).to(dtype)
                    found.append(Sample([x], [wider], is_plain=True))
        return found

    return samples


def undropped() -> list[Sample]:
    """native_dropout where nothing is dropped."""
    found = []
    for x in each():
        mask = torch.ones_like(x, dtype=torch.bool)
        found.append(Sample([x, 0.5, False], [x.clone(), mask], is_plain=True))
        found.append(Sample([x, 0.0, True], [x.clone(), mask], is_plain=True))
    return found


def sums() -> list[Sample]:
    """Integers at their limits, summed exactly modulo the width."""
    found = []
    for a, b in itertools.product((*INTEGERS, torch.bool), INTEGERS):
        for shape, dim in (((7,), [0]), ((3, 4), [1]), ((2, 3, 2), [0, 2]), ((0,), [0])):
            x = wide(a, *shape)
            total = x.to(torch.int64).sum(dim).to(b)
            found.append(Sample([x, dim, False, b], [total], is_plain=True))
    for a, b in itertools.product(FLOATS, (*INTEGERS, torch.bool)):
        x = tame(a, 3, 4)
        total = torch.sum(x, [1], dtype=b)
        found.append(Sample([x, [1], False, b], [total], is_plain=True))
    return found


def exact_means(*, dims: bool) -> Callable[[], list[Sample]]:
    """Of integers at their limits, into every float."""

    def samples() -> list[Sample]:
        found = []
        for a, b in itertools.product((*INTEGERS, torch.bool), FLOATS):
            for count in (1, 3, 8):
                x = wide(a, count)
                if a == torch.int64:
                    x = x // 2  # Python's division below is exact; b rounds it once
                mean = sum(int(i) for i in x) / count
                result = torch.tensor(mean, dtype=torch.float64).to(b)
                args = [x, [0], False, b] if dims else [x, b]
                found.append(Sample(args, [result], is_plain=True))
        return found

    return samples


SAMPLES = {
    "aten::__lshift__.Scalar_out": shifts_by_number,
    "aten::__lshift__.Tensor_out": shifts,
    "aten::__rshift__.Scalar_out": shifts_by_number,
    "aten::__rshift__.Tensor_out": shifts,
    "aten::_conj_physical.out": copies(),
    "aten::_to_copy.out": conversions(),
    "aten::add.Scalar_out": with_number(alpha=True),
    "aten::alias_copy.out": copies(),
    "aten::arange.out": ranges_from_zero,
    "aten::arange.start_out": ranges,
    "aten::bitwise_and.Scalar_out": shifts_by_number,
    "aten::bitwise_left_shift.Tensor_Scalar_out": shifts_by_number,
    "aten::bitwise_left_shift.Tensor_out": shifts,
    "aten::bitwise_or.Scalar_out": shifts_by_number,
    "aten::bitwise_right_shift.Tensor_Scalar_out": shifts_by_number,
    "aten::bitwise_right_shift.Tensor_out": shifts,
    "aten::bitwise_xor.Scalar_out": shifts_by_number,
    "aten::bitwise_xor.Tensor_out": pairs((*INTEGERS, torch.bool)),
    "aten::ceil.out": single(),
    "aten::clamp.Tensor_out": clamped,
    "aten::clamp.out": clamped_by_numbers,
    "aten::clone.out": copies(None),
    "aten::copy.out": copies_into,
    "aten::detach_copy.out": copies(),
    "aten::div.Scalar_mode_out": divided_by_number,
    "aten::div.Scalar_out": with_number(alpha=False),
    "aten::eq.Scalar_out": with_number(alpha=False),
    "aten::fill.Scalar_out": filled,
    "aten::fill.Tensor_out": filled_by_tensor,
    "aten::floor.out": single(),
    "aten::floor_divide.out": pairs(nonzero=True),
    "aten::fmod.Scalar_out": with_number(alpha=False),
    "aten::fmod.Tensor_out": pairs(nonzero=True),
    "aten::full.out": full,
    "aten::full_like.out": lambda: filled(None),
    "aten::ge.Scalar_out": with_number(alpha=False),
    "aten::gt.Scalar_out": with_number(alpha=False),
    "aten::hardtanh.out": hard,
    "aten::isinf.out": single(),
    "aten::isnan.out": single(),
    "aten::le.Scalar_out": with_number(alpha=False),
    "aten::lift_fresh_copy.out": copies(),
    "aten::logical_and.out": truths(torch.logical_and),
    "aten::logical_or.out": truths(torch.logical_or),
    "aten::lt.Scalar_out": with_number(alpha=False),
    "aten::masked_fill.Scalar_out": masked,
    "aten::max.unary_out": extremes(torch.max),
    "aten::mean.dtype_out": exact_means(dims=False),
    "aten::mean.out": exact_means(dims=True),
    "aten::min.unary_out": extremes(torch.min),
    "aten::mul.Scalar_out": with_number(alpha=False),
    "aten::native_dropout.out": undropped,
    "aten::ne.Scalar_out": with_number(alpha=False),
    "aten::ones.out": made(1),
    "aten::remainder.Scalar_out": with_number(alpha=False),
    "aten::remainder.Tensor_out": pairs(nonzero=True),
    "aten::round.out": single(),
    "aten::rsub.Scalar_out": with_number(alpha=True),
    "aten::scalar_tensor.out": scalar_tensor,
    "aten::sign.out": single(),
    "aten::sub.Scalar_out": with_number(alpha=True),
    "aten::sum.IntList_out": sums,
    "aten::trunc.out": single(),
    "aten::zeros.out": made(0),
    "dim_order_ops::_clone_dim_order.out": copies(*BLOCKING),
    "dim_order_ops::_to_dim_order_copy.out": conversions(),
    "et_copy::_d2h_copy.out": copies(),
    "et_copy::_h2d_copy.out": copies(),
}
