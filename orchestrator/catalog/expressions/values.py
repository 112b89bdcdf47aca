"""The kinds of values, and the functions, in expressions of `functions.yaml`.

Numbers that are known only when a program runs are ranges: comparing them gives an
answer where their bounds decide, and `Undecided` otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from math import prod
from typing import cast

from orchestrator.catalog.cmsis_nn import Backend
from orchestrator.core.dtype import ScalarType

ISAS = tuple(Backend)
"""Values of `isa`."""


class ExpressionError(ValueError):
    """An expression is invalid, or has no result for a call."""


class Undecided(ExpressionError):  # noqa: N818  # not an error: run-time checks decide
    """The result is known only when the program runs."""


class Kind(StrEnum):
    """The kind of a value; the enum's value is its name in messages."""

    NUMBER = "a number"
    TRUTH = "a truth value"
    NUMBERS = "a list of numbers"
    TENSOR = "a tensor"
    ISA = "an ISA"
    SCALAR = "a scalar"
    SCALARS = "a list of floats"
    TEXT = "a string"
    TENSORS = "a list of tensors"
    DTYPE = "a dtype"
    DTYPES = "a list of dtypes"
    LIST = "a list"


ACCEPTS: Mapping[Kind, tuple[Kind, ...]] = {
    Kind.SCALAR: (Kind.NUMBER, Kind.TRUTH),
    Kind.LIST: (Kind.NUMBERS, Kind.SCALARS, Kind.TENSORS),
}
"""Kinds that are accepted where another is expected."""


@dataclass(frozen=True, slots=True)
class Range:
    """An unknown integer between two limits, both inclusive."""

    low: int
    high: int

    def __add__(self, other: Number) -> Range:
        low, high = limits(other)
        return Range(self.low + low, self.high + high)

    __radd__ = __add__

    def __neg__(self) -> Range:
        return Range(-self.high, -self.low)

    def __sub__(self, other: Number) -> Range:
        return self + -other

    def __rsub__(self, other: int) -> Range:
        return -self + other

    def __mul__(self, other: Number) -> Range:
        # A product is largest and smallest at ends, whatever the signs.
        corners = [a * b for a in (self.low, self.high) for b in limits(other)]
        return Range(min(corners), max(corners))

    __rmul__ = __mul__

    def __floordiv__(self, other: Number) -> Range:
        low, high = limits(other)
        if low <= 0:
            raise Undecided("a divisor is known only when the program runs")
        corners = [a // b for a in (self.low, self.high) for b in (low, high)]
        return Range(min(corners), max(corners))

    def __mod__(self, other: Number) -> Range:
        low, high = limits(other)
        if low <= 0:
            raise Undecided("a divisor is known only when the program runs")
        # Python's remainder has the sign of the divisor.
        return Range(0, high - 1)

    def __rfloordiv__(self, other: int) -> Range:
        return Range(other, other) // self

    def __rmod__(self, other: int) -> Range:
        return Range(other, other) % self

    def __lt__(self, other: Number) -> bool:
        low, high = limits(other)
        return decided(yes=self.high < low, no=self.low >= high)

    def __le__(self, other: Number) -> bool:
        low, high = limits(other)
        return decided(yes=self.high <= low, no=self.low > high)

    def __gt__(self, other: Number) -> bool:
        return not self <= other

    def __ge__(self, other: Number) -> bool:
        return not self < other


Number = int | Range


def limits(number: Number) -> tuple[int, int]:
    """The least and largest value of a number."""
    if isinstance(number, Range):
        return number.low, number.high
    return number, number


def decided(*, yes: bool, no: bool) -> bool:
    """`yes`, unless neither is certain. Raises Undecided."""
    if not yes and not no:
        raise Undecided("a number is known only when the program runs")
    return yes


def same_number(a: Number, b: Number) -> bool:
    """Whether two numbers are equal. Raises Undecided."""
    (low, high), (other_low, other_high) = limits(a), limits(b)
    return decided(
        yes=low == high == other_low == other_high, no=high < other_low or low > other_high
    )


def every(truths: Sequence[Callable[[], bool]]) -> bool:
    """Whether all hold; one that does not decides, even if others are unknown."""
    open_question = None
    for truth in truths:
        try:
            if not truth():
                return False
        except Undecided as error:
            open_question = error
    if open_question is not None:
        raise open_question
    return True


def each(check: Callable[..., bool], *lists: Iterable[object]) -> bool:
    """Whether a check holds for each item of a list, or for items side by side in several."""
    return every([partial(check, *items) for items in zip(*lists, strict=True)])


def same_numbers(a: tuple[Number, ...], b: tuple[Number, ...]) -> bool:
    """Whether two lists are equal. Raises Undecided."""
    return len(a) == len(b) and each(same_number, a, b)


@dataclass(frozen=True, slots=True)
class Changing:
    """A scalar that the program computes.

    Args:
        type: Type of the scalar; it never changes.
    """

    type: type[int | float | bool]


@dataclass(frozen=True, slots=True)
class StridedItems:
    """Items of a tensor in the dimensions of what an operator makes of them by moving only.

    Args:
        axes: Size of each dimension, and how many items there are from one to the next.
        first: The first item, in memory order; 0 if only a run shows it.
    """

    axes: tuple[tuple[Number, Number], ...]
    first: Number = 0

    @property
    def sizes(self) -> tuple[Number, ...]:
        """Sizes of the result."""
        return tuple(size for size, _ in self.axes)

    def along(self, dim: int, *axes: tuple[Number, Number], first: Number = 0) -> StridedItems:
        """The items with other dimensions in the place of one, from index `first` of it on."""
        begin = self.first + first * self.axes[dim][1]
        return StridedItems((*self.axes[:dim], *axes, *self.axes[dim + 1 :]), begin)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFacts:
    """Facts of a tensor.

    Args:
        dtype: Element type.
        sizes: As in the program, outermost dimension first.
        dim_order: Dimensions from outermost to innermost in memory.
        capacity_bytes: Size of its memory, if its sizes may change; else None.
        items: Returns the items of a constant, row by row; None if they are not known.
    """

    dtype: ScalarType
    sizes: tuple[Number, ...]
    dim_order: tuple[int, ...] = ()
    capacity_bytes: int | None = None
    items: Callable[[], tuple[float, ...] | None] = lambda: None

    @property
    def known_items(self) -> tuple[float, ...]:
        """Items of a constant. Raises Undecided."""
        items = self.items()
        if items is None:
            raise Undecided("items are known only when the program runs")
        return items

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.sizes)

    @property
    def dtype_bytes(self) -> int:
        """Size of one item."""
        return self.dtype.item_bytes

    @property
    def layout(self) -> StridedItems:
        """Where the items of the tensor lie."""
        strides: dict[int, Number] = {}
        step: Number = 1
        for dim in reversed(self.dim_order or range(self.rank)):
            strides[dim] = step
            step = step * self.sizes[dim]
        return StridedItems(tuple((size, strides[dim]) for dim, size in enumerate(self.sizes)))

    @property
    def numel(self) -> Number:
        """Number of items."""
        return prod(self.sizes, start=1)

    @property
    def size_bytes(self) -> Number:
        """Size of all items."""
        return self.numel * self.dtype_bytes

    @property
    def is_contiguous(self) -> bool:
        """Whether its dim order is 0, 1, 2, ..."""
        return self.dim_order == tuple(range(self.rank))

    @property
    def nhwc(self) -> tuple[Number, ...]:
        """Sizes in the order of channels-last memory. Raises ExpressionError."""
        if self.rank != _IMAGE_RANK:
            raise ExpressionError(f"nhwc of a tensor with {self.rank} dimensions")
        n, c, h, w = self.sizes
        return n, h, w, c


_IMAGE_RANK = 4

Value = (
    int
    | float
    | str
    | Range
    | Changing
    | ScalarType
    | frozenset[ScalarType]
    | tuple[Number, ...]
    | tuple[float, ...]
    | TensorFacts
    | tuple[TensorFacts | None, ...]
    | None
)


def settled(value: Value) -> Number:
    """A known number, or a range. Raises Undecided for others."""
    if isinstance(value, Changing):
        raise Undecided("a number is known only when the program runs")
    return cast("Number", value)


PROPERTIES: Mapping[str, Kind] = {
    "sizes": Kind.NUMBERS,
    "nhwc": Kind.NUMBERS,
    "rank": Kind.NUMBER,
    "numel": Kind.NUMBER,
    "dtype": Kind.DTYPE,
    "dtype_bytes": Kind.NUMBER,
    "size_bytes": Kind.NUMBER,
    "is_contiguous": Kind.TRUTH,
}
"""Properties of a tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Helper:
    """A function of the language, called without names.

    Args:
        form: How a call is written.
        compute: Computes the result from the arguments.
        kinds: Kinds of the arguments; the last is for all further ones.
        gives: Kind of the result.
        least: Least number of arguments.
        most: Most arguments; 0 is no limit.
        optional: Arguments may be None.
    """

    form: str
    compute: Callable[..., Value]
    kinds: tuple[Kind, ...] = (Kind.NUMBER,)
    gives: Kind = Kind.NUMBER
    least: int = 2
    most: int = 2
    optional: bool = False


def _ceil_div(number: Number, divisor: Number) -> Number:
    if divisor < 1:
        raise ExpressionError(f"a divisor is {divisor}")
    return -(-number // divisor)


HELPERS: Mapping[str, Helper] = {
    "min": Helper(form="min(a, b, ...)", compute=min, most=0),
    "max": Helper(form="max(a, b, ...)", compute=max, most=0),
    "ceil_div": Helper(form="ceil_div(number, divisor)", compute=_ceil_div),
    "round_up": Helper(
        form="round_up(number, multiple)",
        compute=lambda number, multiple: _ceil_div(number, multiple) * multiple,
    ),
    "len": Helper(form="len(list)", compute=len, kinds=(Kind.LIST,), least=1, most=1),
    "prod": Helper(
        form="prod(list)",
        compute=lambda items: prod(items, start=1),
        kinds=(Kind.NUMBERS,),
        least=1,
        most=1,
    ),
}
"""Functions of numbers by name."""
