"""Find the tensors that share bytes, and the lifetimes of their bytes.

The bytes of an arena are cut where tensors begin or end. Each piece is followed along
all paths of a run: who may have written it (with the program's offsets), and who
reads it next. A tensor and the writers of the bytes it reads keep their distance: they
form a group. A group is live wherever bytes that it wrote may still be read.

Bytes that nothing has written have no meaning, not even from one run to
the next, unless they are state: `method/state.py` asks here which are read early.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import Final, TypeAlias

from orchestrator.method.effects import Effect, MethodEffects
from orchestrator.method.sets import Sets
from orchestrator.program.values import TensorValue

_BEFORE: Final = -1
"""The writer of bytes from before the run."""

_Note: TypeAlias = "Callable[[int, str, Iterable[int]], None]"

# Chosen by hand, against programs of nothing but branches (tests/unit/method/test_replan_flow.py).
_MOST_WORK: Final = 500_000
"""Pieces times basic blocks; a method with more keeps its plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Tensors that keep their distances to each other.

    Args:
        members: Value indices, sorted.
        begin: Lowest offset in bytes, in the program.
        end: Highest end.
        first: First moment at which the bytes are needed; -1 is before the run.
        last: Last moment, inclusive; the number of instructions is after the run.
    """

    members: tuple[int, ...]
    begin: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The groups of one arena.

    Args:
        groups: In order of their first members.
        idle: Tensors that nothing uses: they only have to fit.
        is_clear: Every byte that is read has known writers. If not, the arena keeps
            its plan.
    """

    groups: tuple[Group, ...]
    idle: tuple[int, ...]
    is_clear: bool


def flow_of(effects: MethodEffects, memory_id: int) -> Flow:
    """Groups and lifetimes of the tensors in one arena.

    Args:
        effects: Effects of the method.
        memory_id: Memory id of the arena.
    """
    return _Analysis(effects, memory_id).flow()


def early_reads(
    effects: MethodEffects, memory_id: int, outputs: Collection[tuple[int, int]] = ()
) -> tuple[tuple[int, int], ...]:
    """Bytes of an arena that may be read before the run has written them.

    Args:
        effects: Effects of the method; no tensor is marked as state.
        memory_id: Memory id of the arena.
        outputs: (instruction, tensor) of what a call with unknown effects writes, and
            does not read.

    Returns:
        (begin, end) of each piece, in order; the whole arena if a method is too large.
    """
    return _Analysis(effects, memory_id).early(frozenset(outputs))


@dataclass(frozen=True, slots=True, kw_only=True)
class _BasicBlock:
    """A sequence of moments without branches.

    Args:
        first: First moment: -1 is before the run, the number of instructions after it.
        last: Last moment, inclusive.
        next: Indices of the blocks that can follow.
    """

    first: int
    last: int
    next: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Event:
    """A use of a piece: `kind` is one of the words below."""

    time: int
    kind: str
    value: int


class _Analysis:
    def __init__(self, effects: MethodEffects, memory_id: int) -> None:
        self._effects = effects
        self._places: dict[int, tuple[int, int]] = {}
        for index, value in enumerate(effects.values):
            if not isinstance(value, TensorValue) or value.allocation is None:
                continue
            if value.allocation.memory_id == memory_id and value.size_bytes:
                begin = value.allocation.offset_bytes
                self._places[index] = (begin, begin + value.size_bytes)
        self._end = len(effects.at)
        self._groups = Sets(self._places)
        self._kin = Sets(self._places)
        self._spans: dict[int, list[int]] = {}
        self._whole: set[int] = set()
        self._written: set[int] = set(effects.replaced)
        # The caller would write the input to where the last run moved it.
        self._is_clear = effects.is_known and effects.replaced.isdisjoint(effects.inputs)

    def flow(self) -> Flow:
        blocks = _basic_blocks(self._effects.at)
        self._previous: list[list[int]] = [[] for _ in blocks]
        for number, block in enumerate(blocks):
            for following in block.next:
                self._previous[following].append(number)
        events = self._events()
        pieces = [*self._pieces(events).values()]
        if len(pieces) * len(blocks) > _MOST_WORK:
            self._is_clear = False
        if self._is_clear:
            states = [_states(piece, blocks) for piece in pieces]
            for piece, state in zip(pieces, states, strict=True):
                self._relate(piece, blocks, state)
            for piece, state in zip(pieces, states, strict=True):
                self._follow(piece, blocks, state)
        touched = {event.value for event in events}
        idle = tuple(sorted(self._places.keys() - touched))
        return Flow(
            groups=tuple(map(self._group, self._groups.groups(touched))),
            idle=idle,
            is_clear=self._is_clear,
        )

    def early(self, outputs: frozenset[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        blocks = _basic_blocks(self._effects.at)
        events = [
            replace(e, kind="fill") if (e.time, e.value) in outputs else e for e in self._events()
        ]
        for time, effect in enumerate(self._effects.at):
            # A move gives its target other memory: nothing reads its own.
            events += [_Event(time, "fill", v) for v in effect.replaces]
        events = [e for e in sorted(events, key=attrgetter("time")) if e.value in self._places]
        tensors = (self._effects.values[v] for v in self._places)
        partial = any(isinstance(t, TensorValue) and t.is_dynamic for t in tensors)
        return tuple(
            span
            for span, piece in self._pieces(events).items()
            # Nothing is older than what is written before the first branch.
            if (partial or not _is_written(piece[0], blocks[0]))
            and any(
                event.kind == "read" and self._may_be_early(event.value, state)
                for event, state in _walk(piece, blocks)
            )
        )

    def _may_be_early(self, value: int, state: frozenset[int]) -> bool:
        return _BEFORE in state or any(
            self._is_partial(writer, value) for writer in state - {value}
        )

    def _is_partial(self, writer: int, reader: int) -> bool:
        """Whether a writer may have written fewer bytes, so that older ones remain."""
        tensor = self._effects.values[writer]
        return (
            isinstance(tensor, TensorValue)
            and tensor.is_dynamic
            and self._kin.of(reader) != self._kin.of(writer)
        )

    def _group(self, members: list[int]) -> Group:
        times = [t for v in members for t in self._spans[v]]
        whole = not self._whole.isdisjoint(members)
        return Group(
            members=tuple(members),
            begin=min(self._places[v][0] for v in members),
            end=max(self._places[v][1] for v in members),
            first=-1 if whole else min(times),
            last=self._end if whole else max(times),
        )

    def _events(self) -> list[_Event]:
        """All events in order; also joins tensors that overlap at one moment."""
        effects, places = self._effects, self._places
        state = [
            v for v in places if isinstance(t := effects.values[v], TensorValue) and t.is_state
        ]
        self._whole.update(state)
        events: list[_Event] = []

        def note(time: int, kind: str, values: Iterable[int]) -> None:
            for value in values:
                if value in places:
                    events.append(_Event(time, kind, value))
                    self._spans.setdefault(value, [time, time])[1] = time
                    if kind in ("fill", "write", "update"):
                        self._written.add(value)

        # State is there before the run as inputs are, and still there after it as outputs are.
        note(-1, "fill", dict.fromkeys((*effects.inputs, *state)))
        # What overlaps at one moment may show the same bytes: the caller's, or those of one call.
        self._beside(dict.fromkeys((*effects.inputs, *state)))
        for time, effect in enumerate(effects.at):
            self._instruction(time, effect, note)
        note(self._end, "read", dict.fromkeys((*effects.outputs, *state)))
        note(self._end, "own", effects.moved)
        self._beside((*effects.outputs, *effects.moved, *state))
        return events

    def _instruction(self, time: int, effect: Effect, note: _Note) -> None:
        note(time, "read", effect.reads)
        note(time, "own", effect.moved)
        note(time, "view", effect.views)
        note(time, "update", (v for v in effect.updates if v in effect.reads))
        note(time, "write", (v for v in effect.updates if v not in effect.reads))
        fills = (*effect.fills, *effect.scratch)
        note(time, "fill", (v for v in fills if v not in effect.views))
        self._beside(effect.touches)
        # A view writes nothing: what is written through it is in its base.
        for value in (v for v in effect.views if v in self._places):
            for base in (v for v in effect.reads if v in self._places):
                self._groups.join(value, base)
                self._kin.join(value, base)
            self._written.add(value)

    def _beside(self, values: Iterable[int]) -> None:
        """Join tensors that one instruction touches and that overlap."""
        self._groups.join_overlapping((*self._places[v], v) for v in {*values} if v in self._places)

    def _pieces(self, events: Sequence[_Event]) -> dict[tuple[int, int], list[_Event]]:
        """By (begin, end): the events of each piece that has some, in order."""
        touched = {event.value for event in events}
        cuts = sorted({at for v in touched for at in self._places[v]})
        pieces: list[list[_Event]] = [[] for _ in cuts]
        for event in events:
            begin, end = self._places[event.value]
            for piece in range(bisect_left(cuts, begin), bisect_left(cuts, end)):
                pieces[piece].append(event)
        found = zip(pairwise(cuts), pieces, strict=False)
        return {span: piece for span, piece in found if piece}

    def _relate(
        self,
        piece: list[_Event],
        blocks: Sequence[_BasicBlock],
        states: Mapping[int, frozenset[int]],
    ) -> None:
        """Join readers with writers."""
        for event, state in _walk(piece, blocks, states):
            value = event.value
            if event.kind == "read" or (event.kind == "own" and value not in state):
                self._look(value, state)

    def _look(self, value: int, state: frozenset[int]) -> None:
        # Nothing ever writes it, so the program may mean whatever lies there.
        if _BEFORE in state and value not in self._written:
            self._is_clear = False
        for writer in state - {_BEFORE, value}:
            self._groups.join(value, writer)
            if self._is_partial(writer, value):
                self._is_clear = False

    def _follow(
        self,
        piece: list[_Event],
        blocks: Sequence[_BasicBlock],
        states: Mapping[int, frozenset[int]],
    ) -> None:
        """Extend the lifetimes of groups over the moments between write and read."""
        by_block = _by_block(piece, blocks)
        wanted = self._wanted(by_block, blocks)
        for number, block in enumerate(blocks):
            if number not in states:
                continue
            want = frozenset().union(*(wanted[n] for n in block.next))
            events = by_block.get(number, [])
            before: list[frozenset[int]] = [states[number]]
            for event in events:
                before.append(_after(event, before[-1]))
            # Between two events of a piece, its bytes stay: that whole time counts.
            moments = [block.first, *(e.time for e in events), block.last]
            for at in range(len(events), -1, -1):
                for writer in before[at] - {_BEFORE}:
                    if self._groups.of(writer) in want:
                        span = self._spans[writer]
                        span[0] = min(span[0], moments[at])
                        span[1] = max(span[1], moments[at + 1])
                if at:
                    want = self._ahead(events[at - 1], want)

    def _wanted(
        self, by_block: Mapping[int, Sequence[_Event]], blocks: Sequence[_BasicBlock]
    ) -> list[frozenset[int]]:
        """By block: groups whose bytes are read from its beginning on."""
        wanted: list[frozenset[int]] = [frozenset()] * len(blocks)
        behind = [*by_block]
        while behind:
            number = behind.pop()
            want = frozenset().union(*(wanted[n] for n in blocks[number].next))
            for event in reversed(by_block.get(number, [])):
                want = self._ahead(event, want)
            if want != wanted[number]:
                wanted[number] = want
                behind += self._previous[number]
        return wanted

    def _ahead(self, event: _Event, want: frozenset[int]) -> frozenset[int]:
        """The groups wanted before an event, from those wanted after it."""
        # A fill ends what was wanted; other writes leave some bytes.
        if event.kind == "fill":
            return frozenset()
        return want | {self._groups.of(event.value)}


def _basic_blocks(effects: Sequence[Effect]) -> tuple[_BasicBlock, ...]:
    """The basic blocks of a method, in order.

    The first begins before the first instruction; the last is the moment after
    the last instruction.
    """
    count = len(effects)
    starts = {-1, count}
    for index, effect in enumerate(effects):
        if effect.next != (index + 1,):
            starts.update((index + 1, *effect.next))
    order = sorted(starts)
    number = {first: n for n, first in enumerate(order)}
    blocks = []
    for n, first in enumerate(order):
        last = order[n + 1] - 1 if n + 1 < len(order) else count
        if first == count:
            following: tuple[int, ...] = ()
        elif last == -1:
            following = (number[0],)
        else:
            following = tuple(number[i] for i in effects[last].next)
        blocks.append(_BasicBlock(first=first, last=last, next=following))
    return tuple(blocks)


def _states(piece: list[_Event], blocks: Sequence[_BasicBlock]) -> dict[int, frozenset[int]]:
    """By reachable basic block: who may have written the piece before it."""
    by_block = _by_block(piece, blocks)
    states: dict[int, frozenset[int]] = {0: frozenset({_BEFORE})}
    ahead = [0]
    while ahead:
        number = ahead.pop()
        state = states[number]
        for event in by_block.get(number, ()):
            state = _after(event, state)
        for following in blocks[number].next:
            known = states.get(following)
            joined = state if known is None else known | state
            if joined != known:
                states[following] = joined
                ahead.append(following)
    return states


def _walk(
    piece: list[_Event],
    blocks: Sequence[_BasicBlock],
    states: Mapping[int, frozenset[int]] | None = None,
) -> Iterator[tuple[_Event, frozenset[int]]]:
    """The events of a piece, each with who may have written it before."""
    known = _states(piece, blocks) if states is None else states
    for number, events in _by_block(piece, blocks).items():
        state = known.get(number, frozenset())
        for event in events:
            yield event, state
            state = _after(event, state)


def _after(event: _Event, state: frozenset[int]) -> frozenset[int]:
    """Who may have written a piece after an event."""
    match event.kind:
        case "fill" | "write":
            return frozenset({event.value})
        case "update":
            return state | {event.value}
    return state


def _is_written(event: _Event, block: _BasicBlock) -> bool:
    """Whether an event of a block leaves only what it writes."""
    return event.time <= block.last and event.kind in ("fill", "write")


def _by_block(piece: list[_Event], blocks: Sequence[_BasicBlock]) -> dict[int, list[_Event]]:
    starts = [block.first for block in blocks]
    found: dict[int, list[_Event]] = {}
    for event in piece:
        number = bisect_left(starts, event.time + 1) - 1
        found.setdefault(number, []).append(event)
    return found
