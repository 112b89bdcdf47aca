"""Run independent calls in the order in which least memory is live at one time.

First every group of tensors that share bytes (`replan/flow.py`) gets memory of its own,
proved by `replan/proof.py`: what a plan shares orders nothing any more. Then calls that
touch a group in common, one of them to write it, keep their order, and the rest may
change places. Last, every byte is checked to have the history that it had: the same
writers in a row, each with the same readers. A method that reads bytes which the run
has not written does not change: elsewhere there are others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import islice
from typing import Final, TypeAlias

from orchestrator.method.effects import MethodEffects, effects_of_linked
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.unused import may_be_unused
from orchestrator.method.places import offset_of, placed
from orchestrator.method.replan.flow import Group, flow_of
from orchestrator.method.replan.proof import problems_of
from orchestrator.planner import plan_blocks
from orchestrator.planner.blocks import Block, aligned, indices
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import TensorValue, Value

# Bounds of work: with them, methods of 1,600 calls take 0.1 to 2.4 s of CPU.
_MOST_TRIED: Final = 200_000
"""Calls that the exact search tries, and the bounded one before it keeps one order."""
_MOST_IN_ALL: Final = 500_000
# Width of the beam; 1 once too much was tried.
_MOST_KEPT: Final = 32
_MOST_READY: Final = 32
"""Calls that could run next of which a step looks at the first ones only."""
_AT_START: Final = -1
_AT_END: Final = -2

_Path: TypeAlias = "tuple[_Path, int] | None"

_History: TypeAlias = list[tuple[int, frozenset[int]]]
"""Writers of a byte in a row, each with its readers."""


def order_calls(method: LinkedMethod) -> LinkedMethod:
    """Order calls so that the arena gets smaller; if it does not, nothing changes.

    Methods with jumps, moves, changing sizes or computed numbers do not change, and
    neither do methods with more than one arena.
    """
    effects = effects_of_linked(method)
    arenas = method.arenas
    if len(arenas) != 1 or SHARED_ID in arenas or not _is_plain(method, effects):
        return method
    (memory_id,) = arenas
    flow = flow_of(effects, memory_id)
    if not flow.is_clear:
        return method
    graph = _Graph(method, effects, flow.groups)
    before = graph.peak(range(len(effects.at)))
    # No order needs less than the call that touches most.
    if before <= graph.least:
        return method
    order = graph.order(before)
    if order is None or graph.peak(order) >= before:
        return method
    # No plan of the old order is smaller than its peak.
    plan = plan_blocks(graph.blocks(order), capacity_bytes=before - 1)
    if plan.size_bytes >= before:
        return method
    return _ordered(method, effects, flow.groups, order, memory_id)


def _is_plain(method: LinkedMethod, effects: MethodEffects) -> bool:
    """Whether calls depend on one another through bytes of tensors alone."""
    return (
        effects.is_known
        and all(isinstance(i, LinkedCall) for i in method.instructions)
        and all(isinstance(method.values[i], TensorValue) for i in method.written)
        and not any(isinstance(v, TensorValue) and v.is_dynamic for v in method.values)
    )


class _Graph:
    """Calls, and the groups of bytes that they touch; sets are masks of bits."""

    def __init__(
        self, method: LinkedMethod, effects: MethodEffects, groups: Sequence[Group]
    ) -> None:
        self._tried = 0
        self._count = count = len(effects.at)
        # As `_ordered` places them: each group begins at a multiple of 16, and as far behind one as
        # in the program.
        self._sizes = [aligned(g.end - g.begin + g.begin % 16) for g in groups]
        of = {member: at for at, g in enumerate(groups) for member in g.members}
        self._touched = [
            sorted({of[v] for v in effect.touches if v in of}) for effect in effects.at
        ]
        self._users = [0] * len(groups)
        for number, touched in enumerate(self._touched):
            for at in touched:
                self._users[at] |= 1 << number
        self._starts = {at for at, g in enumerate(groups) if g.first < 0}
        self._stays = {at for at, g in enumerate(groups) if g.last == count}
        self._before = self._dependencies(method, effects, of)
        self._following: list[list[int]] = [[] for _ in range(count)]
        for number, before in enumerate(self._before):
            for other in indices(before):
                self._following[other].append(number)
        self.least = max(
            (sum(self._sizes[at] for at in touched) for touched in self._touched), default=0
        )

    def _dependencies(
        self, method: LinkedMethod, effects: MethodEffects, of: dict[int, int]
    ) -> list[int]:
        """By call: the calls that have to come before."""
        before = [0] * self._count
        wrote: dict[int, int] = {}
        read: dict[int, int] = {}
        barrier, since = 0, 0
        state = {*method.state}
        for number, effect in enumerate(effects.at):
            call = method.instructions[number]
            here = before[number] | barrier
            writes = {of[v] for v in effect.writes if v in of}
            for at in self._touched[number]:
                here |= wrote.get(at, 0)
                if at in writes:
                    here |= read.pop(at, 0)
                    wrote[at] = 1 << number
                else:
                    read[at] = read.get(at, 0) | 1 << number
            # A run that fails, draws or has effects elsewhere does so at one point.
            is_pure = isinstance(call, LinkedCall) and may_be_unused(call)
            if not is_pure or not state.isdisjoint(effect.touches):
                here |= since
                barrier, since = 1 << number, 0
            since |= 1 << number
            before[number] = here
        return before

    def peak(self, order: Iterable[int]) -> int:
        """Most bytes that are live at one time."""
        start = self._start()
        done, live, most = start.done, start.live, start.most
        for number in order:
            during, after = self._step(done, live, number)
            most, live, done = max(most, during), after, done | 1 << number
        return most

    def _step(self, done: int, live: int, number: int) -> tuple[int, int]:
        """Live bytes while a call runs, and after it."""
        self._tried += 1 + len(self._touched[number]) // 8  # as long as it takes
        now = done | 1 << number
        gone = 0
        for at in self._touched[number]:
            users = self._users[at]
            if not users & done and at not in self._starts:
                live += self._sizes[at]
            if users & now == users and at not in self._stays:
                gone += self._sizes[at]
        return live, live - gone

    def order(self, bound: int) -> list[int] | None:
        """An order with a peak below the bound, the least that was found."""
        try:
            return self._exact(bound)
        except _TooManyError:
            return self._bounded(bound)

    def blocks(self, order: Iterable[int]) -> list[Block]:
        """The groups as blocks of memory, live as the order has it."""
        at_time = {number: time for time, number in enumerate(order)}
        found = []
        for at, users in enumerate(self._users):
            times = [at_time[number] for number in indices(users)]
            first = -1 if at in self._starts else min(times, default=-1)
            last = self._count if at in self._stays else max(times, default=first)
            size = self._sizes[at]
            found.append(Block(name=str(at), first=first, last=last, size_bytes=size))
        return found

    def _exact(self, bound: int) -> list[int] | None:
        """An order with the least peak of all; None if none is below the bound.

        The sets of calls that have run, the one with the least peak so far first.

        Raises:
            _TooManyError: There are too many of them.
        """
        start = self._settled(self._start())
        known = {start.done: start}
        ahead = [(start.most, -start.done.bit_count(), start.done)]
        self._tried = 0
        while ahead:
            most, _, done = heappop(ahead)
            state = known[done]
            # A better way to the same set was found after this one had been noted.
            if state.most < most:
                continue
            if not state.ready:
                return state.path()
            for number in indices(state.ready):
                if self._tried > _MOST_TRIED:
                    raise _TooManyError
                after = self._settled(self._after(state, number))
                was = known.get(after.done)
                if after.most < bound and (was is None or after.most < was.most):
                    known[after.done] = after
                    count = -after.done.bit_count()
                    heappush(ahead, (after.most, count, after.done))
        return None

    def _bounded(self, bound: int) -> list[int] | None:
        """The best order among some: in each step the best few states are kept."""
        self._tried = 0
        states = [self._settled(self._start())]
        while states[0].ready:
            if self._tried > _MOST_IN_ALL:
                return None
            found: dict[int, _State] = {}
            for state in states:
                if not state.ready:
                    found[state.done] = state
                for number in islice(indices(state.ready), _MOST_READY):
                    after = self._settled(self._after(state, number))
                    was = found.get(after.done)
                    if after.most < bound and (was is None or after.most < was.most):
                        found[after.done] = after
            if not found:
                return None
            states = sorted(found.values(), key=lambda s: (s.most, s.live, s.done))
            states = states[: _MOST_KEPT if self._tried < _MOST_TRIED else 1]
        return states[0].path()

    def _start(self) -> _State:
        ready = [n for n, before in enumerate(self._before) if not before]
        live = sum(self._sizes[at] for at in self._starts)
        return _State(0, live, live, sum(1 << n for n in ready), None)

    def _after(self, state: _State, number: int) -> _State:
        during, live = self._step(state.done, state.live, number)
        done, ready = state.done | 1 << number, state.ready ^ 1 << number
        for following in self._following[number]:
            if not self._before[following] & ~done:
                ready |= 1 << following
        most = max(state.most, during)
        return _State(done, live, most, ready, (state.last, number))

    def _settled(self, state: _State) -> _State:
        """The state after all calls that cost nothing now, and so never come too soon.

        They free at least what they take, and the peak so far has room for them.
        """
        again = True
        while again:
            again = False
            for number in islice(indices(state.ready), _MOST_READY):
                during, live = self._step(state.done, state.live, number)
                if during <= state.most and live <= state.live:
                    state = self._after(state, number)
                    again = True
                    break
        return state


class _TooManyError(Exception):
    """The exact search would take too long."""


@dataclass(frozen=True, slots=True)
class _State:
    """Calls that have run.

    Args:
        done: Which.
        live: Bytes that are live now.
        most: Most that were.
        ready: Calls that can run next.
        last: The state before in short, and the call that ran last.
    """

    done: int
    live: int
    most: int
    ready: int
    last: _Path

    def path(self) -> list[int]:
        """The calls in their order."""
        found, last = [], self.last
        while last is not None:
            last, number = last
            found.append(number)
        return found[::-1]


def _ordered(
    method: LinkedMethod,
    effects: MethodEffects,
    groups: Sequence[Group],
    order: Sequence[int],
    memory_id: int,
) -> LinkedMethod:
    """The method in another order, each group with memory of its own."""
    changed: dict[int, Value] = {}
    end = 0
    for group in groups:
        # Arenas begin at multiples of 16: a group keeps the alignment that it has.
        distance = end + group.begin % 16 - group.begin
        for index in group.members:
            tensor = method.values[index]
            changed[index] = placed(tensor, memory_id, offset_of(tensor) + distance)
        end = aligned(distance + group.end)
    moved = method.with_values(changed)
    found = replace(
        moved,
        instructions=tuple(moved.instructions[n] for n in order),
        origins=tuple(moved.origins[n] for n in order),
    )
    # This proof is for the old order: that groups apart are as good. The new order has the
    # histories below.
    if problems_of(effects, moved.values, moved.arena_bytes):
        return method
    histories = _histories(moved)
    return found if histories and histories == _histories(found) else method


def _histories(method: LinkedMethod) -> dict[tuple[int, int], _History] | None:
    """By piece of the arena: its writers in order, and the readers of each.

    Calls are known by the program's instructions that they come from. None: some
    byte is read before anything writes it.
    """
    effects, places = effects_of_linked(method), method.places
    cuts = sorted({at for p in places.values() for at in (p.begin, p.end)})
    found: dict[tuple[int, int], _History] = {}

    def pieces(index: int) -> Iterator[_History]:
        place = places[index]
        if place.space[0] == "arena":
            for at in range(bisect_left(cuts, place.begin), bisect_left(cuts, place.end)):
                yield found.setdefault((place.space[1], at), [])

    steps = [
        (origin, (*e.reads, *e.updates), e.writes)
        for origin, e in zip(method.origins, effects.at, strict=True)
    ]
    given = (*effects.inputs, *method.state)
    ends = (_AT_END, (*effects.outputs, *method.state), ())
    for number, reads, writes in [(_AT_START, (), given), *steps, ends]:
        for history in (h for i in reads if i in places for h in pieces(i)):
            if not history:
                return None
            writer, readers = history[-1]
            history[-1] = writer, readers | {number}
        for history in (h for i in writes if i in places for h in pieces(i)):
            history.append((number, frozenset()))
    return found
