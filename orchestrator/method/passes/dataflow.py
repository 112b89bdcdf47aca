"""The readers of what an instruction writes, and the writers of what it reads."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import islice
from operator import itemgetter
from typing import Self

from orchestrator.method.effects import Effect, effect_of_call, effects_of_linked
from orchestrator.method.linked import INDEX_LISTS, LinkedCall, LinkedInstruction, LinkedMethod
from orchestrator.method.places import Place, Space
from orchestrator.method.sets import Spans, touches
from orchestrator.program.program import JumpFalseCall, MoveCall
from orchestrator.program.values import Value


class Dataflow:
    """The effects of a linked method while a pass changes it.

    Instructions keep their numbers: what a pass drops is a no-op until it is done.

    Args:
        method: The method.

    Attributes:
        at: Effect of every instruction.
        outputs: Tensors whose items the method returns.
        moved: Values that moves read or write, with their memory.
        replaced: Values that moves write: their memory is another one then.
        overlaps: Outputs and inputs of the method that overlap.
        state: Tensors whose bytes outlive a run.
        is_open: A call writes to memory that a move chooses: nothing may change.
        is_straight: Every instruction follows the one before it.
        steps: Of all proofs about it so far; their number is bounded.
    """

    def __init__(self, method: LinkedMethod) -> None:
        moves = [i for i in method.instructions if isinstance(i, MoveCall)]
        effects = effects_of_linked(method)
        self.at = [*effects.at]
        self.outputs = (*effects.outputs, *effects.moved)
        self.moved = {v for move in moves for v in (move.source, move.target)}
        self.replaced = {move.target for move in moves}
        places = method.places
        self.overlaps = frozenset(
            (o, i)
            for o in method.returned
            for i in method.received
            if o in places and i in places and places[o].overlaps(places[i])
        )
        self.state = method.state
        self.is_open = not effects.is_known
        self.steps = 0
        jumps = [i for i, e in enumerate(self.at) if e.next != (i + 1,)]
        self.is_straight = not jumps
        # Up to the next jump, the users of a place are found by its index; behind it there are
        # several ways.
        self._stops = [*jumps, len(self.at)]
        self._after: dict[int, int] = {}  # instructions that were dropped
        # What is dropped or replaced later leaves its entries behind.
        self._touching: dict[int, list[int]] = {}
        self._previous: dict[int, list[int]] = {}
        for index, effect in enumerate(self.at):
            for tensor in effect.touches:
                self._touching.setdefault(tensor, []).append(index)
            for following in effect.next:
                self._previous.setdefault(following, []).append(index)
        # Instructions that touch a tensor at a place, once for each such tensor.
        self._users = _Users()
        self._writers = _Users()
        self._returned = _Users()  # outputs in the place of instructions
        self._is_returned = {*self.outputs}
        self._places: dict[int, Place] = {}
        known = self._touching.keys() | self._is_returned
        self.move({t: places[t] for t in known if t in places})

    def copy(self) -> Self:
        """A copy with drops of its own."""
        new = copy(self)
        new.at = [*self.at]
        new._users = self._users.copy()  # noqa: SLF001  # its own
        new._writers = self._writers.copy()  # noqa: SLF001
        new._returned = self._returned.copy()  # noqa: SLF001
        new._places = {**self._places}  # noqa: SLF001
        new._after = {**self._after}  # noqa: SLF001
        new._touching = {**self._touching}  # noqa: SLF001
        return new

    @property
    def dropped(self) -> Collection[int]:
        """Instructions that are dropped."""
        return self._after.keys()

    def touching(self, tensor: int) -> list[int]:
        """Instructions that touch a tensor, and those that did and are dropped."""
        return self._touching.get(tensor, [])

    def move(self, places: Mapping[int, Place]) -> None:
        """Note new places of tensors; of constants, which nothing writes, none."""
        for tensor, place in places.items():
            if place.space[0] != "arena":
                continue
            was = self._places.get(tensor)
            for index in self.touching(tensor):
                for users in self._kept_in(index, tensor):
                    users.forget(index, was)
                    users.add(index, place)
            if tensor in self._is_returned:
                self._returned.forget(tensor, was)
                self._returned.add(tensor, place)
            self._places[tensor] = place

    def _kept_in(self, index: int, tensor: int) -> Iterator[_Users]:
        """Where it is noted that an instruction touches a tensor."""
        effect = self.at[index]
        if tensor in effect.touches:
            yield self._users
        if tensor in effect.writes:
            yield self._writers

    def next_user(self, spans: Mapping[Space, Spans], start: int) -> int:
        """The first instruction from `start` on that touches bytes of arenas."""
        first = len(self.at)
        for users in self._users.touching(spans):
            at = bisect_left(users, start)
            if at < len(users):
                first = min(first, users[at])
        return first

    def near_outputs(self, spans: Mapping[Space, Spans]) -> set[int]:
        """Outputs that touch bytes of arenas, and those that are not in arenas."""
        elsewhere = self._is_returned - self._places.keys()
        return elsewhere.union(*self._returned.touching(spans))

    def drop(self, index: int) -> None:
        """Treat an instruction as a no-op."""
        for tensor in self.at[index].touches:
            for users in self._kept_in(index, tensor):
                users.forget(index, self._places.get(tensor))
        self.at[index] = Effect(next=(index + 1,))
        self._after[index] = index + 1

    def replace(self, method: LinkedMethod, index: int) -> None:
        """Note another call in place of one that is not dropped.

        Args:
            method: The method with the other call.
            index: Of the call.
        """
        self.drop(index)
        # `drop` takes the entries of the old call away; the number stays in use.
        del self._after[index]
        self.at[index] = effect = effect_of_call(method, index)
        self.is_open = self.is_open or not self.replaced.isdisjoint(effect.writes)
        for tensor in effect.touches:
            self._touching[tensor] = sorted({*self.touching(tensor), index})
            place = method.places.get(tensor)
            if place is not None and place.space[0] == "arena":
                self._places[tensor] = place
                for users in self._kept_in(index, tensor):
                    users.add(index, place)

    def _kept(self, index: int) -> int:
        """The instruction, or the first one after it that is not dropped."""
        after = self._after
        while (following := after.get(index)) is not None:
            after[index] = index = after.get(following, following)
        return index

    def followers(self, start: int, where: Place, places: Mapping[int, Place]) -> set[int]:
        """Tensors through which bytes that an instruction wrote are read.

        Args:
            start: Index of the instruction.
            where: Where it wrote.
            places: Places of all tensors that have bytes.
        """
        ahead = self._ahead(self.at[start].next, where, places)
        return {v for shown in ahead for v in shown}

    def sharers(self, start: int, where: Place, places: Mapping[int, Place]) -> set[int] | None:
        """Tensors through which bytes that an instruction reads were written, or are read.

        None if some may be from before the run. Arguments are those of `writers`.
        """
        writers = self.writers(start, where, places)
        if writers is None:
            return None
        shown = (self.followers(index, places[tensor], places) for index, tensor in writers)
        return {tensor for _, tensor in writers}.union(*shown)

    def input_followers(self, where: Place, places: Mapping[int, Place]) -> set[int]:
        """Tensors through which bytes from before the run are read."""
        return {v for shown in self._ahead((0,), where, places) for v in shown}

    def is_read(self, start: int, where: Place, places: Mapping[int, Place]) -> bool:
        """Whether `followers` has any."""
        return any(self._ahead(self.at[start].next, where, places))

    def _ahead(
        self, first: Iterable[int], where: Place, places: Mapping[int, Place]
    ) -> Iterator[set[int]]:
        """Followers, by instruction, until the bytes are overwritten."""
        seen: set[int] = set()
        ahead = [*first]
        while ahead:
            index = self._kept(ahead.pop())
            if where.space[0] == "arena":
                stop = self._stops[bisect_left(self._stops, index)]
                index = self._users.next(where, index, stop)
            if index in seen:
                continue
            seen.add(index)
            if index == len(self.at):
                here = {where.space: ((where.begin, where.end),)}
                yield _near(self.near_outputs(here), where, places)
                continue
            effect = self.at[index]
            # A partial write does not end it: some bytes remain.
            shown = (*effect.reads, *effect.updates, *effect.moved)
            yield _near(shown, where, places)
            if not _near(effect.fills, where, places):
                ahead += effect.next

    def writers(
        self, start: int, where: Place, places: Mapping[int, Place]
    ) -> set[tuple[int, int]] | None:
        """(instruction, tensor) pairs that have written what an instruction reads.

        Args:
            start: Index of the instruction.
            where: Where it reads.
            places: Places of all tensors that have bytes.

        Returns:
            None if some bytes may be from before the run.
        """
        found: set[tuple[int, int]] = set()
        seen: set[int] = set()
        behind = [start]
        while behind:
            index = behind.pop()
            # Without jumps, the last writer before is found by its index, not step by step.
            if self.is_straight and where.space[0] == "arena":
                index = self._writers.last(where, index) + 1
            # The walk came to the beginning of the run with bytes that nothing had written.
            if index == 0:
                return None
            for last in self._previous.get(index, ()):
                effect = self.at[last]
                found |= {(last, w) for w in _near(effect.writes, where, places)}
                if not _near(effect.fills, where, places) and last not in seen:
                    seen.add(last)
                    behind.append(last)
        return found


class _Users:
    """Instructions by place, in order, and the places near another."""

    def __init__(self) -> None:
        self._at: dict[Place, list[int]] = {}
        # By space, and by the size as a power of two: where places begin, and they.
        self._begins: dict[tuple[Space, int], list[tuple[int, int]]] = {}

    def copy(self) -> _Users:
        """One that can change on its own."""
        new = _Users()
        new._at = {place: [*users] for place, users in self._at.items()}
        new._begins = {key: [*found] for key, found in self._begins.items()}
        return new

    def add(self, index: int, place: Place) -> None:
        """Note an instruction at a place."""
        if place not in self._at:
            insort(self._row(place), (place.begin, place.end))
        insort(self._at.setdefault(place, []), index)

    def forget(self, index: int, place: Place | None) -> None:
        """Note an instruction less at a place."""
        users = self._at.get(place, []) if place else []
        at = bisect_left(users, index)
        if users[at : at + 1] == [index]:
            del users[at]
            if place and not users:
                del self._at[place]
                self._row(place).remove((place.begin, place.end))

    def _row(self, place: Place) -> list[tuple[int, int]]:
        size = (place.end - place.begin).bit_length()
        return self._begins.setdefault((place.space, size), [])

    def near(self, where: Place) -> Iterator[tuple[Place, list[int]]]:
        """Places that overlap one, with their instructions."""
        for (space, size), row in self._begins.items():
            if space != where.space:
                continue
            # Places of a row have less than 1 << size bytes: none that begins before that reaches
            # this far.
            first = bisect_left(row, (where.begin - (1 << size), 0))
            for begin, end in islice(row, first, bisect_left(row, (where.end, 0))):
                if end > where.begin:
                    place = Place(space, begin, end)
                    yield place, self._at[place]

    def touching(self, spans: Mapping[Space, Spans]) -> Iterator[list[int]]:
        """Instructions at each place that touches bytes."""
        for space, wanted in spans.items():
            for place, users in self.near(Place(space, wanted[0][0], wanted[-1][1])):
                if touches(wanted, place.begin, place.end):
                    yield users

    def next(self, where: Place, start: int, end: int) -> int:
        """The first instruction from `start` on at such a place, or `end`."""
        found = ((users, bisect_left(users, start)) for _, users in self.near(where))
        return min((u[at] for u, at in found if at < len(u) and u[at] < end), default=end)

    def last(self, where: Place, end: int) -> int:
        """The last instruction before `end` at such a place, or -1."""
        found = ((users, bisect_left(users, end)) for _, users in self.near(where))
        return max((u[at - 1] for u, at in found if at), default=-1)


def _near(tensors: Iterable[int], where: Place, places: Mapping[int, Place]) -> set[int]:
    """Tensors that overlap a place."""
    return {v for v in tensors if v in places and places[v].overlaps(where)}


# Edits of a linked method: remove instructions, renumber values.


def without(method: LinkedMethod, dropped: Collection[int]) -> LinkedMethod:
    """Remove instructions; jumps to one go to the next that remains.

    Unchanged instructions stay the same objects, and so does an unchanged method.
    """
    if not dropped:
        return method
    kept = [i for i in range(len(method.instructions)) if i not in dropped]
    new_index, new = [], 0
    for index in range(len(method.instructions) + 1):
        new_index.append(new)
        new += index not in dropped

    def moved(instruction: LinkedInstruction) -> LinkedInstruction:
        if not isinstance(instruction, JumpFalseCall):
            return instruction
        new = new_index[instruction.destination]
        same = new == instruction.destination
        return instruction if same else replace(instruction, destination=new)

    return replace(
        method,
        instructions=tuple(moved(method.instructions[i]) for i in kept),
        origins=tuple(method.origins[i] for i in kept),
    )


def renumbered(method: LinkedMethod, new_index: Mapping[int, int]) -> LinkedMethod:
    """The method with other value indices in use; the slots keep their positions.

    Unchanged values and instructions stay the same objects, and so does an unchanged
    method.
    """
    if all(old == new for old, new in new_index.items()):
        return method

    def new(*indices: int) -> tuple[int, ...]:
        return tuple(map(new_index.get, indices, indices))

    def of_value(value: Value) -> Value:
        if isinstance(value, INDEX_LISTS):
            items = new(*value.items)
            return value if items == value.items else type(value)(items)
        return value

    def of_instruction(instruction: LinkedInstruction) -> LinkedInstruction:
        match instruction:
            case LinkedCall(args=args, outs=outs):
                changed: LinkedInstruction = replace(instruction, args=new(*args), outs=new(*outs))
            case MoveCall(source=source, target=target):
                source, target = new(source, target)
                changed = MoveCall(source=source, target=target)
            case JumpFalseCall(condition=condition):
                changed = replace(instruction, condition=new(condition)[0])
        return instruction if changed == instruction else changed

    return replace(
        method,
        values=tuple(map(of_value, method.values)),
        instructions=tuple(map(of_instruction, method.instructions)),
        inputs=new(*method.inputs),
        outputs=new(*method.outputs),
    )


def with_slots_of(method: LinkedMethod, order: Sequence[int]) -> LinkedMethod:
    """The method with some of its values, all that are used, in this order."""
    new_index = {old: new for new, old in enumerate(order)}
    moved = renumbered(method, new_index)
    data = ((new_index[i], items) for i, items in method.data if i in new_index)
    return replace(
        moved,
        values=tuple(moved.values[old] for old in order),
        data=tuple(sorted(data, key=itemgetter(0))),
    )
