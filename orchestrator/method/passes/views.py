"""Calls that only reshape or reorder items of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from itertools import accumulate, chain
from math import prod
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from orchestrator.catalog.expressions.moved_shapes import (
    diagonal,
    narrowed,
    repeated,
    selected,
    strided,
    transposed,
    unfolded,
)
from orchestrator.catalog.expressions.shapes import (
    expanded,
    known,
    permuted,
    sliced,
    squeezed,
    unsqueezed,
    viewed,
)
from orchestrator.catalog.expressions.values import (
    ExpressionError,
    Number,
    StridedItems,
    TensorFacts,
)
from orchestrator.core.operator import OperatorName
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import (
    Arguments,
    Name,
    UnknownCallError,
    dim_of,
    facts_of,
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


_Finder: TypeAlias = Callable[[Arguments], tuple[View, ...]]
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
    except (UnknownCallError, ExpressionError):
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


def _view(arguments: Arguments, seen: StridedItems, out: int | None = None) -> tuple[View, ...]:
    """The view of the first argument that fills an output.

    Args:
        arguments: Of the call.
        seen: The items of the argument, in the dimensions of the output.
        out: Value index of the output; None for the last argument.
    """
    index = arguments.index(arguments.count - 1) if out is None else out
    return (pair(arguments.index(0), seen, index, facts_of(arguments.tensor_at(index)).layout),)


def pair(source: int, seen: StridedItems, target: int, filled: StridedItems) -> View:
    """The view of items of a tensor that become those of another one, or of a part of it."""
    need(seen.sizes == filled.sizes)
    axes = (
        (known(size), known(read), known(to))
        for (size, read), (_, to) in zip(seen.axes, filled.axes, strict=True)
    )
    return _part(source, target, axes, known(seen.first), known(filled.first))


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
    return _view(arguments, facts_of(tensor).layout)


def _dim_order(arguments: Arguments) -> tuple[View, ...]:
    tensor, out = arguments.tensor("self"), arguments.tensor("out")
    if arguments.is_none("dim_order"):
        need(tensor.dim_order == out.dim_order)
    else:
        need(arguments.numbers("dim_order") == out.dim_order)
    return _view(arguments, facts_of(tensor).layout)


def _pad(arguments: Arguments) -> tuple[View, ...]:
    """The view of a padding by nothing, as exporters leave it before pooling."""
    tensor = arguments.tensor("input")
    before, after = arguments.numbers("pre_pad"), arguments.numbers("post_pad")
    need(len(before) == len(after) == _IMAGE_RANK and not any((*before, *after)))
    # The kernel refuses others even where it pads nothing.
    need(arguments.number("pad_value") in _INT8)
    need(tensor.dim_order == arguments.tensor("out").dim_order)
    return _view(arguments, facts_of(tensor).layout)


_KINDS: Final[Mapping[str, Callable[[Arguments, Name], object]]] = MappingProxyType(
    {
        "TensorFacts": Arguments.tensor,
        "Number": Arguments.number,
        "Number | None": lambda arguments, name: arguments.number_or(name, None),
        "Sizes": Arguments.numbers,
    }
)
"""By annotation of a parameter: how it is read."""


def _moved(
    geometry: Callable[..., StridedItems], *, least_rank: int = 0, cut: Name | None = None
) -> _Finder:
    """The view that a function of the first argument and further ones gives.

    Args:
        geometry: The function.
        least_rank: Dimensions that the first argument has at least.
        cut: A dimension of the result of which the function takes some items, or the argument
            that names it; without an item there would be no first one.
    """
    _, *kinds = (_KINDS[p.annotation] for p in signature(geometry).parameters.values())

    def find(arguments: Arguments) -> tuple[View, ...]:
        tensor = facts_of(arguments.tensor(0))
        seen = geometry(tensor, *(read(arguments, at) for at, read in enumerate(kinds, 1)))
        # Kernels refuse such tensors, and a call that fails has to stay.
        need(tensor.rank >= least_rank)
        if cut is not None:
            need(seen.sizes[arguments.number(cut) if isinstance(cut, str) else cut])
        return _view(arguments, seen)

    return find


def _as_strided(arguments: Arguments) -> tuple[View, ...]:
    need(0 not in arguments.numbers("size"))
    return _moved(strided)(arguments)


def _squeezed(tensor: TensorFacts, dim: Number) -> StridedItems:
    return squeezed(tensor, (dim,))


def _t(arguments: Arguments) -> tuple[View, ...]:
    tensor = facts_of(arguments.tensor(0))
    need(tensor.rank <= 2)  # noqa: PLR2004  # rows, columns
    return _view(arguments, transposed(tensor, 0, -1))


def _reshape(arguments: Arguments) -> tuple[View, ...]:
    tensor, out = arguments.tensor(0), arguments.tensor(2)
    # Items that lie in another order would have to move: that is a permutation, which `view` is
    # not.
    need(tensor.is_contiguous and out.is_contiguous and tensor.numel != 0)
    need(viewed(facts_of(tensor), arguments.numbers(1)) == out.sizes)
    return _view(arguments, facts_of(out).layout)


def _repeat(arguments: Arguments) -> tuple[View, ...]:
    tensor, out = arguments.tensor("self"), arguments.tensor("out")
    repeats = arguments.numbers("repeats")
    need(min(repeats, default=1) > 0)
    need(out.sizes == repeated(facts_of(tensor), repeats))
    new = len(repeats) - len(tensor.sizes)
    own = [(1, 0)] * new + [*zip(tensor.sizes, strides_of(tensor), strict=True)]
    # Each dimension in two: its repetitions, and the items of one of them.
    both = [*zip(own, strides_of(out), strict=True)]
    axes = [
        *((n, 0, size * to) for n, ((size, _), to) in zip(repeats, both, strict=True)),
        *((size, read, to) for (size, read), to in both),
    ]
    return (_part(arguments.index("self"), arguments.index("out"), axes),)


def _pixel_shuffle(arguments: Arguments) -> tuple[View, ...]:
    tensor, out = arguments.tensor(0), arguments.tensor(2)
    axes = _blocks(tensor, out, arguments.number("upscale_factor"))
    return (_part(arguments.index("self"), arguments.index("out"), axes),)


def _pixel_unshuffle(arguments: Arguments) -> tuple[View, ...]:
    tensor, out = arguments.tensor(0), arguments.tensor(2)
    axes = _blocks(out, tensor, arguments.number("downscale_factor"))
    swapped = [(size, there, here) for size, here, there in axes]
    return (_part(arguments.index("self"), arguments.index("out"), swapped),)


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
        # Other factors repeat some items more often than others: no strides do.
        need(times and not rest)
        places = [nearest_item(size, scale, at) for at in range(scaled)]
        # Rounding of the step may put an item beside its place: then the kernel decides.
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
    tensor, outs = facts_of(arguments.tensor("self")), arguments.tensors("out")
    dim = arguments.number("dim")
    # An output that is named twice would have the items of the last part alone.
    need(len(outs) == len(set(outs)) == tensor.sizes[dim_of(dim, tensor.rank)])
    views = (_view(arguments, selected(tensor, dim, at), out) for at, out in enumerate(outs))
    return tuple(chain(*views))


def _split_evenly(arguments: Arguments) -> tuple[View, ...]:
    tensor, size = arguments.tensor("self"), arguments.number("split_size")
    dim = dim_of(arguments.number("dim"), len(tensor.sizes))
    whole = tensor.sizes[dim]
    need(size > 0)
    sizes = tuple(min(size, whole - begin) for begin in range(0, whole, size))
    return _parts(arguments, sizes)


def _split(arguments: Arguments) -> tuple[View, ...]:
    return _parts(arguments, arguments.numbers("split_sizes"))


def _parts(arguments: Arguments, sizes: tuple[int, ...]) -> tuple[View, ...]:
    """The views of parts of these sizes along a dimension."""
    tensor, outs = facts_of(arguments.tensor("self")), arguments.tensors("out")
    dim = arguments.number("dim")
    need(len(sizes) == len(outs) == len(set(outs)) and min(sizes, default=0) > 0)
    need(sum(sizes) == tensor.sizes[dim_of(dim, tensor.rank)])
    views = (
        _view(arguments, narrowed(tensor, dim, first, size), out)
        for out, size, first in zip(outs, sizes, accumulate(sizes, initial=0), strict=False)
    )
    return tuple(chain(*views))


def _cat(arguments: Arguments) -> tuple[View, ...]:
    out, target = facts_of(arguments.tensor("out")), arguments.index("out")
    dim, first, views = dim_of(arguments.number("dim"), out.rank), 0, []
    for source in arguments.tensors("tensors"):
        tensor = arguments.tensor_at(source)
        need(len(tensor.sizes) == out.rank and tensor.sizes[dim] > 0)
        filled = narrowed(out, dim, first, tensor.sizes[dim])
        views.append(pair(source, facts_of(tensor).layout, target, filled))
        first += tensor.sizes[dim]
    need(first == out.sizes[dim])
    return tuple(views)


def _stack(arguments: Arguments) -> tuple[View, ...]:
    sources, dim = arguments.tensors("tensors"), arguments.number("dim")
    target, out = arguments.index("out"), facts_of(arguments.tensor("out"))
    need(len(sources) == out.sizes[dim_of(dim, out.rank)])
    given = (facts_of(arguments.tensor_at(source)).layout for source in sources)
    return tuple(
        pair(source, seen, target, selected(out, dim, at))
        for at, (source, seen) in enumerate(zip(sources, given, strict=True))
    )


def _copy_in_place(arguments: Arguments) -> tuple[View, ...]:
    out, tensor = arguments.tensor("self"), arguments.tensor("src")
    need(out.dim_order == tensor.dim_order)
    source, target = arguments.index("src"), arguments.index("self")
    return (pair(source, facts_of(tensor).layout, target, facts_of(out).layout),)


_FINDERS: Final[Mapping[str, _Finder]] = MappingProxyType(
    {
        "aten::_conj_physical.out": _as_it_is,
        "aten::alias_copy.out": _as_it_is,
        "aten::as_strided_copy.out": _as_strided,
        "aten::cat.out": _cat,
        "aten::clone.out": _as_it_is,
        "aten::_to_copy.out": _as_it_is,
        "aten::copy_": _copy_in_place,
        "aten::detach_copy.out": _as_it_is,
        "aten::diagonal_copy.out": _moved(diagonal, cut=-1),
        "aten::expand_copy.out": _moved(expanded),
        "aten::lift_fresh_copy.out": _as_it_is,
        "aten::narrow_copy.out": _moved(narrowed, cut="dim"),
        "aten::permute_copy.out": _moved(permuted),
        "aten::pixel_shuffle.out": _pixel_shuffle,
        "aten::pixel_unshuffle.out": _pixel_unshuffle,
        "aten::repeat.out": _repeat,
        "aten::select_copy.int_out": _moved(selected),
        "aten::slice_copy.Tensor_out": _moved(sliced, cut="dim"),
        "aten::split_copy.Tensor_out": _split_evenly,
        "aten::split_with_sizes_copy.out": _split,
        "aten::squeeze_copy.dim_out": _moved(_squeezed, least_rank=1),
        "aten::squeeze_copy.dims_out": _moved(squeezed, least_rank=1),
        "aten::stack.out": _stack,
        "aten::t_copy.out": _t,
        "aten::transpose_copy.int_out": _moved(transposed, least_rank=1),
        "aten::unbind_copy.int_out": _unbind,
        "aten::unfold_copy.out": _moved(unfolded, least_rank=1, cut=-1),
        "aten::unsqueeze_copy.out": _moved(unsqueezed),
        "aten::view_copy.out": _reshape,
        "aten::upsample_nearest2d.vec_out": _nearest,
        "cortex_m::pad.out": _pad,
        "cortex_m::pad_contiguous.out": _pad,
        "cortex_m::transpose.out": _moved(permuted),
        "dim_order_ops::_clone_dim_order.out": _dim_order,
        "dim_order_ops::_to_dim_order_copy.out": _dim_order,
        "et_copy::_d2h_copy.out": _as_it_is,
        "et_copy::_h2d_copy.out": _as_it_is,
        "executorch_prim::et_view.default": _reshape,
    }
)
"""Finders of views, by operator. Source: op schemas and ATen's documentation."""


# As `nearest` and `bilinear` of kernels/portable limit a float before it becomes an integer.
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
