"""Calls that are left out because the build has made what they write."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from orchestrator.pte.linked import LinkedCall
from orchestrator.pte.values import TensorValue
from orchestrator.stages.prelink.edit import with_values, without
from orchestrator.stages.prelink.effects import Effects
from orchestrator.stages.prelink.proof import Dropped, is_same
from orchestrator.stages.prelink.spans import Place, places_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orchestrator.pte.linked import LinkedMethod
    from orchestrator.pte.values import Value

Made: TypeAlias = "dict[int, bytes]"
"""By value index: items of each output of a call, in the order of its memory."""

SMALL_BYTES: Final = 32
"""A call, its arguments and the value it writes take more flash than this."""


def folded(
    method: LinkedMethod,
    make: Callable[[LinkedMethod, Effects, frozenset[int], LinkedCall], Made | None],
    *,
    may_grow: bool,
) -> LinkedMethod:
    """The method without calls whose outputs the build can make.

    Args:
        method: Before.
        make: Makes the outputs of a call; the third argument is what is written still.
            None if the call is to stay.
        may_grow: Whether constants may take more bytes than before; else by no more
            than the call took.

    Returns:
        The method; what is made once is known to the calls after it.
    """
    effects, written = Effects(method), method.written
    dropped: set[int] = set()
    for index, call in enumerate(method.instructions):
        if not isinstance(call, LinkedCall):
            continue
        data = make(method, effects, written, call)
        if not data or any(not content for content in data.values()):
            continue
        shown = _shown(method, effects, index, data)
        if shown is None:
            continue
        if not may_grow and _growth(method, effects, index, shown) > SMALL_BYTES:
            continue
        places = places_of(method)
        changed: dict[int, Value] = {}
        for v in shown:
            tensor = method.values[v]
            assert isinstance(tensor, TensorValue)  # noqa: S101  # it has a place
            changed[v] = replace(tensor, allocation=None, data_buffer_index=1)
        leaves = Dropped(
            outs=tuple(places[out] for out in data),
            constants=tuple(
                (Place(("constant", v), 0, len(items)), places[v])
                for v, items in shown.items()
            ),
        )
        if not is_same(method, effects, changed, {index: leaves}):
            continue
        effects.drop(index)
        dropped.add(index)
        written = written.difference(shown)
        method = replace(
            with_values(method, changed),
            data=tuple(sorted({**dict(method.data), **shown}.items())),
        )
    return without(method, dropped)


def _shown(
    method: LinkedMethod, effects: Effects, index: int, data: Mapping[int, bytes]
) -> Made | None:
    """By tensor: items, of all that show what a call writes."""
    places = places_of(method)
    shown: Made = {}
    for out, content in data.items():
        where = places[out]
        for v in sorted({out, *effects.followers(index, where, places)}):
            if not where.holds(places[v]):
                return None
            begin = places[v].begin - where.begin
            shown[v] = content[begin : begin + places[v].end - places[v].begin]
    return shown


def _growth(method: LinkedMethod, effects: Effects, index: int, shown: Made) -> int:
    """Bytes that constants take more if a call is left out for what it shows."""
    before = dict(method.data)
    after = before | shown
    used = {*effects.outputs}
    for at, effect in enumerate(effects.at):
        if at != index:
            used.update(effect.touches, effect.writes)
    mine = effects.at[index].touches
    return _bytes(after, used) - _bytes(before, used.union(mine))


def _bytes(data: Mapping[int, bytes], used: set[int]) -> int:
    """Of the constants that are used; equal ones count once."""
    return sum(map(len, {data[v] for v in used if v in data}))
