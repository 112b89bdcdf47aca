"""What a program means by its memory: a value keeps its bytes until it is read.

A program says where its values lie. It can be wrong: ExecuTorch plans branches of a
`torch.cond` over live outputs of an earlier one. Here lifetimes come from instructions,
moves included, and never from places: a value is live from when it is written to when
it is last read. If another value, and no view of it, is written over it in between, the
program's plan has a fault. `separated` gives every value memory of its own, in which
the program computes what it means.

Source: pytorch/executorch#21490.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.method.effects import Effect, MethodEffects, effects_of_method
from orchestrator.method.places import Place, place_of, placed
from orchestrator.method.sets import Sets
from orchestrator.method.state import undecided_outputs
from orchestrator.planner.blocks import aligned
from orchestrator.program.program import DelegateCall, Method, Program
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    Schemas = Mapping[OperatorName, OpSchema]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFault:
    """A value that is overwritten before it is read for the last time.

    Args:
        value: Its index.
        writer: Index of the value that is written over it.
        written: Index of the instruction that writes it.
        read: Index of the instruction that reads the value afterwards or meanwhile;
            the number of instructions means the end of the run.
    """

    value: int
    writer: int
    written: int
    read: int

    def text(self, method: Method) -> str:
        """Where and how, in a sentence."""
        read = f"is read by instruction {self.read}"
        if self.read == self.written:
            read = "it reads"
        elif self.read == len(method.instructions):
            read = "is read at the end"
        return (
            f"method {method.name}: instruction {self.written} writes value"
            f" {self.writer} over value {self.value}, which {read}"
        )


@dataclass(slots=True)
class _Point:
    """What holds before an instruction, on any path.

    Args:
        owners: By piece of memory: values (by family) that were written there last.
        lost: By family: (writer, instruction) that overwrote it, on one of the paths.
        held: By target of a move: values whose memory it may have.
    """

    owners: list[frozenset[int]]
    lost: dict[int, tuple[int, int]] = field(default_factory=dict)
    held: dict[int, frozenset[int]] = field(default_factory=dict)

    def copy(self) -> _Point:
        return _Point([*self.owners], {**self.lost}, {**self.held})

    def join(self, other: _Point) -> bool:
        """Add what may hold on another path; whether that is new."""
        grown = False
        for piece, owners in enumerate(other.owners):
            if not owners <= self.owners[piece]:
                self.owners[piece] |= owners
                grown = True
        if new := other.lost.keys() - self.lost.keys():
            self.lost |= {family: other.lost[family] for family in new}
            grown = True
        for target, held in other.held.items():
            known = self.held.get(target, frozenset())
            if not held <= known:
                self.held[target] = known | held
                grown = True
        return grown


class Memory:
    """The families of a method's values, and the faults of its plan.

    A family is a value and its views, or state at one place: what is written to one of
    them is meant to change the others. Views without an instruction join the family of
    what lies there when they are read.

    Args:
        effects: Effects of the method; its state is marked.
    """

    def __init__(self, effects: MethodEffects) -> None:
        self._effects = effects
        self._places: dict[int, Place] = {
            i: place
            for i, v in enumerate(effects.values)
            if (place := place_of(v, i)) is not None and place.space[0] == "arena"
        }
        self._cuts = sorted({at for p in self._places.values() for at in p.ends})
        self._sets = Sets(self._places)
        written = {i for e in effects.at for i in (*e.writes, *e.replaces)}
        self._state = [i for i in self._places if _is_state(effects, i)]
        self._shown = self._places.keys() - written - {*effects.inputs, *self._state}
        for effect in effects.at:
            for view in effect.views:
                for base in effect.reads:
                    self._join(view, base)
        state = ((*self._places[i].ends, i) for i in self._state)
        self._sets.join_overlapping(state)
        self.faults = tuple(dict.fromkeys(self._walk()))
        if self._shown:  # families have grown meanwhile
            self.faults = tuple(dict.fromkeys(self._walk()))

    def families(self) -> Iterable[list[int]]:
        """Value indices of each family, sorted; in the order of their first ones."""
        return self._sets.groups(self._places)

    def _join(self, one: int, other: int) -> None:
        if one in self._places and other in self._places:
            self._sets.join(one, other)

    def _pieces(self, index: int) -> range:
        begin, end = (bisect_left(self._cuts, at) for at in self._places[index].ends)
        return range(begin, end)

    def _walk(self) -> Iterator[PlanFault]:
        steps = self._effects.at
        start = _Point([frozenset()] * len(self._cuts))
        for index in (*self._effects.inputs, *self._state):
            for piece in self._pieces(index) if index in self._places else ():
                start.owners[piece] |= {index}
        targets = {n for i, e in enumerate(steps) for n in e.next if n != i + 1}
        known, ahead, time = {0: start}, [0], 0
        while ahead:
            # In rounds over the method, or loops in loops would take time without end.
            at = bisect_left(ahead, time)
            time = ahead.pop(at if at < len(ahead) else 0)
            point = known[time].copy()
            while time < len(steps):
                yield from self._step(time, steps[time], point)
                following = steps[time].next
                if following == (time + 1,) and time + 1 not in targets:
                    time += 1
                    continue
                for target in following:
                    if target not in known:
                        known[target] = point.copy()
                    elif not known[target].join(point):
                        continue
                    if target not in ahead:
                        insort(ahead, target)
                break
            else:
                effects = self._effects
                yield from self._reads(time, (*effects.outputs, *self._state), point)

    def _step(self, time: int, effect: Effect, point: _Point) -> Iterator[PlanFault]:
        yield from self._reads(time, effect.reads, point)
        read = {
            self._sets.of(index): index
            for reader in effect.reads
            for index in point.held.get(reader, (reader,))
            if index in self._places
        }
        for target in effect.replaces:
            sources = effect.reads
            point.held[target] = frozenset(
                s for source in sources for s in point.held.get(source, {source})
            )
        for index in effect.writes:
            if index not in self._places or index in effect.views:
                continue
            family = self._sets.of(index)
            # A value that is written as a whole is there again.
            if index in (*effect.fills, *effect.scratch):
                point.lost.pop(family, None)
            pieces = self._pieces(index)
            here = slice(pieces.start, pieces.stop)
            # Neighbours mostly have the same owners.
            for owners in dict.fromkeys(point.owners[here]):
                for other in {self._sets.of(o) for o in owners} - {family}:
                    point.lost[other] = index, time
                    if other in read:  # a call may write before it has read all
                        yield PlanFault(value=read[other], writer=index, written=time, read=time)
            point.owners[here] = [frozenset({index})] * len(pieces)

    def _reads(self, time: int, read: Iterable[int], point: _Point) -> Iterator[PlanFault]:
        for reader in read:
            for index in point.held.get(reader, (reader,)):
                if index not in self._places:
                    continue
                if index in self._shown:
                    # Nothing writes it: it shows the value that lies there.
                    for piece in self._pieces(index):
                        for owner in point.owners[piece]:
                            self._join(index, owner)
                if lost := point.lost.get(self._sets.of(index)):
                    yield PlanFault(value=index, writer=lost[0], written=lost[1], read=time)


def _is_state(effects: MethodEffects, index: int) -> bool:
    value = effects.values[index]
    return isinstance(value, TensorValue) and value.is_state


def plan_faults(method: Method, schemas: Schemas) -> tuple[PlanFault, ...]:
    """The faults of a method's plan of memory; its state is marked."""
    return Memory(_effects(method, schemas)).faults


def _effects(method: Method, schemas: Schemas) -> MethodEffects:
    """Effects of a method, where a delegate reads its inputs and fills its outputs."""
    effects = effects_of_method(method, schemas)
    outputs = undecided_outputs(method, effects, schemas)
    at = [
        replace(
            effect,
            reads=tuple(i for i in effect.reads if (time, i) not in outputs),
            fills=(*effect.fills, *(i for i in effect.reads if (time, i) in outputs)),
            updates=() if isinstance(instruction, DelegateCall) else effect.updates,
        )
        for time, (instruction, effect) in enumerate(
            zip(method.instructions, effects.at, strict=True)
        )
    ]
    return replace(effects, at=tuple(at))


def separated(program: Program, schemas: Schemas, names: Collection[str]) -> Program:
    """The program with memory of its own for every value, except for views.

    Args:
        program: Its state is marked.
        schemas: Of the operators that have a kernel.
        names: Of the methods that change.
    """
    methods = (
        _separated(method, schemas, shares=method.name in program.sharers)
        if method.name in names
        else method
        for method in program.methods
    )
    return replace(program, methods=tuple(methods))


def _separated(method: Method, schemas: Schemas, *, shares: bool) -> Method:
    # State that methods share lies at one offset in all of them.
    fixed = {SHARED_ID} if shares else set[int]()
    values = list(method.values)
    sizes = [size if memory_id in fixed else 0 for memory_id, size in enumerate(method.arena_bytes)]
    for family in Memory(_effects(method, schemas)).families():
        places = {i: p for i in family if (p := place_of(values[i], i)) is not None}
        memory_id = places[family[0]].space[1]
        if memory_id in fixed:
            continue
        low = min(place.begin for place in places.values())
        begin = aligned(sizes[memory_id], like=low)
        for index, place in places.items():
            offset = begin + place.begin - low
            values[index] = placed(values[index], memory_id, offset)
            end = offset + place.end - place.begin
            sizes[memory_id] = max(sizes[memory_id], end)
    for index, value in enumerate(values):
        # Empty tensors belong to no family; their offset must lie within the new arena all the
        # same.
        if isinstance(value, TensorValue) and value.allocation and not value.size_bytes:
            allocation = replace(value.allocation, offset_bytes=0)
            if allocation.memory_id not in fixed:
                values[index] = replace(value, allocation=allocation)
    return replace(method, values=tuple(values), arena_bytes=tuple(sizes))
