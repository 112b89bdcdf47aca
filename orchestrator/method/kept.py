"""Arenas in which a method expects to find what an earlier call left."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.method.effects import effects_of_method
from orchestrator.program.program import DelegateCall
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.program.program import Method


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
    effects = effects_of_method(method, {})
    uses = Counter(i for e in effects.at for i in {*e.touches, *e.replaces})
    uses.update(dict.fromkeys(effects.outputs, 2))  # no scratch
    ever_written = {
        places[i]
        for effect in effects.at
        for i in (*effect.writes, *effect.replaces)
        if i in places
    }
    written: list[_Bytes] = []

    def write(indices: Iterable[int]) -> None:
        written.extend(places[i] for i in indices if i in places)

    def read(indices: Iterable[int]) -> None:
        for index in indices:
            place = places.get(index)
            if place is None or any(map(place.is_within, written)):
                continue
            if uses[index] > 1 or place in ever_written:
                kept.add(place.memory_id)

    write(effects.inputs)
    for instruction, effect in zip(method.instructions, effects.at, strict=True):
        # What nothing has written before a delegate comes out of it.
        if not isinstance(instruction, DelegateCall):
            read(effect.reads)
        write((*effect.writes, *effect.replaces))
    read(effects.outputs)
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
