"""Lifetimes of planned tensors, and the most bytes live at one time."""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heappop, heappush
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from orchestrator.method.effects import effects_of_method
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.program.program import Method


def peak_live_bytes(method: Method, memory_id: int) -> int:
    """Most bytes of an arena that are live at once: a lower bound on its size.

    A value is live from the instruction that writes it to the last one that touches
    it; inputs from the start, outputs to the end, state always. A value that is read
    but never written is a view: it is live from the last write to its bytes.
    """
    # One sweep: methods may have thousands of values, few of them live at once.
    peak = 0
    live: list[tuple[int, int]] = []
    ends: list[tuple[int, int, int]] = []
    for first, lives in groupby(sorted(_lifetimes(method, memory_id)), itemgetter(0)):
        while ends and ends[0][0] < first:
            _, begin, end = heappop(ends)
            del live[bisect_left(live, (begin, end))]
        for _, last, begin, end in lives:
            insort(live, (begin, end))
            heappush(ends, (last, begin, end))
        peak = max(peak, _union_bytes(live))
    return peak


def _lifetimes(method: Method, memory_id: int) -> list[tuple[int, int, int, int]]:
    """(first, last instruction, begin, end in the arena) of every planned value."""
    end_of_time = len(method.instructions)
    touched: dict[int, list[int]] = {}
    written: dict[int, int] = {}
    effects = effects_of_method(method, {})
    for time, effect in enumerate(effects.at):
        for index in (*effect.touches, *effect.replaces):
            touched.setdefault(index, []).append(time)
        for index in (*effect.writes, *effect.replaces):
            written.setdefault(index, time)
    owners: list[tuple[int, int, int, int]] = []
    views: list[tuple[int, int, int, int]] = []
    for index, value in enumerate(method.values):
        if not isinstance(value, TensorValue) or value.allocation is None:
            continue
        place = value.allocation
        if place.memory_id != memory_id or value.size_bytes == 0:
            continue
        times = touched.get(index, [end_of_time])
        starts_live = index in effects.inputs or value.is_mutable_state
        is_view = not starts_live and index not in written
        first = -1 if starts_live else written.get(index, times[0])
        last = max(times[-1], first) if index in touched else first
        if index in effects.outputs or value.is_mutable_state:
            last = end_of_time
        begin = place.offset_bytes
        life = (first, last, begin, begin + value.size_bytes)
        (views if is_view else owners).append(life)
    owners.sort()
    return owners + [_extend_view(view, owners) for view in views]


def _extend_view(
    view: tuple[int, int, int, int], owners: list[tuple[int, int, int, int]]
) -> tuple[int, int, int, int]:
    """Start the lifetime of a view where the value that it shows was written.

    Args:
        view: Its lifetime.
        owners: Lifetimes of values that are not views, sorted.
    """
    first, last, begin, end = view
    for at in range(bisect_left(owners, (first,)) - 1, -1, -1):
        start, _, lowest, highest = owners[at]
        if lowest <= begin and end <= highest:
            return (start, last, begin, end)
    return view


def _union_bytes(spans: Iterable[tuple[int, int]]) -> int:
    """Bytes that sorted spans cover together."""
    total, reach = 0, 0
    for begin, end in spans:
        total += max(0, end - max(begin, reach))
        reach = max(reach, end)
    return total
