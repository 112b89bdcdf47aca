"""Predicates and sizes of reductions, of distances and of adaptive pooling."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite, prod
from typing import TYPE_CHECKING

from orchestrator.catalog.expressions.functions import function
from orchestrator.catalog.expressions.shapes import (
    MAX_EXTENT,
    MAX_RANK,
    broadcast,
    dimension,
    dimensions,
    item,
    reduced,
    require,
)
from orchestrator.catalog.expressions.values import (
    Number,
    Range,
    TensorFacts,
    each,
    limits,
    same_number,
    settled,
)

if TYPE_CHECKING:
    from orchestrator.catalog.expressions.values import Value

    Sizes = tuple[Number, ...]

_IMAGE = 2
"""Dimensions of an image: height, width."""
_SAMPLES = 3
"""Dimensions of random samples: images, channels, axes."""
_MAX_SIZE = (1 << 31) - 1


@function
def has_items(tensor: TensorFacts, dims: Sizes | Number | None) -> bool:
    """Whether no dimension of a reduction is empty; None or [] are all dimensions."""
    listed = dims if isinstance(dims, tuple) or dims is None else (dims,)
    places = dimensions(listed, tensor.rank) if listed else range(tensor.rank)
    return each(lambda p: tensor.sizes[p] > 0, [p for p in places if p < tensor.rank])


@function
def length(tensor: TensorFacts, dim: Number) -> Number:
    """Items along a dimension; a tensor without dimensions has one."""
    at = dimension(dim, tensor.rank)
    return tensor.sizes[at] if tensor.rank else 1


@function
def are_frequencies(sizes: Sizes, dims: Sizes) -> bool:
    """Whether dimensions can be transformed: some, and none of them empty."""
    places = dimensions(dims, len(sizes)) if sizes else frozenset()
    require(len(places) > 0, "no dimension is transformed")
    return each(lambda p: sizes[p] > 0, places)


@function
def in_parts(tensor: TensorFacts) -> Sizes:
    """Sizes with real and imaginary part as one more dimension."""
    require(tensor.rank < MAX_RANK, "there are too many dimensions")
    return (*tensor.sizes, 2)


@function
def resized(tensor: TensorFacts, dim: Number, size: Number) -> Sizes:
    """Sizes with one size replaced; a tensor without dimensions keeps its sizes."""
    at = dimension(dim, tensor.rank)
    return tuple(size if p == at else s for p, s in enumerate(tensor.sizes))


@function
def area(tensor: TensorFacts) -> Number:
    """Items of a channel: those behind the first two dimensions."""
    return prod(tensor.sizes[2:], start=1)


@function
def halved(tensor: TensorFacts, dim: Number) -> Sizes:
    """Sizes with half of one size, which is even."""
    require(tensor.rank > 0, "the tensor has no dimension")
    at = dimension(dim, tensor.rank)
    size = tensor.sizes[at]
    require(same_number(size % 2, 0), f"size {size} is odd")
    return resized(tensor, at, size // 2)


@function
def adapted(tensor: TensorFacts, sizes: Sizes, *, dims: int = _IMAGE) -> Sizes:
    """Sizes of an image, [N, C, H, W] or [C, H, W], with other H and W."""
    ranks = (dims + 1, dims + 2)
    require(tensor.rank in ranks, f"the image has {tensor.rank} dimensions")
    require(len(sizes) in (1, dims), f"there are {len(sizes)} sizes")
    for axis in range(dims):
        require(tensor.sizes[axis - dims] > 0, "the image is empty")
        size = item(sizes, axis)
        require(size >= 0, f"a size is {size}")
        require(size <= MAX_EXTENT, f"a size is {size}")
    return (*tensor.sizes[:-dims], *(item(sizes, axis) for axis in range(dims)))


function(partial(adapted, dims=3), "adapted_volume")


@function
def fractional(
    tensor: TensorFacts, kernel: Sizes, sizes: Sizes, samples: TensorFacts, *, dims: int = _IMAGE
) -> Sizes:
    """Sizes of fractional pooling with windows of a kernel, by random samples."""
    images, channels = tensor.sizes[: -dims - 1], tensor.sizes[-dims - 1]
    require(channels > 0, "there are no channels")
    out = []
    for axis in range(dims):
        present, size = tensor.sizes[axis - dims], item(sizes, axis)
        room = present - item(kernel, axis) + 1
        require(size <= room, f"{room} windows fit, {size} are wanted")
        out.append(size)
    require(samples.rank == _SAMPLES, f"the samples have {samples.rank} dimensions")
    count, own, axes = samples.sizes
    require(count >= prod(images, start=1), f"there are samples of {count} images")
    require(same_number(own, channels), f"there are samples of {own} channels")
    require(same_number(axes, dims), f"there are samples of {axes} axes")
    return (*images, channels, *out)


function(partial(fractional, dims=3), "fractional_volume")


@function
def pivoted(tensor: TensorFacts) -> Sizes:
    """Sizes of the pivots of matrices: one for each item of their diagonals."""
    require(tensor.rank >= _IMAGE, f"the matrix has {tensor.rank} dimensions")
    rows, columns = (limits(size) for size in tensor.sizes[-_IMAGE:])
    low, high = (min(pair) for pair in zip(rows, columns, strict=True))
    return (*tensor.sizes[:-_IMAGE], low if low == high else Range(low, high))


@function
def are_fractions(tensor: TensorFacts) -> bool:
    """Whether all items are from 0 to 1."""
    return all(0 <= item <= 1 for item in tensor.known_items)


@function
def applied(tensor: TensorFacts, weight: TensorFacts) -> Sizes:
    """Sizes of a linear layer's output: weight is [out, in], the input [*, in]."""
    require(tensor.rank > 0, "the input has no dimension")
    require(weight.rank == _IMAGE, f"the weight has {weight.rank} dimensions")
    taken, given = weight.sizes[1], tensor.sizes[-1]
    require(same_number(taken, given), f"the weight takes {taken} items, there are {given}")
    return (*tensor.sizes[:-1], weight.sizes[0])


@function
def distances(a: TensorFacts, b: TensorFacts) -> Sizes:
    """Sizes of the distances of rows: [*, P, M] and [*, R, M] give [*, P, R]."""
    for tensor in (a, b):
        require(tensor.rank >= _IMAGE, f"a tensor has {tensor.rank} dimensions")
    require(
        same_number(a.sizes[-1], b.sizes[-1]), f"rows have {a.sizes[-1]} and {b.sizes[-1]} items"
    )
    batches = broadcast(*(_without_matrix(t) for t in (a, b)))
    require(len(batches) + _IMAGE <= MAX_RANK, "the result has too many dimensions")
    return (*batches, a.sizes[-2], b.sizes[-2])


def _without_matrix(tensor: TensorFacts) -> TensorFacts:
    """A tensor of the dimensions before the last two."""
    return _of_sizes(tensor, tensor.sizes[:-_IMAGE])


def _of_sizes(tensor: TensorFacts, sizes: Sizes) -> TensorFacts:
    return TensorFacts(dtype=tensor.dtype, sizes=sizes, dim_order=tuple(range(len(sizes))))


@function
def pairs(tensor: TensorFacts) -> Sizes:
    """Sizes of the distances between all rows of [N, M]."""
    require(tensor.rank == _IMAGE, f"the tensor has {tensor.rank} dimensions")
    count = tensor.sizes[0]
    found = count * (count - 1) // 2
    require(found <= _MAX_SIZE, f"there would be {found} distances")
    return (found,)


@function
def trilinear(
    a: TensorFacts,
    b: TensorFacts,
    c: TensorFacts,
    added_a: Sizes,
    added_b: Sizes,
    added_c: Sizes,
    dims: Sizes,
) -> Sizes:
    """Sizes of a product of tensors with added dimensions, summed over some."""
    seen = []
    for tensor, added in ((a, added_a), (b, added_b), (c, added_c)):
        rank = tensor.rank + len(added)
        require(rank <= MAX_RANK, f"it would have {rank} dimensions")
        places = dimensions(added, rank)
        own = iter(tensor.sizes)
        sizes = tuple(1 if place in places else next(own) for place in range(rank))
        seen.append(_of_sizes(tensor, sizes))
    ranks = sorted({tensor.rank for tensor in seen})
    require(len(ranks) == 1, f"the tensors would have {ranks} dimensions")
    return reduced(_of_sizes(seen[0], broadcast(*seen)), dims, False)  # noqa: FBT003  # keepdim


@function
def is_norm(power: Value) -> bool:
    """Whether a float can be the power of a norm: 0 or above, or infinity."""
    return settled(power) >= 0


@function
def different(tensor: TensorFacts, is_wanted: bool) -> Sizes:
    """Sizes of the different items of a tensor, or of none; NaN equals nothing."""
    return _counted(tensor, is_wanted, lambda items: len({*items}))


@function
def runs(tensor: TensorFacts, is_wanted: bool) -> Sizes:
    """Sizes of the runs of equal items of a tensor by index, or of none."""

    def count(items: Sequence[float]) -> int:
        return len(items[:1]) + sum(a != b for a, b in itertools.pairwise(items))

    return _counted(tensor, is_wanted, count)


def _counted(
    tensor: TensorFacts, is_wanted: bool, count: Callable[[Sequence[float]], int]
) -> Sizes:
    if not is_wanted:
        return (0,)
    items = tensor.items()
    if items is None:
        low, high = limits(tensor.numel)
        # Items that are there are at least one value; none give none.
        return (Range(min(low, 1), high),)
    # A set takes an object as equal to itself, even NaN. PyTorch counts each NaN for itself: each
    # becomes an object that equals no other.
    return (count([i if i == i else object() for i in items]),)  # type: ignore[misc]  # noqa: PLR0124


@function
def has_range(tensor: TensorFacts, low: Value, high: Value) -> bool:
    """Whether two numbers are finite and in order; equal ones are those of items."""
    ends = [settled(low), settled(high)]
    if not all(isfinite(end) for at in ends for end in limits(at)) or ends[0] > ends[1]:
        return False
    items = tensor.known_items if ends[0] == ends[1] else ()
    return all(isfinite(item) for item in items)


@function
def has_ends(tensor: TensorFacts, ends: tuple[float, ...] | None) -> bool:
    """Whether a list is two finite numbers in order; without one all items are."""
    if ends is None:
        return all(isfinite(item) for item in tensor.known_items)
    return len(ends) == 2 and all(isfinite(end) for end in ends) and ends[0] <= ends[1]  # noqa: PLR2004
