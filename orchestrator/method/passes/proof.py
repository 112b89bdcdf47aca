"""Prove that a method computes the same after its tensors got other places.

The method before and the method after run side by side; jumps go the same way in both
as long as their conditions are the same. For every instruction the proof tracks which
byte of the memory after equals which byte of the memory before, on every path that
leads there. A change is proved if every kernel then reads the same bytes, and every
output has the same bytes in the end. What one run leaves for the next, such as
state, must be the same as well, wherever a run can stop.

`replan/proof.py` proves something else: there, bytes that no instruction of the run has
written may differ, and every tensor may move. Here nothing that a kernel could read may
differ, and calls may be removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from orchestrator.method.passes.spans import Spans, cut, join, meet
from orchestrator.method.places import Place, Space, place_of
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from orchestrator.method.effects import Effect
    from orchestrator.method.linked import LinkedMethod
    from orchestrator.method.passes.dataflow import Dataflow
    from orchestrator.program.values import Value

State: TypeAlias = "dict[tuple[Space, Space, int], Spans]"
"""By space after, space before and distance: offsets whose bytes are equal in both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A removed call.

    Args:
        outs: Where it wrote.
        copies: Bytes it copied: from where to where.
        constants: Its results that are constants now, and where it wrote them.
    """

    outs: tuple[Place, ...]
    copies: tuple[tuple[Place, Place], ...] = ()
    constants: tuple[tuple[Place, Place], ...] = ()


def is_same(
    method: LinkedMethod,
    flow: Dataflow,
    changed: Mapping[int, Value],
    dropped: Mapping[int, Dropped],
    shared: Collection[tuple[int, int, int]] = (),
) -> bool:
    """Whether outputs, state and all kernels' inputs stay bit for bit the same.

    Args:
        method: Before the change.
        flow: Its dataflow.
        changed: Tensors that get another place.
        dropped: Removed calls, by index.
        shared: (call, output, input) where the kernel may write the output over
            the input.
    """
    return _Proof(method, flow, changed, dropped, shared).holds()


class _Proof:
    def __init__(
        self,
        method: LinkedMethod,
        flow: Dataflow,
        changed: Mapping[int, Value],
        dropped: Mapping[int, Dropped],
        shared: Collection[tuple[int, int, int]],
    ) -> None:
        self._shared = frozenset(shared)
        self._method = method
        self._flow = flow
        self._dropped = dropped
        self._changed = changed
        self._before = method.places
        # A call writes only as many items of these as they have at that time.
        self._dynamic = {
            index
            for index in self._before
            if getattr(method.values[index], "is_dynamic", False)
            and index not in flow.moved
        }
        moved = ((index, place_of(value, index)) for index, value in changed.items())
        self._after = self._before | {i: p for i, p in moved if p is not None}
        self._near = self._touched()
        self._near_instructions = [
            not self._near.isdisjoint(e.touches) for e in flow.at
        ]
        self._writers = {
            index: outs
            for index, effect in enumerate(flow.at)
            if index not in dropped
            and (outs := tuple(out for out in effect.writes if out in changed))
        }

    def _touched(self) -> frozenset[int]:
        """Tensors that the change affects."""
        window = [p for d in self._dropped.values() for p in d.outs]
        for index in self._changed:
            window += [self._before[index], self._after[index]]
        return frozenset(
            index
            for index, place in self._before.items()
            if index in self._changed or any(place.overlaps(w) for w in window)
        )

    def holds(self) -> bool:
        if self._flow.is_open or not self._may_change() or not self._is_apart():
            return False
        kept = self._identity()
        while True:
            states = self._states(kept)
            left = self._state_after_run(states, kept)
            if left == kept:
                return self._reads_same(states)
            kept = left

    def _may_change(self) -> bool:
        """Whether the places of changed tensors depend on nothing else."""
        written = {
            out
            for index, effect in enumerate(self._flow.at)
            if index not in self._dropped
            for out in effect.writes
        }
        for index, value in self._changed.items():
            tensor = self._method.values[index]
            if (
                not isinstance(tensor, TensorValue)
                or tensor.is_dynamic
                or tensor.is_mutable_state
                or tensor.allocation is None
                or index in self._flow.moved
                or index in self._method.received
            ):
                return False
            is_constant = isinstance(value, TensorValue) and value.allocation is None
            if is_constant and (index in self._method.returned or index in written):
                return False
        return True

    def _is_apart(self) -> bool:
        """Whether each call's outputs overlap the same tensors as before.

        What a kernel reads after it began to write depends on that. An output of the
        method must not overlap an input either, which the caller may write
        while it reads the output.
        """
        outputs, inputs = self._method.returned, self._method.received
        ports = {(o, i) for o in outputs for i in inputs} - self._flow.overlaps
        pairs: set[tuple[int, int]] = set()
        for index, effect in enumerate(self._flow.at):
            if index not in self._dropped and self._near_instructions[index]:
                pairs |= {
                    (w, t)
                    for w in effect.writes
                    for t in effect.touches
                    if not self._is_shared(index, w, t)
                }
        return all(
            self._keeps(one, other)
            or ((one, other) in ports and not self._overlaps_after(one, other))
            for one, other in ports | pairs
            if one in self._after and other in self._after
        )

    def _overlaps_after(self, one: int, other: int) -> bool:
        return self._after[one].overlaps(self._after[other])

    def _is_shared(self, index: int, out: int, given: int) -> bool:
        return (index, out, given) in self._shared and self._after.get(
            out
        ) == self._after.get(given)

    def _keeps(self, one: int, other: int) -> bool:
        if one == other or {one, other}.isdisjoint(self._changed):
            return True
        after, beside = self._after[one], self._after[other]
        before, was = self._before[one], self._before[other]
        if not self._overlaps_after(one, other):
            return not before.overlaps(was)
        return (
            before.overlaps(was)
            and before.begin - was.begin == after.begin - beside.begin
        )

    def _identity(self) -> State:
        """The state in which every byte of every arena is the same."""
        ends: dict[Space, int] = {}
        for place in (*self._before.values(), *self._after.values()):
            ends[place.space] = max(ends.get(place.space, 0), place.end)
        return {(s, s, 0): ((0, end),) for s, end in ends.items() if s[0] == "arena"}

    def _states(self, kept: State) -> list[State]:
        """The states before every instruction, and at the end."""
        effects = self._flow.at
        # In program order: every instruction can follow the one before it, so its state
        # is known when the loop gets there.
        states = {0: self._entry(kept)}
        again = True
        while again:
            again = False
            for index, effect in enumerate(effects):
                after = states[index]
                if self._near_instructions[index]:
                    after = self._step(index, after)
                for following in effect.next:
                    known = states.get(following)
                    new = after if known is None else _common(known, after)
                    if new != known:
                        states[following] = new
                        again = again or following <= index
        return [states[index] for index in range(len(effects) + 1)]

    def _entry(self, kept: State) -> State:
        """The state after the caller has written the inputs."""
        for index in sorted(self._method.received):
            place = self._before.get(index)
            if index in self._dynamic:
                kept = _learn(kept, _items(index), _ALL)
            elif place is not None and index not in self._flow.moved:
                key = (place.space, place.space, 0)
                kept = _learn(kept, key, ((place.begin, place.end),))
        return kept

    def _step(self, index: int, state: State) -> State:
        """The state after an instruction."""
        dropped = self._dropped.get(index)
        if dropped is None:
            return self._written(self._flow.at[index], state)
        gained = [
            ((space, to.space, distance + here.begin - to.begin), found, shift)
            for here, to in dropped.copies
            for (space, old, distance), spans in state.items()
            if old == here.space
            and (found := meet(spans, ((here.begin, here.end),)))
            and (shift := to.begin - here.begin) is not None
        ]
        for place in dropped.outs:
            state = self._forget(state, None, place)
        for key, found, shift in gained:
            state = _learn(state, key, tuple((a + shift, b + shift) for a, b in found))
        for place, to in dropped.constants:
            key = (place.space, to.space, place.begin - to.begin)
            state = _learn(state, key, ((to.begin, to.end),))
        return state

    def _written(self, effect: Effect, state: State) -> State:
        for out in effect.writes:
            if out not in self._before:
                continue
            after, before = self._after[out], self._before[out]
            key = (after.space, before.space, after.begin - before.begin)
            found: Spans = ((before.begin, before.end),)
            is_whole = out in effect.fills and out not in self._dynamic
            if not is_whole:  # items that it does not write stay equal
                found = meet(state.get(key, ()), found)
            state = _learn(self._forget(state, after, before), key, found)
            if out in effect.fills and not is_whole:
                state = _learn(state, _items(out), _ALL)
        return state

    def _forget(self, state: State, after: Place | None, before: Place) -> State:
        """The state without facts about bytes that are overwritten."""
        left = {}
        for key, known in state.items():
            space, old, distance = key
            spans = known
            if space[0] == "items":
                place = self._before[space[1]]
                if place.overlaps(before) or (after and place.overlaps(after)):
                    spans = ()
            if old == before.space:
                spans = cut(spans, before.begin, before.end)
            if after is not None and space == after.space:
                spans = cut(spans, after.begin - distance, after.end - distance)
            if spans:
                left[key] = spans
        return left

    def _state_after_run(self, states: Sequence[State], kept: State) -> State:
        """The state after a run, wherever it stopped."""
        left, last = kept, None
        for index, state in enumerate(states):
            if state is last and index not in self._writers:
                continue
            last = state
            left = {k: meet(spans, state.get(k, ())) for k, spans in left.items()}
            # The run may have stopped in the middle of this instruction.
            for out in self._writers.get(index, ()):
                left = self._forget(left, self._after[out], self._before[out])
        return {key: spans for key, spans in left.items() if spans}

    def _reads_same(self, states: Sequence[State]) -> bool:
        for index, effect in enumerate(self._flow.at):
            if index in self._dropped:
                continue
            if not self._holds_all((*effect.reads, *effect.moved), states[index]):
                return False
        return self._holds_all(self._flow.outputs, states[-1])

    def _holds_all(self, tensors: Iterable[int], state: State) -> bool:
        for index in tensors:
            if index not in self._near:
                continue
            after, before = self._after[index], self._before[index]
            if _items(index) in state:
                continue
            key = (after.space, before.space, after.begin - before.begin)
            wanted = ((before.begin, before.end),)
            if meet(state.get(key, ()), wanted) != wanted:
                return False
        return True


_ALL: Final[Spans] = ((0, 1),)


def _items(index: int) -> tuple[Space, Space, int]:
    """Key for the current items of a tensor that changes its sizes."""
    return (("items", index), ("items", index), 0)


def _learn(state: State, key: tuple[Space, Space, int], spans: Spans) -> State:
    if not spans:
        return state
    return {**state, key: join(state.get(key, ()), spans)}


def _common(one: State, other: State) -> State:
    if one is other:
        return one
    return {
        key: both
        for key, spans in one.items()
        if (both := meet(spans, other.get(key, ())))
    }
