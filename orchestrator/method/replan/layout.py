"""New offsets for the arenas of a method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from orchestrator.method.replan.flow import flow_of
from orchestrator.planner.blocks import ArenaFacts, Block
from orchestrator.program.values import Allocation, TensorValue

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from orchestrator.method.effects import MethodEffects
    from orchestrator.method.replan.flow import Flow, Group
    from orchestrator.planner.blocks import BlockPlan
    from orchestrator.program.values import Value

ALIGNMENT: Final = 16
"""Alignment of blocks; less for blocks that have less in the program."""


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
) -> Replanned:
    """Lay out the arenas of a method; one that would not shrink does not change.

    Args:
        effects: Effects of the method, with the places of the program.
        arena_bytes: Sizes of the arenas with these places, by memory id.
        file_bytes: Sizes in the file, for the report; there may be fewer.
        fixed: Memory ids of arenas that must not change.
        plan: The planner.
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
        blocks = tuple(_blocks(effects, flow))
        planned = plan(blocks)
        name = planned.planner
        if planned.size_bytes >= sizes[memory_id]:
            name = "file"
        else:
            sizes[memory_id] = planned.size_bytes
            _place(values, flow, planned, memory_id)
        found.append(
            ArenaFacts(
                memory_id=memory_id,
                size_bytes=sizes[memory_id],
                lower_bound_bytes=planned.peak_live_bytes,
                file_bytes=dict(enumerate(file_bytes)).get(memory_id),
                planner=name,
            )
        )
    return Replanned(
        values=tuple(values), arena_bytes=tuple(sizes), arenas=tuple(found)
    )


def _blocks(effects: MethodEffects, flow: Flow) -> Iterable[Block]:
    for group in flow.groups:
        alignment, pad = _alignment(group)
        yield Block(
            name=f"value {group.members[0]}",
            first=group.first,
            last=group.last,
            size_bytes=group.end - group.begin + pad,
            alignment=alignment,
        )
    # An unused tensor may share bytes with any other: it gets a moment of its own.
    for moment, index in enumerate(flow.idle, len(effects.at) + 1):
        value = effects.values[index]
        assert isinstance(value, TensorValue)  # noqa: S101  # has a place
        yield Block(
            name=f"value {index}",
            first=moment,
            last=moment,
            size_bytes=value.size_bytes,
        )


def _alignment(group: Group) -> tuple[int, int]:
    """Alignment of a group, and the bytes before its first member.

    Each member keeps its offset modulo 16: a program with less
    alignment keeps that alignment.
    """
    return ALIGNMENT, group.begin % ALIGNMENT


def _place(
    values: list[Value],
    flow: Flow,
    planned: BlockPlan,
    memory_id: int,
) -> None:
    places: dict[int, int] = {}
    for group, offset in zip(flow.groups, planned.offsets, strict=False):
        start = offset + _alignment(group)[1] - group.begin
        for index in group.members:
            value = values[index]
            assert isinstance(value, TensorValue)  # noqa: S101  # has a place
            assert value.allocation is not None  # noqa: S101  # likewise
            places[index] = start + value.allocation.offset_bytes
    places |= zip(flow.idle, planned.offsets[len(flow.groups) :], strict=True)
    for index, value in enumerate(values):
        if not isinstance(value, TensorValue) or value.allocation is None:
            continue
        if value.allocation.memory_id != memory_id:
            continue
        # A tensor without bytes lies anywhere inside the arena.
        allocation = Allocation(memory_id=memory_id, offset_bytes=places.get(index, 0))
        values[index] = replace(value, allocation=allocation)
