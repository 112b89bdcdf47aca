"""Arenas whose contents a method keeps from one call to the next."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from orchestrator.method.effects import effects_of_method
from orchestrator.method.places import place_of
from orchestrator.program.program import DelegateCall

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.method.places import Place
    from orchestrator.program.program import Method


def kept_arenas(method: Method) -> frozenset[int]:
    """Memory ids of the arenas in which a method keeps state.

    They hold a mutable buffer, or bytes that an instruction may read, or an output
    contains, that no input and no earlier instruction has written. Uncertain cases
    count as kept. A tensor that only one call uses and nothing else writes, even
    under another index, is scratch memory of that call.
    """
    places = {
        index: place
        for index, value in enumerate(method.values)
        if (place := place_of(value, index)) and place.space[0] == "arena"
    }
    kept = {
        place.space[1]
        for index, place in places.items()
        if getattr(method.values[index], "is_mutable_state", False)
    }
    effects = effects_of_method(method, {})
    uses = Counter(i for e in effects.at for i in {*e.touches, *e.replaces})
    uses.update(dict.fromkeys(effects.outputs, 2))  # no scratch
    ever_written = {
        places[i]
        for effect in effects.at
        for i in (*effect.writes, *effect.replaces)
        if i in places
    }
    written: list[Place] = []

    def write(indices: Iterable[int]) -> None:
        written.extend(places[i] for i in indices if i in places)

    def read(indices: Iterable[int]) -> None:
        for index in indices:
            place = places.get(index)
            if place is None or any(w.holds(place) for w in written):
                continue
            if uses[index] > 1 or place in ever_written:
                kept.add(place.space[1])

    write(effects.inputs)
    for instruction, effect in zip(method.instructions, effects.at, strict=True):
        # An argument of a delegate that nothing wrote before is its output.
        if not isinstance(instruction, DelegateCall):
            read(effect.reads)
        write((*effect.writes, *effect.replaces))
    read(effects.outputs)
    return frozenset(kept)
