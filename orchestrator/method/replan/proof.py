"""Prove that a method computes the same after its tensors were moved.

The method runs twice, side by side, over symbolic bytes: once with the
places of the program, once with the new ones. A byte records who wrote it, when, and
how far from where the reader begins. All bytes that an instruction or the caller reads
must be the same in both, on every path through the method. Shares no code with the
planner, which groups and places tensors; both take effects from `method/effects.py`.

`passes/proof.py` proves changes by passes, for which this is too weak: here bytes that
no instruction has written may change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from orchestrator.method.effects import Effect, MethodEffects
from orchestrator.program.values import TensorValue, Value

_Tag: TypeAlias = tuple[int, int]
"""The writer of a byte: (moment, value); value -1 is for bytes from before the run."""
_Memory: TypeAlias = list[frozenset[_Tag]]
"""By piece: the possible writers."""

_Seen: TypeAlias = frozenset[tuple[int, int, int]]
"""The possible writers of a byte that is read, and its distance from their begin."""

_SPACE_BYTES = 1 << 64
"""From one arena to the next; no offset is larger."""

_NO_WRITER = (-1, -1, 0)
_UNKNOWN: frozenset[_Tag] = frozenset({(-1, -1)})


class PlanProofError(Exception):
    """A memory plan is wrong: an internal error."""


def problems_of(
    effects: MethodEffects, values: Sequence[Value], arena_bytes: Sequence[int]
) -> tuple[str, ...]:
    """Problems of new places of a method's tensors; empty if they are right.

    Args:
        effects: Effects of the method with the places of the program.
        values: All slots, with the new places.
        arena_bytes: New size of each arena, by memory id.
    """
    before, after = _Layout(effects.values), _Layout(values)
    found = [*_misplaced(before, after, arena_bytes)]
    if not found:
        found = _Comparison(effects, before, after).problems()
    return tuple(dict.fromkeys(found))


def _misplaced(before: _Layout, after: _Layout, arena_bytes: Sequence[int]) -> Iterable[str]:
    if before.places.keys() != after.places.keys():
        yield "other tensors are planned"
        return
    for value, (begin, end) in after.places.items():
        was = before.places[value]
        if end - begin != was[1] - was[0]:
            yield f"value {value} has another size"
        memory_id, offset = divmod(begin, _SPACE_BYTES)
        size_bytes = arena_bytes[memory_id] if memory_id < len(arena_bytes) else 0
        if offset + end - begin > size_bytes:
            yield f"value {value} ends at byte {offset + end - begin} of {size_bytes}"
        # Kernels load words, or vectors, of what was aligned before: offsets stay the same modulo
        # 16.
        if (begin - was[0]) % 16:
            yield f"value {value} is aligned otherwise"


class _Layout:
    """Places in all arenas, and the pieces into which they cut the arenas.

    All arenas are in one address space, so that a tensor may move to another arena.
    """

    def __init__(self, values: Sequence[Value]) -> None:
        self.places: dict[int, tuple[int, int]] = {}
        for index, value in enumerate(values):
            if not isinstance(value, TensorValue) or value.allocation is None:
                continue
            if value.size_bytes:
                place = value.allocation
                begin = place.memory_id * _SPACE_BYTES + place.offset_bytes
                self.places[index] = (begin, begin + value.size_bytes)
        self._cuts = sorted({at for place in self.places.values() for at in place})

    def empty(self) -> _Memory:
        return [_UNKNOWN] * len(self._cuts)

    def pieces(self, value: int) -> range:
        begin, end = self.places[value]
        return range(bisect_left(self._cuts, begin), bisect_left(self._cuts, end))

    def write(self, memory: _Memory, value: int, time: int, *, over: bool) -> None:
        """Record a write; earlier writers remain possible unless `over`."""
        tag = frozenset({(time, value)})
        for piece in self.pieces(value):
            memory[piece] = tag if over else memory[piece] | tag

    def seen(self, memory: _Memory, value: int, *, own: bool) -> dict[int, _Seen]:
        """The possible writers of a reader's bytes, by piece."""
        begin = self.places[value][0]
        found: dict[int, _Seen] = {}
        for piece in self.pieces(value):
            tags = memory[piece]
            if own and any(v == value for _, v in tags):
                tags = frozenset(t for t in tags if t[1] == value)
            found[self._cuts[piece] - begin] = frozenset(
                (t, v, begin - self.places[v][0] if v >= 0 else 0) for t, v in tags
            )
        return found

    def overlap_together(self, before: _Layout, order: Sequence[int]) -> bool:
        """Whether values that overlap, sorted by place, moved by the same distance.

        Looks at each value once: outputs may all be one place.
        """
        ends = [(0, 0), (0, 0)]  # the farthest, and that of those that moved otherwise
        for value in order:
            begin, end = self.places[value]
            own = (end, begin - before.places[value][0])
            if any(e > begin and moved != own[1] for e, moved in ends):
                return False
            if own[1] == ends[0][1]:
                ends[0] = max(ends[0], own)
            elif own[0] >= ends[0][0]:
                ends = [own, ends[0]]
            else:
                ends[1] = max(ends[1], own)
        return True

    def overlap(self, one: int, other: int) -> int | None:
        """Distance of two values that overlap; None if they do not."""
        begin, end = self.places[one]
        low, high = self.places[other]
        return low - begin if begin < high and low < end else None


def _found(time: int, value: int) -> str:
    return f"instruction {time} finds other bytes in value {value}"


class _Comparison:
    def __init__(self, effects: MethodEffects, before: _Layout, after: _Layout) -> None:
        self._effects = effects
        self._layouts = (before, after)
        self._planned = before.places.keys()
        self._state = [
            v
            for v in before.places
            if isinstance(t := effects.values[v], TensorValue) and t.is_state
        ]
        self._problems: list[str] = []
        # By instruction and value: whether bytes are the same that a move may have given away.
        # Which move did, is certain only once all paths are known that lead to the reader.
        self._given_away: dict[tuple[int, int], bool] = {}

    def problems(self) -> list[str]:
        steps, layouts = self._effects.at, self._layouts
        starts = (layouts[0].empty(), layouts[1].empty())
        given = self._here((*self._effects.inputs, *self._state))
        self._apart(-1, given)
        for layout, memory in zip(layouts, starts, strict=True):
            for value in given:
                layout.write(memory, value, -1, over=True)
        # Only where paths meet are states kept: between, one state goes along.
        joins = {0, len(steps)}
        for index, step in enumerate(steps):
            joins.update(n for n in step.next if n != index + 1)
        known = {0: starts}
        ahead = [0]
        while ahead:
            time = ahead.pop()
            memories = (list(known[time][0]), list(known[time][1]))
            while time < len(steps):
                self._run(time, steps[time], memories)
                for target in steps[time].next[1:]:
                    self._arrive(known, ahead, target, memories)
                if time + 1 in joins or time + 1 not in steps[time].next:
                    self._arrive(known, ahead, steps[time].next[0], memories)
                    break
                time += 1
        if len(steps) in known:
            self._end(known[len(steps)])
        self._problems += [_found(*where) for where, same in self._given_away.items() if not same]
        return self._problems

    def _arrive(
        self,
        known: dict[int, tuple[_Memory, _Memory]],
        ahead: list[int],
        time: int,
        memories: tuple[_Memory, _Memory],
    ) -> None:
        if time not in known:
            known[time] = (list(memories[0]), list(memories[1]))
            ahead.append(time)
            return
        grown = False
        for old, new in zip(known[time], memories, strict=True):
            for piece, tags in enumerate(new):
                if not tags <= old[piece]:
                    old[piece] |= tags
                    grown = True
        if grown:
            ahead.append(time)

    def _here(self, values: Iterable[int]) -> list[int]:
        return [v for v in dict.fromkeys(values) if v in self._planned]

    def _run(self, time: int, effect: Effect, memories: tuple[_Memory, _Memory]) -> None:
        self._apart(time, self._here(effect.touches))
        for value in self._here(effect.reads):
            self._same(time, value, memories)
        for value in self._here(effect.moved):
            self._same_own(time, value, memories)
        for layout, memory in zip(self._layouts, memories, strict=True):
            for value in self._here(effect.writes):
                if value not in effect.views:
                    over = value not in effect.updates or value not in effect.reads
                    layout.write(memory, value, time, over=over)

    def _end(self, memories: tuple[_Memory, _Memory]) -> None:
        effects, end = self._effects, len(self._effects.at)
        self._apart(end, self._here((*effects.outputs, *effects.moved, *self._state)))
        for value in self._here((*effects.outputs, *self._state)):
            self._same(end, value, memories)
        for value in self._here(effects.moved):
            self._same_own(end, value, memories)

    def _same(self, time: int, value: int, memories: tuple[_Memory, _Memory]) -> None:
        """Record a problem if a reader finds other bytes."""
        if not self._is_same(value, memories, own=False):
            self._problems.append(_found(time, value))

    def _same_own(self, time: int, value: int, memories: tuple[_Memory, _Memory]) -> None:
        """Note whether a reader finds what a value wrote, if a move gave it away."""
        before = self._layouts[0]
        is_written = any(v == value for p in before.pieces(value) for _, v in memories[0][p])
        same = not is_written or self._is_same(value, memories, own=True)
        self._given_away[time, value] = same

    def _is_same(self, value: int, memories: tuple[_Memory, _Memory], *, own: bool) -> bool:
        before, after = self._layouts
        old = before.seen(memories[0], value, own=own)
        new = after.seen(memories[1], value, own=own)
        was = now = frozenset[tuple[int, int, int]]()
        for at in sorted({*old, *new}):
            was, now = old.get(at, was), new.get(at, now)
            # Bytes that nothing has written may differ.
            if not (was - {_NO_WRITER} <= now if _NO_WRITER in was else was == now):
                return False
        return True

    def _apart(self, time: int, values: Sequence[int]) -> None:
        """Record values that overlap at one moment and did not before."""
        before, after = self._layouts
        order = sorted(values, key=lambda v: after.places[v])
        if after.overlap_together(before, order):
            return
        for at, one in enumerate(order):
            for other in order[at + 1 :]:
                distance = after.overlap(one, other)
                if distance is None:
                    break
                if distance != before.overlap(one, other):
                    self._problems.append(
                        f"instruction {time} touches values {one} and {other}, which overlap"
                    )
