"""Tensors that have to stay where they are beside one another, and for how long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from orchestrator.method.linked import LinkedMethod
    from orchestrator.method.passes.effects import Effects
    from orchestrator.method.passes.spans import Place, Space

ALIGNMENT = 16
"""What offsets keep their distance to, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """Tensors of one arena.

    Args:
        members: (tensor, offset), sorted; as the method has them, or moved with what
            they were merged with.
        sizes: Of the members, in bytes.
        space: The arena.
        first: First instruction that touches one; -1 is before the run.
        last: The last one; the count of the instructions is after it.
        is_fixed: They cannot be moved.
        has_input: An input of the method is among them.
        has_output: An output is.
    """

    members: tuple[tuple[int, int], ...]
    sizes: tuple[int, ...]
    space: Space
    first: int
    last: int
    is_fixed: bool
    has_input: bool
    has_output: bool

    @property
    def begin(self) -> int:
        """Lowest offset, down to a multiple of the alignment."""
        low = min(offset for _, offset in self.members)
        return low - low % ALIGNMENT

    @property
    def size_bytes(self) -> int:
        """Bytes from there to the end of the last member."""
        pairs = zip(self.members, self.sizes, strict=True)
        return max(offset + size for (_, offset), size in pairs) - self.begin

    def merged(self, other: Web, distance: int) -> Web:
        """Both as one, the other's members farther by a distance."""
        moved = tuple((v, offset + distance) for v, offset in other.members)
        return replace(
            self,
            members=(*self.members, *moved),
            sizes=(*self.sizes, *other.sizes),
            first=min(self.first, other.first),
            last=max(self.last, other.last),
            has_output=self.has_output or other.has_output,
        )

    def excludes(self, other: Web) -> bool:
        """Whether both cannot have the same bytes.

        They are needed at one moment; or the caller may write one and read the other.
        """
        ends = (self.has_input and other.has_output) or (
            self.has_output and other.has_input
        )
        meet = self.first <= other.last and other.first <= self.last
        return self.space == other.space and (ends or meet)


def webs_of(
    method: LinkedMethod, effects: Effects, places: Mapping[int, Place]
) -> list[Web]:
    """The webs of a method without jumps and moves; what nothing touches is in none.

    Args:
        method: The method.
        effects: Its effects.
        places: Of its tensors.
    """
    return _Webs(method, effects, places).webs()


class _Webs:
    def __init__(
        self, method: LinkedMethod, effects: Effects, places: Mapping[int, Place]
    ) -> None:
        self._method = method
        self._effects = effects
        self._places = {i: p for i, p in places.items() if p.space[0] == "arena"}
        self._parent = {index: index for index in self._places}
        self._times: dict[int, list[int]] = {}
        self._fixed: set[int] = set()

    def webs(self) -> list[Web]:
        end = len(self._effects.at)
        self._touch(-1, self._method.received)
        self._fixed |= self._method.received
        for index, effect in enumerate(self._effects.at):
            self._touch(index, effect.touches)
            self._join(index, (*effect.reads, *effect.updates, *effect.moved))
        self._touch(end, self._effects.outputs)
        self._join(end, self._effects.outputs)
        members: dict[int, list[int]] = {}
        for index in sorted(self._times):
            members.setdefault(self._of(index), []).append(index)
        return [self._web(found) for found in members.values()]

    def _touch(self, time: int, tensors: Iterable[int]) -> None:
        """What one instruction touches stays together where it overlaps."""
        here = sorted({t for t in tensors if t in self._places})
        for at, one in enumerate(here):
            self._times.setdefault(one, []).append(time)
            for other in here[:at]:
                if self._places[one].overlaps(self._places[other]):
                    self._unite(one, other)

    def _join(self, time: int, reads: Iterable[int]) -> None:
        """What reads stays with what wrote."""
        for tensor in reads:
            if tensor not in self._places:
                continue
            where = self._places[tensor]
            writers = self._effects.writers(time, where, self._places)
            if writers is None:
                self._fixed.add(tensor)
            for _, writer in writers or ():
                self._unite(tensor, writer)

    def _web(self, members: Sequence[int]) -> Web:
        method, times = self._method, [t for m in members for t in self._times[m]]
        values = [method.values[m] for m in members]
        kept = any(
            isinstance(v, TensorValue) and (v.is_dynamic or v.is_mutable_state)
            for v in values
        )
        known = set(members) <= method.received
        fixed = kept or not self._fixed.isdisjoint(members)
        # Of what is there before the run, only inputs are known to be written then.
        whole = fixed and not known
        return Web(
            members=tuple((m, self._places[m].begin) for m in members),
            sizes=tuple(self._places[m].end - self._places[m].begin for m in members),
            space=self._places[members[0]].space,
            first=-1 if whole else min(times),
            last=len(self._effects.at) if whole else max(times),
            is_fixed=fixed,
            has_input=not method.received.isdisjoint(members),
            has_output=not method.returned.isdisjoint(members),
        )

    def _of(self, index: int) -> int:
        while self._parent[index] != index:
            index = self._parent[index]
        return index

    def _unite(self, one: int, other: int) -> None:
        low, high = sorted((self._of(one), self._of(other)))
        self._parent[high] = low
