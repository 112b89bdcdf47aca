"""Calls that only reshape or reorder items of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from math import prod
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from orchestrator.core.operator import OperatorName
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import (
    Arguments,
    UnknownCallError,
    dim_of,
    float32,
    need,
    strides_of,
)
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
            zip(self.sizes, self.read, self.written, strict=True), key=lambda axis: axis[2]
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
        arguments.tensor_at(v.source).dtype is arguments.tensor_at(v.target).dtype for v in views
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


_Axes: TypeAlias = "list[tuple[int, int]]"
"""A (size, stride) of what is read for each dimension, in items."""


def _axes_of(tensor: TensorValue) -> _Axes:
    """The dimensions of a tensor."""
    return list(zip(tensor.sizes, strides_of(tensor), strict=True))


def _view(
    arguments: Arguments, axes: _Axes, first: int = 0, out: int | None = None
) -> tuple[View, ...]:
    """The view along some axes of the first argument that fills an output.

    Args:
        arguments: Of the call.
        axes: One for each dimension of the output.
        first: First item of the argument, in memory order.
        out: Value index of the output; None for the last argument.
    """
    index = arguments.index(arguments.count - 1) if out is None else out
    target = arguments.tensor_at(index)
    need(target.sizes == tuple(size for size, _ in axes))
    both = zip(axes, strides_of(target), strict=True)
    along = ((size, read, written) for (size, read), written in both)
    return (_part(arguments.index(0), index, along, first),)


def _part(
    source: int,
    target: int,
    axes: Iterable[tuple[int, int, int]],
    first_read: int = 0,
    first_written: int = 0,
) -> View:
    """A view of tensors along (size, stride read, stride written)."""
    kept = [axis for axis in axes if axis[0] != 1]
    return View(
        source=source,
        target=target,
        sizes=tuple(a[0] for a in kept),
        read=tuple(a[1] for a in kept),
        written=tuple(a[2] for a in kept),
        first_read=first_read,
        first_written=first_written,
    )


def _as_it_is(arguments: Arguments) -> tuple[View, ...]:
    """The view of a contiguous copy of the same sizes; ignores other arguments."""
    tensor, out = arguments.tensor(0), arguments.tensor(arguments.count - 1)
    # With another dim order, a further argument may matter.
    need(tensor.is_contiguous and out.is_contiguous)
    return _view(arguments, _axes_of(tensor))


def _dim_order(arguments: Arguments) -> tuple[View, ...]:
    tensor, out = arguments.tensor(0), arguments.tensor(3)
    if arguments.is_none(2):
        need(tensor.dim_order == out.dim_order)
    else:
        need(arguments.numbers(2) == out.dim_order)
    return _view(arguments, _axes_of(tensor))


def _pad(arguments: Arguments) -> tuple[View, ...]:
    """The view of a padding by nothing, as exporters leave it before pooling."""
    tensor = arguments.tensor(0)
    before, after = arguments.numbers(1), arguments.numbers(2)
    need(len(before) == len(after) == _IMAGE_RANK and not any((*before, *after)))
    need(arguments.number(3) in _INT8)
    need(tensor.dim_order == arguments.tensor(4).dim_order)
    return _view(arguments, _axes_of(tensor))


def _permute(arguments: Arguments) -> tuple[View, ...]:
    axes = _axes_of(arguments.tensor(0))
    order = [dim_of(d, len(axes)) for d in arguments.numbers(1)]
    need(sorted(order) == list(range(len(axes))))
    return _view(arguments, [axes[d] for d in order])


def _reshape(arguments: Arguments) -> tuple[View, ...]:
    tensor, out, sizes = arguments.tensor(0), arguments.tensor(2), arguments.numbers(1)
    need(tensor.is_contiguous and out.is_contiguous and tensor.numel != 0)
    need(sizes.count(-1) <= 1 and all(size > 0 or size == -1 for size in sizes))
    if -1 in sizes:
        rest, left = divmod(tensor.numel, prod(s for s in sizes if s != -1))
        need(left == 0)
        sizes = tuple(rest if s == -1 else s for s in sizes)
    need(prod(sizes) == tensor.numel and sizes == out.sizes)
    return _view(arguments, _axes_of(out))


def _transpose(arguments: Arguments) -> tuple[View, ...]:
    axes = _axes_of(arguments.tensor(0))
    one, other = (dim_of(arguments.number(at), len(axes)) for at in (1, 2))
    axes[one], axes[other] = axes[other], axes[one]
    return _view(arguments, axes)


def _t(arguments: Arguments) -> tuple[View, ...]:
    axes = _axes_of(arguments.tensor(0))
    need(len(axes) <= 2)  # noqa: PLR2004  # rows, columns
    return _view(arguments, axes[::-1])


def _squeeze(arguments: Arguments) -> tuple[View, ...]:
    return _squeezed(arguments, arguments.numbers(1))


def _squeeze_one(arguments: Arguments) -> tuple[View, ...]:
    return _squeezed(arguments, (arguments.number(1),))


def _squeezed(arguments: Arguments, dims: tuple[int, ...]) -> tuple[View, ...]:
    """The view without those of the given dimensions whose size is 1."""
    axes = _axes_of(arguments.tensor(0))
    gone = [dim_of(d, len(axes)) for d in dims]
    need(len(set(gone)) == len(gone))
    kept = [axis for d, axis in enumerate(axes) if d not in gone or axis[0] != 1]
    return _view(arguments, kept)


def _unsqueeze(arguments: Arguments) -> tuple[View, ...]:
    axes = _axes_of(arguments.tensor(0))
    axes.insert(dim_of(arguments.number(1), len(axes) + 1), (1, 0))
    return _view(arguments, axes)


def _expand(arguments: Arguments) -> tuple[View, ...]:
    tensor, sizes = arguments.tensor(0), arguments.numbers(1)
    new = len(sizes) - len(tensor.sizes)
    need(new >= 0 and all(size >= 0 for size in sizes[:new]))
    # Repeated items are read with a stride of 0, which no block has.
    axes = [(size, 0) for size in sizes[:new]]
    for (size, stride), given in zip(_axes_of(tensor), sizes[new:], strict=True):
        wanted = size if given == -1 else given
        need(size in (1, wanted) and wanted >= 0)
        axes.append((wanted, stride if size == wanted else 0))
    return _view(arguments, axes)


def _slice(arguments: Arguments) -> tuple[View, ...]:
    axes, step = _axes_of(arguments.tensor(0)), arguments.number(4)
    dim = dim_of(arguments.number(1), len(axes))
    need(step > 0)
    size, stride = axes[dim]
    begin, end = arguments.number_or(2, 0), arguments.number_or(3, size)
    taken = range(size)[begin:end:step]
    need(taken)
    axes[dim] = len(taken), stride * step
    return _view(arguments, axes, taken[0] * stride)


def _select(arguments: Arguments) -> tuple[View, ...]:
    axes = _axes_of(arguments.tensor(0))
    size, stride = axes.pop(dim_of(arguments.number(1), len(axes)))
    return _view(arguments, axes, dim_of(arguments.number(2), size) * stride)


def _narrow(arguments: Arguments) -> tuple[View, ...]:
    axes, length = _axes_of(arguments.tensor(0)), arguments.number(3)
    dim = dim_of(arguments.number(1), len(axes))
    size, stride = axes[dim]
    need(length > 0)
    first = dim_of(arguments.number(2), size)
    need(first + length <= size)
    axes[dim] = length, stride
    return _view(arguments, axes, first * stride)


def _diagonal(arguments: Arguments) -> tuple[View, ...]:
    axes, offset = _axes_of(arguments.tensor(0)), arguments.number(1)
    dims = [dim_of(arguments.number(at), len(axes)) for at in (2, 3)]
    need(dims[0] != dims[1])
    (rows, down), (columns, right) = (axes[d] for d in dims)
    row, column = max(-offset, 0), max(offset, 0)
    length = min(rows - row, columns - column)
    need(length > 0)
    kept = [axis for d, axis in enumerate(axes) if d not in dims]
    first = row * down + column * right
    return _view(arguments, [*kept, (length, down + right)], first)


def _unfold(arguments: Arguments) -> tuple[View, ...]:
    axes, size, step = (_axes_of(arguments.tensor(0)), arguments.number(2), arguments.number(3))
    dim = dim_of(arguments.number(1), len(axes))
    whole, stride = axes[dim]
    need(0 < size <= whole and step > 0)
    axes[dim] = (whole - size) // step + 1, stride * step
    return _view(arguments, [*axes, (size, stride)])


def _as_strided(arguments: Arguments) -> tuple[View, ...]:
    sizes, strides = arguments.numbers(1), arguments.numbers(2)
    first = arguments.number_or(3, 0)
    need(len(sizes) == len(strides) and min(sizes, default=1) > 0)
    need(min(strides, default=0) >= 0 and first >= 0)
    axes = list(zip(sizes, strides, strict=True))
    last = first + sum((n - 1) * s for n, s in axes)
    need(last < arguments.tensor(0).numel)
    return _view(arguments, axes, first)


def _repeat(arguments: Arguments) -> tuple[View, ...]:
    tensor, repeats, out = (arguments.tensor(0), arguments.numbers(1), arguments.tensor(2))
    new = len(repeats) - len(tensor.sizes)
    need(new >= 0 and min(repeats, default=1) > 0)
    own = [(1, 0)] * new + _axes_of(tensor)
    sizes = zip(own, repeats, strict=True)
    need(out.sizes == tuple(size * times for (size, _), times in sizes))
    # Each dimension in two: its repetitions, and the items of one of them.
    both = [*zip(own, strides_of(out), strict=True)]
    axes = [
        *((n, 0, size * to) for n, ((size, _), to) in zip(repeats, both, strict=True)),
        *((size, read, to) for (size, read), to in both),
    ]
    return (_part(arguments.index(0), arguments.index(2), axes),)


def _pixel_shuffle(arguments: Arguments) -> tuple[View, ...]:
    tensor, out = arguments.tensor(0), arguments.tensor(2)
    axes = _blocks(tensor, out, arguments.number(1))
    return (_part(arguments.index(0), arguments.index(2), axes),)


def _pixel_unshuffle(arguments: Arguments) -> tuple[View, ...]:
    tensor, out = arguments.tensor(0), arguments.tensor(2)
    axes = _blocks(out, tensor, arguments.number(1))
    swapped = [(size, there, here) for size, here, there in axes]
    return (_part(arguments.index(0), arguments.index(2), swapped),)


def _nearest(arguments: Arguments) -> tuple[View, ...]:
    """The view of an image each of whose items is repeated in rows and columns."""
    tensor, out = arguments.tensor("input"), arguments.tensor("out")
    need(len(tensor.sizes) == _IMAGE_RANK and tensor.numel != 0)
    need(out.sizes[:2] == tensor.sizes[:2])
    read, written = strides_of(tensor), strides_of(out)
    axes = [*zip(tensor.sizes[:2], read[:2], written[:2], strict=True)]
    for i, dim in enumerate((2, 3)):
        size, scaled, scale = scale_of(arguments, i, corners=False)
        times, rest = divmod(scaled, size)
        need(times and not rest)
        places = [nearest_item(size, scale, at) for at in range(scaled)]
        need(places == [at // times for at in range(scaled)])
        axes += [(size, read[dim], written[dim] * times), (times, 0, written[dim])]
    return (_part(arguments.index("input"), arguments.index("out"), axes),)


def _blocks(many: TensorValue, large: TensorValue, n: int) -> list[tuple[int, int, int]]:
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


def _unbind(arguments: Arguments) -> tuple[View, ...]:
    axes, outs = _axes_of(arguments.tensor(0)), arguments.tensors(2)
    size, stride = axes.pop(dim_of(arguments.number(1), len(axes)))
    need(len(outs) == len(set(outs)) == size)
    views = (_view(arguments, axes, at * stride, out) for at, out in enumerate(outs))
    return tuple(chain(*views))


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
    axes, outs = _axes_of(arguments.tensor(0)), arguments.tensors(3)
    dim = dim_of(arguments.number(2), len(axes))
    whole, stride = axes[dim]
    need(len(sizes) == len(outs) == len(set(outs)) and min(sizes, default=0) > 0)
    need(sum(sizes) == whole)
    first = accumulate(sizes, initial=0)
    views: tuple[View, ...] = ()
    for out, size, begin in zip(outs, sizes, first, strict=False):
        part = [*axes[:dim], (size, stride), *axes[dim + 1 :]]
        views += _view(arguments, part, begin * stride, out)
    return views


def _cat(arguments: Arguments) -> tuple[View, ...]:
    sources, out = arguments.tensors(0), arguments.tensor(2)
    dim, target = dim_of(arguments.number(1), len(out.sizes)), arguments.index(2)
    views, first, strides = [], 0, strides_of(out)
    for source in sources:
        tensor = arguments.tensor_at(source)
        sizes = tensor.sizes
        need(len(sizes) == len(out.sizes) and sizes[dim] > 0)
        need((*sizes[:dim], out.sizes[dim], *sizes[dim + 1 :]) == out.sizes)
        axes = zip(sizes, strides_of(tensor), strides, strict=True)
        begin = first * strides[dim]
        views.append(_part(source, target, axes, first_written=begin))
        first += sizes[dim]
    need(first == out.sizes[dim])
    return tuple(views)


def _stack(arguments: Arguments) -> tuple[View, ...]:
    sources, out = arguments.tensors(0), arguments.tensor(2)
    need(out.sizes)
    written, target = _axes_of(out), arguments.index(2)
    count, step = written.pop(dim_of(arguments.number(1), len(written)))
    need(len(sources) == count)
    views = []
    for at, source in enumerate(sources):
        tensor = arguments.tensor_at(source)
        need(tensor.sizes == tuple(size for size, _ in written))
        both = zip(written, strides_of(tensor), strict=True)
        axes = ((size, read, to) for (size, to), read in both)
        views.append(_part(source, target, axes, first_written=at * step))
    return tuple(views)


def _copy_in_place(arguments: Arguments) -> tuple[View, ...]:
    out, tensor = arguments.tensor(0), arguments.tensor(1)
    need(out.dim_order == tensor.dim_order)
    need(out.sizes == tensor.sizes)
    axes = zip(tensor.sizes, strides_of(tensor), strides_of(out), strict=True)
    return (_part(arguments.index(1), arguments.index(0), axes),)


_FINDERS: Final[Mapping[str, Callable[[Arguments], tuple[View, ...]]]] = MappingProxyType(
    {
        "aten::_conj_physical.out": _as_it_is,
        "aten::alias_copy.out": _as_it_is,
        "aten::as_strided_copy.out": _as_strided,
        "aten::cat.out": _cat,
        "aten::clone.out": _as_it_is,
        "aten::_to_copy.out": _as_it_is,
        "aten::copy_": _copy_in_place,
        "aten::detach_copy.out": _as_it_is,
        "aten::diagonal_copy.out": _diagonal,
        "aten::expand_copy.out": _expand,
        "aten::lift_fresh_copy.out": _as_it_is,
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
        "et_copy::_d2h_copy.out": _as_it_is,
        "et_copy::_h2d_copy.out": _as_it_is,
        "executorch_prim::et_view.default": _reshape,
    }
)
"""Finders of views, by operator. Source: op schemas and ATen's documentation."""


_LARGE: Final = float(1 << 30)
"""From here on kernels that scale images take the last item."""


def scale_of(arguments: Arguments, side: int, *, corners: bool) -> tuple[int, int, float]:
    """Sizes of a side of an image, and from an output item to the next one.

    Args:
        arguments: Of the call, which has either sizes or factors.
        side: 0 for rows, 1 for columns.
        corners: Whether first and last items stay where they are.
    """
    size, scaled = (arguments.tensor(name).sizes[2 + side] for name in ("input", "out"))
    need(arguments.is_none("output_size") != arguments.is_none("scale_factors"))
    step = size / scaled
    if arguments.is_none("output_size"):
        factor = arguments.reals("scale_factors")[side]
        need(factor > 0 and int(size * factor) == scaled)
        step = 1 / factor
    else:
        need(arguments.numbers("output_size")[side] == scaled)
    if corners:
        step = (size - 1) / (scaled - 1) if scaled > 1 else 0.0
    return size, scaled, float32(step)


def nearest_item(size: int, scale: float, at: int) -> int:
    """The input item nearest to an output item, rounded down, as the kernel has it."""
    return min(int(min(float32(at * scale), _LARGE)), size - 1)


def neighbours(size: int, scaled: int, scale: float, at: int, *, corners: bool) -> tuple[int, int]:
    """The two input items between which an output item lies, as the kernel has them."""
    if size == scaled:
        return at, at
    place = float32(at * scale)
    if not corners:
        place = float32(float32(scale * (at + 0.5)) - 0.5)
    first = min(int(min(max(place, 0.0), _LARGE)), size - 1)
    return first, min(first + 1, size - 1)
