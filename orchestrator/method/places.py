"""Places of tensors in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

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
