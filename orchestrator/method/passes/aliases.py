"""Remove copies whose two sides can share memory.

A copy is removed if its output can take the place of its input, or if the producer of
its input can write to the output's place; or if both can have a place of their own,
where memory is planned afterwards. Candidates come from following the bytes; `is_same`
decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Final, TypeAlias

from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.context import Context
from orchestrator.method.passes.dataflow import Dataflow, without
from orchestrator.method.passes.proof import Dropped, is_same
from orchestrator.method.passes.views import View, views_of
from orchestrator.method.places import Place, Space, placed
from orchestrator.method.sets import join, touches
from orchestrator.planner.blocks import aligned
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import Value

Candidate: TypeAlias = "dict[int, Value]"
# Kernels with DSP instructions load words, also of tensors whose items are bytes.
_WORD_BYTES: Final = 4


def alias_copies(method: LinkedMethod, context: Context) -> LinkedMethod:
    """Remove copies whose two sides can share memory.

    Arenas keep their sizes: tensors move only to places in the plan, unless memory is
    planned afterwards. The planner then finds the room of the copies again.
    """
    flow, written = Dataflow(method), method.written
    # A copy that is gone may have been what kept another one.
    again = True
    while again:
        again = False
        for index, call in enumerate(method.instructions):
            if index in flow.dropped or not isinstance(call, LinkedCall):
                continue
            views = views_of(method, call, written)
            if views is None:
                continue
            changed = shared_places(method, flow, index, views, grows=context.plans)
            if changed is not None:
                method = method.with_values(changed)
                flow.drop(index)
                flow.move({tensor: method.places[tensor] for tensor in changed})
                again = True
    return without(method, flow.dropped)


def shared_places(
    method: LinkedMethod,
    flow: Dataflow,
    index: int,
    views: tuple[View, ...],
    *,
    grows: bool = False,
) -> Candidate | None:
    """New places of tensors with which a call that copies does nothing, or None.

    Args:
        method: The method.
        flow: Its dataflow.
        index: Of the call.
        views: What it copies.
        grows: Whether arenas may grow.
    """
    return _Sides(method, flow, index, views, grows).share()


@dataclass(frozen=True, slots=True)
class _Sides:
    """The two sides of the copies that one call makes."""

    _method: LinkedMethod
    _flow: Dataflow
    _index: int
    _views: tuple[View, ...]
    _grows: bool
    _sides: list[tuple[Place, Place]] = field(default_factory=list)

    @property
    def _places(self) -> Mapping[int, Place]:
        return self._method.places

    def share(self) -> Candidate | None:
        """Tensors with new places that make the call unnecessary, or None."""
        places = self._places
        for view in self._views:
            if not self._flow.replaced.isdisjoint((view.source, view.target)):
                return None  # what lies at its place in the plan is something else
            source, target = places.get(view.source), places.get(view.target)
            if source is None or target is None or not view.is_block:
                return None
            item = self._method.tensor(view.source).dtype.item_bytes
            size = prod(view.sizes) * item
            here = source.part(view.first_read * item, size)
            to = target.part(view.first_written * item, size)
            self._sides.append((here, to))
        dropped = Dropped(outs=tuple(to for _, to in self._sides), copies=tuple(self._sides))
        for changed in self._candidates():
            if changed is not None and is_same(
                self._method, self._flow, changed, {self._index: dropped}
            ):
                return changed
        return None

    def _candidates(self) -> Iterator[Candidate | None]:
        ends: dict[Space, list[tuple[int, int]]] = {}
        for _, to in self._sides:
            ends.setdefault(to.space, []).append((to.begin, to.end))
        written = {space: join(tuple(spans), ()) for space, spans in ends.items()}
        # One copy would overwrite what another one of the call still has to read.
        crossed = any(
            here.overlaps(to) and (i != j or here != to)
            for i, (here, _) in enumerate(self._sides)
            if touches(written.get(here.space, ()), here.begin, here.end)
            for j, (_, to) in enumerate(self._sides)
        )
        if crossed or any(here.space[0] != "arena" for here, _ in self._sides):
            return
        if all(here == to for here, to in self._sides):
            yield {}
        # Arenas may lie in different memories, and the profile may have chosen one.
        if any(here.space != to.space for here, to in self._sides):
            return
        yield self._forward()
        yield self._backward()
        if self._grows:
            yield self._apart()

    def _forward(self) -> Candidate | None:
        """Readers of the copies read the originals instead."""
        moves = []
        for view, (here, to) in zip(self._views, self._sides, strict=True):
            shown = self._flow.followers(self._index, to, self._places)
            moves += [(v, to, here) for v in {*shown, view.target}]
        return self._moved(moves)

    def _backward(self) -> Candidate | None:
        """The producer of the original writes to the copy's place directly."""
        moves = []
        for here, to in self._sides:
            sharers = self._flow.sharers(self._index, here, self._places)
            if sharers is None:
                return None
            moves += [(v, here, to) for v in sharers]
        return self._moved(moves)

    def _apart(self) -> Candidate | None:
        """Producers and readers have a place behind all others."""
        moves: list[tuple[int, Place, Place]] = []
        ends = dict(self._method.ends)
        for view, (here, to) in zip(self._views, self._sides, strict=True):
            sharers = self._flow.sharers(self._index, here, self._places)
            if sharers is None or here.space[1] == SHARED_ID:
                return None
            # Each keeps its offset in a block, on which its alignment depends.
            begin = aligned(ends[here.space], like=here.begin)
            own = Place(here.space, begin, begin + here.end - here.begin)
            ends[here.space] = own.end
            moves += [(v, here, own) for v in sharers]
            after = self._flow.followers(self._index, to, self._places)
            moves += [(v, to, own) for v in {*after, view.target}]
        return self._moved(moves, ends)

    def _moved(
        self, moves: Iterable[tuple[int, Place, Place]], ends: Mapping[Space, int] | None = None
    ) -> Candidate | None:
        """Tensors with new places, from (tensor, old, new place of its group).

        Arenas grow to `ends`.
        """
        changed: Candidate = {}
        for index, here, to in moves:
            tensor, place = self._method.tensor(index), self._places[index]
            offset = place.begin - here.begin + to.begin
            end = offset + tensor.size_bytes
            new = placed(tensor, to.space[1], offset)
            fits = (
                to.space[0] == "arena"
                and offset >= 0
                and end <= (ends or self._method.ends)[to.space]
                and offset % max(_WORD_BYTES, tensor.dtype.item_bytes) == 0
            )
            if not fits or changed.setdefault(index, new) != new:
                return None
        return changed
