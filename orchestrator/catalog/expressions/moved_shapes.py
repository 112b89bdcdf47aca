"""Output sizes of operators that move items, computed as in their kernels.

Like those of `shapes`: `ExpressionError` where the kernel rejects the arguments,
`Undecided` where that is known only when the program runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.catalog.expressions.predicates import resizes
from orchestrator.catalog.expressions.shapes import (
    MAX_EXTENT,
    MAX_RANK,
    Sizes,
    dimension,
    known,
    require,
)
from orchestrator.catalog.expressions.values import (
    Number,
    Range,
    TensorFacts,
    every,
    limits,
    same_number,
    same_numbers,
)

_LARGEST = 2**31 - 1


def _size(size: Number) -> Number:
    """A size that fits 32 bits."""
    require(size <= _LARGEST, f"a dimension would have {size}")
    return size


def transposed(tensor: TensorFacts, first: Number, second: Number) -> Sizes:
    """Sizes with two of them swapped."""
    a, b = dimension(first, tensor.rank), dimension(second, tensor.rank)
    sizes = [*tensor.sizes]
    if sizes:
        sizes[a], sizes[b] = sizes[b], sizes[a]
    return tuple(sizes)


def narrowed(tensor: TensorFacts, dim: Number, start: Number, length: Number) -> Sizes:
    """Sizes of `length` items from `start` on."""
    require(tensor.rank > 0, "the tensor has no dimension")
    at = dimension(dim, tensor.rank)
    size = tensor.sizes[at]
    require(-size <= start, f"there is no item {start} of {size}")
    require(start <= size, f"there is no item {start} of {size}")
    require(length >= 0, f"the length is {length}")
    first = start + size if start < 0 else start
    require(first + length <= size, f"item {first + length} is past the end, {size}")
    return (*tensor.sizes[:at], length, *tensor.sizes[at + 1 :])


def diagonal(tensor: TensorFacts, offset: Number, first: Number, second: Number) -> Sizes:
    """Sizes of the diagonals of two dimensions."""
    a, b = dimension(first, tensor.rank), dimension(second, tensor.rank)
    require(a != b, "a diagonal needs two dimensions")
    kept = [size for place, size in enumerate(tensor.sizes) if place not in (a, b)]
    down, right, at = tensor.sizes[a], tensor.sizes[b], known(offset)
    down, right = (down, right - at) if at > 0 else (down + at, right)
    length: Number
    if isinstance(down, Range) or isinstance(right, Range):
        lows, highs = zip(limits(down), limits(right), strict=True)
        length = Range(max(min(lows), 0), max(min(highs), 0))
    else:
        length = max(min(down, right), 0)
    return (*kept, length)


def unfolded(tensor: TensorFacts, dim: Number, size: Number, step: Number) -> Sizes:
    """Sizes of the windows along a dimension, whose items come last."""
    require(tensor.rank < MAX_RANK, f"it would have {tensor.rank + 1} dimensions")
    at = dimension(dim, tensor.rank)
    whole: Number = tensor.sizes[at] if tensor.rank else 1
    require(size >= 0, f"the window has {size} items")
    require(size <= whole, f"the window has {size} items, the dimension {whole}")
    require(step > 0, f"the step is {step}")
    if not tensor.rank:
        return (size,)
    count = (whole - size) // step + 1
    return (*tensor.sizes[:at], count, *tensor.sizes[at + 1 :], size)


def repeated(tensor: TensorFacts, repeats: Sizes) -> Sizes:
    """Sizes of a tensor repeated along its dimensions and new ones before them."""
    rank = len(repeats)
    require(tensor.rank <= rank <= MAX_RANK, f"it cannot have {rank} dimensions")
    own = (*[1] * (rank - tensor.rank), *tensor.sizes)
    for count in repeats:
        require(count >= 0, f"a dimension is repeated {count} times")
    return tuple(_size(a * b) for a, b in zip(own, repeats, strict=True))


def strided(tensor: TensorFacts, sizes: Sizes, strides: Sizes, offset: Number | None) -> Sizes:
    """These sizes, if strides and offset stay within the memory of the tensor."""
    require(len(sizes) <= MAX_RANK, f"it cannot have {len(sizes)} dimensions")
    require(len(sizes) == len(strides), "sizes and strides differ in number")
    for size, stride in zip(sizes, strides, strict=True):
        require(size >= 0, f"a size is {size}")
        require(stride >= 0, f"a stride is {stride}")
        _size(size)
    last: Number = 0 if offset is None else offset
    require(last >= 0, f"the offset is {last}")
    if any(same_number(size, 0) for size in sizes):
        return sizes
    for size, stride in zip(sizes, strides, strict=True):
        if not same_number(size, 1):
            last = last + (size - 1) * stride
    require(last < tensor.numel, f"item {last} is read of {tensor.numel}")
    return sizes


def stacked(tensors: tuple[TensorFacts | None, ...], dim: Number) -> Sizes:
    """Sizes of tensors along a new dimension."""
    given = [t for t in tensors if t is not None]
    require(len(given) == len(tensors) > 0, "there are no tensors")
    first = given[0]
    require(first.rank < MAX_RANK, f"it would have {first.rank + 1} dimensions")
    at = dimension(dim, first.rank + 1)
    alike = every([lambda t=t: same_numbers(t.sizes, first.sizes) for t in given])  # type: ignore[misc]  # mypy knows no types of defaults
    require(alike, "tensors have different sizes")
    return (*first.sizes[:at], len(given), *first.sizes[at:])


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


def extended(tensor: TensorFacts, padding: Sizes) -> Sizes:
    """Sizes of a padded tensor; negative numbers cut items off."""
    count, odd = divmod(len(padding), 2)
    require(not odd and count <= tensor.rank, f"the padding has {len(padding)} numbers")
    found = []
    for size, pair in _pairs(tensor, padding):
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


def reflected(tensor: TensorFacts, padding: Sizes) -> Sizes:
    """Sizes of a tensor padded by reflection."""
    return _bordered(tensor, padding, reflect=True)


def replicated(tensor: TensorFacts, padding: Sizes) -> Sizes:
    """Sizes of a tensor padded with its first and last items."""
    return _bordered(tensor, padding, reflect=False)


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
    return every(
        [lambda o=o, s=s: resizes(o, s) for o, s in zip(given, sizes, strict=True)]  # type: ignore[misc]  # mypy knows no types of defaults
    )


def splits_evenly(
    tensor: TensorFacts, outs: tuple[TensorFacts | None, ...], size: Number, dim: Number
) -> bool:
    """Whether outputs are parts of a size along a dimension; the last may be less."""
    require(tensor.rank > 0, "the tensor has no dimension")
    at = dimension(dim, tensor.rank)
    whole, step = known(tensor.sizes[at]), known(size)
    require(step > 0 or step == whole == 0, f"the size of a part is {step}")
    parts = [min(step, whole - begin) for begin in range(0, whole, step or 1)] or [0]
    before, after = tensor.sizes[:at], tensor.sizes[at + 1 :]
    return _are_parts(tensor, outs, [(*before, part, *after) for part in parts])


def unbinds(tensor: TensorFacts, outs: tuple[TensorFacts | None, ...], dim: Number) -> bool:
    """Whether outputs are the tensors along a dimension."""
    require(tensor.rank > 0, "the tensor has no dimension")
    at = dimension(dim, tensor.rank)
    if not same_number(tensor.sizes[at], len(outs)):
        return False
    part = (*tensor.sizes[:at], *tensor.sizes[at + 1 :])
    return _are_parts(tensor, outs, [part] * len(outs))
