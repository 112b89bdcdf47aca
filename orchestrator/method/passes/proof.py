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

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from orchestrator.method.effects import Effect
from orchestrator.method.linked import LinkedMethod
from orchestrator.method.places import Place, Space, place_of
from orchestrator.method.sets import Spans, cut, join, meet, touches
from orchestrator.program.values import TensorValue, Value

if TYPE_CHECKING:
    from orchestrator.method.passes.dataflow import Dataflow

State: TypeAlias = "dict[tuple[Space, Space, int], Spans]"
"""By space after, space before and distance: offsets whose bytes are equal in both."""


_MOST_STEPS: Final = 20_000
"""Steps that the proofs of a pass may take: under a second. Models have at most 12 for
each call; thousands of calls that take apart what one call joins have its square.
"""
# For methods of more than a thousand calls: somewhat more than the 12 that models have.
_STEPS_PER_CALL: Final = 20
_LOOKS_PER_STEP: Final = 16
"""Instructions and tensors of them that are looked at in the time of a step."""


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
    return (
        flow.steps < max(_MOST_STEPS, _STEPS_PER_CALL * len(flow.at))
        and _Proof(method, flow, changed, dropped, shared).holds()
    )


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
        moved = ((index, place_of(value, index)) for index, value in changed.items())
        self._moved = {i: p for i, p in moved if p is not None}
        self._affected = sorted(
            {*dropped, *(at for index in changed for at in flow.touching(index))}
        )
        looks = sum(1 + len(flow.at[index].touches) for index in self._affected)
        flow.steps += looks // _LOOKS_PER_STEP
        self._window = self._spans_of_change()
        self._near: dict[int, bool] = {}
        self._writers = {
            index: outs
            for index in self._affected
            if index not in dropped
            and (outs := tuple(o for o in flow.at[index].writes if o in changed))
        }
        self._whole = self._identity()

    def _spans_of_change(self) -> dict[Space, Spans]:
        """By space: bytes that the change affects."""
        window = [p for d in self._dropped.values() for p in d.outs]
        for index in self._changed:
            window += [self._before[index], self._after(index)]
        found: dict[Space, list[tuple[int, int]]] = {}
        for place in window:
            found.setdefault(place.space, []).append((place.begin, place.end))
        return {space: join(tuple(spans), ()) for space, spans in found.items()}

    def _after(self, index: int) -> Place:
        """The place of a tensor after the change."""
        return self._moved.get(index) or self._before[index]

    def _is_near(self, index: int) -> bool:
        """Whether the change affects a tensor."""
        known = self._near.get(index)
        if known is None:
            place = self._before.get(index)
            known = place is not None and (
                index in self._changed
                or touches(self._window.get(place.space, ()), place.begin, place.end)
            )
            self._near[index] = known
        return known

    def _is_dynamic(self, index: int) -> bool:
        """Whether a call writes only as many items as the tensor has at that time."""
        value = self._method.values[index]
        return (
            isinstance(value, TensorValue)
            and value.is_dynamic
            and index in self._before
            and index not in self._flow.moved
        )

    def holds(self) -> bool:
        if self._flow.is_open or not self._may_change() or not self._is_apart():
            return False
        # What a run leaves is what the next one begins with: facts that a run loses are lost for
        # all, until no more are.
        kept = self._whole
        while True:
            states = self._states(kept)
            left = self._state_after_run(states, kept)
            if left == kept:
                return self._keeps_state(kept) and self._reads_same(states)
            kept = left

    def _keeps_state(self, kept: State) -> bool:
        """Whether a run leaves state as it was: other methods may read it."""
        return all(
            meet(kept.get((place.space, place.space, 0), ()), wanted) == wanted
            for index in self._flow.state
            if (place := self._before.get(index)) and self._is_near(index)
            for wanted in [((place.begin, place.end),)]
        )

    def _may_change(self) -> bool:
        """Whether the places of changed tensors depend on nothing else."""
        received, returned = self._method.received, self._method.returned
        written = {out for outs in self._writers.values() for out in outs}
        for index, value in self._changed.items():
            tensor = self._method.values[index]
            if (
                not isinstance(tensor, TensorValue)
                or tensor.is_dynamic
                or tensor.is_state
                or tensor.allocation is None
                or index in self._flow.moved
                or index in received
            ):
                return False
            # A constant has no address that the caller could write through, and no call may write
            # it.
            is_constant = isinstance(value, TensorValue) and value.allocation is None
            if is_constant and (index in returned or index in written):
                return False
        return True

    def _is_apart(self) -> bool:
        """Whether each call's outputs overlap the same tensors as before.

        What a kernel reads after it began to write depends on that. An output of the
        method must not overlap an input either, which the caller may write
        while it reads the output.
        """
        outputs, inputs = self._method.returned, self._method.received
        changed = outputs & self._changed.keys()  # no input is
        ports = {(o, i) for o in changed for i in inputs} - self._flow.overlaps
        pairs: set[tuple[int, int]] = set()
        for index in self._affected:
            if index not in self._dropped:
                effect = self._flow.at[index]
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
            if one in self._before and other in self._before
        )

    def _overlaps_after(self, one: int, other: int) -> bool:
        return self._after(one).overlaps(self._after(other))

    def _is_shared(self, index: int, out: int, given: int) -> bool:
        return (index, out, given) in self._shared and self._after(out) == self._after(given)

    def _keeps(self, one: int, other: int) -> bool:
        changed = self._changed
        if one == other or (one not in changed and other not in changed):
            return True
        after, beside = self._after(one), self._after(other)
        before, was = self._before[one], self._before[other]
        if not self._overlaps_after(one, other):
            return not before.overlaps(was)
        return before.overlaps(was) and before.begin - was.begin == after.begin - beside.begin

    def _identity(self) -> State:
        """The state in which every byte of every arena is the same."""
        ends = dict(self._method.ends)
        for place in self._moved.values():
            ends[place.space] = max(ends.get(place.space, 0), place.end)
        # Constants need no facts: nothing writes them.
        return {(s, s, 0): ((0, end),) for s, end in ends.items() if s[0] == "arena"}

    def _states(self, kept: State) -> Mapping[int, State]:
        """The states before instructions that see a difference, and at the end."""
        walk = self._along_line if self._flow.is_straight else self._along_all_paths
        return walk(self._entry(kept))

    def _along_line(self, state: State) -> Mapping[int, State]:
        """The states of a method without jumps.

        An instruction that the change does not affect matters only if it touches bytes
        that differ, or a fact beyond "all is the same": time goes by the length of the
        difference, not of the method.
        """
        end, found, index = len(self._flow.at), dict[int, State](), 0
        while index < end:
            following = bisect_left(self._affected, index)
            if following < len(self._affected):
                next_affected = self._affected[following]
            else:
                next_affected = end
                state = self._without_moves(state)
            if next_affected > index:
                used = self._flow.next_user(self._open_spans(state), index)
                index = min(used, next_affected)
            if index < end:
                found[index] = state
                state = self._step(index, state)
                index += 1
        found[end] = state
        return found

    def _without_moves(self, state: State) -> State:
        """The state without facts that only readers of changed tensors need."""
        if len(state) == len(self._whole) or not self._changed.keys().isdisjoint(
            self._flow.outputs
        ):
            return state
        return {k: v for k, v in state.items() if k in self._whole or k[0][0] == _ITEMS}

    def _open_spans(self, state: State) -> dict[Space, Spans]:
        """By space: bytes that are not known to be the same, or are in another fact."""
        found: dict[Space, Spans] = {}

        def add(space: Space, spans: Spans) -> None:
            if spans:
                found[space] = join(found.get(space, ()), spans)

        for key, whole in self._whole.items():
            known = state.get(key, ())
            if known != whole:
                for begin, limit in known:
                    whole = cut(whole, begin, limit)  # noqa: PLW2901  # what is left
                add(key[0], whole)
        for key, spans in state.items():
            after, before, distance = key
            if after[0] == _ITEMS:
                place = self._before[after[1]]
                add(place.space, ((place.begin, place.end),))
            elif key not in self._whole:
                add(before, spans)
                add(after, tuple((a + distance, b + distance) for a, b in spans))
        return found

    def _along_all_paths(self, entry: State) -> Mapping[int, State]:
        """The states of any method."""
        effects = self._flow.at
        # What touches nothing of the change keeps every fact.
        near = [any(map(self._is_near, effect.touches)) for effect in effects]
        states = {0: entry}
        again = True
        while again:
            again = False
            for index, effect in enumerate(effects):
                if index not in states:  # nothing leads there, or only from behind
                    continue
                after = states[index]
                if near[index]:
                    after = self._step(index, after)
                for following in effect.next:
                    known = states.get(following)
                    new = after if known is None else _common(known, after)
                    if new != known:
                        states[following] = new
                        # A jump back: what comes before has to be looked at once more.
                        again = again or following <= index
        return dict(sorted(states.items()))

    def _entry(self, kept: State) -> State:
        """The state after the caller has written the inputs."""
        for index in sorted(self._method.received):
            place = self._before.get(index)
            if self._is_dynamic(index):
                kept = _learn(kept, _items(index), _ALL)
            elif place is not None and index not in self._flow.moved:
                key = (place.space, place.space, 0)
                kept = _learn(kept, key, ((place.begin, place.end),))
        return kept

    def _step(self, index: int, state: State) -> State:
        """The state after an instruction."""
        self._flow.steps += 1
        dropped = self._dropped.get(index)
        if dropped is None:
            return self._written(self._flow.at[index], state)
        # A copy reads before it writes: what it gains is looked up before its output is forgotten.
        gained = [
            ((space, to.space, distance + here.begin - to.begin), found, shift)
            for here, to in dropped.copies
            for (space, old, distance), spans in state.items()
            if old == here.space
            and (found := meet(spans, ((here.begin, here.end),)))
            and (shift := to.begin - here.begin) is not None
        ]
        for place in dropped.outs:
            # After the change nothing is written there: only facts about the memory before are
            # lost.
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
            after, before = self._after(out), self._before[out]
            key = (after.space, before.space, after.begin - before.begin)
            found: Spans = ((before.begin, before.end),)
            is_whole = out in effect.fills and not self._is_dynamic(out)
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
            if space[0] == _ITEMS:
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

    def _state_after_run(self, states: Mapping[int, State], kept: State) -> State:
        """The state after a run, wherever it stopped."""
        left, last = kept, None
        for index, state in states.items():
            if state is last and index not in self._writers:
                continue
            last = state
            left = {k: meet(spans, state.get(k, ())) for k, spans in left.items()}
            # The run may have stopped in the middle of this instruction.
            for out in self._writers.get(index, ()):
                left = self._forget(left, self._after(out), self._before[out])
        return {key: spans for key, spans in left.items() if spans}

    def _reads_same(self, states: Mapping[int, State]) -> bool:
        end = len(self._flow.at)
        # No path leads to the end, so there are no outputs to compare.
        if end not in states:
            return False
        for index, state in states.items():
            if index in self._dropped or index == end:
                continue
            effect = self._flow.at[index]
            if not self._holds_all((*effect.reads, *effect.moved), state):
                return False
        outputs = self._flow.near_outputs(self._window)
        return self._holds_all(outputs, states[end])

    def _holds_all(self, tensors: Iterable[int], state: State) -> bool:
        for index in tensors:
            if not self._is_near(index):
                continue
            after, before = self._after(index), self._before[index]
            if _items(index) in state:
                continue
            key = (after.space, before.space, after.begin - before.begin)
            wanted = ((before.begin, before.end),)
            if meet(state.get(key, ()), wanted) != wanted:
                return False
        return True


_ITEMS: Final = "items"
_ALL: Final[Spans] = ((0, 1),)


def _items(index: int) -> tuple[Space, Space, int]:
    """Key for the current items of a tensor that changes its sizes."""
    return ((_ITEMS, index), (_ITEMS, index), 0)


def _learn(state: State, key: tuple[Space, Space, int], spans: Spans) -> State:
    if not spans:
        return state
    return {**state, key: join(state.get(key, ()), spans)}


def _common(one: State, other: State) -> State:
    if one is other:
        return one
    return {key: both for key, spans in one.items() if (both := meet(spans, other.get(key, ())))}
