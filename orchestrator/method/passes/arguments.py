"""Arguments of a linked call that are the same in every run."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final, TypeAlias, TypeVar

from orchestrator.catalog.expressions.values import TensorFacts
from orchestrator.core import layout
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.program.values import (
    BoolValue,
    DoubleListValue,
    DoubleValue,
    IntListValue,
    IntValue,
    NoneValue,
    TensorListValue,
    TensorValue,
)

_V = TypeVar("_V")

NHWC: Final = (0, 2, 3, 1)
"""Channels last: dimensions of [N, C, H, W] as memory has them."""
Name: TypeAlias = int | str
"""An argument, by its position or by its name in the schema."""


class UnknownCallError(Exception):
    """The effect of a call is not certain."""


def need(condition: object) -> None:
    """Raise UnknownCallError unless the condition holds."""
    if not condition:
        raise UnknownCallError


class Arguments:
    """Arguments of a call; an argument that may change between runs is unknown.

    Args:
        method: The method of the call.
        call: The call.
        written: Values that may change between runs; None: `method.written`.

    Attributes:
        names: What the schema calls them; none of calls that have others.
    """

    def __init__(
        self, method: LinkedMethod, call: LinkedCall, written: frozenset[int] | None = None
    ) -> None:
        self._method = method
        self._values = method.values
        self._written = method.written if written is None else written
        self._args = call.args
        # Packed and prepared calls have other arguments than the schema.
        self.names = call.names if len(call.names) == len(call.args) else ()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._args)

    def place(self, name: Name) -> int:
        """Position of an argument."""
        if isinstance(name, str):
            need(self.names)
            return self.names.index(name)
        need(name < len(self._args))
        return name

    def places(self, **members: str | None) -> tuple[tuple[str, int | None], ...]:
        """Members of a struct that point to arguments, each with the argument's position."""
        return tuple((m, None if n is None else self.place(n)) for m, n in members.items())

    def index(self, name: Name) -> int:
        """Value index of an argument."""
        return self._args[self.place(name)]

    def replaced(self, slots: Mapping[str, int]) -> tuple[int, ...]:
        """All arguments, some of them other values."""
        args = [*self._args]
        for name, slot in slots.items():
            args[self.place(name)] = slot
        return tuple(args)

    def tensor_at(self, index: int) -> TensorValue:
        """A value that is a tensor of constant sizes."""
        value = self._values[index]
        if not isinstance(value, TensorValue) or value.is_dynamic:
            raise UnknownCallError
        return value

    def tensor(self, name: Name) -> TensorValue:
        """An argument that is a tensor of constant sizes."""
        return self.tensor_at(self.index(name))

    def tensors(self, name: Name) -> tuple[int, ...]:
        """Value indices of an argument that is a list of tensors."""
        value = self._values[self.index(name)]
        if not isinstance(value, TensorListValue):
            raise UnknownCallError
        return value.items

    def _fixed(self, index: int, kind: type[_V]) -> _V:
        """A value of a kind that no call writes."""
        value = self._values[index]
        if not isinstance(value, kind) or index in self._written:
            raise UnknownCallError
        return value

    def _number_at(self, index: int) -> int:
        return self._fixed(index, IntValue).value

    def number(self, name: Name) -> int:
        """An argument that is an integer that no call writes."""
        return self._number_at(self.index(name))

    def real(self, name: Name) -> float:
        """An argument that is a float that no call writes."""
        return self._fixed(self.index(name), DoubleValue).value

    def scalar(self, name: Name) -> float:
        """An argument that is a number that no call writes."""
        value = self._values[self.index(name)]
        is_real = isinstance(value, DoubleValue)
        return self.real(name) if is_real else self.number(name)

    def truth(self, name: Name) -> bool:
        """An argument that is a truth value that no call writes."""
        return self._fixed(self.index(name), BoolValue).value

    def literal(self, name: Name) -> int | float | bool:
        """An argument that is a number or a truth value that no call writes."""
        value = self._values[self.index(name)]
        is_truth = isinstance(value, BoolValue)
        return self.truth(name) if is_truth else self.scalar(name)

    def constant(self, name: Name) -> Bytes:
        """The memory of an argument that is a constant tensor."""
        return self.constant_at(self.index(name))

    def constant_at(self, index: int) -> Bytes:
        """The memory of a value that is a constant tensor."""
        tensor = self.tensor_at(index)
        contents = self._method.contents
        need(index in contents and tensor.allocation is None)
        return contents[index]

    def numbers(self, name: Name) -> tuple[int, ...]:
        """An argument that is a list of integers that no call writes."""
        value = self._values[self.index(name)]
        if not isinstance(value, IntListValue):
            raise UnknownCallError
        return tuple(map(self._number_at, value.items))

    def reals(self, name: Name) -> tuple[float, ...]:
        """An argument that is a list of floats."""
        value = self._values[self.index(name)]
        if not isinstance(value, DoubleListValue):
            raise UnknownCallError
        return value.items

    def number_or(self, name: Name, default: _V) -> int | _V:
        """An integer that no call writes, or the default for None."""
        index = self.index(name)
        if isinstance(self._values[index], NoneValue):
            # A value that is None now may be a number in a run.
            need(index not in self._written)
            return default
        return self._number_at(index)

    def is_none(self, name: Name) -> bool:
        """Whether an argument is None."""
        return isinstance(self._values[self.index(name)], NoneValue)


def facts_of(tensor: TensorValue) -> TensorFacts:
    """A tensor as expressions of kernels see it."""
    return TensorFacts(dtype=tensor.dtype, sizes=tensor.sizes, dim_order=tensor.dim_order)


def strides_of(tensor: TensorValue) -> tuple[int, ...]:
    """Strides of a tensor, in items, by dimension."""
    return layout.strides_of(tensor.sizes, tensor.dim_order)


def lies_as_nhwc(tensor: TensorValue) -> bool:
    """Whether the memory of a tensor [N, C, H, W] is NHWC, as kernels see it."""
    return layout.lies_in_order(tensor.sizes, tensor.dim_order, NHWC)


def dim_of(dim: int, rank: int) -> int:
    """A dimension as a non-negative index; `dim` may count from the end."""
    need(-rank <= dim < rank)
    return dim % rank


def float32(number: float) -> float:
    """A number rounded to the nearest float of 32 bits.

    Sums, products and quotients of two such floats are exact enough as Python's floats
    that this gives the float that a core computes.

    Raises:
        UnknownCallError: It is beyond all of them.
    """
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", number))
    except OverflowError:
        raise UnknownCallError from None
    return float(rounded)
