"""Calls that only reshape or reorder items of a tensor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from orchestrator.method.passes.arguments import (
    Arguments,
    UnknownCallError,
    dim_of,
    need,
    strides_of,
)
from orchestrator.method.passes.preparing.scaled import nearest_item, scale_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orchestrator.core.operator import OperatorName
    from orchestrator.method.linked import LinkedCall, LinkedMethod
    from orchestrator.program.values import TensorValue


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Items that a call moves from one tensor to another, or to a part of it.

    Args:
        source: Value that is read.
        target: Value that is written.
        sizes: Sizes of the moved items, outermost dimension first; no size is 1.
        read: Strides in the source, in items.
        written: Strides in the target.
        first_read: First item of the source, in memory order.
        first_written: First item of the target, in memory order.
    """

    source: int
    target: int
    sizes: tuple[int, ...]
    read: tuple[int, ...]
    written: tuple[int, ...]
    first_read: int = 0
    first_written: int = 0

    @property
    def is_block(self) -> bool:
        """Whether the items are contiguous and in the same order on both sides."""
        inner = 1
        for size, here, there in sorted(
            zip(self.sizes, self.read, self.written, strict=True),
            key=lambda axis: axis[2],
        ):
            if not here == there == inner:
                return False
            inner *= size
        return True

    @property
    def reach(self) -> tuple[int, int]:
        """First item that is read, and the end of the last."""
        pairs = zip(self.sizes, self.read, strict=True)
        last = sum((size - 1) * stride for size, stride in pairs)
        return self.first_read, self.first_read + last + 1

    def along(self, axis: int, first: int, count: int) -> View:
        """The part of some items along an axis."""
        sizes = (*self.sizes[:axis], count, *self.sizes[axis + 1 :])
        return replace(
            self,
            sizes=sizes,
            first_read=self.first_read + first * self.read[axis],
            first_written=self.first_written + first * self.written[axis],
        )

    def moved(self, source: bytes, target: bytearray, item_bytes: int) -> None:
        """Copy the items from a source to a target."""
        taken = memoryview(source).cast(_ITEMS[item_bytes])
        given = memoryview(target).cast(_ITEMS[item_bytes])
        axes = sorted(zip(self.sizes, self.read, self.written, strict=True))
        # Copy rows along the longest axis at once, but repeated items one by one.
        repeats = not axes or axes[-1][1] == 0
        size, here, there = (1, 1, 1) if repeats else axes.pop()
        reads, writes = [self.first_read], [self.first_written]
        for count, read, written in axes:
            reads = [r + i * read for r in reads for i in range(count)]
            writes = [w + i * written for w in writes for i in range(count)]
        for r, w in zip(reads, writes, strict=True):
            row = taken[r : r + (size - 1) * here + 1 : here]
            given[w : w + (size - 1) * there + 1 : there] = row


_INT8: Final = range(-128, 128)
_IMAGE_RANK: Final = 4
_ITEMS: Final[Mapping[int, Literal["B", "H", "I", "Q"]]] = MappingProxyType(
    {1: "B", 2: "H", 4: "I", 8: "Q"}
)
"""Formats of items, by size."""
ITEM_BYTES: Final = frozenset(_ITEMS)
"""Sizes of items that `View.moved` takes."""


def views_of(
    method: LinkedMethod,
    call: LinkedCall,
    written: frozenset[int] | None = None,
    *,
    converts: bool = False,
) -> tuple[View, ...] | None:
    """The views of a call, which together fill all of its outputs.

    Args:
        method: The method of the call.
        call: One of its calls.
        written: As for `Arguments`.
        converts: Whether items may be converted to another dtype.

    Returns:
        None for calls that compute, and for calls that the kernel might reject
        because of sizes or numbers that can change from run to run.
    """
    find = _FINDERS.get(str(call.operator))
    if find is None:
        return None
    arguments = Arguments(method, call, written)
    try:
        views = find(arguments)
    except UnknownCallError:
        return None
    counts: dict[int, int] = dict.fromkeys(call.outs, 0)
    for view in views:
        counts[view.target] = counts.get(view.target, 0) + prod(view.sizes)
    whole = all(counts[out] == arguments.tensor_at(out).numel for out in counts)
    alike = all(
        arguments.tensor_at(v.source).dtype is arguments.tensor_at(v.target).dtype
        for v in views
    )
    converts = converts and call.operator.base == "_to_dim_order_copy"
    return views if whole and (alike or converts) else None


def items_in_order(method: LinkedMethod, source: int, out: int) -> View:
    """Items of two tensors whose memory is in the same order, all of them."""
    count = method.tensor(out).numel
    axis = () if count == 1 else (1,)
    sizes = (count,) * len(axis)
    return View(source=source, target=out, sizes=sizes, read=axis, written=axis)


def moving_operators() -> frozenset[str]:
    """Operators whose calls are views, given constant sizes and numbers."""
    return frozenset(_FINDERS)


def moves_items(operator: OperatorName) -> bool:
    """Whether an operator is one of `moving_operators`."""
    return str(operator) in _FINDERS


def _view(
    arguments: Arguments,
    out: int,
    sizes: tuple[int, ...],
    read: tuple[int, ...],
    first: int = 0,
) -> tuple[View, ...]:
    """The view of the first argument with these sizes that fills the output."""
    target = arguments.tensor_at(out)
    need(target.sizes == sizes)
    source = (arguments.index(0), read, first)
    return (_part(source, (out, strides_of(target), 0), sizes),)


def _part(
    source: tuple[int, tuple[int, ...], int],
    target: tuple[int, tuple[int, ...], int],
    sizes: tuple[int, ...],
) -> View:
    """A view between two tensors, each with strides and a first item."""
    axes = [
        axis for axis in zip(sizes, source[1], target[1], strict=True) if axis[0] != 1
    ]
    return View(
        source=source[0],
        target=target[0],
        sizes=tuple(a[0] for a in axes),
        read=tuple(a[1] for a in axes),
        written=tuple(a[2] for a in axes),
        first_read=source[2],
        first_written=target[2],
    )


def _as_it_is(out: int) -> Callable[[Arguments], tuple[View, ...]]:
    """A finder for contiguous copies of the same sizes; ignores other arguments."""

    def find(arguments: Arguments) -> tuple[View, ...]:
        tensor = arguments.tensor(0)
        # With another dim order, a further argument may matter.
        need(tensor.is_contiguous and arguments.tensor(out).is_contiguous)
        target = arguments.index(out)
        return _view(arguments, target, tensor.sizes, strides_of(tensor))

    return find


def _dim_order(arguments: Arguments) -> tuple[View, ...]:
    tensor, out = arguments.tensor(0), arguments.tensor(3)
    if arguments.is_none(2):
        need(tensor.dim_order == out.dim_order)
    else:
        need(arguments.numbers(2) == out.dim_order)
    return _view(arguments, arguments.index(3), tensor.sizes, strides_of(tensor))


def _pad(arguments: Arguments) -> tuple[View, ...]:
    """The view of a padding by nothing, as exporters leave it before pooling."""
    tensor = arguments.tensor(0)
    before, after = arguments.numbers(1), arguments.numbers(2)
    need(len(before) == len(after) == _IMAGE_RANK and not any((*before, *after)))
    need(arguments.number(3) in _INT8)
    need(tensor.dim_order == arguments.tensor(4).dim_order)
    return _view(arguments, arguments.index(4), tensor.sizes, strides_of(tensor))


def _permute(arguments: Arguments) -> tuple[View, ...]:
    tensor, dims = arguments.tensor(0), arguments.numbers(1)
    rank = len(tensor.sizes)
    axes = tuple(dim_of(d, rank) for d in dims)
    need(sorted(axes) == list(range(rank)))
    strides = strides_of(tensor)
    return _view(
        arguments,
        arguments.index(2),
        tuple(tensor.sizes[a] for a in axes),
        tuple(strides[a] for a in axes),
    )


def _reshape(arguments: Arguments) -> tuple[View, ...]:
    tensor, out, sizes = arguments.tensor(0), arguments.tensor(2), arguments.numbers(1)
    need(tensor.is_contiguous and out.is_contiguous and tensor.numel != 0)
    need(sizes.count(-1) <= 1 and all(size > 0 or size == -1 for size in sizes))
    if -1 in sizes:
        rest, left = divmod(tensor.numel, prod(s for s in sizes if s != -1))
        need(left == 0)
        sizes = tuple(rest if s == -1 else s for s in sizes)
    need(prod(sizes) == tensor.numel)
    return _view(arguments, arguments.index(2), sizes, strides_of(out))


def _transpose(arguments: Arguments) -> tuple[View, ...]:
    rank = len(arguments.tensor(0).sizes)
    return _swapped(
        arguments,
        *(dim_of(arguments.number(at), rank) for at in (1, 2)),
        out=arguments.index(3),
    )


def _t(arguments: Arguments) -> tuple[View, ...]:
    rank = len(arguments.tensor(0).sizes)
    need(rank <= 2)  # noqa: PLR2004  # rows, columns
    return _swapped(arguments, 0, max(rank - 1, 0), out=arguments.index(1))


def _swapped(
    arguments: Arguments, first: int, second: int, *, out: int
) -> tuple[View, ...]:
    """The view that swaps two dimensions."""
    tensor = arguments.tensor(0)
    axes = [*zip(tensor.sizes, strides_of(tensor), strict=True)]
    if axes:
        axes[first], axes[second] = axes[second], axes[first]
    return _view(arguments, out, tuple(a[0] for a in axes), tuple(a[1] for a in axes))


def _squeeze(arguments: Arguments) -> tuple[View, ...]:
    return _squeezed(arguments, arguments.numbers(1))


def _squeeze_one(arguments: Arguments) -> tuple[View, ...]:
    return _squeezed(arguments, (arguments.number(1),))


def _squeezed(arguments: Arguments, dims: tuple[int, ...]) -> tuple[View, ...]:
    """The view without those of the given dimensions whose size is 1."""
    tensor = arguments.tensor(0)
    rank = len(tensor.sizes)
    gone = [dim_of(d, rank) for d in dims]
    need(len(set(gone)) == len(gone))
    strides = strides_of(tensor)
    kept = [d for d in range(rank) if d not in gone or tensor.sizes[d] != 1]
    return _view(
        arguments,
        arguments.index(2),
        tuple(tensor.sizes[d] for d in kept),
        tuple(strides[d] for d in kept),
    )


def _unsqueeze(arguments: Arguments) -> tuple[View, ...]:
    tensor = arguments.tensor(0)
    dim = dim_of(arguments.number(1), len(tensor.sizes) + 1)
    strides = strides_of(tensor)
    return _view(
        arguments,
        arguments.index(2),
        (*tensor.sizes[:dim], 1, *tensor.sizes[dim:]),
        (*strides[:dim], 0, *strides[dim:]),
    )


def _expand(arguments: Arguments) -> tuple[View, ...]:
    tensor, sizes = arguments.tensor(0), arguments.numbers(1)
    new = len(sizes) - len(tensor.sizes)
    need(new >= 0 and all(size >= 0 for size in sizes[:new]))
    own = tuple(
        size if wanted == -1 else wanted
        for size, wanted in zip(tensor.sizes, sizes[new:], strict=True)
    )
    # Repeated items are read with a stride of 0, which no block has.
    pairs = [*zip(tensor.sizes, own, strides_of(tensor), strict=True)]
    need(all(size in (1, wanted) and wanted >= 0 for size, wanted, _ in pairs))
    return _view(
        arguments,
        arguments.index(3),
        (*sizes[:new], *own),
        (*(0 for _ in sizes[:new]), *(s if a == b else 0 for a, b, s in pairs)),
    )


def _slice(arguments: Arguments) -> tuple[View, ...]:
    tensor, step = arguments.tensor(0), arguments.number(4)
    dim = dim_of(arguments.number(1), len(tensor.sizes))
    need(step > 0)
    size = tensor.sizes[dim]
    begin, end = arguments.number_or(2, 0), arguments.number_or(3, size)
    taken = range(size)[begin:end:step]
    need(taken)
    strides = strides_of(tensor)
    at = range(len(tensor.sizes))
    return _view(
        arguments,
        arguments.index(5),
        tuple(len(taken) if d == dim else tensor.sizes[d] for d in at),
        tuple(strides[d] * (step if d == dim else 1) for d in at),
        taken[0] * strides[dim],
    )


def _select(arguments: Arguments) -> tuple[View, ...]:
    tensor = arguments.tensor(0)
    dim = dim_of(arguments.number(1), len(tensor.sizes))
    at = dim_of(arguments.number(2), tensor.sizes[dim])
    strides = strides_of(tensor)
    return _view(
        arguments,
        arguments.index(3),
        (*tensor.sizes[:dim], *tensor.sizes[dim + 1 :]),
        (*strides[:dim], *strides[dim + 1 :]),
        at * strides[dim],
    )


def _narrow(arguments: Arguments) -> tuple[View, ...]:
    tensor, length = arguments.tensor(0), arguments.number(3)
    dim = dim_of(arguments.number(1), len(tensor.sizes))
    size = tensor.sizes[dim]
    need(length > 0)
    first = dim_of(arguments.number(2), size)
    need(first + length <= size)
    strides = strides_of(tensor)
    return _view(
        arguments,
        arguments.index(4),
        (*tensor.sizes[:dim], length, *tensor.sizes[dim + 1 :]),
        strides,
        first * strides[dim],
    )


def _diagonal(arguments: Arguments) -> tuple[View, ...]:
    tensor, offset = arguments.tensor(0), arguments.number(1)
    rank = len(tensor.sizes)
    rows, columns = (dim_of(arguments.number(at), rank) for at in (2, 3))
    need(rows != columns)
    row, column = max(-offset, 0), max(offset, 0)
    length = min(tensor.sizes[rows] - row, tensor.sizes[columns] - column)
    need(length > 0)
    strides = strides_of(tensor)
    kept = [d for d in range(rank) if d not in (rows, columns)]
    return _view(
        arguments,
        arguments.index(4),
        (*(tensor.sizes[d] for d in kept), length),
        (*(strides[d] for d in kept), strides[rows] + strides[columns]),
        row * strides[rows] + column * strides[columns],
    )


def _unfold(arguments: Arguments) -> tuple[View, ...]:
    tensor, size, step = arguments.tensor(0), arguments.number(2), arguments.number(3)
    dim = dim_of(arguments.number(1), len(tensor.sizes))
    need(0 < size <= tensor.sizes[dim] and step > 0)
    count = (tensor.sizes[dim] - size) // step + 1
    strides = strides_of(tensor)
    at = range(len(tensor.sizes))
    return _view(
        arguments,
        arguments.index(4),
        (*(count if d == dim else tensor.sizes[d] for d in at), size),
        (*(strides[d] * (step if d == dim else 1) for d in at), strides[dim]),
    )


def _as_strided(arguments: Arguments) -> tuple[View, ...]:
    sizes, strides = arguments.numbers(1), arguments.numbers(2)
    first = arguments.number_or(3, 0)
    need(len(sizes) == len(strides) and min(sizes, default=1) > 0)
    need(min(strides, default=0) >= 0 and first >= 0)
    last = first + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    need(last < arguments.tensor(0).numel)
    return _view(arguments, arguments.index(4), sizes, strides, first)


def _repeat(arguments: Arguments) -> tuple[View, ...]:
    tensor, repeats, out = (
        arguments.tensor(0),
        arguments.numbers(1),
        arguments.tensor(2),
    )
    new = len(repeats) - len(tensor.sizes)
    need(new >= 0 and min(repeats, default=1) > 0)
    own = (*[1] * new, *tensor.sizes)
    need(out.sizes == tuple(a * b for a, b in zip(own, repeats, strict=True)))
    read = (*[0] * new, *strides_of(tensor))
    written = strides_of(out)
    # Each dimension in two: its repetitions, and the items of one of them.
    steps = tuple(a * b for a, b in zip(own, written, strict=True))
    source = (arguments.index(0), (*[0] * len(own), *read), 0)
    target = (arguments.index(2), (*steps, *written), 0)
    return (_part(source, target, (*repeats, *own)),)


def _pixel_shuffle(arguments: Arguments) -> tuple[View, ...]:
    tensor, out = arguments.tensor(0), arguments.tensor(2)
    axes = _blocks(tensor, out, arguments.number(1))
    return _along(arguments.index(0), arguments.index(2), axes)


def _pixel_unshuffle(arguments: Arguments) -> tuple[View, ...]:
    tensor, out = arguments.tensor(0), arguments.tensor(2)
    axes = _blocks(out, tensor, arguments.number(1))
    swapped = [(size, there, here) for size, here, there in axes]
    return _along(arguments.index(0), arguments.index(2), swapped)


def _nearest(arguments: Arguments) -> tuple[View, ...]:
    """The view of an image each of whose items is repeated in rows and columns."""
    tensor, out = arguments.tensor(0), arguments.tensor(3)
    need(len(tensor.sizes) == _IMAGE_RANK and tensor.numel != 0)
    need(out.sizes[:2] == tensor.sizes[:2])
    read, written = strides_of(tensor), strides_of(out)
    axes = [*zip(tensor.sizes[:2], read[:2], written[:2], strict=True)]
    for i, dim in enumerate((2, 3)):
        size, scaled, scale = scale_of(arguments, i, (1, 2), corners=False)
        times, rest = divmod(scaled, size)
        need(times and not rest)
        places = [nearest_item(size, scale, at) for at in range(scaled)]
        need(places == [at // times for at in range(scaled)])
        axes += [(size, read[dim], written[dim] * times), (times, 0, written[dim])]
    return _along(arguments.index(0), arguments.index(3), axes)


def _blocks(
    many: TensorValue, large: TensorValue, n: int
) -> list[tuple[int, int, int]]:
    """Sizes [..., C, n, n, H, W], with the strides of two images.

    Args:
        many: The image of sizes [..., C * n * n, H, W].
        large: The image of sizes [..., C, H * n, W * n].
        n: Height and width of a block.
    """
    need(n > 0 and len(many.sizes) == len(large.sizes) > 2)  # noqa: PLR2004  # an image
    *outer, channels, height, width = many.sizes
    need(large.sizes == (*outer, channels // (n * n), height * n, width * n))
    need(channels % (n * n) == 0)
    *far, c, h, w = strides_of(many)
    *large_far, large_c, large_h, large_w = strides_of(large)
    return [
        *zip(outer, far, large_far, strict=True),
        (channels // (n * n), c * n * n, large_c),
        *((n, c * n, large_h), (n, c, large_w)),
        *((height, h, large_h * n), (width, w, large_w * n)),
    ]


def _along(
    source: int, target: int, axes: list[tuple[int, int, int]]
) -> tuple[View, ...]:
    """The view of whole tensors along (size, stride read, stride written)."""
    sizes, read, written = zip(*axes, strict=True)
    return (_part((source, read, 0), (target, written, 0), sizes),)


def _unbind(arguments: Arguments) -> tuple[View, ...]:
    tensor, outs = arguments.tensor(0), arguments.tensors(2)
    dim = dim_of(arguments.number(1), len(tensor.sizes))
    need(len(outs) == len(set(outs)) == tensor.sizes[dim])
    strides = strides_of(tensor)
    sizes = (*tensor.sizes[:dim], *tensor.sizes[dim + 1 :])
    read = (*strides[:dim], *strides[dim + 1 :])
    views: tuple[View, ...] = ()
    for at, out in enumerate(outs):
        views += _view(arguments, out, sizes, read, at * strides[dim])
    return views


def _split_evenly(arguments: Arguments) -> tuple[View, ...]:
    tensor, size = arguments.tensor(0), arguments.number(1)
    dim = dim_of(arguments.number(2), len(tensor.sizes))
    whole = tensor.sizes[dim]
    need(size > 0)
    sizes = tuple(min(size, whole - begin) for begin in range(0, whole, size))
    return _parts(arguments, sizes)


def _split(arguments: Arguments) -> tuple[View, ...]:
    return _parts(arguments, arguments.numbers(1))


def _parts(arguments: Arguments, sizes: tuple[int, ...]) -> tuple[View, ...]:
    """The views of parts of these sizes along the dimension that is argument 2."""
    tensor, outs = arguments.tensor(0), arguments.tensors(3)
    dim = dim_of(arguments.number(2), len(tensor.sizes))
    need(len(sizes) == len(outs) == len(set(outs)) and min(sizes, default=0) > 0)
    need(sum(sizes) == tensor.sizes[dim])
    strides = strides_of(tensor)
    first = accumulate(sizes, initial=0)
    views: tuple[View, ...] = ()
    for out, size, begin in zip(outs, sizes, first, strict=False):
        part = (*tensor.sizes[:dim], size, *tensor.sizes[dim + 1 :])
        views += _view(arguments, out, part, strides, begin * strides[dim])
    return views


def _cat(arguments: Arguments) -> tuple[View, ...]:
    sources, out = arguments.tensors(0), arguments.tensor(2)
    dim = dim_of(arguments.number(1), len(out.sizes))
    target, strides = arguments.index(2), strides_of(out)
    views, first = [], 0
    for source in sources:
        tensor = arguments.tensor_at(source)
        sizes = tensor.sizes
        need(len(sizes) == len(out.sizes) and sizes[dim] > 0)
        need(
            (*sizes[:dim], *sizes[dim + 1 :])
            == (*out.sizes[:dim], *out.sizes[dim + 1 :])
        )
        to = (target, strides, first * strides[dim])
        views.append(_part((source, strides_of(tensor), 0), to, sizes))
        first += sizes[dim]
    need(first == out.sizes[dim])
    return tuple(views)


def _stack(arguments: Arguments) -> tuple[View, ...]:
    sources, out = arguments.tensors(0), arguments.tensor(2)
    need(out.sizes)
    dim = dim_of(arguments.number(1), len(out.sizes))
    need(len(sources) == out.sizes[dim])
    target, strides = arguments.index(2), strides_of(out)
    sizes = (*out.sizes[:dim], *out.sizes[dim + 1 :])
    written = (*strides[:dim], *strides[dim + 1 :])
    views = []
    for at, source in enumerate(sources):
        tensor = arguments.tensor_at(source)
        need(tensor.sizes == sizes)
        to = (target, written, at * strides[dim])
        views.append(_part((source, strides_of(tensor), 0), to, sizes))
    return tuple(views)


def _copy_in_place(arguments: Arguments) -> tuple[View, ...]:
    out, tensor = arguments.tensor(0), arguments.tensor(1)
    need(out.dim_order == tensor.dim_order)
    need(out.sizes == tensor.sizes)
    source = (arguments.index(1), strides_of(tensor), 0)
    return (_part(source, (arguments.index(0), strides_of(out), 0), tensor.sizes),)


_FINDERS: Final[Mapping[str, Callable[[Arguments], tuple[View, ...]]]] = (
    MappingProxyType(
        {
            "aten::_conj_physical.out": _as_it_is(1),
            "aten::alias_copy.out": _as_it_is(1),
            "aten::as_strided_copy.out": _as_strided,
            "aten::cat.out": _cat,
            "aten::clone.out": _as_it_is(2),
            "aten::_to_copy.out": _as_it_is(3),
            "aten::copy_": _copy_in_place,
            "aten::detach_copy.out": _as_it_is(1),
            "aten::diagonal_copy.out": _diagonal,
            "aten::expand_copy.out": _expand,
            "aten::lift_fresh_copy.out": _as_it_is(1),
            "aten::narrow_copy.out": _narrow,
            "aten::permute_copy.out": _permute,
            "aten::pixel_shuffle.out": _pixel_shuffle,
            "aten::pixel_unshuffle.out": _pixel_unshuffle,
            "aten::repeat.out": _repeat,
            "aten::select_copy.int_out": _select,
            "aten::slice_copy.Tensor_out": _slice,
            "aten::split_copy.Tensor_out": _split_evenly,
            "aten::split_with_sizes_copy.out": _split,
            "aten::squeeze_copy.dim_out": _squeeze_one,
            "aten::squeeze_copy.dims_out": _squeeze,
            "aten::stack.out": _stack,
            "aten::t_copy.out": _t,
            "aten::transpose_copy.int_out": _transpose,
            "aten::unbind_copy.int_out": _unbind,
            "aten::unfold_copy.out": _unfold,
            "aten::unsqueeze_copy.out": _unsqueeze,
            "aten::view_copy.out": _reshape,
            "aten::upsample_nearest2d.vec_out": _nearest,
            "cortex_m::pad.out": _pad,
            "cortex_m::pad_contiguous.out": _pad,
            "cortex_m::transpose.out": _permute,
            "dim_order_ops::_clone_dim_order.out": _dim_order,
            "dim_order_ops::_to_dim_order_copy.out": _dim_order,
            "et_copy::_d2h_copy.out": _as_it_is(1),
            "et_copy::_h2d_copy.out": _as_it_is(1),
            "executorch_prim::et_view.default": _reshape,
        }
    )
)
"""Finders of views, by operator. Source: op schemas and ATen's documentation."""
