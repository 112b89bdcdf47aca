"""Calls of indexing, sampling and gradients that the OpInfo database does not reach.

Masks among indices, 32-bit indices, scaled and sampled images, convolutions of volumes
and gradients of convolutions and pooling.
"""
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

import itertools
import math
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch

from tests.opinfo.draw import DTYPES, INF, NAN, Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def numbers(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Small numbers."""
    made = torch.randn(shape) * 5
    if dtype == torch.bool:
        return made > 0
    return (made.abs() if dtype == torch.uint8 else made).to(dtype)


def _indexed() -> Iterator[tuple[torch.dtype, tuple[int, ...], list[Any]]]:
    """Dtype and sizes of a tensor, and indices that fit it."""
    for dtype in DTYPES:
        for kind in (torch.bool, torch.uint8):
            two = (torch.rand(3, 4) > 0.5).to(kind)
            one = torch.tensor([1, 0, 1, 1]).to(kind)
            yield dtype, (3, 4), [two]
            yield dtype, (3, 4), [None, one]
            yield dtype, (3, 4, 2), [two, torch.tensor([1])]
            yield dtype, (2, 3, 4), [None, two]
            yield dtype, (3, 2, 4), [torch.tensor([0, 2, 1]), None, one]
            yield dtype, (3, 2, 4), [torch.tensor([[0], [2]]), None, one]
            yield dtype, (3, 4), [torch.tensor([2], dtype=torch.int32), one]
            yield dtype, (3, 4), [torch.zeros(3, 4).to(kind)]
            yield dtype, (0, 4), [torch.zeros(0, 4).to(kind)]
            yield dtype, (4, 4), [one, torch.tensor([0, 1, 0, 0]).to(kind)]
        yield dtype, (5,), [torch.tensor([0, -1, 3], dtype=torch.int32)]


def index() -> Iterator[Sample]:
    """aten::index.Tensor_out."""
    for dtype, shape, indices in _indexed():
        yield Sample([numbers(dtype, *shape), indices])


def index_put() -> Iterator[Sample]:
    """aten::index_put.out."""
    for dtype, shape, indices in _indexed():
        tensor = numbers(dtype, *shape)
        chosen = torch.ops.aten.index(tensor, indices)
        for accumulate in (False, True):
            values = numbers(dtype, *chosen.shape)
            yield Sample([tensor, indices, values, accumulate])
            yield Sample([tensor, indices, numbers(dtype, 1), accumulate])


def index_put_in_place() -> Iterator[Sample]:
    """aten::index_put_: calls that change all items, whatever they were."""
    for dtype, kind in itertools.product(DTYPES, (torch.int64, torch.int32)):
        each = torch.tensor([2, -4, 3, 1]).to(kind)
        for shape, indices in (
            ((4,), [each]),
            ((4, 3), [each]),
            ((4, 3, 2), [each]),
            ((3, 4), [None, each]),
            ((4, 4), [each.reshape(4, 1), each]),
            ((3, 4), [torch.ones(3, 4).bool()]),
        ):
            tensor = numbers(dtype, *shape)
            chosen = torch.ops.aten.index(tensor, indices)
            yield Sample([tensor, indices, numbers(dtype, *chosen.shape), False])
            yield Sample([tensor, indices, numbers(dtype, 1), False])


def _along() -> Iterator[tuple[torch.dtype, tuple[int, ...], int, torch.Tensor]]:
    shapes = [((5,), 0, (7,)), ((3, 4), 1, (2, 9)), ((3, 4), 0, (8, 3)), ((), 0, (1,))]
    shapes += [((2, 3, 40), -1, (2, 2, 90)), ((2, 3, 4), 1, (1, 6, 4)), ((4,), 0, ())]
    for dtype, (shape, dim, picked), kind in itertools.product(
        DTYPES, shapes, (torch.int64, torch.int32)
    ):
        size = shape[dim] if shape else 1
        yield dtype, shape, dim, torch.randint(0, size, picked).to(kind)


def gather() -> Iterator[Sample]:
    """aten::gather.out."""
    for dtype, shape, dim, picked in _along():
        yield Sample([numbers(dtype, *shape), dim, picked, False])


def scatter() -> Iterator[Sample]:
    """aten::scatter.src_out and scatter_add.out, with indices that repeat."""
    for dtype, shape, dim, picked in _along():
        src = numbers(dtype, *picked.shape)
        yield Sample([numbers(dtype, *shape), dim, picked, src])


def scatter_value() -> Iterator[Sample]:
    """aten::scatter.value_out."""
    for (dtype, shape, dim, picked), value in zip(
        _along(), itertools.cycle((1, -2, 2.75, True, 255, -128, INF, NAN)), strict=False
    ):
        yield Sample([numbers(dtype, *shape), dim, picked, value])


def index_select() -> Iterator[Sample]:
    """aten::index_select.out."""
    for dtype, shape, dim, picked in _along():
        yield Sample([numbers(dtype, *shape), dim, picked.flatten()[:6]])


IMAGES = ((1, 1, 3, 4), (2, 3, 5, 7), (1, 2, 1, 1), (0, 2, 3, 3))
SCALED = ((3, 4), (6, 8), (2, 9), (1, 1), (11, 3), (20, 20))


def bilinear() -> Iterator[Sample]:
    """aten::upsample_bilinear2d.vec_out."""
    for dtype, shape, corners in itertools.product(DTYPES, IMAGES, (True, False)):
        image = numbers(dtype, *shape)
        for size in SCALED:
            yield Sample([image, list(size), corners, None])
        for factors in ([2.0, 2.0], [1.7, 0.9], [3.0, 1.0], [0.5, 4.3]):
            yield Sample([image, None, corners, factors])


def nearest() -> Iterator[Sample]:
    """aten::upsample_nearest2d.vec_out."""
    for dtype, shape in itertools.product(DTYPES, IMAGES):
        image = numbers(dtype, *shape)
        for size in SCALED:
            yield Sample([image, list(size), None])
        for factors in ([2.0, 2.0], [1.7, 0.9], [3.0, 1.0], [0.5, 4.3]):
            yield Sample([image, None, factors])


def smooth() -> Iterator[Sample]:
    """aten::_upsample_bilinear2d_aa.out.

    Windows lie in the image: PyTorch reads what is behind a row where they do not.
    """
    for dtype, shape, corners in itertools.product(DTYPES, IMAGES, (True, False)):
        image = numbers(dtype, *shape)
        least = [[to / of for to, of in zip(s, shape[2:], strict=True)] for s in SCALED]
        for size, (height, width) in zip(SCALED, least, strict=True):
            yield Sample([image, list(size), corners, None, None])
            yield Sample([image, list(size), corners, height, max(width, 0.7)])
            yield Sample([image, list(size), corners, 1.3 * height, 2 * width])
    yield Sample([torch.randn(1, 1, 40, 50), [2, 3], False, None, None])


def sampled() -> Iterator[Sample]:
    """aten::grid_sampler_2d.out."""
    special = torch.tensor([-1.0, 1.0, 0.0, INF, -INF, NAN, 1e30, -2.5, 3.7, 0.5])
    for dtype, mode, padding, corners in itertools.product(
        FLOATS, range(3), range(3), (True, False)
    ):
        for n, c, h, w in ((2, 3, 4, 5), (1, 1, 1, 1), (1, 2, 6, 1)):
            grid = (torch.randn(n, 3, 5, 2) * 0.9).to(dtype)
            args = [mode, padding, corners]
            yield Sample([numbers(dtype, n, c, h, w), grid, *args], is_plain=True)
        grid = torch.cartesian_prod(special, special).reshape(1, 10, 10, 2)
        args = [grid.to(dtype), mode, padding, corners]
        yield Sample([numbers(dtype, 1, 1, 4, 5), *args], is_plain=True)


def pool_gradient() -> Iterator[Sample]:
    """aten::max_pool2d_with_indices_backward.grad_input."""
    for dtype, rank, ceil, (kernel, stride, padding, dilation) in itertools.product(
        FLOATS,
        (3, 4),
        (True, False),
        (
            ([2, 2], [], [0, 0], [1, 1]),
            ([3, 2], [1, 2], [1, 1], [1, 1]),
            ([3], [1], [1], [2]),
            ([2, 2], [3, 3], [0], [1, 1]),
        ),
    ):
        image = numbers(dtype, *((2, 3, 7, 8)[-rank:]))
        window = [kernel, stride, padding, dilation, ceil]
        out, at = torch.ops.aten.max_pool2d_with_indices(image, *window)
        gradient = numbers(dtype, *out.shape)
        yield Sample([gradient, image, *window, at], is_plain=True)


def _convolutions() -> Iterator[list[Any]]:
    """Input, weight, bias, and what follows."""
    for dtype, spatial, groups, is_transposed in itertools.product(
        FLOATS, (1, 2, 3), (1, 2, 4), (False, True)
    ):
        for stride, padding, dilation, more in (
            (1, 0, 1, 0),
            (2, 1, 1, 1),
            (1, 2, 2, 0),
            (3, 1, 2, 2),
        ):
            sizes = (6, 5, 7)[:spatial]
            kernel = (2, 3, 1)[:spatial]
            channels = (4, 8 // groups)
            if not is_transposed:
                channels = (8, 4 // groups)
            if any(
                s + 2 * padding < dilation * (k - 1) + 1 for s, k in zip(sizes, kernel, strict=True)
            ):
                continue
            yield [
                numbers(dtype, 2, 4, *sizes),
                numbers(dtype, *channels, *kernel),
                numbers(dtype, 8),
                [stride] * spatial,
                [padding] * spatial,
                [dilation] * spatial,
                is_transposed,
                [more if is_transposed else 0] * spatial,
                groups,
            ]


def convolution() -> Iterator[Sample]:
    """aten::convolution.out of volumes."""
    for args in _convolutions():
        if len(args[3]) == len("DHW"):
            yield Sample(args, is_plain=True)
            yield Sample([*args[:2], None, *args[3:]], is_plain=True)


def convolution_gradient() -> Iterator[Sample]:
    """aten::convolution_backward.out."""
    for args in _convolutions():
        try:
            out = torch.ops.aten.convolution(*args)
        except RuntimeError:
            continue
        gradient = numbers(out.dtype, *out.shape)
        sizes = [out.shape[1]]
        rest = [*args[3:], [True, True, True]]
        yield Sample([gradient, *args[:2], sizes, *rest], is_plain=True)
        yield Sample([gradient, *args[:2], None, *rest], is_plain=True)


def close() -> Iterator[Sample]:
    """aten::allclose.out, which is ExecuTorch's."""
    for dtype, change, equal_nan in itertools.product(
        DTYPES, (0.0, 1e-6, 1e-3, 1.0, NAN, INF), (True, False)
    ):
        if dtype not in FLOATS and change not in (0.0, 1.0):
            continue
        for rtol, atol in ((1e-5, 1e-8), (1e-3, 1e-3), (0.0, 0.0), (0.5, 0.0)):
            one = numbers(dtype, 3, 4)
            other = one.clone()
            if change:
                other[1, 2] = torch.tensor(one[1, 2] + change).to(dtype)
            if math.isnan(change):
                one[1, 2] = NAN
            options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan}
            found = torch.tensor(torch.allclose(one, other, **options))
            args = [one, other, rtol, atol, equal_nan, False]
            yield Sample(args, [found], is_plain=True)


def _quantized() -> Any:
    """ExecuTorch's operators on quantized tensors."""
    # They are registered when these are imported.
    import_module("executorch.exir.passes._quant_patterns_and_replacements")
    import_module("executorch.kernels.quantized")
    return torch.ops.quantized_decomposed


PARAMETERS = (torch.float32, torch.float16, torch.bfloat16)


def _embeddings(name: str, bits: int, *, named: bool) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        run = getattr(_quantized(), name)
        limits = {8: (-128, 127), 4: (-8, 7), 2: (-2, 1)}[bits]
        for kind, dtype, grouped, has_zero, index, out in itertools.product(
            (torch.uint8, torch.int8) if bits == 8 else (torch.uint8,),
            PARAMETERS,
            (0, 1, 2),
            (True, False),
            (torch.tensor([[0, 4, 2], [4, 4, 1]]), torch.tensor(3), torch.zeros(0)),
            PARAMETERS if named else (None,),
        ):
            own = (0, 255) if kind == torch.uint8 and bits == 8 else limits
            stored = (0, 256) if kind == torch.uint8 else (-128, 128)
            weight = torch.randint(*stored, (5, 4)).to(kind)
            shape = (5, grouped) if grouped else (5,)
            scales = (torch.rand(shape) + 0.1).to(dtype)
            zeros = torch.randint(-3, 4, shape).to(dtype) if has_zero else None
            args = [weight, scales, zeros, *own, index.long()]
            given = [out] if named else []
            if not named or zeros is None or zeros.dtype == out:
                # In float, as in the kernel: Python rounds halves twice.
                wide = [None if t is None else t.float() for t in (scales, zeros)]
                found = run.default(weight, *wide, *args[3:]).to(out or dtype)
                yield Sample([*args, *given], [found], is_plain=True)

    return samples


def mixed_mm() -> Iterator[Sample]:
    """quantized_decomposed::mixed_mm.out; halves are computed as floats."""
    run = _quantized().mixed_mm.out
    for dtype, (m, n, p) in itertools.product(
        PARAMETERS, ((2, 3, 4), (1, 17, 5), (3, 0, 2), (0, 2, 2))
    ):
        weight = torch.randint(-128, 128, (n, p)).to(torch.int8)
        input_, scales = numbers(dtype, m, n), torch.rand(n).to(dtype)
        out = torch.zeros(m, p)
        run(input_.float(), weight, scales.float(), None, out=out)
        args = [input_, weight, scales, None]
        yield Sample(args, [out.to(dtype)], is_plain=True)


def mixed_linear() -> Iterator[Sample]:
    """quantized_decomposed::mixed_linear.out; halves are computed as floats."""
    run = _quantized().mixed_linear.out
    for dtype, out_dtype, groups, (m, n, p) in itertools.product(
        PARAMETERS, (*PARAMETERS, None), (0, 1, 2, 3), ((2, 6, 4), (1, 12, 5), (0, 3, 2))
    ):
        weight = torch.randint(-128, 128, (p, n)).to(torch.int8)
        input_ = numbers(dtype, m, n)
        scales = torch.rand((p, groups) if groups else (p,)).to(dtype)
        out = torch.zeros(m, p)
        run(input_.float(), weight, scales.float(), None, torch.float32, out=out)
        args = [input_, weight, scales, None, out_dtype]
        yield Sample(args, [out.to(out_dtype or dtype)], is_plain=True)


def quantized_add() -> Iterator[Sample]:
    """quantized_decomposed::add.out, by its definition."""
    for dtype, shape in itertools.product(
        (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        ((), (3, 4), (2, 3, 5), (0, 2)),
    ):
        for low, high in ((0, 255), (3, 100), (0, 127)):
            a, b = (torch.randint(0, 128, shape).to(dtype) for _ in range(2))
            (x, y, z), zeros = torch.rand(3) + 0.05, (3, 128, 7)
            floats = [
                ((t.double() - zero) * scale.double()).float()
                for t, zero, scale in ((a, zeros[0], x), (b, zeros[1], y))
            ]
            whole = torch.round((1 / z) * (floats[0] + floats[1])) + zeros[2]
            out = whole.clamp(low, high).to(torch.int64).to(dtype)
            of = [[float(s), zero, 0, 255] for s, zero in ((x, 3), (y, 128))]
            args = [a, *of[0], b, *of[1], float(z), zeros[2], low, high]
            yield Sample(args, [out], is_plain=True)


SAMPLES: dict[str, Callable[[], Iterator[Sample]]] = {
    "aten::_upsample_bilinear2d_aa.out": smooth,
    "aten::allclose.out": close,
    "aten::convolution.out": convolution,
    "aten::convolution_backward.out": convolution_gradient,
    "aten::gather.out": gather,
    "aten::grid_sampler_2d.out": sampled,
    "aten::index.Tensor_out": index,
    "aten::index_put.out": index_put,
    "aten::index_put_": index_put_in_place,
    "aten::index_select.out": index_select,
    "aten::max_pool2d_with_indices_backward.grad_input": pool_gradient,
    "aten::scatter.src_out": scatter,
    "aten::scatter.value_out": scatter_value,
    "aten::scatter_add.out": scatter,
    "aten::upsample_bilinear2d.vec_out": bilinear,
    "aten::upsample_nearest2d.vec_out": nearest,
    "quantized_decomposed::add.out": quantized_add,
    "quantized_decomposed::mixed_linear.out": mixed_linear,
    "quantized_decomposed::mixed_mm.out": mixed_mm,
} | {
    f"quantized_decomposed::{name}.{overload}": _embeddings(name, bits, named=named)
    for name, bits in (("embedding_byte", 8), ("embedding_4bit", 4), ("embedding_2bit", 2))
    for overload, named in (("out", False), ("dtype_out", True))
}
