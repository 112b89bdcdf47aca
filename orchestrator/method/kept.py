"""Arenas in which a method expects to find what an earlier call left."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.program.interface import TENSOR_LISTS, with_items
from orchestrator.program.program import DelegateCall, KernelCall, MoveCall
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.program.program import Instruction, Method


def kept_arenas(method: Method) -> frozenset[int]:
    """Memory ids of the arenas that a method keeps something in.

    They hold a mutable buffer, or bytes that an instruction may read, or an output
    shows, that no input and no earlier instruction has written. What is not certain
    counts as kept. A tensor that a single call has and that no other one writes, also
    not under another index, is scratch memory of that call.
    """
    places = {
        index: _Bytes(
            memory_id=value.allocation.memory_id,
            begin=value.allocation.offset_bytes,
            end=value.allocation.offset_bytes + value.size_bytes,
            is_state=value.is_mutable_state,
        )
        for index, value in enumerate(method.values)
        if isinstance(value, TensorValue) and value.allocation and value.size_bytes
    }
    kept = {p.memory_id for p in places.values() if p.is_state}
    touches = [_touches(method, i) for i in method.instructions]
    uses = Counter(
        i for both in touches for i in {*with_items(method, (*both[0], *both[1]))}
    )
    uses.update(dict.fromkeys(with_items(method, method.outputs), 2))  # no scratch
    ever_written = {
        places[i] for _, out in touches for i in with_items(method, out) if i in places
    }
    written: list[_Bytes] = []

    def write(indices: Iterable[int]) -> None:
        found = with_items(method, indices)
        written.extend(places[i] for i in found if i in places)

    def read(indices: Iterable[int]) -> None:
        for index in with_items(method, indices):
            place = places.get(index)
            if place is None or any(map(place.is_within, written)):
                continue
            if uses[index] > 1 or place in ever_written:
                kept.add(place.memory_id)

    write(method.inputs)
    for reads, writes in touches:
        read(reads)
        write(writes)
    read(method.outputs)
    return frozenset(kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bytes:
    """Bytes of an arena that a planned tensor has."""

    memory_id: int
    begin: int
    end: int
    is_state: bool

    def is_within(self, other: _Bytes) -> bool:
        return (
            self.memory_id == other.memory_id
            and other.begin <= self.begin
            and self.end <= other.end
        )


def _touches(
    method: Method, instruction: Instruction
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Values that an instruction may read, and those that it may write."""
    match instruction:
        case KernelCall(args=args):
            results = _results(method, args)
            # Out variants have their outputs right before what they return.
            before = args[: len(args) - 1]
            outs = before[len(before) - len(results) :]
            return (before[: -len(outs)] if outs == results else before), results
        case DelegateCall(args=args):
            return (), args  # what nothing has written comes out of it
        case MoveCall(source=source, target=target):
            return (source,), (target,)
    return (), ()


def _results(method: Method, args: tuple[int, ...]) -> tuple[int, ...]:
    """The values a call returns; of a list, the items."""
    value = method.values[args[-1]]
    return tuple(value.items) if isinstance(value, TENSOR_LISTS) else args[-1:]
