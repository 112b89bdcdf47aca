"""Edits of a linked method: remove instructions, renumber values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from orchestrator.method.linked import INDEX_LISTS, LinkedCall, LinkedInstruction, LinkedMethod
from orchestrator.program.program import JumpFalseCall, MoveCall
from orchestrator.program.values import Value


def without(method: LinkedMethod, dropped: Collection[int]) -> LinkedMethod:
    """Remove instructions; jumps to one go to the next that remains.

    Unchanged instructions stay the same objects, and so does an unchanged method.
    """
    if not dropped:
        return method
    kept = [i for i in range(len(method.instructions)) if i not in dropped]
    new_index, new = [], 0
    for index in range(len(method.instructions) + 1):
        new_index.append(new)
        new += index not in dropped

    def moved(instruction: LinkedInstruction) -> LinkedInstruction:
        if not isinstance(instruction, JumpFalseCall):
            return instruction
        new = new_index[instruction.destination]
        same = new == instruction.destination
        return instruction if same else replace(instruction, destination=new)

    return replace(
        method,
        instructions=tuple(moved(method.instructions[i]) for i in kept),
        origins=tuple(method.origins[i] for i in kept),
    )


def renumbered(method: LinkedMethod, new_index: Mapping[int, int]) -> LinkedMethod:
    """The method with other value indices in use; the slots keep their positions.

    Unchanged values and instructions stay the same objects, and so does an unchanged
    method.
    """
    if all(old == new for old, new in new_index.items()):
        return method

    def new(*indices: int) -> tuple[int, ...]:
        return tuple(map(new_index.get, indices, indices))

    def of_value(value: Value) -> Value:
        if isinstance(value, INDEX_LISTS):
            items = new(*value.items)
            return value if items == value.items else type(value)(items)
        return value

    def of_instruction(instruction: LinkedInstruction) -> LinkedInstruction:
        match instruction:
            case LinkedCall(args=args, outs=outs):
                changed: LinkedInstruction = replace(instruction, args=new(*args), outs=new(*outs))
            case MoveCall(source=source, target=target):
                source, target = new(source, target)
                changed = MoveCall(source=source, target=target)
            case JumpFalseCall(condition=condition):
                changed = replace(instruction, condition=new(condition)[0])
        return instruction if changed == instruction else changed

    return replace(
        method,
        values=tuple(map(of_value, method.values)),
        instructions=tuple(map(of_instruction, method.instructions)),
        inputs=new(*method.inputs),
        outputs=new(*method.outputs),
    )


def with_slots_of(method: LinkedMethod, order: Sequence[int]) -> LinkedMethod:
    """The method with some of its values, all that are used, in this order."""
    new_index = {old: new for new, old in enumerate(order)}
    moved = renumbered(method, new_index)
    data = ((new_index[i], items) for i, items in method.data if i in new_index)
    return replace(
        moved,
        values=tuple(moved.values[old] for old in order),
        data=tuple(sorted(data, key=itemgetter(0))),
    )
