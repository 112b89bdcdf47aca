"""Calls of operators that move items.

With arguments that the OpInfo database does not try: dtypes without arithmetic, many
dimensions, none, dimensions without items, numbers counted from the end, and padding
that cuts items off.
"""
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import torch

from tests.opinfo.draw import DTYPES, Sample

if TYPE_CHECKING:
    from collections.abc import Callable

UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
EVERY = (*DTYPES, *UNSIGNED)
OF_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
CALLS = 150


def items(rng: random.Random, dtype: torch.dtype, sizes: list[int]) -> torch.Tensor:
    """A tensor of different bits, as far as the dtype has them."""
    generator = torch.Generator().manual_seed(rng.randrange(1 << 30))
    high = 2 if dtype == torch.bool else 100
    return torch.randint(0, high, sizes, generator=generator).to(dtype)


def sizes_of(rng: random.Random, least: int = 0, most: int = 5) -> list[int]:
    """Sizes of a tensor that is not large; sometimes of many dimensions."""
    rank = rng.randint(least, max(least, most))
    largest = 5 if rank <= 4 else 2
    return [0 if rng.random() < 0.04 else rng.randint(1, largest) for _ in range(rank)]


def dim_of(rng: random.Random, rank: int) -> int:
    """A dimension, counted from either end."""
    return rng.randrange(-max(rank, 1), max(rank, 1))


def moved(compute: Any, args: list[Any]) -> Sample | None:
    """A call whose results are those for other items of the same size."""

    def plain(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.view(OF_SIZE[value.element_size()])
        if isinstance(value, list) and value and isinstance(value[0], torch.Tensor):
            return [plain(v) for v in value]
        return value

    try:
        found = compute(*map(plain, args))
    except (RuntimeError, IndexError):
        return None
    outs = list(found) if isinstance(found, tuple | list) else [found]
    if not outs:
        return None
    first = next(
        v[0] if isinstance(v, list) else v
        for v in args
        if isinstance(v, torch.Tensor) or (isinstance(v, list) and v)
    )
    return Sample(args, [o.contiguous().view(first.dtype) for o in outs], is_plain=True)


def drawn(
    compute: Any, arguments: Callable[[random.Random, torch.Tensor], list[Any]],
    least: int = 0, most: int = 5,
) -> Callable[[], list[Sample]]:  # fmt: skip
    """Calls with a tensor, and the further arguments drawn for it."""

    def samples() -> list[Sample]:
        rng = random.Random(5)
        found = []
        while len(found) < CALLS:
            x = items(rng, rng.choice(EVERY), sizes_of(rng, least, most))
            sample = moved(compute, [x, *arguments(rng, x)])
            if sample is not None:
                found.append(sample)
        return found

    return samples


def constant_pad() -> list[Sample]:
    """Padding of all dtypes with numbers of all kinds."""
    rng = random.Random(5)
    found = []
    while len(found) < 3 * CALLS:
        x = items(rng, rng.choice(EVERY), sizes_of(rng))
        number = rng.choice([0, 1, True, 7.5, -1.0, -1, 200, float("inf"), 3])
        pad = padding(rng, x, rng.randint(0, x.dim()))
        try:
            torch.ops.aten.constant_pad_nd(x, pad, number)
        except RuntimeError:
            continue
        found.append(Sample([x, pad, number], is_plain=x.dtype in UNSIGNED))
    return found


def padding(rng: random.Random, x: torch.Tensor, count: int) -> list[int]:
    """Pairs for the last dimensions; some cut items off."""
    found = []
    for size in list(x.shape)[::-1][:count]:
        found += [rng.randint(-min(size, 2), 3), rng.randint(-size, 3)]
    return found


def borders(count: int, name: str) -> Callable[[], list[Sample]]:
    """Padding of so many dimensions with items of the tensor."""
    return drawn(
        getattr(torch.ops.aten, f"{name}_pad{count}d"),
        lambda rng, x: [padding(rng, x, count)],
        count + 1,
        count + 2,
    )


def roll_of(rng: random.Random, x: torch.Tensor) -> list[Any]:
    """Shifts and dimensions."""
    count = rng.randint(0, x.dim())
    dims = [dim_of(rng, x.dim()) for _ in range(count)]
    most = rng.choice([3, 100, 1 << 62])
    return [[rng.randint(-most, most) for _ in range(count or 1)], dims]


def strided_of(rng: random.Random, _x: torch.Tensor) -> list[Any]:
    """Sizes and strides within the tensor, and an offset."""
    rank = rng.randint(0, 4)
    sizes = [rng.randint(0 if rng.random() < 0.05 else 1, 3) for _ in range(rank)]
    strides = [rng.choice([0, 1, 2, 5, 1 << 40]) for _ in range(rank)]
    return [sizes, strides, rng.choice([None, 0, 1, 7])]


def narrow_of(rng: random.Random, x: torch.Tensor) -> list[Any]:
    """A dimension, and items of it."""
    dim = dim_of(rng, x.dim())
    size = x.shape[dim]
    start = rng.randint(-size, size)
    return [dim, start, rng.randint(0, size - start % max(size, 1))]


def unshuffled(x: torch.Tensor, factor: int) -> torch.Tensor:
    """What PyTorch gives; of a tensor without items, its sizes on the meta device.

    The CPU keeps the sizes of these.
    """
    operator = torch.ops.aten.pixel_unshuffle
    if x.numel() != 0:
        return operator(x, factor)
    if x.shape[-1] % factor or x.shape[-2] % factor:
        raise RuntimeError
    return torch.empty(operator(x.to("meta"), factor).shape, dtype=x.dtype)


def scatters(*, select: bool) -> Callable[[], list[Sample]]:
    """Tensors with a part from one of any dtype."""

    def samples() -> list[Sample]:
        rng = random.Random(5)
        found = []
        while len(found) < 2 * CALLS:
            x = items(rng, rng.choice(DTYPES), sizes_of(rng, 1))
            dim = dim_of(rng, x.dim())
            size = x.shape[dim]
            if select:
                if size == 0:
                    continue
                where = [rng.randrange(-size, size)]
                part = x.select(dim, where[0])
            else:
                step = rng.choice([1, 1, 2, 3, 1 << 40])
                bounds = [
                    *(None, rng.randint(-7, 7), rng.randint(-7, 7)),
                    rng.randint(-1 << 40, 1 << 40),
                ]
                where = [rng.choice(bounds), rng.choice(bounds), step]
                try:
                    part = torch.ops.aten.slice(x, dim, *where)
                except RuntimeError:
                    continue
            source = items(rng, rng.choice([x.dtype, *DTYPES]), list(part.shape))
            # Floats out of range of an integer differ by processor.
            mixed = source.dtype != x.dtype
            found.append(Sample([x, source, dim, *where], is_plain=mixed))
            if source.dtype == x.dtype:
                same = items(rng, rng.choice(UNSIGNED), list(x.shape))
                operator = "select_scatter" if select else "slice_scatter"
                args = [same, source.to(same.dtype), dim, *where]
                sample = moved(getattr(torch.ops.aten, operator), args)
                found += [sample] if sample is not None else []
        return found

    return samples


def stacks() -> list[Sample]:
    """Tensors of one dtype, and of several."""
    rng = random.Random(5)
    found = []
    while len(found) < 2 * CALLS:
        sizes = sizes_of(rng)
        dtype = rng.choice(EVERY)
        dtypes = [dtype] * rng.randint(1, 4)
        dim = dim_of(rng, len(sizes) + 1)
        if rng.random() < 0.5:
            mixed = [rng.choice(DTYPES) for _ in dtypes]
            found.append(Sample([[items(rng, d, sizes) for d in mixed], dim]))
            continue
        sample = moved(torch.ops.aten.stack, [[items(rng, d, sizes) for d in dtypes], dim])
        found += [sample] if sample is not None else []
    return found


def repeats() -> list[Sample]:
    """Counts, with and without their sum."""
    rng = random.Random(5)
    found = []
    for _ in range(CALLS):
        dtype = rng.choice([torch.int32, torch.int64])
        counts = [rng.choice([0, 1, 2, 5]) for _ in range(rng.randint(0, 6))]
        total = rng.choice([None, sum(counts)])
        made = torch.tensor(counts, dtype=dtype)
        result = [i for i, n in enumerate(counts) for _ in range(n)]
        outs = [torch.tensor(result, dtype=dtype)]
        found.append(Sample([made, total], outs, is_plain=True))
    return found


A = torch.ops.aten

SAMPLES = {
    "aten::constant_pad_nd.out": constant_pad,
    "aten::as_strided_copy.out": drawn(A.as_strided_copy, strided_of),
    "aten::repeat.out": drawn(
        A.repeat,
        lambda rng, x: [
            [rng.choice([0, 1, 1, 2, 2, 3, 5])
             for _ in range(x.dim() + rng.randint(0, 2))]
        ],
    ),
    "aten::unfold_copy.out": drawn(
        A.unfold_copy,
        lambda rng, x: [
            dim_of(rng, x.dim()), rng.randint(0, 4), rng.choice([1, 2, 3, 1 << 40])
        ],
    ),
    "aten::expand_copy.out": drawn(
        lambda x, size, implicit: A.expand_copy(x, size, implicit=implicit),
        lambda rng, x: [
            [*[2] * rng.randint(0, 2),
             *(rng.choice([-1, 3]) if n == 1 else n for n in x.shape)],
            False,
        ],
    ),
    "aten::permute_copy.out": drawn(
        A.permute_copy, lambda rng, x: [rng.sample(range(x.dim()), x.dim())], most=8
    ),
    "aten::select_copy.int_out": drawn(
        A.select_copy.int,
        lambda rng, x: [dim_of(rng, x.dim()), rng.randint(-2, 2)],
        1,
    ),
    "aten::slice_copy.Tensor_out": drawn(
        A.slice_copy.Tensor,
        lambda rng, x: [
            dim_of(rng, x.dim()),
            *(rng.choice([None, rng.randint(-7, 7), 1 << 40]) for _ in range(2)),
            rng.choice([1, 1, 2, 3, 1 << 40]),
        ],
        1,
    ),
    "aten::squeeze_copy.dims_out": drawn(
        A.squeeze_copy.dims,
        lambda rng, x: [rng.sample(range(x.dim()), rng.randint(0, x.dim()))],
        most=8,
    ),
    "aten::unsqueeze_copy.out": drawn(
        A.unsqueeze_copy, lambda rng, x: [dim_of(rng, x.dim() + 1)], most=7
    ),
    "aten::slice_scatter.out": scatters(select=False),
    "aten::select_scatter.out": scatters(select=True),
    "aten::transpose_copy.int_out": drawn(
        A.transpose_copy.int,
        lambda rng, x: [dim_of(rng, x.dim()), dim_of(rng, x.dim())],
        most=8,
    ),
    "aten::t_copy.out": drawn(A.t_copy, lambda _rng, _x: [], most=2),
    "aten::squeeze_copy.dim_out": drawn(
        A.squeeze_copy.dim, lambda rng, x: [dim_of(rng, x.dim())], most=8
    ),
    "aten::stack.out": stacks,
    "aten::split_copy.Tensor_out": drawn(
        A.split_copy.Tensor,
        lambda rng, x: [rng.choice([0, 1, 2, 3, 9, 1 << 40]), dim_of(rng, x.dim())],
        1,
    ),
    "aten::unbind_copy.int_out": drawn(
        A.unbind_copy.int, lambda rng, x: [dim_of(rng, x.dim())], 1
    ),
    "aten::narrow_copy.out": drawn(A.narrow_copy, narrow_of, 1),
    "aten::diagonal_copy.out": drawn(
        A.diagonal_copy,
        lambda rng, x: [
            rng.choice([0, 0, 1, -1, 2, -2, 9, -9, 1 << 40, -(1 << 40)]),
            *rng.sample(range(x.dim()), 2),
        ],
        2,
    ),
    "aten::pixel_shuffle.out": drawn(
        A.pixel_shuffle,
        lambda rng, _x: [rng.choice([1, 2, 3])],
        3,
    ),
    "aten::pixel_unshuffle.out": drawn(
        unshuffled,
        lambda rng, _x: [rng.choice([1, 2, 3])],
        3,
    ),
    "aten::roll.out": drawn(A.roll, roll_of, most=8),
    "aten::repeat_interleave.Tensor_out": repeats,
    "aten::tril.out": drawn(
        A.tril,
        lambda rng, _x: [rng.choice([0, 1, -1, 2, -2, 9, (1 << 63) - 1, -(1 << 63)])],
        2,
    ),
    **{
        f"aten::{name}_pad{count}d.out": borders(count, name)
        for name in ("reflection", "replication")
        for count in (1, 2, 3)
    },
}  # fmt: skip
