"""Sets of numbers as sorted, disjoint ranges, and places in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedMethod
    from orchestrator.program.values import Value

Spans: TypeAlias = tuple[tuple[int, int], ...]
"""(begin, end) of every range, ends exclusive."""
Space: TypeAlias = tuple[str, int]
"""The base of an offset: an arena by memory id, or a constant by value index."""


def cut(spans: Spans, begin: int, end: int) -> Spans:
    """The spans without a range."""
    left = []
    for low, high in spans:
        if low < begin:
            left.append((low, min(high, begin)))
        if high > end:
            left.append((max(low, end), high))
    return tuple(left)


def meet(one: Spans, other: Spans) -> Spans:
    """The intersection."""
    return tuple(
        (max(low, begin), min(high, end))
        for low, high in one
        for begin, end in other
        if max(low, begin) < min(high, end)
    )


def join(one: Spans, other: Spans) -> Spans:
    """The union."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted((*one, *other)):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return tuple(joined)


@dataclass(frozen=True, slots=True)
class Place:
    """Bytes of a tensor: `begin` to `end` (exclusive) in a space."""

    space: Space
    begin: int
    end: int

    def overlaps(self, other: Place) -> bool:
        """Whether both share a byte."""
        return (
            self.space == other.space
            and self.begin < other.end
            and other.begin < self.end
        )

    def holds(self, other: Place) -> bool:
        """Whether this place contains the other."""
        return (
            self.space == other.space
            and self.begin <= other.begin
            and other.end <= self.end
        )

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


def places_of(method: LinkedMethod) -> dict[int, Place]:
    """By value index: places of all tensors that have bytes."""
    places = ((i, place_of(v, i)) for i, v in enumerate(method.values))
    return {i: place for i, place in places if place is not None}
