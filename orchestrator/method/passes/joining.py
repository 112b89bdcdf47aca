"""Steps of passes that let one call do the work of two, each with its proof.

A pass knows what two calls compute together, and which call computes the same alone.
What is decided here is whether it may: whether the bytes that it then reads are there,
nothing else needed what is no longer written, and memory can be as the new call needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from orchestrator.core.dtype import ScalarType
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.aliases import shared_places
from orchestrator.method.passes.arguments import Arguments, UnknownCallError
from orchestrator.method.passes.dataflow import Dataflow, without
from orchestrator.method.passes.proof import Dropped, is_same
from orchestrator.method.places import Place, placed
from orchestrator.planner.blocks import aligned
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import Dynamism, TensorValue, Value

if TYPE_CHECKING:
    from orchestrator.method.passes.views import View

# Chosen by hand: each takes a proof over the whole method.
_MOST_PLACES: Final = 64
"""Places that are tried for a tensor."""

_MOST_CHANGED: Final = 80_000
"""Changes of a pass times instructions: each takes time for all of them. ResNet-152 has
150 at 500. What is left then stays as it is.
"""


def at_each_call(
    method: LinkedMethod, change: Callable[[Site], Site | None], *, grows: bool
) -> LinkedMethod:
    """The method after a change wherever there is one; what it leaves may change again.

    Args:
        method: The method.
        change: Takes a call; None, or an UnknownCallError, changes nothing.
        grows: Whether arenas may grow, as memory is planned afterwards.
    """
    site, spent = Site(method, Dataflow(method), 0, grows=grows), 0
    while site.number < len(method.instructions) and spent < _MOST_CHANGED:
        number, changed = site.number, None
        if isinstance(site.method.instructions[number], LinkedCall) and not site.is_dropped:
            with suppress(UnknownCallError):
                changed = change(site)
        if changed is None:
            site = site.at(number + 1)
            continue
        site = changed.at(number)
        spent += len(method.instructions)
        # The call before may now read what the dropped one read: it may change in turn.
        while site.number and site.is_dropped:
            site = site.at(site.number - 1)
    return without(site.method, site.flow.dropped)


@dataclass(frozen=True, slots=True)
class Site:
    """A call in a method that changes around it; what changes it makes another site.

    Args:
        method: The method; calls that are dropped are still in it.
        flow: Its dataflow, which says which these are.
        number: Of the call.
        grows: Whether arenas may grow, as memory is planned afterwards.
    """

    method: LinkedMethod
    flow: Dataflow
    number: int
    grows: bool

    @property
    def call(self) -> LinkedCall:
        """The call."""
        return self.method.call(self.number)

    @property
    def arguments(self) -> Arguments:
        """Its arguments."""
        return Arguments(self.method, self.call)

    @property
    def is_dropped(self) -> bool:
        """Whether the call does nothing any more."""
        return self.number in self.flow.dropped

    def at(self, number: int) -> Self:
        """Another instruction of the method."""
        return replace(self, number=number)

    def with_slots(self, *added: tuple[Value, Bytes | None]) -> tuple[Self, tuple[int, ...]]:
        """The site with more values, see `with_slots`; and their indices."""
        method, slots = with_slots(self.method, *added)
        return replace(self, method=method), slots

    def producer(self, tensor: int) -> Self | None:
        """The one call that wrote all of what this one reads from a tensor."""
        method, flow, places = self.method, self.flow, self.method.places
        where = places.get(tensor)
        if where is None or where.space[0] != "arena" or tensor in flow.moved:
            return None
        writers = flow.writers(self.number, where, places)
        if writers is None or len(writers) != 1:
            return None
        ((index, written),) = writers
        is_whole = places[written] == where and written in flow.at[index].fills
        if (
            not isinstance(method.instructions[index], LinkedCall)
            or not is_whole
            or written in flow.moved
            or getattr(method.values[written], "is_dynamic", True)
        ):
            return None
        return self.at(index)

    def has_one_user(self, tensor: int) -> bool:
        """Whether calls have a value as an argument once in all."""
        calls = (i for i in self.method.instructions if isinstance(i, LinkedCall))
        return sum(call.args.count(tensor) for call in calls) == 1

    def reads_earlier(self, firsts: tuple[int, ...], call: LinkedCall, tensor: int) -> Self | None:
        """The site without some calls, where it reads what the first of them reads.

        Args:
            firsts: Earlier calls, in order. Each but the first one reads what others wrote.
            call: Takes the place of this one, which computes the same from what they
                wrote. It may write over `tensor` where `in_place` says so.
            tensor: A tensor that the first call reads.

        Returns:
            None unless all paths to the call lead through the others, `tensor` has the same
            items all the time, and nothing else reads what the calls wrote. The tensor
            may get another place in the arena.
        """
        end, first, site = dict(self.method.ends), firsts[0], self
        if self.flow.is_open or tensor in self.flow.moved or not self._follows(first):
            return None
        is_aside = not self.is_kept(first, call, tensor)
        if is_aside:
            aside = self.at(first).set_aside(tensor)
            if aside is None and self.grows:
                aside = self._results_aside(tensor)
            if aside is None:
                return None
            site = aside.at(self.number)
            if not site.is_kept(first, call, tensor):
                return None
        site = changed = site.with_call(call)
        places = site.method.places
        for number in reversed(firsts):
            outs = tuple(places[out] for out in site.flow.at[number].writes if out in places)
            if not is_same(site.method, site.flow, {}, {number: Dropped(outs=outs)}):
                return None
            site.flow.drop(number)
        inside = site.within(tensor, end) if is_aside else changed
        return changed if inside is None and self.grows else inside

    def writes_later(self, last: int, call: LinkedCall, view: View) -> Self | None:
        """The site without a later call, where this one writes what that one wrote.

        Args:
            last: A call that computes its output from what this one writes alone.
            call: Takes the place of this one, and writes the same tensors. What it writes
                to the tensor that `last` read is what `last` would have written.
            view: How items of that tensor and of the output of `last` correspond.

        Returns:
            None if anything else reads what this call wrote, or if the output of `last`
            cannot lie where it writes.
        """
        if self.flow.is_open or not self._is_only_reader(last, view.source):
            return None
        return self.with_call(call).at(last).without_copy(view)

    def without_copy(self, view: View) -> Self | None:
        """The site without its call, which only copies; None if it cannot do without."""
        places = shared_places(self.method, self.flow, self.number, (view,), grows=self.grows)
        if places is None:
            return None
        site = self._at_places(places)
        site.flow.drop(self.number)
        return site

    def with_call(self, call: LinkedCall) -> Self:
        """The site with another call, and a dataflow of its own."""
        method, flow = with_call(self.method, self.number, call), self.flow.copy()
        flow.replace(method, self.number)
        return replace(self, method=method, flow=flow)

    def _at_places(self, changed: Mapping[int, Value]) -> Self:
        """The site with tensors at other places, and a dataflow of its own."""
        method, flow = self.method.with_values(changed), self.flow.copy()
        flow.move({tensor: method.places[tensor] for tensor in changed})
        return replace(self, method=method, flow=flow)

    def _follows(self, first: int) -> bool:
        """Whether this call always follows another, through all instructions in between."""
        at, last = self.flow.at, self.number
        if not first < last:
            return False
        # No jump leaves the range, and none enters it but at its beginning.
        return all(at[i].next == (i + 1,) for i in range(first, last)) and not any(
            first < following <= last and following != index + 1
            for index, effect in enumerate(at)
            for following in effect.next
        )

    def is_kept(self, first: int, call: LinkedCall, tensor: int) -> bool:
        """Whether nothing overwrites a tensor from an instruction on until a call has read it."""
        places = self.method.places
        where = places[tensor]
        written = {w for i in range(first, self.number) for w in self.flow.at[i].writes}
        if all(call.args[at] == tensor for at in call.in_place) and call.in_place:
            outs = [w for w in call.outs if w in places and places[w] != where]
        else:
            outs = [*call.outs]
        return not any(_is_at(places, w, where) for w in (*written, *outs))

    def _is_only_reader(self, last: int, tensor: int) -> bool:
        """Whether another call reads what this one writes to a tensor, and nothing else does.

        Then nothing else changes if the other does not read it, and this one does not write it.
        """
        places, flow = self.method.places, self.flow.copy()
        where = places[tensor]
        reads = tuple(r for r in flow.at[last].reads if not _is_at(places, r, where))
        flow.at[last] = replace(flow.at[last], reads=reads)
        return is_same(self.method, flow, {}, {self.number: Dropped(outs=(where,))})

    def set_aside(self, tensor: int) -> Self | None:
        """The site with what the instruction reads behind everything else."""
        where = self.method.places[tensor]
        if where.space[0] != "arena":
            return None
        return self._moved(
            self._sharers(tensor), tensor, self.method.behind(where.space, where.begin)
        )

    def _results_aside(self, tensor: int) -> Self | None:
        """The site with what the call writes behind everything else.

        Args:
            tensor: What it must not write over; an input, for one, cannot be moved.
        """
        places = self.method.places
        outs = [o for o in self.flow.at[self.number].writes if _is_at(places, o, places[tensor])]
        if len(outs) != 1 or places[outs[0]].space[0] != "arena":
            return None
        (out,) = outs
        followers = self.flow.followers(self.number, places[out], places)
        return self._moved({out, *followers}, out, self.method.behind(places[out].space))

    def within(self, tensor: int, ends: dict[tuple[str, int], int]) -> Self | None:
        """The site with what the call reads inside the arena as it was."""
        places = self.method.places
        where = places[tensor]
        size = where.end - where.begin
        found = {0, *(p.end for p in places.values() if p.space == where.space)}
        begins = sorted({*map(aligned, found)})
        # Ends of tensors, aligned: the lowest places come first, as planners put them.
        fitting = [at for at in begins if at + size <= ends[where.space]]
        sharers = self._sharers(tensor)
        moved = (self._moved(sharers, tensor, at) for at in fitting[:_MOST_PLACES])
        return next((site for site in moved if site is not None), None)

    def _sharers(self, tensor: int) -> set[int]:
        """Tensors that share the bytes of one that the call reads; none if it cannot move."""
        places = self.method.places
        return self.flow.sharers(self.number, places[tensor], places) or set()

    def _moved(self, sharers: set[int], tensor: int, begin: int) -> Self | None:
        """The site with a tensor, and what shares its bytes, at another offset, if proved."""
        method, places = self.method, self.method.places
        space = places[tensor].space
        changed: dict[int, Value] = {}
        for index in sorted({tensor, *sharers}) if sharers and space[1] != SHARED_ID else ():
            offset = places[index].begin - places[tensor].begin + begin
            changed[index] = placed(method.values[index], space[1], offset)
        if not changed or not is_same(method, self.flow, changed, {}):
            return None
        return self._at_places(changed)


def _is_at(places: dict[int, Place], tensor: int, where: Place) -> bool:
    return tensor in places and places[tensor].overlaps(where)


def with_call(method: LinkedMethod, number: int, call: LinkedCall) -> LinkedMethod:
    """The method with another call in place of one."""
    instructions = [*method.instructions]
    instructions[number] = call
    return method.with_instructions(tuple(instructions))


def constant_of(dtype: ScalarType, size: int) -> TensorValue:
    """A constant tensor of one dimension."""
    return TensorValue(
        dtype=dtype,
        sizes=(size,),
        dim_order=(0,),
        dynamism=Dynamism.STATIC,
        data_buffer_index=1,
        allocation=None,
        extra=None,
        requires_grad=False,
    )


def with_slots(
    method: LinkedMethod, *added: tuple[Value, Bytes | None]
) -> tuple[LinkedMethod, tuple[int, ...]]:
    """The method with more values, constants with their bytes; and their indices."""
    first = len(method.values)
    indices = tuple(range(first, first + len(added)))
    values = {first + i: value for i, (value, _) in enumerate(added)}
    data = {first + i: items for i, (_, items) in enumerate(added) if items is not None}
    return method.with_values(values, data), indices
