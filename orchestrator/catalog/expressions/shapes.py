"""Output sizes of operators, computed as in their kernels.

Sizes may be ranges. A function raises `ExpressionError` where its kernel rejects the
arguments, and `Undecided` where that is known only when the program runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from orchestrator.catalog.expressions.functions import function
from orchestrator.catalog.expressions.values import (
    ExpressionError,
    Number,
    Range,
    StridedItems,
    TensorFacts,
    Undecided,
    limits,
    same_number,
    same_numbers,
    settled,
)
from orchestrator.core.dtype import FLOATING, ScalarType

if TYPE_CHECKING:
    from orchestrator.catalog.expressions.values import Value

Sizes = tuple[Number, ...]

MAX_EXTENT = 1 << 30
"""Source: kMaxExtent of kernels/util/check.h."""
MAX_RANK = 8
"""Source: kMaxDim of runtime/include/orch/tensor.h."""


def require(holds: bool, what: str) -> None:  # reads as a sentence
    """Raise ExpressionError with `what` unless it holds."""
    if not holds:
        raise ExpressionError(what)


def known(number: Value) -> int:
    """The value of a number. Raises Undecided if it is unknown."""
    found = settled(number)
    if isinstance(found, Range):
        raise Undecided("a number is known only when the program runs")
    return found


def dimension(index: Number, rank: int) -> int:
    """A dimension as a non-negative index; `index` may count from the end."""
    at, count = known(index), max(rank, 1)
    require(-count <= at < count, f"there is no dimension {at} of {rank}")
    return at % count


def dimensions(indices: Sequence[Number], rank: int) -> frozenset[int]:
    """Different dimensions."""
    found = [dimension(index, rank) for index in indices]
    require(len({*found}) == len(found), f"dimensions {list(indices)} repeat")
    return frozenset(found)


def item(items: Sequence[Number], index: int) -> Number:
    """The parameter of a dimension; a single one is for all dimensions."""
    return items[index if len(items) > 1 else 0]


def _joined(a: Number, b: Number) -> Number:
    """The size to which two dimensions broadcast."""
    for one, other in ((a, b), (b, a)):
        if one == 1:
            return other
    if isinstance(a, int) and isinstance(b, int):
        require(a == b, f"sizes {a} and {b} do not broadcast")
        return a
    # One of them may turn out to be 1 at run time.
    (low, high), (other_low, other_high) = limits(a), limits(b)
    if isinstance(a, int) or isinstance(b, int):
        fixed, (least, most) = (a, limits(b)) if isinstance(a, int) else (b, limits(a))
        require(
            least <= 1 <= most or least <= known(fixed) <= most,
            f"sizes {fixed} and {least} to {most} do not broadcast",
        )
        return fixed
    return Range(min(low, other_low), max(high, other_high))


@function
def broadcast(*tensors: TensorFacts | None) -> Sizes:
    """Sizes to which tensors broadcast; some may be None."""
    given = [t for t in tensors if t is not None]
    rank = max(t.rank for t in given)
    sizes: list[Number] = [1] * rank
    for tensor in given:
        for place, size in enumerate(tensor.sizes, start=rank - tensor.rank):
            sizes[place] = _joined(sizes[place], size)
    return tuple(sizes)


@function
def reduced(tensor: TensorFacts, dims: tuple[Number, ...] | Number | None, keepdim: bool) -> Sizes:
    """Sizes without some dimensions, or with 1 there; None means all."""
    if dims is None:
        gone = frozenset(range(tensor.rank))
    else:
        listed = dims if isinstance(dims, tuple) else (dims,)
        gone = dimensions(listed, tensor.rank)
    kept = [
        1 if place in gone else size
        for place, size in enumerate(tensor.sizes)
        if keepdim or place not in gone
    ]
    return tuple(kept)


@function
def reduced_or_all(tensor: TensorFacts, dims: tuple[Number, ...] | None, keepdim: bool) -> Sizes:
    """Sizes without some dimensions, or with 1 there; None and an empty list mean all."""
    return reduced(tensor, dims or None, keepdim)


@function
def without(tensor: TensorFacts, dim: Number) -> Sizes:
    """Sizes without one dimension."""
    require(tensor.rank > 0, "the tensor has no dimension")
    at = dimension(dim, tensor.rank)
    return tensor.sizes[:at] + tensor.sizes[at + 1 :]


@function
def replaced(tensor: TensorFacts, dim: Number, size: Number) -> Sizes:
    """Sizes with one size replaced."""
    at = dimension(dim, tensor.rank)
    return (*tensor.sizes[:at], size, *tensor.sizes[at + 1 :])


@function
def grouped(tensor: TensorFacts, shape: Sizes) -> Sizes:
    """Sizes with 1 for the last dimensions, as many as `shape` has."""
    kept = tensor.rank - len(shape)
    return (*tensor.sizes[:kept], *[1] * (tensor.rank - kept))


@function
def permuted(tensor: TensorFacts, dims: Sizes) -> StridedItems:
    """Dimensions in another order."""
    require(len(dims) == tensor.rank, f"{len(dims)} dimensions are named")
    dimensions(dims, tensor.rank)
    axes = tensor.layout.axes
    return StridedItems(tuple(axes[dimension(d, tensor.rank)] for d in dims))


@function
def squeezed(tensor: TensorFacts, dims: Sizes) -> StridedItems:
    """A tensor without the given dimensions whose size is 1."""
    listed = dimensions(dims, tensor.rank)
    axes = enumerate(tensor.layout.axes)
    return StridedItems(tuple(a for d, a in axes if d not in listed or not same_number(a[0], 1)))


@function
def unsqueezed(tensor: TensorFacts, dim: Number) -> StridedItems:
    """A tensor with a dimension of size 1 inserted."""
    require(tensor.rank < MAX_RANK, f"it would have {tensor.rank + 1} dimensions")
    at, axes = dimension(dim, tensor.rank + 1), tensor.layout.axes
    return StridedItems((*axes[:at], (1, 0), *axes[at:]))


@function
def expanded(tensor: TensorFacts, sizes: Sizes) -> StridedItems:
    """Items repeated along new dimensions, and along those of size 1; -1 keeps a size."""
    new = len(sizes) - tensor.rank
    require(0 <= new <= MAX_RANK - tensor.rank, f"it cannot have {len(sizes)} dimensions")
    found: list[tuple[Number, Number]] = []
    for place, wanted in enumerate(sizes):
        if limits(wanted)[0] < 0 < limits(wanted)[1]:
            raise Undecided("a size is known only when the program runs")
        if place >= new:
            axis = size, _ = tensor.layout.axes[place - new]
            if wanted == -1 or same_number(size, wanted):
                found.append(axis)
                continue
            require(same_number(size, 1), f"size {size} does not expand to {wanted}")
        require(wanted >= 0, f"a size is {wanted}")
        found.append((wanted, 0))
    return StridedItems(tuple(found))


@function
def viewed(tensor: TensorFacts, sizes: Sizes) -> Sizes:
    """Sizes of a view; one may be -1, to be inferred."""
    numel = tensor.numel
    # A range that begins below 0 may be the -1 of the size that is inferred.
    unknown = [place for place, size in enumerate(sizes) if limits(size)[0] < 0]
    places = [place for place in unknown if isinstance(sizes[place], int)]
    if len(unknown) > len(places):
        raise Undecided("a size is known only when the program runs")
    require(
        len(places) <= 1 and all(sizes[p] == -1 for p in places),
        f"the sizes of the view are {list(sizes)}",
    )
    count = prod((s for p, s in enumerate(sizes) if p not in places), start=1)
    if not places:
        require(same_number(count, numel), f"{numel} items do not make {list(sizes)}")
        return sizes
    require(not same_number(count, 0), f"{numel} items do not make {list(sizes)}")
    rest = numel // count
    if isinstance(rest, int):
        require(rest * count == numel, f"{numel} items do not make {list(sizes)}")
    return tuple(rest if p in places else s for p, s in enumerate(sizes))


@function
def sliced(
    tensor: TensorFacts, dim: Number, start: Number | None, end: Number | None, step: Number
) -> StridedItems:
    """A slice with Python's bounds."""
    require(tensor.rank > 0, "the tensor has no dimension")
    at = dimension(dim, tensor.rank)
    require(step > 0, f"the step is {step}")
    size, stride = tensor.layout.axes[at]
    # As many as there are, at most; where it begins, only a run shows.
    if any(isinstance(x, Range) for x in (size, start, end, step)):
        return tensor.layout.along(at, (Range(0, limits(size)[1]), stride * step))
    bounds = [None if x is None else known(x) for x in (start, end, step)]
    taken = range(known(size))[slice(*bounds)]
    return tensor.layout.along(at, (len(taken), stride * step), first=taken.start)


@function
def concatenated(tensors: tuple[TensorFacts | None, ...], dim: Number) -> Sizes:
    """Sizes of a concatenation; tensors of sizes [0] add nothing."""
    require(len(tensors) > 0, "there are no tensors")
    given = [t for t in tensors if t is not None and t.rank > 0]
    require(len(given) == len(tensors), "a tensor has no dimension")
    # PyTorch lets empty tensors of one dimension stand beside any others.
    filled = [t for t in given if t.rank != 1 or not same_number(t.sizes[0], 0)]
    parts = filled or given[-1:]
    first, at = parts[0], dimension(dim, parts[0].rank)
    total: Number = 0
    for tensor in parts:
        require(tensor.rank == first.rank, "tensors have different ranks")
        for place, size in enumerate(tensor.sizes):
            require(
                place == at or same_number(size, first.sizes[place]),
                f"tensors have {size} and {first.sizes[place]} in dimension {place}",
            )
        total = total + tensor.sizes[at]
    require(total < 1 << 31, f"dimension {at} would have {total}")
    return (*first.sizes[:at], total, *first.sizes[at + 1 :])


MASKS = frozenset({ScalarType.Bool, ScalarType.Byte})
"""Dtypes of masks. Source: kMasks of kernels/util/indexing.h."""


def is_mask(index: TensorFacts) -> bool:
    """Whether an index is a mask: as many indices as it has dimensions."""
    return index.dtype in MASKS


def indexed_dims(indices: tuple[TensorFacts | None, ...]) -> tuple[tuple[int, TensorFacts], ...]:
    """Each index with the first dimension that it is for."""
    found, dim = [], 0
    for index in indices:
        if index is not None:
            found.append((dim, index))
        dim += index.rank if index is not None and is_mask(index) else 1
    return tuple(found)


def _as_index(tensor: TensorFacts, dim: int, index: TensorFacts) -> TensorFacts:
    """The index tensors that a mask stands for have one dimension."""
    if not is_mask(index):
        return index
    require(index.rank > 0, "a mask has no dimensions")
    covered = tensor.sizes[dim : dim + index.rank]
    require(same_numbers(covered, index.sizes), "a mask has other sizes")
    items = index.items()
    count = Range(0, limits(index.numel)[1]) if items is None else sum(map(bool, items))
    return TensorFacts(dtype=index.dtype, sizes=(count,))


@function
def indexed(tensor: TensorFacts, indices: tuple[TensorFacts | None, ...]) -> Sizes:
    """Sizes of tensor[indices]. Source: NumPy, "Advanced indexing"."""
    require(len(indices) <= tensor.rank, f"{len(indices)} indices are given")
    given = indexed_dims(indices)
    shared = broadcast(*[_as_index(tensor, d, i) for d, i in given]) if given else ()
    places = [d + n for d, i in given for n in range(i.rank if is_mask(i) else 1)]
    covered = len(places) + sum(index is None for index in indices)
    require(covered <= tensor.rank, f"{covered} dimensions are indexed")
    # Indices side by side put their dimensions where they are; else these come first.
    neighbours = places == [*range(places[0], places[0] + len(places))] if places else 0
    first = places[0] if neighbours else 0
    kept = [size for place, size in enumerate(tensor.sizes) if place not in places]
    require(len(kept) + len(shared) <= MAX_RANK, "the result has too many dimensions")
    return (*kept[:first], *shared, *kept[first:])


def _extents(
    size: Number, kernel: Number, padding: Number, dilation: Number
) -> tuple[Number, Number]:
    """Size of the padded input, and extent of the window."""
    return size + 2 * padding, dilation * (kernel - 1) + 1


def _windows(
    size: Number, kernel: Number, stride: Number, padding: Number, dilation: Number
) -> tuple[Number, Number]:
    """How many windows a dimension has, and how many items are left behind the last one."""
    padded, window = _extents(size, kernel, padding, dilation)
    require(window <= padded <= MAX_EXTENT, f"the window has {window} items, the input {padded}")
    return (padded - window) // stride + 1, (padded - window) % stride


@function
def pooled(
    tensor: TensorFacts,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,  # the operator's argument
    *,
    dims: int = 2,
) -> Sizes:
    """Sizes of a pooled image, [N, C, H, W] or [C, H, W].

    Source: PyTorch, documentation of AvgPool2d.
    """
    ranks = (dims + 1, dims + 2)
    require(tensor.rank in ranks, f"the image has {tensor.rank} dimensions")
    require(tensor.sizes[-dims - 1] > 0, "the image has no channel")
    sizes = [*tensor.sizes[:-dims]]
    for axis in range(dims):
        size, step = tensor.sizes[axis - dims], item(stride or kernel, axis)
        pad = item(padding, axis)
        padded, window = _extents(size, item(kernel, axis), pad, item(dilation, axis))
        require(size > 0, "the image is empty")
        # A window of padding alone would have no item.
        require(2 * pad <= window, f"padding {pad} is more than half of the window")
        require(padded + window + step <= MAX_EXTENT, "the window is too large")
        room = padded - window + (step - 1 if ceil_mode else 0)
        require(room >= 0, f"the window has {window} items, the image {padded}")
        count = room // step + 1
        # PyTorch leaves out a last window that begins in the padding behind.
        if ceil_mode and (count - 1) * step >= size + pad:
            count = count - 1
        require(count > 0, "there is no window")
        sizes.append(count)
    return tuple(sizes)


function(partial(pooled, dims=3), "pooled_volume")


@function
def convolved(
    tensor: TensorFacts,
    weight: TensorFacts,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,  # the operator's argument
    output_padding: Sizes,
    groups: Number,
) -> Sizes:
    """Sizes of a convolved line or image, [N, C, W] or [N, C, H, W].

    Source: PyTorch, documentation of Conv2d and ConvTranspose2d.
    """
    require(weight.sizes[0] > 0, "the weight is empty")
    require(
        same_number(weight.sizes[0] % groups, 0),
        f"{weight.sizes[0]} filters do not make {groups} groups",
    )
    if transposed:
        taken, given = weight.sizes[0], weight.sizes[1] * groups
    else:
        taken, given = weight.sizes[1] * groups, weight.sizes[0]
    require(
        same_number(tensor.sizes[1], taken),
        f"the input has {tensor.sizes[1]} channels, the weight takes {taken}",
    )
    require(given <= MAX_EXTENT, "there are too many channels")
    sizes: list[Number] = [tensor.sizes[0], given]
    for axis in range(tensor.rank - 2):
        size, kernel = tensor.sizes[2 + axis], weight.sizes[2 + axis]
        step, more = item(stride, axis), item(output_padding, axis)
        pad, apart = item(padding, axis), item(dilation, axis)
        require(kernel > 0, "the weight is empty")
        _, window = _extents(size, kernel, pad, apart)
        require(window <= MAX_EXTENT, "the window is too large")
        if transposed:
            # As in PyTorch, it only has to be less than one of the two.
            wide = more >= step and more >= apart
            require(not wide, f"output padding {more} is too large")
            end = (size - 1) * step - 2 * pad + window + more
            require(0 < end <= MAX_EXTENT, f"the output would have {end}")
            sizes.append(end)
        else:
            sizes.append(_windows(size, kernel, step, pad, apart)[0])
    return tuple(sizes)


@function
def upsampled(tensor: TensorFacts, sizes: Sizes | None, factors: tuple[float, ...] | None) -> Sizes:
    """Sizes of a scaled image, [N, C, H, W]; takes either sizes or factors."""
    require((sizes is None) != (factors is None), "size and factor are both given")
    found = [*tensor.sizes[:2]]
    for axis in range(2):
        size = tensor.sizes[2 + axis]
        require(size > 0, "the image is empty")
        if sizes is not None:
            require(len(sizes) == 2, f"there are {len(sizes)} sizes")  # noqa: PLR2004  # height, width
            require(1 <= sizes[axis] <= MAX_EXTENT, f"a size is {sizes[axis]}")
            found.append(sizes[axis])
        elif factors is not None:
            require(len(factors) == 2, f"there are {len(factors)} factors")  # noqa: PLR2004  # height, width
            scaled = known(size) * factors[axis]
            require(1 <= scaled <= MAX_EXTENT, f"a size would be {scaled}")
            found.append(int(scaled))
    return tuple(found)


@function
def counted(start: Value, end: Value, step: Value, dtype: ScalarType) -> Sizes:
    """Sizes of the numbers from `start` to before `end`. Arguments may be floats."""
    given = [known(x) for x in (start, end, step)]
    exact = dtype not in FLOATING and all(isinstance(x, int) for x in given)
    first, last, by = given if exact else [float(x) for x in given]
    finite = first - first == 0 and last - last == 0
    require(finite, "a limit is infinite or not a number")
    require(by > 0 or by < 0, f"the step is {by}")
    forward = first <= last if by > 0 else first >= last
    require(forward, "the step never gets to the end")
    if dtype not in FLOATING and not exact:
        # PyTorch truncates floats, and counts them as they are unless to Long.
        held = all(-(2.0**63) <= x < 2.0**63 for x in (first, last, by))
        require(held, "a number does not fit 64 bits")
        if dtype is ScalarType.Long:
            first, last, by = int(first), int(last), int(by)
            require(by != 0, "the step is 0 without its fraction")
            exact = True
    if exact:
        count: float = -(-(last - first) // by)
    else:
        count = (last - first) / by
        require(count <= MAX_EXTENT, f"there would be {count} items")
        count = int(count) + (int(count) < count)
    require(count <= MAX_EXTENT, f"there would be {count} items")
    return (int(count),)


# Sizes of int8 images, computed as in kernels/cortex_m; see `shapes`.


def _taps(
    position: Number, size: int, kernel: int, padding: int, dilation: int, stride: int
) -> bool:
    """Whether a window contains an item of the input."""
    first = known(position) * stride - padding
    return any(0 <= first + tap * dilation < size for tap in (0, kernel - 1)) or (
        first < 0
        and first + (kernel - 1) * dilation >= size
        # With a large dilation, all taps may lie in the padding on both sides.
        and any(0 <= first + tap * dilation < size for tap in range(kernel))
    )


@function
def pooled_image(
    nhwc: Sizes,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,  # the operator's argument
) -> Sizes:
    """Sizes [N, H, W, C] of a pooled int8 image. Source: kernels/cortex_m/pool.h."""
    found = [nhwc[0]]
    for axis in range(2):
        size, taps = nhwc[1 + axis], item(kernel, axis)
        step, pad, apart = (item(x, axis) for x in (stride, padding, dilation))
        require(size > 0, "the image is empty")
        count, rest = _windows(size, taps, step, pad, apart)
        if ceil_mode and not same_number(rest, 0) and count * step < size + pad:
            count = count + 1
        for place in (0, count - 1):
            reached = _taps(place, *(known(x) for x in (size, taps, pad, apart, step)))
            require(reached, "a window lies in the padding")
        found.append(count)
    return (*found, nhwc[3])


@function
def convolved_image(
    nhwc: Sizes,
    weight: TensorFacts,
    outputs: Number,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
) -> Sizes:
    """Sizes [N, H, W, C] of a convolved int8 image; the weight has [.., H, W, ..]."""
    found = [nhwc[0]]
    for axis in range(2):
        window = (item(numbers, axis) for numbers in (stride, padding, dilation))
        found.append(_windows(nhwc[1 + axis], weight.sizes[1 + axis], *window)[0])
    return (*found, outputs)


@function
def transposed_image(
    nhwc: Sizes,
    weight: TensorFacts,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    dilation: Sizes,
) -> Sizes:
    """Sizes [N, H, W, C] of a transposed convolution of an int8 image."""
    found = [nhwc[0]]
    for axis in range(2):
        size, kernel = nhwc[1 + axis], weight.sizes[1 + axis]
        require(size > 0, "the image is empty")
        end = (
            (size - 1) * item(stride, axis)
            + item(dilation, axis) * (kernel - 1)
            + item(output_padding, axis)
            + 1
        )
        require(end <= MAX_EXTENT, "the output is too large")
        # As `set_transposed_output` of kernels/cortex_m/transposed.h, which limits the end with
        # padding.
        end = end - 2 * item(padding, axis)
        require(end > 0, f"the output would have {end}")
        found.append(end)
    return (*found, weight.sizes[0])


@function
def from_nhwc(sizes: Sizes) -> Sizes:
    """Sizes [N, C, H, W] from those in memory order."""
    n, h, w, c = sizes
    return n, c, h, w


@function
def padded(tensor: TensorFacts, before: Sizes, after: Sizes, nhwc: bool) -> Sizes:
    """Sizes of a padded int8 tensor. Source: kernels/cortex_m/op_pad.cpp.

    Args:
        tensor: The input, of at most four dimensions.
        before: Padding before each of four dimensions, in memory order.
        after: Padding after them.
        nhwc: Memory is NHWC, of sizes [N, C, H, W].
    """
    # The kernel pads four dimensions; those of a tensor with fewer are the last of them.
    order = (0, 2, 3, 1) if nhwc else range(tensor.rank)
    found: list[Number] = [0] * tensor.rank
    for place in range(4 - tensor.rank):
        for items in (before, after):
            require(
                same_number(items[place], 0), "a dimension that the tensor does not have is padded"
            )
    for place, dim in enumerate(order, start=4 - tensor.rank):
        found[dim] = before[place] + tensor.sizes[dim] + after[place]
        require(found[dim] < 1 << 31, f"dimension {dim} would have {found[dim]}")
    return tuple(found)
