"""Places of tensors in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final, TypeAlias

from orchestrator.catalog.scratch_arguments import is_scratch
from orchestrator.core.operator import OpSchema
from orchestrator.program.values import Allocation, TensorValue, Value

Space: TypeAlias = tuple[str, int]
"""The base of an offset: an arena by memory id, or a constant by value index."""


@dataclass(frozen=True, slots=True)
class Place:
    """Bytes of a tensor: `begin` to `end` (exclusive) in a space."""

    space: Space
    begin: int
    end: int

    @property
    def ends(self) -> tuple[tuple[Space, int], tuple[Space, int]]:
        """Begin and end, to compare with those in any space."""
        return (self.space, self.begin), (self.space, self.end)

    def overlaps(self, other: Place) -> bool:
        """Whether both share a byte."""
        return self.space == other.space and self.begin < other.end and other.begin < self.end

    def holds(self, other: Place) -> bool:
        """Whether this place contains the other."""
        return self.space == other.space and self.begin <= other.begin and other.end <= self.end

    def part(self, begin: int, size_bytes: int) -> Place:
        """A part of this place; `begin` counts from its beginning."""
        start = self.begin + begin
        return replace(self, begin=start, end=start + size_bytes)


def place_of(value: Value, index: int) -> Place | None:
    """The place of a tensor; None for a value without bytes.

    Args:
        value: The value.
        index: Index of its slot.
    """
    if not isinstance(value, TensorValue) or value.size_bytes == 0:
        return None
    if value.allocation is None:
        return Place(("constant", index), 0, value.size_bytes)
    begin = value.allocation.offset_bytes
    return Place(("arena", value.allocation.memory_id), begin, begin + value.size_bytes)


def tensor_of(value: Value) -> TensorValue:
    """A value that is a tensor, as the caller knows."""
    assert isinstance(value, TensorValue)  # noqa: S101
    return value


def offset_of(value: Value) -> int:
    """Offset of a tensor that lies in an arena, as the caller knows."""
    allocation = tensor_of(value).allocation
    assert allocation is not None  # noqa: S101
    return allocation.offset_bytes


def placed(value: Value, memory_id: int, offset_bytes: int) -> TensorValue:
    """A tensor at a place in an arena."""
    place = Allocation(memory_id=memory_id, offset_bytes=offset_bytes)
    return replace(tensor_of(value), allocation=place)


# How a kernel uses each of its arguments, from the op schema alone.


class Access(StrEnum):
    """How a kernel accesses an argument, or each tensor of a list.

    Outputs of unknown operators count as `WRITES`: by definition of an out variant its
    kernel does not read them, but nothing guarantees that it writes every item.
    """

    READS = "reads"
    FILLS = "fills"  # writes every item without reading any
    WRITES = "writes"  # writes some items and leaves the others
    UPDATES = "updates"  # reads, and writes some items
    SCRATCH = "scratch"  # undefined before the call and after it


_FILL_OUTPUTS: Final = frozenset(
    {*("aten", "cortex_m", "dim_order_ops", "et_copy", "executorch_prim"), "quantized_decomposed"}
)
"""Namespaces whose operators are defined to write every item of their outputs."""

_EXCEPTIONS: Final = {
    "aten::copy_": Access.FILLS,
    "executorch_prim::et_copy_index.tensor": Access.WRITES,  # one row
}
"""Operators that do not read the positional argument they write."""


def written_positions(schema: OpSchema) -> tuple[int, ...]:
    """Positions of the out arguments; of the result if there are none.

    An instruction repeats its out arguments as results, which kernels do not take.
    """
    outs = tuple(n for n, a in enumerate(schema.arguments) if a.is_out)
    return outs or ((len(schema.arguments),) if schema.result else ())


# More than all operators that the libraries have kernels for: some 350.
@lru_cache(maxsize=1024)
def names_of(schema: OpSchema) -> tuple[str, ...]:
    """Names of the arguments, and of a result behind them, as many as `accesses` has."""
    return (*(a.name for a in schema.arguments), "result")[: len(accesses(schema))]


@lru_cache(maxsize=1024)
def accesses(schema: OpSchema) -> tuple[Access, ...]:
    """How a call uses its arguments, and its result if it has no out arguments."""
    written = written_positions(schema)
    found = [
        Access.SCRATCH if is_scratch(argument) else Access.READS for argument in schema.arguments
    ]
    # A schema without out arguments, as those of prim ops: the result comes behind the arguments.
    if len(found) in written:
        return (*found, _output(schema))
    for position in written:
        # `add_(Tensor(a!) self, ...)` reads what it writes; `add.out` does not.
        in_place = position < schema.positional_count
        found[position] = (
            _EXCEPTIONS.get(str(schema.name), Access.UPDATES) if in_place else _output(schema)
        )
    return tuple(found)


def _output(schema: OpSchema) -> Access:
    name = schema.name
    # `aten::empty` and its kin leave items as they are.
    fills = name.namespace in _FILL_OUTPUTS and "empty" not in name.base
    return Access.FILLS if fills else Access.WRITES
