"""Which tensors share bytes, and how long bytes are needed.

The bytes of an arena are cut where tensors begin or end. Each piece is followed along
all ways a run can take: what may have written it (as the program has it now), and who
looks at it next. A tensor and what wrote the bytes it looks at have to stay where they
are beside each other: they are one group. A group is needed wherever something it has
written may still be looked at.

What a tensor holds before anything was written to it means nothing, from one run to
the next, too, unless it is state.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from orchestrator.method.replan.graph import runs_of
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from orchestrator.method.replan.graph import Run
    from orchestrator.method.replan.steps import Step, Subject

_BEFORE: Final = -1
"""Stands for what lay there before the run."""

_Note: TypeAlias = "Callable[[int, str, Iterable[int]], None]"

_MOST_WORK: Final = 5_000_000
"""Pieces times runs of instructions; a method with more keeps its plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Tensors that stay where they are beside one another.

    Args:
        members: Value indices, sorted.
        begin: Lowest offset in bytes, as the program has it.
        end: Highest end.
        first: First moment at which the bytes are needed; -1 is before the run.
        last: Last one, inclusive; the count of the instructions is after it.
    """

    members: tuple[int, ...]
    begin: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What is known of one arena.

    Args:
        groups: In order of their first members.
        idle: Tensors that nothing touches: they only have to fit.
        is_clear: It is known who has written what is looked at. If not, nothing may
            be moved.
    """

    groups: tuple[Group, ...]
    idle: tuple[int, ...]
    is_clear: bool


def flow_of(subject: Subject, memory_id: int) -> Flow:
    """Groups and lifetimes of the tensors in one arena.

    Args:
        subject: The method.
        memory_id: Of the arena.
    """
    return _Analysis(subject, memory_id).flow()


@dataclass(frozen=True, slots=True)
class _Event:
    """What happens to a piece: `kind` is one of the words below."""

    time: int
    kind: str
    value: int


class _Analysis:
    def __init__(self, subject: Subject, memory_id: int) -> None:
        self._subject = subject
        self._places: dict[int, tuple[int, int]] = {}
        for index, value in enumerate(subject.values):
            if not isinstance(value, TensorValue) or value.allocation is None:
                continue
            if value.allocation.memory_id == memory_id and value.size_bytes:
                begin = value.allocation.offset_bytes
                self._places[index] = (begin, begin + value.size_bytes)
        self._end = len(subject.steps)
        self._groups = _Sets(self._places)
        self._kin = _Sets(self._places)
        self._spans: dict[int, list[int]] = {}
        self._whole: set[int] = set()
        self._written: set[int] = set(subject.replaced)
        self._is_clear = subject.is_known

    def flow(self) -> Flow:
        runs = runs_of(self._subject.steps)
        events = self._events()
        pieces = self._pieces(events)
        if len(pieces) * len(runs) > _MOST_WORK:
            self._is_clear = False
        if self._is_clear:
            states = [_states(piece, runs) for piece in pieces]
            for piece, state in zip(pieces, states, strict=True):
                self._relate(piece, runs, state)
            for piece, state in zip(pieces, states, strict=True):
                self._follow(piece, runs, state)
        touched = {event.value for event in events}
        idle = tuple(sorted(self._places.keys() - touched))
        members: dict[int, list[int]] = {}
        for value in sorted(touched):
            members.setdefault(self._groups.of(value), []).append(value)
        return Flow(
            groups=tuple(self._group(found) for found in members.values()),
            idle=idle,
            is_clear=self._is_clear,
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
        """All that happens, in order; overlaps at one moment are noted on the way."""
        subject, places = self._subject, self._places
        state = [
            v
            for v in places
            if isinstance(t := subject.values[v], TensorValue) and t.is_mutable_state
        ]
        self._whole.update(state)
        events: list[_Event] = []

        def note(time: int, kind: str, values: Iterable[int]) -> None:
            for value in values:
                if value in places:
                    events.append(_Event(time, kind, value))
                    self._spans.setdefault(value, [time, time])[1] = time
                    if kind in ("fill", "grow", "change"):
                        self._written.add(value)

        note(-1, "fill", dict.fromkeys((*subject.inputs, *state)))
        self._beside(dict.fromkeys((*subject.inputs, *state)))
        for time, step in enumerate(subject.steps):
            self._step(time, step, note)
        note(self._end, "read", dict.fromkeys((*subject.outputs, *state)))
        note(self._end, "own", subject.kept)
        self._beside((*subject.outputs, *subject.kept, *state))
        return events

    def _step(self, time: int, step: Step, note: _Note) -> None:
        note(time, "read", (*step.reads, *step.changes))
        note(time, "own", step.moved)
        note(time, "same", step.same)
        note(time, "change", step.changes)
        note(time, "grow", step.grows)
        note(time, "fill", step.fills)
        self._beside(step.touches)
        for value in (v for v in step.same if v in self._places):
            for base in (v for v in step.reads if v in self._places):
                self._groups.join(value, base)
                self._kin.join(value, base)
            self._written.add(value)

    def _beside(self, values: Iterable[int]) -> None:
        """Tensors that one instruction touches stay together where they overlap."""
        found = sorted((self._places[v], v) for v in set(values) if v in self._places)
        reach, holder = -1, -1
        for (begin, end), value in found:
            if begin < reach:
                self._groups.join(value, holder)
            if end > reach:
                reach, holder = end, value

    def _pieces(self, events: Sequence[_Event]) -> list[list[_Event]]:
        touched = {event.value for event in events}
        cuts = sorted({at for v in touched for at in self._places[v]})
        pieces: list[list[_Event]] = [[] for _ in cuts]
        for event in events:
            begin, end = self._places[event.value]
            for piece in range(bisect_left(cuts, begin), bisect_left(cuts, end)):
                pieces[piece].append(event)
        return [piece for piece in pieces if piece]

    def _relate(
        self,
        piece: list[_Event],
        runs: Sequence[Run],
        states: Mapping[int, frozenset[int]],
    ) -> None:
        """Join what reads with what wrote."""
        for number, events in _by_run(piece, runs).items():
            state = states.get(number, frozenset())
            for event in events:
                value = event.value
                if event.kind == "read" or (event.kind == "own" and value not in state):
                    self._look(value, state)
                state = _after(event, state)

    def _look(self, value: int, state: frozenset[int]) -> None:
        if _BEFORE in state and value not in self._written:
            self._is_clear = False
        for writer in state - {_BEFORE, value}:
            self._groups.join(value, writer)
            tensor = self._subject.values[writer]
            if (
                isinstance(tensor, TensorValue)
                and tensor.is_dynamic
                and self._kin.of(value) != self._kin.of(writer)
            ):
                # It may have written less than its bytes, and older ones show.
                self._is_clear = False

    def _follow(
        self,
        piece: list[_Event],
        runs: Sequence[Run],
        states: Mapping[int, frozenset[int]],
    ) -> None:
        """Stretch the lives of groups over the moments between write and read."""
        by_run = _by_run(piece, runs)
        wanted = self._wanted(by_run, runs)
        for number, run in enumerate(runs):
            if number not in states:
                continue
            want = frozenset().union(*(wanted[n] for n in run.next))
            events = by_run.get(number, [])
            before: list[frozenset[int]] = [states[number]]
            for event in events:
                before.append(_after(event, before[-1]))
            moments = [run.first, *(e.time for e in events), run.last]
            for at in range(len(events), -1, -1):
                for writer in before[at] - {_BEFORE}:
                    if self._groups.of(writer) in want:
                        span = self._spans[writer]
                        span[0] = min(span[0], moments[at])
                        span[1] = max(span[1], moments[at + 1])
                if at:
                    want = self._ahead(events[at - 1], want)

    def _wanted(
        self, by_run: Mapping[int, Sequence[_Event]], runs: Sequence[Run]
    ) -> list[frozenset[int]]:
        """By run: groups whose bytes are looked at from its beginning on."""
        wanted: list[frozenset[int]] = [frozenset()] * len(runs)
        changed = True
        while changed:
            changed = False
            for number in range(len(runs) - 1, -1, -1):
                want = frozenset().union(*(wanted[n] for n in runs[number].next))
                for event in reversed(by_run.get(number, [])):
                    want = self._ahead(event, want)
                if want != wanted[number]:
                    wanted[number] = want
                    changed = True
        return wanted

    def _ahead(self, event: _Event, want: frozenset[int]) -> frozenset[int]:
        """What is wanted before an event, from what is wanted after it."""
        if event.kind == "fill":
            return frozenset()
        return want | {self._groups.of(event.value)}


def _states(piece: list[_Event], runs: Sequence[Run]) -> dict[int, frozenset[int]]:
    """By run that can be reached: what may have written the piece before it."""
    by_run = _by_run(piece, runs)
    states: dict[int, frozenset[int]] = {0: frozenset({_BEFORE})}
    ahead = [0]
    while ahead:
        number = ahead.pop()
        state = states[number]
        for event in by_run.get(number, ()):
            state = _after(event, state)
        for following in runs[number].next:
            known = states.get(following)
            joined = state if known is None else known | state
            if joined != known:
                states[following] = joined
                ahead.append(following)
    return states


def _after(event: _Event, state: frozenset[int]) -> frozenset[int]:
    """What may have written a piece after an event."""
    match event.kind:
        case "fill" | "grow":
            return frozenset({event.value})
        case "change":
            return state | {event.value}
    return state


def _by_run(piece: list[_Event], runs: Sequence[Run]) -> dict[int, list[_Event]]:
    starts = [run.first for run in runs]
    found: dict[int, list[_Event]] = {}
    for event in piece:
        number = bisect_left(starts, event.time + 1) - 1
        found.setdefault(number, []).append(event)
    return found


class _Sets:
    """Sets that are joined; each is named by its least member."""

    def __init__(self, items: Iterable[int]) -> None:
        self._parent = {item: item for item in items}

    def of(self, item: int) -> int:
        """The name of the set that an item is in."""
        while self._parent[item] != item:
            self._parent[item] = self._parent[self._parent[item]]
            item = self._parent[item]
        return item

    def join(self, one: int, other: int) -> None:
        """Make the sets of two items one."""
        low, high = sorted((self.of(one), self.of(other)))
        self._parent[high] = low
