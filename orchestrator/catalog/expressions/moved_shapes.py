"""Output sizes of operators that move items, computed as in their kernels.

Like those of `shapes`: `ExpressionError` where the kernel rejects the arguments,
`Undecided` where that is known only when the program runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.catalog.expressions.functions import function
from orchestrator.catalog.expressions.predicates import resizes, within
from orchestrator.catalog.expressions.shapes import (
    MAX_EXTENT,
    MAX_RANK,
    Sizes,
    dimension,
    known,
    replaced,
    require,
    without,
)
from orchestrator.catalog.expressions.values import (
    Number,
    Range,
    StridedItems,
    TensorFacts,
    each,
    every,
    limits,
    same_number,
    same_numbers,
)

# Programs and kernels have sizes of 32 bits.
_LARGEST = 2**31 - 1


def _size(size: Number) -> Number:
    """A size that fits 32 bits."""
    require(size <= _LARGEST, f"a dimension would have {size}")
    return size


@function
def transposed(tensor: TensorFacts, dim: Number, dim_: Number) -> StridedItems:
    """Two dimensions swapped."""
    a, b = dimension(dim, tensor.rank), dimension(dim_, tensor.rank)
    axes = [*tensor.layout.axes]
    if axes:
        axes[a], axes[b] = axes[b], axes[a]
    return StridedItems(tuple(axes))


def selected(tensor: TensorFacts, dim: Number, index: Number) -> StridedItems:
    """Items at one index of a dimension."""
    require(tensor.rank > 0, "the tensor has no dimension")
    at = dimension(dim, tensor.rank)
    size = tensor.sizes[at]
    require(-size <= index, f"there is no item {index} of {size}")
    require(index < size, f"there is no item {index} of {size}")
    return tensor.layout.along(at, first=index + size if index < 0 else index)


@function
def narrowed(tensor: TensorFacts, dim: Number, start: Number, length: Number) -> StridedItems:
    """`length` items from `start` on."""
    require(tensor.rank > 0, "the tensor has no dimension")
    at = dimension(dim, tensor.rank)
    size, stride = tensor.layout.axes[at]
    require(-size <= start, f"there is no item {start} of {size}")
    require(start <= size, f"there is no item {start} of {size}")
    require(length >= 0, f"the length is {length}")
    first = start + size if start < 0 else start
    require(first + length <= size, f"item {first + length} is past the end, {size}")
    return tensor.layout.along(at, (length, stride), first=first)


@function
def diagonal(tensor: TensorFacts, offset: Number, dim: Number, dim_: Number) -> StridedItems:
    """The diagonals of two dimensions, whose items come last."""
    a, b = dimension(dim, tensor.rank), dimension(dim_, tensor.rank)
    require(a != b, "a diagonal needs two dimensions")
    axes, at = tensor.layout.axes, known(offset)
    kept = [axis for place, axis in enumerate(axes) if place not in (a, b)]
    (rows, down), (columns, right) = axes[a], axes[b]
    row, column = max(-at, 0), max(at, 0)
    ends = [limits(rows - row), limits(columns - column)]
    # The shorter of what is left of rows and columns, or nothing.
    low, high = (max(min(two), 0) for two in zip(*ends, strict=True))
    is_known = isinstance(rows, int) and isinstance(columns, int)
    length = low if is_known else Range(low, high)
    return StridedItems((*kept, (length, down + right)), row * down + column * right)


@function
def unfolded(tensor: TensorFacts, dim: Number, size: Number, step: Number) -> StridedItems:
    """Windows along a dimension, whose items come last."""
    require(tensor.rank < MAX_RANK, f"it would have {tensor.rank + 1} dimensions")
    at = dimension(dim, tensor.rank)
    whole, stride = tensor.layout.axes[at] if tensor.rank else (1, 1)
    require(size >= 0, f"the window has {size} items")
    require(size <= whole, f"the window has {size} items, the dimension {whole}")
    require(step > 0, f"the step is {step}")
    # As in PyTorch, a number is a line of one item.
    if not tensor.rank:
        return StridedItems(((size, stride),))
    windows = tensor.layout.along(at, ((whole - size) // step + 1, stride * step))
    return StridedItems((*windows.axes, (size, stride)))


@function
def repeated(tensor: TensorFacts, repeats: Sizes) -> Sizes:
    """Sizes of a tensor repeated along its dimensions and new ones before them."""
    rank = len(repeats)
    require(tensor.rank <= rank <= MAX_RANK, f"it cannot have {rank} dimensions")
    own = (*[1] * (rank - tensor.rank), *tensor.sizes)
    for count in repeats:
        require(count >= 0, f"a dimension is repeated {count} times")
    return tuple(_size(a * b) for a, b in zip(own, repeats, strict=True))


@function
def strided(
    tensor: TensorFacts, sizes: Sizes, strides: Sizes, offset: Number | None
) -> StridedItems:
    """Items at given strides, if these and the offset stay within the memory of the tensor."""
    require(len(sizes) <= MAX_RANK, f"it cannot have {len(sizes)} dimensions")
    require(len(sizes) == len(strides), "sizes and strides differ in number")
    axes = tuple(zip(sizes, strides, strict=True))
    for size, stride in axes:
        require(size >= 0, f"a size is {size}")
        require(stride >= 0, f"a stride is {stride}")
        _size(size)
    first = last = 0 if offset is None else offset
    require(first >= 0, f"the offset is {first}")
    # Without items nothing is read, whatever the strides and the offset are.
    if any(same_number(size, 0) for size in sizes):
        return StridedItems(axes, first)
    for size, stride in axes:
        # The stride of a single index is never taken.
        if not same_number(size, 1):
            last = last + (size - 1) * stride
    require(last < tensor.numel, f"item {last} is read of {tensor.numel}")
    return StridedItems(axes, first)


@function
def stacked(tensors: tuple[TensorFacts | None, ...], dim: Number) -> Sizes:
    """Sizes of tensors along a new dimension."""
    given = [t for t in tensors if t is not None]
    require(len(given) == len(tensors) > 0, "there are no tensors")
    first = given[0]
    require(first.rank < MAX_RANK, f"it would have {first.rank + 1} dimensions")
    at = dimension(dim, first.rank + 1)
    alike = each(lambda t: same_numbers(t.sizes, first.sizes), given)
    require(alike, "tensors have different sizes")
    return (*first.sizes[:at], len(given), *first.sizes[at:])


@function
def pixels_shuffled(tensor: TensorFacts, factor: Number) -> Sizes:
    """Sizes of an image, [..., C, H, W], whose channels become blocks of pixels."""
    require(tensor.rank >= _IMAGE, f"the image has {tensor.rank} dimensions")
    *outer, channels, height, width = tensor.sizes
    require(
        same_number(channels % (factor * factor), 0),
        f"{channels} channels are no blocks of {factor} * {factor} pixels",
    )
    channels = channels // (factor * factor)
    return (*outer, channels, _size(height * factor), _size(width * factor))


@function
def pixels_unshuffled(tensor: TensorFacts, factor: Number) -> Sizes:
    """Sizes of an image, [..., C, H, W], whose blocks of pixels become channels."""
    require(tensor.rank >= _IMAGE, f"the image has {tensor.rank} dimensions")
    *outer, channels, height, width = tensor.sizes
    for size in (height, width):
        require(same_number(size % factor, 0), f"{size} pixels are no blocks of {factor}")
    channels = _size(channels * factor * factor)
    return (*outer, channels, height // factor, width // factor)


_IMAGE = 3
"""Dimensions of an image: channels, height, width."""


@function
def seen_as(tensor: TensorFacts, out: TensorFacts) -> Sizes:
    """Sizes of the bytes of a tensor, seen as items of the dtype of another one.

    Where these have another size, the last dimension of both is the innermost.
    """
    require(tensor.rank == out.rank, f"the output has {out.rank} dimensions")
    given, wanted = tensor.dtype.item_bytes, out.dtype.item_bytes
    if given == wanted:
        return tensor.sizes
    last = tensor.rank - 1
    require(last >= 0, "the tensor has no dimension")
    for one in (tensor, out):
        require(one.dim_order[last] == last, "the last dimension is not the innermost")
    size = tensor.sizes[last] * given
    require(same_number(size % wanted, 0), f"lines have {size} bytes")
    return (*tensor.sizes[:last], size // wanted)


def _pairs(tensor: TensorFacts, padding: Sizes) -> list[tuple[Number, tuple[Number, Number]]]:
    """Sizes, with the padding before and after each, in pairs from the last one on."""
    for number in padding:
        require(number >= -MAX_EXTENT, f"the padding is {number}")
        require(number <= MAX_EXTENT, f"the padding is {number}")
    pairs = [*zip(padding[::2], padding[1::2], strict=True)][::-1]
    first = tensor.rank - len(pairs)
    none: tuple[Number, Number] = (0, 0)
    return [*zip(tensor.sizes, [*[none] * first, *pairs], strict=True)]


@function
def extended(tensor: TensorFacts, padding: Sizes) -> Sizes:
    """Sizes of a padded tensor; negative numbers cut items off."""
    count, odd = divmod(len(padding), 2)
    require(not odd and count <= tensor.rank, f"the padding has {len(padding)} numbers")
    found = []
    for size, pair in _pairs(tensor, padding):
        # As the kernel: both ends are cut off before anything is added.
        left = size
        for number in pair:
            if number < 0:
                left = left + number
                require(left >= 0, f"{-number} items are cut off of {size}")
        found.append(_size(size + pair[0] + pair[1]))
    return tuple(found)


def _bordered(tensor: TensorFacts, padding: Sizes, *, reflect: bool) -> Sizes:
    found = []
    for size, (before, after) in _pairs(tensor, padding):
        whole = size + before + after
        require(whole >= 0, f"a dimension would have {whole}")
        if not same_number(whole, 0):
            none = (before, after) != (0, 0) and same_number(size, 0)
            require(not none, "there is no item to repeat")
            for number in (before, after):
                require(
                    not reflect or number == 0 or number < size,
                    f"padding {number} is too much for {size} items",
                )
        _size(size + before)
        _size(size + after)
        found.append(_size(whole))
    return tuple(found)


@function
def reflected(tensor: TensorFacts, padding: Sizes) -> Sizes:
    """Sizes of a tensor padded by reflection."""
    return _bordered(tensor, padding, reflect=True)


@function
def replicated(tensor: TensorFacts, padding: Sizes) -> Sizes:
    """Sizes of a tensor padded with its first and last items."""
    return _bordered(tensor, padding, reflect=False)


@function
def summed(tensor: TensorFacts, size: Number | None) -> Sizes:
    """One size: the sum of the items of a constant, which must be `size` if given."""
    total = _size(sum(map(int, tensor.known_items)))
    require(size is None or same_number(size, total), f"the items add up to {total}")
    return (total,)


def _are_parts(
    tensor: TensorFacts, outs: tuple[TensorFacts | None, ...], sizes: Sequence[Sizes]
) -> bool:
    """Whether outputs can have these sizes and the dtype of a tensor."""
    if len(outs) != len(sizes):
        return False
    if any(out is None or out.dtype is not tensor.dtype for out in outs):
        return False
    given = [out for out in outs if out is not None]
    return each(resizes, given, sizes)


@function
def splits(
    tensor: TensorFacts, outs: tuple[TensorFacts | None, ...], sizes: Sizes, dim: Number
) -> bool:
    """Whether outputs are the parts of a tensor along a dimension."""
    require(tensor.rank > 0, "the tensor has no dimension")
    at = dimension(dim, tensor.rank)
    return every(
        [
            lambda: within(sizes, 0, _LARGEST),
            lambda: same_number(sum(sizes), tensor.sizes[at]),
            lambda: _are_parts(tensor, outs, [replaced(tensor, at, size) for size in sizes]),
        ]
    )


@function
def splits_evenly(
    tensor: TensorFacts, outs: tuple[TensorFacts | None, ...], size: Number, dim: Number
) -> bool:
    """Whether outputs are parts of a size along a dimension; the last may be less."""
    require(tensor.rank > 0, "the tensor has no dimension")
    at = dimension(dim, tensor.rank)
    whole, step = known(tensor.sizes[at]), known(size)
    require(step > 0 or step == whole == 0, f"the size of a part is {step}")
    # An empty dimension is one part, which is empty; only then may a part have no items.
    parts = [min(step, whole - begin) for begin in range(0, whole, step or 1)] or [0]
    return _are_parts(tensor, outs, [replaced(tensor, at, part) for part in parts])


@function
def unbinds(tensor: TensorFacts, outs: tuple[TensorFacts | None, ...], dim: Number) -> bool:
    """Whether outputs are the tensors along a dimension."""
    part = without(tensor, dim)
    if not same_number(tensor.sizes[dimension(dim, tensor.rank)], len(outs)):
        return False
    return _are_parts(tensor, outs, [part] * len(outs))
