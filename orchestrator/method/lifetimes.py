"""Lifetimes of planned tensors, and the most bytes live at one time."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from operator import attrgetter

from orchestrator.method.effects import MethodEffects, effects_of_method
from orchestrator.program.program import Method
from orchestrator.program.values import TensorValue


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Lifetime:
    """When a planned tensor is live, and where it lies.

    Args:
        first: The instruction that writes it; -1 for what is live before the first.
        last: The last one that touches it, inclusive; the number of instructions for
            what is live after the last.
        begin: Offset in its arena, in bytes.
        end: Of its last byte, exclusive.
        index: Of the value.
    """

    first: int
    last: int
    begin: int
    end: int
    index: int


def peak_live_bytes(method: Method, memory_id: int) -> int:
    """Most bytes of an arena that are live at once: a lower bound on its size."""
    lives = lifetimes(effects_of_method(method, {}), memory_id)
    return max((count for _, count in live_bytes(lives)), default=0)


def live_bytes(lives: Iterable[Lifetime]) -> Iterator[tuple[int, int]]:
    """(instruction, live bytes from it on) wherever lifetimes begin or end, in order.

    Several tensors may lie in the same bytes, which count once.
    """
    # One sweep: methods may have thousands of values, few of them live at once.
    ahead = sorted(lives, reverse=True)
    live: list[tuple[int, int]] = []
    ends: list[tuple[int, int, int]] = []
    for time in sorted({t for life in ahead for t in (life.first, life.last + 1)}):
        while ends and ends[0][0] < time:
            _, begin, end = heappop(ends)
            del live[bisect_left(live, (begin, end))]
        while ahead and ahead[-1].first == time:
            life = ahead.pop()
            insort(live, (life.begin, life.end))
            heappush(ends, (life.last, life.begin, life.end))
        yield time, _union_bytes(live)


def lifetimes(effects: MethodEffects, memory_id: int) -> list[Lifetime]:
    """Lifetimes of all planned tensors of an arena, without empty ones.

    A value is live from the instruction that writes it to the last one that touches
    it; inputs from the start, outputs to the end, state always. A value that is read
    but never written is a view: it is live from the last write to its bytes.
    """
    end_of_time = len(effects.at)
    touched: dict[int, list[int]] = {}
    written: dict[int, int] = {}
    for time, effect in enumerate(effects.at):
        for index in (*effect.touches, *effect.replaces):
            touched.setdefault(index, []).append(time)
        for index in (*effect.writes, *effect.replaces):
            written.setdefault(index, time)
    owners: list[Lifetime] = []
    views: list[Lifetime] = []
    for index, value in enumerate(effects.values):
        if not isinstance(value, TensorValue) or value.allocation is None:
            continue
        place = value.allocation
        if place.memory_id != memory_id or value.size_bytes == 0:
            continue
        times = touched.get(index, [end_of_time])
        starts_live = index in effects.inputs or value.is_state
        is_view = not starts_live and index not in written
        first = -1 if starts_live else written.get(index, times[0])
        # What a call writes is live then, even if nothing reads it: the bytes are overwritten.
        last = max(times[-1], first) if index in touched else first
        if index in effects.outputs or value.is_state:
            last = end_of_time
        begin = place.offset_bytes
        life = Lifetime(
            first=first, last=last, begin=begin, end=begin + value.size_bytes, index=index
        )
        (views if is_view else owners).append(life)
    owners.sort()
    return owners + [_extend_view(view, owners) for view in views]


def split_at_writes(effects: MethodEffects, lives: Iterable[Lifetime]) -> list[Lifetime]:
    """Lifetimes, with a new one wherever a tensor is written anew.

    Passes let tensors of one kind share a value, which is then written several times.
    In methods with jumps nothing is split.
    """
    # On another path the value before may still be read.
    if any(e.next != (n + 1,) for n, e in enumerate(effects.at)):
        return list(lives)
    fills: dict[int, list[int]] = {}
    reads: dict[int, list[int]] = {}
    for time, effect in enumerate(effects.at):
        for index in effect.fills:
            fills.setdefault(index, []).append(time)
        # A tensor that is filled and read by one call counts as read.
        for index in {*effect.touches} - {*effect.fills} | {*effect.reads}:
            reads.setdefault(index, []).append(time)
    found = []
    for life in lives:
        starts = [t for t in fills.get(life.index, ()) if life.first < t <= life.last]
        first = life.first
        for start in starts:
            used = [t for t in reads.get(life.index, ()) if first < t <= start]
            found.append(replace(life, first=first, last=max(used, default=first)))
            first = start
        found.append(replace(life, first=first))
    return found


def _extend_view(view: Lifetime, owners: Sequence[Lifetime]) -> Lifetime:
    """Start the lifetime of a view where the value that it shows was written.

    Args:
        view: Its lifetime.
        owners: Lifetimes of values that are not views, sorted.
    """
    at = bisect_left(owners, view.first, key=attrgetter("first"))
    # The last one that was written there before: earlier ones are gone.
    for owner in reversed(owners[:at]):
        if owner.begin <= view.begin and view.end <= owner.end:
            return replace(view, first=owner.first)
    return view


def _union_bytes(spans: Iterable[tuple[int, int]]) -> int:
    """Bytes that sorted spans cover together."""
    total, reach = 0, 0
    for begin, end in spans:
        total += max(0, end - max(begin, reach))
        reach = max(reach, end)
    return total
