"""New offsets for the arenas of a method."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.method.effects import MethodEffects, effects_of_method
from orchestrator.method.places import offset_of, placed, tensor_of
from orchestrator.method.replan.flow import flow_of
from orchestrator.method.replan.proof import PlanProofError, problems_of
from orchestrator.planner.blocks import ALIGNMENT, ArenaFacts, Block, BlockPlan, aligned
from orchestrator.program.program import Method, Program
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import TensorValue, Value
from orchestrator.targets.boards import Pins, TensorKind, TensorPin

if TYPE_CHECKING:
    from orchestrator.method.replan.flow import Flow, Group
    from orchestrator.scratch.needs import ScratchNeed


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
    # ExecuTorch keeps memory id 0 for constants.
    for memory_id in range(1, len(sizes)):
        if memory_id in fixed:
            continue
        flow = flow_of(effects, memory_id)
        if not flow.is_clear:
            continue
        blocks = tuple(_blocks(effects, flow, alignments))
        planned = plan(blocks)
        name = planned.planner
        # Offsets of the program stay where nothing is gained: its bytes then need no change.
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
    # Blocks of idle tensors come behind those of groups, as `_blocks` gives them.
    places |= zip(flow.idle, planned.offsets[len(flow.groups) :], strict=True)
    for index, value in enumerate(values):
        if not isinstance(value, TensorValue) or value.allocation is None:
            continue
        if value.allocation.memory_id != memory_id:
            continue
        # A tensor without bytes lies anywhere inside the arena.
        values[index] = placed(value, memory_id, places.get(index, 0))


# Resize scratch tensors to what calls need on the target.


def resize_scratch(method: Method, needs: Iterable[ScratchNeed]) -> Method:
    """The method with scratch tensors of the needed sizes.

    A tensor that shrinks keeps its place. One that grows gets a place behind
    everything else: the method is correct without replanning, if not small.

    Args:
        method: The method.
        needs: Scratch needs of its calls.
    """
    values = list(method.values)
    arenas = list(method.arena_bytes)
    for need in needs:
        value = values[need.value]
        if need.size_bytes == need.reserved_bytes or not isinstance(value, TensorValue):
            continue
        place = value.allocation
        if place is None:
            continue
        changed = _with_bytes(value, need.size_bytes)
        if changed.size_bytes > value.size_bytes:
            begin = aligned(arenas[place.memory_id])
            arenas[place.memory_id] = begin + changed.size_bytes
            changed = placed(changed, place.memory_id, begin)
        values[need.value] = changed
    return replace(method, values=tuple(values), arena_bytes=tuple(arenas))


def _with_bytes(value: TensorValue, size_bytes: int) -> TensorValue:
    """A tensor with as many items as fit, all in its first dimension."""
    items = -(-size_bytes // value.dtype.item_bytes)
    # Kernels take scratch memory as bytes, whatever its sizes are; the rank stays that of its dim
    # order.
    sizes = (items, *(1 for _ in value.sizes[1:]))
    return replace(value, sizes=sizes)


# Move tensors that the profile pins to a memory out of their arena.


@dataclass(frozen=True, slots=True, kw_only=True)
class PinProblem:
    """Why a tensor cannot lie where the profile wants it.

    Args:
        pin: Index among the model's pins.
        method: Method of the tensor.
        found: The reason.
    """

    pin: int
    method: str
    found: str


def with_pinned(
    program: Program, pins: Pins, schemas: Mapping[OperatorName, OpSchema]
) -> tuple[Program, tuple[PinProblem, ...]]:
    """The decoded program with pinned tensors in arenas of their own.

    Tensors whose bytes are read through a pinned one, or vice versa, move with
    it. There is one new arena for each memory (`Pins.tensor_arenas`). The program's
    bytes stay those of the file.

    Args:
        program: With scratch tensors of the right size.
        pins: Pins of the model.
        schemas: Of the operators that have a kernel.

    Returns:
        The program, and the pins that are impossible.

    Raises:
        PlanProofError: The new places are wrong.
    """
    if not pins.tensors:
        return program, ()
    ids = pins.tensor_arenas(free_memory_id(program))
    problems: list[PinProblem] = []
    methods = []
    for method in program.methods:
        mover = _Mover(method, schemas, is_shared=bool(program.sharers))
        for number, pin in enumerate(pins.tensors):
            if pin.method in (None, method.name):
                found = mover.move(pin, ids[pin.region])
                if found:
                    problem = PinProblem(pin=number, method=method.name, found=found)
                    problems.append(problem)
        methods.append(mover.moved())
    names = [m.name for m in program.methods]
    for number, pin in enumerate(pins.tensors):
        if pin.method not in (None, *names):
            found = f"the model has the methods {', '.join(names)}"
            problem = PinProblem(pin=number, method=pin.method or "", found=found)
            problems.append(problem)
    return replace(program, methods=tuple(methods)), tuple(problems)


def free_memory_id(program: Program) -> int:
    """Lowest free memory id for new arenas: no method uses or could share it."""
    # An arena with the id of shared state would be taken for it.
    return max(SHARED_ID + 1, *(len(m.arena_bytes) for m in program.methods))


class _Mover:
    def __init__(
        self, method: Method, schemas: Mapping[OperatorName, OpSchema], *, is_shared: bool
    ) -> None:
        self._method = method
        self._effects = effects_of_method(method, schemas)
        self._is_shared = is_shared
        self._flows: dict[int, Flow] = {}
        self._taken: dict[int, int] = {}
        self._values = list(method.values)
        self._sizes = list(method.arena_bytes)

    def move(self, pin: TensorPin, memory_id: int) -> str:
        """Move a tensor to an arena, or return why that is impossible."""
        index = self._index(pin)
        value = None if index is None else self._method.values[index]
        if index is None or not isinstance(value, TensorValue):
            return f"{pin.text} is no tensor" if value else f"there is no {pin.text}"
        if value.allocation is None:
            return "it is a constant, or lies in memory of the caller"
        if self._is_shared:
            return "methods of the program share state, whose arenas cannot change"
        flow = self._flow(value.allocation.memory_id)
        if not flow.is_clear:
            return "the writers of its arena are unknown (docs/memory.md)"
        if index not in self._taken:
            groups = [g.members for g in flow.groups if index in g.members]
            self._place(groups[0] if groups else (index,), memory_id)
        same = self._taken[index] == memory_id
        return "" if same else "it shares bytes with a tensor for another memory"

    def _index(self, pin: TensorPin) -> int | None:
        method = self._method
        known: Sequence[int] = range(len(method.values))
        if pin.kind is not TensorKind.VALUE:
            is_input = pin.kind is TensorKind.INPUT
            known = method.inputs if is_input else method.outputs
        return known[pin.index] if pin.index < len(known) else None

    def _flow(self, memory_id: int) -> Flow:
        if memory_id not in self._flows:
            self._flows[memory_id] = flow_of(self._effects, memory_id)
        return self._flows[memory_id]

    def _place(self, members: Sequence[int], memory_id: int) -> None:
        """Append tensors to an arena, with their present distances."""
        self._sizes += [0] * (memory_id + 1 - len(self._sizes))
        begins = {}
        for index in members:
            begins[index] = offset_of(self._method.values[index])
            self._taken[index] = memory_id
        low = min(begins.values())
        to = aligned(self._sizes[memory_id], like=low)
        for index, begin in begins.items():
            offset = to + begin - low
            value = placed(self._method.values[index], memory_id, offset)
            self._values[index] = value
            end = offset + value.size_bytes
            self._sizes[memory_id] = max(self._sizes[memory_id], end)

    def moved(self) -> Method:
        """The method with all moved tensors."""
        if not self._taken:
            return self._method
        values, sizes = tuple(self._values), tuple(self._sizes)
        if problems := problems_of(self._effects, values, sizes):
            raise PlanProofError("; ".join(problems))
        return replace(self._method, values=values, arena_bytes=sizes)
