"""Calls that are left out because the build has made what they write."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.edit import with_values, without
from orchestrator.method.passes.effects import Effects
from orchestrator.method.passes.proof import Dropped, is_same
from orchestrator.method.passes.settled import is_only_source
from orchestrator.method.passes.spans import Place, places_of
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orchestrator.method.linked import LinkedMethod
    from orchestrator.program.values import Value

Made: TypeAlias = "dict[int, bytes]"
"""By value index: items of each output of a call, in the order of its memory."""

Make: TypeAlias = (
    "Callable[[LinkedMethod, Effects, frozenset[int], LinkedCall], Made | None]"
)

Tell: TypeAlias = (
    "Callable[[LinkedMethod, Effects, frozenset[int], LinkedCall], Value | None]"
)

SMALL_BYTES: Final = 32
"""A call, its arguments and the value it writes take more flash than this."""


def folded(
    method: LinkedMethod, make: Make, *, may_grow: bool, tell: Tell | None = None
) -> LinkedMethod:
    """The method without calls whose outputs the build can make.

    Args:
        method: Before.
        make: Makes the outputs of a call; the third argument is what is written still.
            None if the call is to stay.
        may_grow: Whether constants may take more bytes than before; else by no more
            than the calls took that are left out with them.
        tell: Gives the number that a call returns, as `make` does the outputs.

    Returns:
        The method; what is made once is known to the calls after it.
    """
    state = _Folding(method, make)
    for index in range(len(method.instructions)):
        if tell is not None:
            state.settle(index, tell)
        made = None if index in state.dropped else state.made(index)
        if made and may_grow:
            state.fold(index, made)
        elif made:
            state = _if_worth(state, index, made)
    return without(state.method, state.dropped)


class _Folding:
    """A method on its way; calls that are left out stand in it still.

    Args:
        method: The method.
        make: See `folded`.
    """

    def __init__(self, method: LinkedMethod, make: Make) -> None:
        self.method = method
        self.dropped: frozenset[int] = frozenset()
        self._make = make
        self._effects = Effects(method)
        self._written = method.written

    def copy(self) -> Self:
        """The same, to go another way with."""
        new = copy(self)
        new._effects = self._effects.copy()  # noqa: SLF001  # its own
        return new

    def made(self, index: int) -> Made | None:
        """What a call writes, if the build can make all of it."""
        call = self.method.instructions[index]
        if not isinstance(call, LinkedCall):
            return None
        made = self._make(self.method, self._effects, self._written, call)
        # Tensors without items have nothing that could be read.
        return {out: items for out, items in made.items() if items} if made else None

    def settle(self, index: int, tell: Tell) -> None:
        """Leave out a call whose result is a number that is known."""
        call = self.method.instructions[index]
        if not isinstance(call, LinkedCall) or index in self.dropped:
            return
        number = tell(self.method, self._effects, self._written, call)
        if number is None or not is_only_source(
            self.method, self._effects, self.dropped, index
        ):
            return
        self._effects.drop(index)
        self.dropped |= {index}
        self._written = self._written.difference(call.outs)
        self.method = with_values(self.method, dict.fromkeys(call.outs, number))

    def reads(self, index: int, tensors: Mapping[int, bytes]) -> bool:
        """Whether an instruction has to do with one of some tensors."""
        return not tensors.keys().isdisjoint(self._effects.at[index].touches)

    def constant_bytes(self) -> int:
        """Of the constants that something uses; equal ones count once."""
        used = {*self._effects.outputs}
        for effect in self._effects.at:
            used.update(effect.touches, effect.writes)
        return sum(map(len, {d for v, d in self.method.data if v in used}))

    def fold(self, index: int, made: Made) -> Made:
        """Leave out a call, if that is proved to change nothing.

        Returns:
            Tensors that are constants now, none if the call stays.
        """
        call = self.method.instructions[index]
        assert isinstance(call, LinkedCall)  # noqa: S101  # it made something
        places = places_of(self.method)
        shown = _shown(self._effects, index, made, places)
        changed: dict[int, Value] = {}
        for v in shown:
            tensor = self.method.values[v]
            assert isinstance(tensor, TensorValue)  # noqa: S101  # it has a place
            changed[v] = replace(tensor, allocation=None, data_buffer_index=1)
        leaves = Dropped(
            outs=tuple(places[out] for out in call.outs if out in places),
            constants=tuple(
                (Place(("constant", v), 0, len(items)), places[v])
                for v, items in shown.items()
            ),
        )
        if not shown or not is_same(
            self.method, self._effects, changed, {index: leaves}
        ):
            return {}
        self._effects.drop(index)
        self.dropped |= {index}
        self._written = self._written.difference(shown)
        self.method = replace(
            with_values(self.method, changed),
            data=tuple(sorted({**dict(self.method.data), **shown}.items())),
        )
        return shown


def _if_worth(state: _Folding, index: int, made: Made) -> _Folding:
    """Without a call, and those after it that need it, where flash does not grow."""
    trial = state.copy()
    shown = trial.fold(index, made)
    if not shown:
        return state
    most = state.constant_bytes() + SMALL_BYTES
    later = index
    while trial.constant_bytes() > most:
        # What is large may be needed for something small only, or free a constant.
        more: Made = {}
        while not more:
            later += 1
            if later == len(state.method.instructions):
                return state
            found = trial.made(later) if trial.reads(later, shown) else None
            more = trial.fold(later, found) if found else {}
        shown |= more
        most += SMALL_BYTES
    return trial


def _shown(
    effects: Effects, index: int, made: Made, places: Mapping[int, Place]
) -> Made:
    """Items of all tensors that show what a call writes; none if one shows more."""
    shown: Made = {}
    for out, content in made.items():
        where = places[out]
        for v in sorted({out, *effects.followers(index, where, places)}):
            if not where.holds(places[v]):
                return {}
            begin = places[v].begin - where.begin
            shown[v] = content[begin : begin + places[v].end - places[v].begin]
    return shown
