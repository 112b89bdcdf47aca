"""Numbers that calls return, where they are the same in every run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.edit import LISTS
from orchestrator.program.program import MoveCall

if TYPE_CHECKING:
    from collections.abc import Collection

    from orchestrator.method.linked import LinkedInstruction, LinkedMethod
    from orchestrator.method.passes.effects import Effects


def is_only_source(
    method: LinkedMethod, effects: Effects, dropped: Collection[int], index: int
) -> bool:
    """Whether whoever reads the result of a call reads what that call has written.

    Nobody else writes it, inputs and outputs of the method are something else, and
    every way to one that reads it leads through the call.

    Args:
        method: Has the call.
        effects: Its effects.
        dropped: Calls that are left out.
        index: Of the call, which has one result, a number.
    """
    call = method.instructions[index]
    assert isinstance(call, LinkedCall)  # noqa: S101  # it returns a number
    (slot,) = call.outs
    if slot in _named(method, (*method.inputs, *method.outputs)):
        return False
    readers = set()
    for at, instruction in enumerate(method.instructions):
        if at in dropped or at == index:
            continue
        if slot in _written(instruction):
            return False
        if slot in _named(method, _read(instruction)):
            readers.add(at)
    return readers.isdisjoint(_without(effects, index))


def _named(method: LinkedMethod, indices: Collection[int]) -> set[int]:
    """Values, and the items of those that are lists."""
    found = {*indices}
    for index in indices:
        value = method.values[index]
        if isinstance(value, LISTS):
            found.update(value.items)
    return found


def _written(instruction: LinkedInstruction) -> tuple[int, ...]:
    if isinstance(instruction, MoveCall):
        return (instruction.target,)
    return instruction.outs if isinstance(instruction, LinkedCall) else ()


def _read(instruction: LinkedInstruction) -> tuple[int, ...]:
    if isinstance(instruction, LinkedCall):
        return instruction.args
    if isinstance(instruction, MoveCall):
        return (instruction.source,)
    return (instruction.condition,)


def _without(effects: Effects, index: int) -> set[int]:
    """Instructions that a run comes to without passing one of them."""
    seen: set[int] = set()
    ahead = [0]
    while ahead:
        at = ahead.pop()
        if at not in seen and at != index and at < len(effects.at):
            seen.add(at)
            ahead += effects.at[at].next
    return seen
