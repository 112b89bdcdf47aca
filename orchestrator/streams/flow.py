"""What of a tensor is computed anew when a window moves on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from orchestrator.program.values import (
    IntListValue,
    IntValue,
    NoneValue,
    TensorListValue,
    TensorValue,
    Value,
)

Change: TypeAlias = "int | tuple[int, ...]"
"""What an argument becomes: a whole number, or a list of some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A tensor with time in it; positions count from the start of the window.

    A call computes positions `end - fresh` to `end`; earlier calls have computed those
    before. A stream computes no padding, so that positions which depend on some differ
    from those of a window.

    Args:
        axis: The dimension that is time.
        length: Of a window.
        fresh: Positions that come with a call.
        start: First position that depends on no padding at the start of the window.
        end: One past the last position that depends on none at its end.
        pads: Calls that `start` and `end` come from.
    """

    axis: int
    length: int
    fresh: int
    start: int = 0
    end: int
    pads: frozenset[int] = frozenset()

    @property
    def first(self) -> int:
        """First position that a call computes."""
        return self.end - self.fresh


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Positions of a tensor that a call reads, the last one not included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A call as a stream executes it.

    Args:
        reads: By value of a tensor with time.
        outs: Outputs with time, by value; others are as in the window.
        changes: Arguments that become others, by position.
    """

    reads: Mapping[int, Read]
    outs: Mapping[int, Flow] = field(default_factory=dict)
    changes: Mapping[int, Change] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A call with its arguments.

    Args:
        number_of_call: Which one it is.
        args: Values, without those of returns.
        values: Of the method.
        flows: Flow of each tensor that has a time dimension, by value.
        is_used: Whether something reads a value.
    """

    number_of_call: int
    args: Sequence[int]
    values: Sequence[Value]
    flows: Mapping[int, Flow]
    is_used: Callable[[int], bool]

    def value(self, position: int) -> Value:
        """An argument."""
        return self.values[self.args[position]]

    def tensor(self, position: int) -> TensorValue:
        """An argument that is a tensor."""
        value = self.value(position)
        assert isinstance(value, TensorValue)  # noqa: S101  # its schema says so
        return value

    def sizes(self, value: int) -> tuple[int, ...]:
        """Sizes of a value that is a tensor."""
        found = self.values[value]
        assert isinstance(found, TensorValue)  # noqa: S101  # callers looked
        return found.sizes

    def flow(self, position: int) -> Flow | None:
        """Of an argument, if it has time."""
        return self.flows.get(self.args[position])

    def flow_of(self, value: int) -> Flow | None:
        """Of a value, if it has time."""
        return self.flows.get(value)

    def tensors(self) -> list[int]:
        """Values of all tensors, also of those in lists."""
        found: list[int] = []
        for index in self.args:
            value = self.values[index]
            if isinstance(value, TensorListValue):
                found += value.items
            elif isinstance(value, TensorValue):
                found.append(index)
        return found

    @property
    def alone(self) -> bool:
        """Whether argument 0 is the only tensor with time."""
        return all(i == self.args[0] or i not in self.flows for i in self.tensors())

    def number(self, position: int, default: int | None = None) -> int | None:
        """A whole number; the default where the argument is missing."""
        value = self.value(position)
        if isinstance(value, IntValue):
            return value.value
        return default if isinstance(value, NoneValue) else None

    def numbers(self, position: int) -> list[int] | None:
        """A list of whole numbers; none where the argument is missing."""
        value = self.value(position)
        if isinstance(value, NoneValue):
            return []
        if not isinstance(value, IntListValue):
            return None
        items = [self.values[item] for item in value.items]
        found = [item.value for item in items if isinstance(item, IntValue)]
        return found if len(found) == len(items) else None
