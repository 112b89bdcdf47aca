"""What the instructions of a method read and write, and where a run can go on."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.spans import places_of
from orchestrator.program.program import MoveCall
from orchestrator.program.values import (
    OptionalTensorListValue,
    TensorListValue,
    TensorValue,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from orchestrator.method.linked import LinkedInstruction, LinkedMethod
    from orchestrator.method.passes.spans import Place
    from orchestrator.program.values import Value

_LISTS = (TensorListValue, OptionalTensorListValue)
_KNOWN: Final = ("aten", "dim_order_ops", "quantized_decomposed")
"""Namespaces whose out variants are known to write every item of what they give.

Of others nothing is taken for granted: a call may leave items as they were.
"""
_INT8: Final = "orch::cortex_m::"
"""Kernels of ours that write every item of their first output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What an instruction does with memory.

    Args:
        reads: Tensors whose items it looks at.
        writes: Tensors it writes, those of `fills` included.
        fills: Tensors of which it writes every item, whatever they held; of those
            that change their sizes, every item they then have.
        touches: Every tensor argument, in order.
        next: Indices of the instructions that can come after it; their count is the
            end of the run.
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    fills: frozenset[int]
    touches: tuple[int, ...]
    next: tuple[int, ...]


class Effects:
    """Effects of all instructions of a method.

    Args:
        method: The method; its tensors may be moved about, its instructions not.

    Attributes:
        at: Effect of every instruction.
        outputs: Tensors whose items are results of the method.
        moved: Values that moves read or write: a tensor's memory goes with it.
        overlaps: Outputs and inputs of the method that overlap.
        is_open: Something writes where moves decide: nothing can be said.
    """

    def __init__(self, method: LinkedMethod) -> None:
        moves = [i for i in method.instructions if isinstance(i, MoveCall)]
        self.moved = {v for move in moves for v in (move.source, move.target)}
        self._sources = _sources(moves)
        self._values = method.values
        self.at = [
            self._effect(instruction, index)
            for index, instruction in enumerate(method.instructions)
        ]
        self.outputs = tuple(self._tensors(method.outputs))
        places = places_of(method)
        self.overlaps = frozenset(
            (o, i)
            for o in method.returned
            for i in method.received
            if o in places and i in places and places[o].overlaps(places[i])
        )
        self.is_open = any(
            index in self._sources for effect in self.at for index in effect.writes
        )

    def copy(self) -> Self:
        """The same effects; what is dropped from one stays in the other."""
        new = copy(self)
        new.at = [*self.at]
        return new

    def drop(self, index: int) -> None:
        """Take an instruction for one that does nothing."""
        self.at[index] = Effect(
            reads=(), writes=(), fills=frozenset(), touches=(), next=(index + 1,)
        )

    def followers(
        self, start: int, where: Place, places: Mapping[int, Place]
    ) -> set[int]:
        """Tensors that show what an instruction has written.

        Args:
            start: Index of the instruction.
            where: What it has written.
            places: Of all tensors that have bytes.
        """
        return {v for shown in self._ahead(start, where, places) for v in shown}

    def is_read(self, start: int, where: Place, places: Mapping[int, Place]) -> bool:
        """Whether `followers` has any."""
        return any(self._ahead(start, where, places))

    def _ahead(
        self, start: int, where: Place, places: Mapping[int, Place]
    ) -> Iterator[set[int]]:
        """Followers, by instruction, until what was written is written again."""
        seen: set[int] = set()
        ahead = [*self.at[start].next]
        while ahead:
            index = ahead.pop()
            if index in seen:
                continue
            seen.add(index)
            is_end = index == len(self.at)
            touched = self.outputs if is_end else self.at[index].touches
            fills: frozenset[int] = frozenset() if is_end else self.at[index].fills
            near = {v for v in touched if v in places and places[v].overlaps(where)}
            yield near - fills
            if not is_end and near.isdisjoint(fills):
                ahead += self.at[index].next

    def writers(
        self, start: int, where: Place, places: Mapping[int, Place]
    ) -> set[tuple[int, int]] | None:
        """(instruction, tensor) of all that has written what an instruction reads.

        Args:
            start: Index of the instruction.
            where: What it reads.
            places: Of all tensors that have bytes.

        Returns:
            None if some of it may have been there before the run.
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
                near = {
                    w
                    for w in effect.writes
                    if w in places and places[w].overlaps(where)
                }
                found |= {(last, w) for w in near}
                if near.isdisjoint(effect.fills) and last not in seen:
                    seen.add(last)
                    behind.append(last)
        return found

    def _effect(self, instruction: LinkedInstruction, index: int) -> Effect:
        touches: tuple[int, ...] = ()
        writes: tuple[int, ...] = ()
        fills: frozenset[int] = frozenset()
        following: tuple[int, ...] = (index + 1,)
        if isinstance(instruction, LinkedCall):
            args = instruction.args
            named = [v for a in args for v in items_of(self._values, a)]
            touches = tuple(self._tensors(args))
            writes = tuple(
                out
                for out in instruction.outs
                if isinstance(self._values[out], TensorValue)
            )
            fills = frozenset(
                out
                for out in writes
                if _fills(instruction, out) and named.count(out) == 1
            )
        elif not isinstance(instruction, MoveCall):
            touches = tuple(self._tensors((instruction.condition,)))
            following = (index + 1, instruction.destination)
        return Effect(
            reads=tuple(v for v in touches if v not in fills),
            writes=writes,
            fills=fills,
            touches=touches,
            next=following,
        )

    def _tensors(self, indices: Iterable[int]) -> Iterable[int]:
        """Tensors of arguments: items of lists, and those that moves put there."""
        for argument in indices:
            for index in items_of(self._values, argument):
                if isinstance(self._values[index], TensorValue):
                    yield index
                    yield from sorted(self._sources.get(index, ()))


def items_of(values: Sequence[Value], index: int) -> tuple[int, ...]:
    """The tensors in a list of tensors; a value that is no such list itself."""
    value = values[index]
    if isinstance(value, _LISTS):
        return tuple(item for item in value.items if item >= 0)
    return (index,)


def _fills(call: LinkedCall, out: int) -> bool:
    """Whether a call writes all of an output and reads nothing of it."""
    name = call.operator
    if call.function.startswith(_INT8):
        return out == call.outs[0]  # what follows is scratch
    if name.namespace in _KNOWN:
        return "out" in name.overload and "empty" not in name.base
    return str(name) == "executorch_prim::et_view.default"


def _sources(moves: Iterable[MoveCall]) -> dict[int, set[int]]:
    """By value that is moved to: all that may have come there."""
    found: dict[int, set[int]] = {}
    for move in moves:
        found.setdefault(move.target, set()).add(move.source)
    grown = True
    while grown:
        grown = False
        for sources in found.values():
            count = len(sources)
            sources.update({s for x in sources for s in found.get(x, ())})
            grown = grown or len(sources) > count
    return found
