"""The readers of what an instruction writes, and the writers of what it reads."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Self

from orchestrator.method.effects import Effect, effects_of_linked
from orchestrator.program.program import MoveCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from orchestrator.method.linked import LinkedMethod
    from orchestrator.method.places import Place


class Dataflow:
    """The effects of a linked method while a pass changes it.

    Args:
        method: The method. Tensors may get other places; instructions do not change.

    Attributes:
        at: Effect of every instruction.
        outputs: Tensors whose items the method returns.
        moved: Values that moves read or write, with their memory.
        overlaps: Outputs and inputs of the method that overlap.
        is_open: A call writes to memory that a move chooses: nothing may change.
    """

    def __init__(self, method: LinkedMethod) -> None:
        moves = [i for i in method.instructions if isinstance(i, MoveCall)]
        effects = effects_of_linked(method)
        self.at = [*effects.at]
        self.outputs = (*effects.outputs, *effects.moved)
        self.moved = {v for move in moves for v in (move.source, move.target)}
        places = method.places
        self.overlaps = frozenset(
            (o, i)
            for o in method.returned
            for i in method.received
            if o in places and i in places and places[o].overlaps(places[i])
        )
        self.is_open = not effects.is_known

    def copy(self) -> Self:
        """A copy with drops of its own."""
        new = copy(self)
        new.at = [*self.at]
        return new

    def drop(self, index: int) -> None:
        """Treat an instruction as a no-op."""
        self.at[index] = Effect(next=(index + 1,))

    def followers(
        self, start: int, where: Place, places: Mapping[int, Place]
    ) -> set[int]:
        """Tensors through which bytes that an instruction wrote are read.

        Args:
            start: Index of the instruction.
            where: Where it wrote.
            places: Places of all tensors that have bytes.
        """
        return {v for shown in self._ahead(start, where, places) for v in shown}

    def is_read(self, start: int, where: Place, places: Mapping[int, Place]) -> bool:
        """Whether `followers` has any."""
        return any(self._ahead(start, where, places))

    def _ahead(
        self, start: int, where: Place, places: Mapping[int, Place]
    ) -> Iterator[set[int]]:
        """Followers, by instruction, until the bytes are overwritten."""
        seen: set[int] = set()
        ahead = [*self.at[start].next]
        while ahead:
            index = ahead.pop()
            if index in seen:
                continue
            seen.add(index)
            if index == len(self.at):
                yield _near(self.outputs, where, places)
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
        before: dict[int, list[int]] = {}
        for index, effect in enumerate(self.at):
            for following in effect.next:
                before.setdefault(following, []).append(index)
        found: set[tuple[int, int]] = set()
        seen: set[int] = set()
        behind = [start]
        while behind:
            index = behind.pop()
            if index == 0:
                return None
            for last in before.get(index, ()):
                effect = self.at[last]
                found |= {(last, w) for w in _near(effect.writes, where, places)}
                if not _near(effect.fills, where, places) and last not in seen:
                    seen.add(last)
                    behind.append(last)
        return found


def _near(
    tensors: Iterable[int], where: Place, places: Mapping[int, Place]
) -> set[int]:
    """Tensors that overlap a place."""
    return {v for v in tensors if v in places and places[v].overlaps(where)}
