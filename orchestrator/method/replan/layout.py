"""New offsets for the arenas of a method."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator.method.effects import MethodEffects
from orchestrator.method.places import offset_of, placed, tensor_of
from orchestrator.method.replan.flow import flow_of
from orchestrator.planner.blocks import ALIGNMENT, ArenaFacts, Block, BlockPlan
from orchestrator.program.values import TensorValue, Value

if TYPE_CHECKING:
    from orchestrator.method.replan.flow import Flow, Group


@dataclass(frozen=True, slots=True, kw_only=True)
class Replanned:
    """A method with its memory laid out again.

    Args:
        values: All slots, tensors with new places.
        arena_bytes: Size of each arena; entry 0 is reserved.
        arenas: Results for the arenas that could be planned.
    """

    values: tuple[Value, ...]
    arena_bytes: tuple[int, ...]
    arenas: tuple[ArenaFacts, ...]


def replan(
    effects: MethodEffects,
    arena_bytes: Sequence[int],
    *,
    file_bytes: Sequence[int],
    fixed: Collection[int],
    plan: Callable[[Sequence[Block]], BlockPlan],
    alignments: Mapping[int, int] = MappingProxyType({}),
) -> Replanned:
    """Lay out the arenas of a method; one that would not shrink does not change.

    Args:
        effects: Effects of the method, with the places of the program.
        arena_bytes: Sizes of the arenas with these places, by memory id.
        file_bytes: Sizes in the file, for the report; there may be fewer.
        fixed: Memory ids of arenas that must not change.
        plan: The planner.
        alignments: By value index, of tensors that have one of their own.
    """
    values = list(effects.values)
    sizes = list(arena_bytes)
    found = []
    for memory_id in range(1, len(sizes)):
        if memory_id in fixed:
            continue
        flow = flow_of(effects, memory_id)
        if not flow.is_clear:
            continue
        blocks = tuple(_blocks(effects, flow, alignments))
        planned = plan(blocks)
        name = planned.planner
        if planned.size_bytes >= sizes[memory_id] and not any(
            _is_off(value, alignments.get(index, 1), memory_id)
            for index, value in enumerate(values)
        ):
            name = "file"
        else:
            sizes[memory_id] = planned.size_bytes
            _place(values, flow, planned, memory_id, alignments)
        found.append(
            ArenaFacts(
                memory_id=memory_id,
                size_bytes=sizes[memory_id],
                lower_bound_bytes=planned.peak_live_bytes,
                file_bytes=dict(enumerate(file_bytes)).get(memory_id),
                planner=name,
            )
        )
    return Replanned(values=tuple(values), arena_bytes=tuple(sizes), arenas=tuple(found))


def _is_off(value: Value, alignment: int, memory_id: int) -> bool:
    """Whether a tensor of an arena is not aligned as it should be."""
    place = value.allocation if isinstance(value, TensorValue) else None
    return (
        place is not None and place.memory_id == memory_id and place.offset_bytes % alignment != 0
    )


def _blocks(effects: MethodEffects, flow: Flow, alignments: Mapping[int, int]) -> Iterable[Block]:
    for group in flow.groups:
        alignment, pad = _alignment(group, effects.values, alignments)
        size_bytes = group.end - group.begin + pad
        if alignment > ALIGNMENT:  # its last line is its own, too
            size_bytes = -(-size_bytes // alignment) * alignment
        yield Block(
            name=f"value {group.members[0]}",
            first=group.first,
            last=group.last,
            size_bytes=size_bytes,
            alignment=alignment,
        )
    # An unused tensor may share bytes with any other: it gets a moment of its own.
    for moment, index in enumerate(flow.idle, len(effects.at) + 1):
        yield Block(
            name=f"value {index}",
            first=moment,
            last=moment,
            size_bytes=tensor_of(effects.values[index]).size_bytes,
            alignment=alignments.get(index, ALIGNMENT),
        )


def _alignment(
    group: Group, values: Sequence[Value], alignments: Mapping[int, int]
) -> tuple[int, int]:
    """Alignment of a group, and the bytes before its first member.

    Each member keeps its offset modulo 16: a program with less
    alignment keeps that alignment. One of them may have a larger one.
    """
    usual = ALIGNMENT, group.begin % ALIGNMENT
    most, index = max((alignments.get(i, 0), i) for i in group.members)
    if most <= ALIGNMENT:
        return usual
    begin = offset_of(values[index])
    return usual if begin % ALIGNMENT else (most, (group.begin - begin) % most)


def _place(
    values: list[Value],
    flow: Flow,
    planned: BlockPlan,
    memory_id: int,
    alignments: Mapping[int, int],
) -> None:
    places: dict[int, int] = {}
    for group, offset in zip(flow.groups, planned.offsets, strict=False):
        start = offset + _alignment(group, values, alignments)[1] - group.begin
        for index in group.members:
            places[index] = start + offset_of(values[index])
    places |= zip(flow.idle, planned.offsets[len(flow.groups) :], strict=True)
    for index, value in enumerate(values):
        if not isinstance(value, TensorValue) or value.allocation is None:
            continue
        if value.allocation.memory_id != memory_id:
            continue
        # A tensor without bytes lies anywhere inside the arena.
        values[index] = placed(value, memory_id, places.get(index, 0))
