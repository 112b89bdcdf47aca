"""Predicates for conditions on the arguments of a call.

They mirror the checks of runtime and kernels: `resizes` is `resize` of
runtime/src/tensor.cpp, the others are functions in kernels/util and kernels/cortex_m.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial, reduce
from math import isnan, prod
from typing import TYPE_CHECKING

from orchestrator.catalog.expressions import shapes
from orchestrator.catalog.expressions.functions import function
from orchestrator.catalog.expressions.values import (
    Changing,
    ExpressionError,
    Number,
    Range,
    TensorFacts,
    Undecided,
    each,
    every,
    limits,
    same_number,
    same_numbers,
    settled,
)
from orchestrator.core.dtype import COMPLEX, FLOATING, ScalarType
from orchestrator.core.layout import lies_in_order

if TYPE_CHECKING:
    from orchestrator.catalog.expressions.values import Value

_S = ScalarType


@function
def resizes(tensor: TensorFacts, sizes: tuple[Number, ...]) -> bool:
    """Whether a tensor can be given these sizes."""
    # Static tensors have no capacity of their own: their sizes are the only ones.
    if tensor.capacity_bytes is None:
        return same_numbers(tensor.sizes, sizes)
    if len(sizes) != tensor.rank:
        return False
    lowest = [limits(size)[0] for size in sizes]
    if min(lowest, default=0) < 0:
        # The program computes this size.
        raise Undecided("a size is known only when the program runs")
    # Even the smallest sizes do not fit: the call fails in every run.
    least = prod(lowest, start=tensor.dtype_bytes)
    if least > tensor.capacity_bytes:
        return False
    most = prod((limits(size)[1] for size in sizes), start=tensor.dtype_bytes)
    if most > tensor.capacity_bytes:
        raise Undecided("sizes are known only when the program runs")
    return True


@function
def same_dtype(*tensors: TensorFacts | None) -> bool:
    """Whether all tensors that are not None have the same dtype."""
    return len({t.dtype for t in tensors if t is not None}) == 1


@function
def same_order(*tensors: TensorFacts) -> bool:
    """Whether all have the same dim order, and so the same rank."""
    return len({t.dim_order for t in tensors}) == 1


def category(dtype: ScalarType) -> int:
    """0 for Bool, 1 for integers, 2 for floats, 3 for complex numbers.

    Source: torch.can_cast.
    """
    if dtype is _S.Bool:
        return 0
    if dtype in COMPLEX:
        return 3
    return 2 if dtype in FLOATING else 1


def promote(a: ScalarType, b: ScalarType) -> ScalarType:
    """The dtype that holds both. Source: PyTorch, torch.promote_types.

    Raises:
        ExpressionError: One is complex and the other is not the same.
    """
    if a != b and not COMPLEX.isdisjoint((a, b)):
        raise ExpressionError(f"{a.name} and {b.name} do not mix")
    if a == b or b is _S.Bool:
        return a
    if a is _S.Bool:
        return b
    if a in FLOATING and b in FLOATING:
        # Half and BFloat16 hold each other's items in Float alone.
        return _S.Double if _S.Double in (a, b) else _S.Float
    for one, other in ((a, b), (b, a)):
        if one in FLOATING and other not in FLOATING:
            return one
    # Codes of integer dtypes grow with their size; only Byte and Char have one size, and neither
    # holds the other.
    low, high = sorted((a, b))
    return _S.Short if (low, high) == (_S.Byte, _S.Char) else high


@function
def promoted(*tensors: TensorFacts | None) -> ScalarType:
    """The dtype of a + b + ...; some may be None.

    Source: PyTorch, torch.result_type.
    """
    given = [t for t in tensors if t is not None]
    if len({t.dtype for t in given}) == 1:
        return given[0].dtype
    # As numbers do, a tensor without dimensions counts only where its kind, of integers or floats,
    # is the higher one.
    strong = reduce(promote, (t.dtype for t in given if t.rank != 0), _S.Bool)
    weak = reduce(promote, (t.dtype for t in given if t.rank == 0), _S.Bool)
    return strong if category(weak) <= category(strong) else weak


def type_of(scalar: Value) -> type:
    """The type of a scalar, which never changes."""
    return scalar.type if isinstance(scalar, Changing) else type(scalar)


@function
def is_float(scalar: Value) -> bool:
    """Whether a scalar is a float."""
    return type_of(scalar) is float


@function
def is_bool(scalar: Value) -> bool:
    """Whether a scalar is a bool."""
    return type_of(scalar) is bool


@function
def is_int(scalar: Value) -> bool:
    """Whether a scalar is an int."""
    return not is_float(scalar) and not is_bool(scalar)


@function
def with_number(dtype: ScalarType, *scalars: Value | None) -> ScalarType:
    """The dtype of a tensor combined with numbers, some of which may be None."""
    for scalar in scalars:
        if scalar is None:
            continue
        if is_float(scalar):
            # Numbers have PyTorch's default dtypes, Float and Long.
            dtype = dtype if dtype in FLOATING else _S.Float
        elif dtype is _S.Bool and not is_bool(scalar):
            dtype = _S.Long
    return dtype


@function
def can_cast(from_: ScalarType, to: ScalarType) -> bool:
    """Whether a result may be stored in this dtype: its category must not be lower.

    Complex numbers do not mix with others.
    """
    if not COMPLEX.isdisjoint((from_, to)):
        return from_ == to
    return category(from_) <= category(to)


@function
def mixable(*tensors: TensorFacts | None) -> bool:
    """Whether no complex tensor stands beside one of another dtype."""
    dtypes = {t.dtype for t in tensors if t is not None}
    return len(dtypes) == 1 or COMPLEX.isdisjoint(dtypes)


@function
def parts(tensor: TensorFacts) -> ScalarType:
    """The dtype of the parts of complex numbers; that of others is their own."""
    return _PARTS.get(tensor.dtype, tensor.dtype)


_PARTS = {_S.ComplexHalf: _S.Half, _S.ComplexFloat: _S.Float, _S.ComplexDouble: _S.Double}


@function
def alpha_fits(alpha: Value, dtype: ScalarType) -> bool:
    """Whether a factor may multiply tensors of a dtype without losing its kind."""
    if is_float(alpha):
        return dtype in FLOATING | COMPLEX
    return not is_bool(alpha) or dtype is _S.Bool


def dtype_limits(dtype: ScalarType) -> tuple[int, int]:
    """The least and the largest number of an integer dtype."""
    bits = 8 * dtype.item_bytes
    # Behind BFloat16, kernels take unsigned integers alone.
    if dtype is _S.Byte or dtype > _S.BFloat16:
        return 0, (1 << bits) - 1
    return -(1 << bits - 1), (1 << bits - 1) - 1


@function
def holds(dtype: ScalarType, *scalars: Value | None) -> bool:
    """Whether a dtype can hold numbers; floats hold all, rounded."""
    if dtype in FLOATING:
        return True
    low, high = dtype_limits(dtype)
    given = [s for s in scalars if s is not None]
    return each(lambda s: low <= settled(s) <= high, given)


@function
def holds_whole(dtype: ScalarType, *scalars: Value) -> bool:
    """Whether a dtype can hold numbers without their fractions; floats hold all."""
    if dtype in FLOATING:
        return True
    low, high = dtype_limits(dtype)
    # A fraction is cut off, so a number may be up to 1 beyond the limits.
    return each(lambda s: low - 1 < _truncatable(s) < high + 1, scalars)


def _truncatable(scalar: Value) -> Number:
    """A number within 64 bits, as `Scalar::to_int` has it."""
    number = settled(scalar)
    if isinstance(number, float):
        return 0 if isnan(number) else min(max(number, -(1 << 63)), (1 << 63) - 1)
    return number


@function
def is_zero(scalar: Value, dtype: ScalarType) -> bool:
    """Whether a number is 0 as an item of an integer dtype."""
    if dtype in FLOATING:
        return False
    number = settled(scalar)
    low, high = limits(number)
    if low != high:
        raise Undecided("a number is known only when the program runs")
    # Numbers wrap around as items do: 256 is 0 as a Byte.
    return int(low) % (1 << 8 * dtype.item_bytes) == 0


@function
def is_dim(index: Number, rank: Number) -> bool:
    """Whether an index names a dimension; it counts from the end if negative."""
    # A tensor without dimensions has dimension 0 all the same, as in PyTorch.
    count = max(shapes.known(rank), 1)
    return every([lambda: -count <= index, lambda: index < count])


@function
def are_dims(indices: Sequence[Number], rank: Number) -> bool:
    """Whether indices name different dimensions."""
    shapes.dimensions(indices, shapes.known(rank))
    return True


@function
def within(list_: Sequence[Number], low: Number, high: Number) -> bool:
    """Whether all items lie between two limits."""
    return each(lambda x: every([lambda: low <= x, lambda: x <= high]), list_)


@function
def parameters(list_: Sequence[Number], count: Number, low: Number) -> bool:
    """Whether a list has one number for each of `count` dimensions, or one for all."""
    return len(list_) in (count, 1) and within(list_, low, shapes.MAX_EXTENT)


@function
def items_within(tensor: TensorFacts | None, low: Number, high: Number) -> bool:
    """Whether the items of a constant lie between two limits."""
    items = tensor.known_items if tensor is not None else ()
    return not items or (low <= int(min(items)) and int(max(items)) <= high)


@function
def indices_fit(tensor: TensorFacts, indices: tuple[TensorFacts | None, ...]) -> bool:
    """Whether constant indices of dimensions are in range."""
    found = []
    for dim, index in shapes.indexed_dims(indices):
        if shapes.is_mask(index) or 0 in index.sizes:
            continue
        if dim < tensor.rank:
            low, high = -tensor.sizes[dim], tensor.sizes[dim] - 1
            found.append(partial(items_within, index, low, high))
    return every(found)


def has_strides(tensor: TensorFacts, order: tuple[int, ...]) -> bool:
    """Whether memory has this order; strides of dimensions of size 1 do not matter."""
    if tensor.dim_order == order:
        return True
    sizes = [shapes.known(size) for size in tensor.sizes]
    return lies_in_order(sizes, tensor.dim_order, order)


def is_image(tensor: TensorFacts, order: tuple[int, ...]) -> bool:
    """Whether an image has this order in memory."""
    if tensor.rank != len(order):
        raise ExpressionError(f"it has {tensor.rank} dimensions")
    return has_strides(tensor, order)


@function
def is_channels_last(tensor: TensorFacts) -> bool:
    """Whether a tensor of sizes [N, C, H, W] is NHWC in memory."""
    return is_image(tensor, (0, 2, 3, 1))


@function
def is_nhwc(tensor: TensorFacts) -> bool:
    """Whether a tensor of sizes [N, H, W, C] is contiguous."""
    return is_image(tensor, (0, 1, 2, 3))


@function
def per_channel(count: Number, *tensors: TensorFacts | None) -> bool:
    """Whether tensors that are not None have one Int per channel."""
    given = [t for t in tensors if t is not None]
    return all(t.dtype is _S.Int for t in given) and each(
        lambda t: same_number(t.numel, count), given
    )


@function
def has_sizes(tensor: TensorFacts | None, sizes: tuple[Number, ...]) -> bool:
    """Whether a tensor that is not None has these sizes."""
    return tensor is None or same_numbers(tensor.sizes, sizes)


@function
def ends_with(tensor: TensorFacts, sizes: tuple[Number, ...]) -> bool:
    """Whether the last sizes of a tensor are these."""
    return 0 < len(sizes) <= tensor.rank and same_numbers(tensor.sizes[-len(sizes) :], sizes)


@function
def fills(tensor: TensorFacts, sizes: tuple[Number, ...]) -> bool:
    """Whether a tensor broadcasts to these sizes."""
    if tensor.rank > len(sizes):
        return False

    def fits(size: Number, wanted: Number) -> bool:
        return not every([lambda: not same_number(size, 1), lambda: not same_number(size, wanted)])

    return each(fits, tensor.sizes, sizes[len(sizes) - tensor.rank :])


@function
def copies_to(tensor: TensorFacts, row: TensorFacts, index: Number) -> bool:
    """Whether a tensor can take a row; the first row sets sizes that may change."""
    if tensor.capacity_bytes is not None:
        return resizes(tensor, (index + 1, *row.sizes))
    return every(
        [lambda: index < tensor.sizes[0], lambda: same_numbers(tensor.sizes[1:], row.sizes)]
    )


@function
def castable(tensors: tuple[TensorFacts | None, ...], dtype: ScalarType) -> bool:
    """Whether all tensors may be stored in this dtype."""
    return all(t is None or can_cast(t.dtype, dtype) for t in tensors)


@function
def has_order(tensor: TensorFacts, dim_order: tuple[Number, ...]) -> bool:
    """Whether a tensor has this dim order."""
    return same_numbers(tensor.dim_order, dim_order)


@function
def is_dtype(code: Number, tensor: TensorFacts) -> bool:
    """Whether a code names the dtype of a tensor."""
    return same_number(code, int(tensor.dtype))


@function
def quantizes(low: Number, high: Number, dtype: ScalarType) -> bool:
    """Whether a quantized dtype can have these limits."""
    least, most = dtype_limits(dtype)
    return every([lambda: least <= low, lambda: high <= most, lambda: low <= high])


@function
def divisible(tensor: TensorFacts, divisors: TensorFacts, dtype: ScalarType) -> bool:
    """Whether a constant integer divisor contains no 0."""
    if dtype in FLOATING or same_number(tensor.numel, 0):
        return True
    items = divisors.items()
    if items is None:
        raise Undecided("divisors are known only when the program runs")
    modulus = 1 << 8 * dtype.item_bytes
    return all(x % modulus for x in items)


def kind_of(scalar: Value) -> type:
    """int, float or bool."""
    return bool if is_bool(scalar) else float if is_float(scalar) else int


@function
def fits_int(scalar: Value) -> bool:
    """Whether the integer part of a number fits 64 bits."""
    number = settled(scalar)
    if isinstance(number, float):
        return -(2.0**63) <= number < 2.0**63
    return every([lambda: number >= -(1 << 63), lambda: number < 1 << 63])


def result_fits(compute: Callable[[Number, Number], Number]) -> Callable[[Value, Value], bool]:
    """A predicate: the result for two ints fits 64 bits; floats always do."""

    def fits(a: Value, b: Value) -> bool:
        if is_float(a) or is_float(b):
            return True
        return fits_int(compute(settled(a), settled(b)))

    return fits


function(result_fits(operator.add), "sum_fits")
function(result_fits(operator.sub), "difference_fits")
function(result_fits(operator.mul), "product_fits")


@function
def same_kind(a: Value, b: Value) -> bool:
    """Whether two scalars have the same kind."""
    return kind_of(a) is kind_of(b)


@function
def gives(result: Value, *scalars: Value) -> bool:
    """Whether a result has the kind that arithmetic on these numbers gives."""
    kinds = {kind_of(s) for s in scalars}
    return bool not in kinds and kind_of(result) is (float if float in kinds else int)


# Functions of conditions about indices and masks that are tensors.
#
# They mirror kernels/util/along_dim.h, indexing.h and mask.h.


def _unless_empty(index: TensorFacts, check: Callable[[], bool]) -> bool:
    """Whether an index has no items, or the check holds."""
    try:
        if check():
            return True
    except Undecided:
        if same_number(index.numel, 0):
            return True
        raise
    return same_number(index.numel, 0)


def _sizes(tensor: TensorFacts) -> tuple[Number, ...]:
    """Sizes; a tensor without dimensions has one of size 1."""
    return tensor.sizes or (1,)


def _fits(index: TensorFacts, tensor: TensorFacts, but: int | None) -> bool:
    own, present = _sizes(index), _sizes(tensor)
    dims = [d for d in range(len(own)) if d != but]
    return len(own) == len(present) and each(lambda d: own[d] <= present[d], dims)


@function
def picks(tensor: TensorFacts, index: TensorFacts, dim: Number) -> bool:
    """Whether an index of `gather` or `scatter` fits a tensor in other dimensions."""
    along = shapes.dimension(dim, tensor.rank)
    return _unless_empty(index, lambda: _fits(index, tensor, along))


@function
def covers(tensor: TensorFacts, index: TensorFacts) -> bool:
    """Whether a tensor has an item for each item of an index, unless that is empty."""
    return _unless_empty(index, lambda: _fits(index, tensor, None))


@function
def picked(tensor: TensorFacts, index: TensorFacts, dim: Number) -> bool:
    """Whether the items of a constant index are in range along a dimension."""
    size = _sizes(tensor)[shapes.dimension(dim, tensor.rank)]

    def within() -> bool:
        return size > 0 and items_within(index, 0, size - 1)

    return _unless_empty(index, within)


def _count(mask: TensorFacts) -> Number:
    items = mask.items()
    if items is None:
        return Range(0, limits(mask.numel)[1])
    return sum(item != 0 for item in items)


@function
def divides(offsets: TensorFacts, indices: TensorFacts) -> bool:
    """Whether constant offsets divide indices into bags, one after the other."""
    if same_number(offsets.numel, 0):
        return True
    bounds = [int(i) for i in offsets.known_items]
    return bounds[0] == 0 and bounds == sorted(bounds) and bounds[-1] <= indices.numel


@function
def trues(tensor: TensorFacts, mask: TensorFacts) -> Number:
    """How many items of a tensor a mask chooses, where both are broadcast."""
    items = prod(shapes.broadcast(tensor, mask), start=1)
    if isinstance(items, Range) or mask.items() is None:
        return Range(0, limits(items)[1])
    own = shapes.known(mask.numel)
    return shapes.known(_count(mask)) * (items // own) if own else 0


@function
def nonzeros(tensor: TensorFacts) -> Number:
    """How many items of a tensor are not 0."""
    return _count(tensor)


@function
def becomes(scalar: Value, dtype: ScalarType) -> bool:
    """Whether a number can become an item of a dtype, as PyTorch checks it."""
    if dtype in FLOATING or dtype is ScalarType.Bool:
        return True
    low, high = dtype_limits(dtype)
    value = settled(scalar)
    # Unsigned integers take the negative of what they hold.
    least = low if low < 0 else -high
    return every([lambda: least <= value, lambda: value <= high])
