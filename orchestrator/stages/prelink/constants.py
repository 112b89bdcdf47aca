"""Calls that only move items of constants are made by the build."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.pte.linked import LinkedCall
from orchestrator.pte.values import TensorValue
from orchestrator.stages.prelink.edit import with_values, without
from orchestrator.stages.prelink.effects import Effects
from orchestrator.stages.prelink.proof import Dropped, is_same
from orchestrator.stages.prelink.spans import Place, places_of
from orchestrator.stages.prelink.views import ITEM_BYTES, moves_items, views_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.pte.linked import LinkedMethod
    from orchestrator.pte.values import Value

PERMUTE: Final = "aten::permute_copy.out"
_SMALL_BYTES: Final = 32
"""A call, its arguments and the value it writes take more flash than this."""


def fold_permutes(method: LinkedMethod) -> LinkedMethod:
    """Permute constants at build time."""
    return _folded(method, permutes=True)


def fold_constants(method: LinkedMethod) -> LinkedMethod:
    """Make all other copies, views and parts of constants at build time.

    Their items become another dtype where that is exact.
    """
    return _folded(method, permutes=False)


def _folded(method: LinkedMethod, *, permutes: bool) -> LinkedMethod:
    effects, written = Effects(method), method.written
    dropped: set[int] = set()
    for index, call in enumerate(method.instructions):
        if not isinstance(call, LinkedCall):
            continue
        if (str(call.operator) == PERMUTE) is not permutes:
            continue
        data = _made(method, effects, written, call)
        if data is None:
            continue
        shown = _shown(method, effects, index, data)
        if shown is None:
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
        method = replace(
            with_values(method, changed),
            data=tuple(sorted({**dict(method.data), **shown}.items())),
        )
    return without(method, dropped)


def _made(
    method: LinkedMethod, effects: Effects, written: frozenset[int], call: LinkedCall
) -> dict[int, bytes] | None:
    """Items of a call's outputs, if it only moves those of constants."""
    views = views_of(method, call, written, converts=True)
    if views is None:
        return None
    data = dict(method.data)
    made: dict[int, bytearray] = {}
    for view in views:
        source, target = method.values[view.source], method.values[view.target]
        if not (
            isinstance(source, TensorValue)
            and isinstance(target, TensorValue)
            and source.allocation is None
            and target.allocation is not None
            and view.source in data
            and view.source in data
            and target.dtype.item_bytes in ITEM_BYTES
            and not {view.source, *call.args} & effects.moved
        ):
            return None
        items = converted(data[view.source], source.dtype, target.dtype)
        if items is None:
            return None
        content = made.setdefault(view.target, bytearray(target.size_bytes))
        view.moved(items, content, target.dtype.item_bytes)
    found = {out: bytes(content) for out, content in made.items() if content}
    sources = {view.source for view in views}
    worth = all(
        len(content) <= _SMALL_BYTES or content in data.values()
        for content in found.values()
    )
    if not worth and not _replaces(method, effects, sources):
        return None
    return found if len(found) == len(set(call.outs)) else None


def _replaces(method: LinkedMethod, effects: Effects, sources: set[int]) -> bool:
    """Whether constants are read by nobody but calls that may be folded as well."""
    if not sources.isdisjoint(effects.outputs):
        return False
    for index, effect in enumerate(effects.at):
        call = method.instructions[index]
        if not sources.isdisjoint(effect.reads) and not (
            isinstance(call, LinkedCall) and moves_items(call.operator)
        ):
            return False
    return True


def _shown(
    method: LinkedMethod, effects: Effects, index: int, data: Mapping[int, bytes]
) -> dict[int, bytes] | None:
    """By tensor: items, of all that show what a call writes."""
    places = places_of(method)
    shown: dict[int, bytes] = {}
    for out, content in data.items():
        where = places[out]
        for v in sorted({out, *effects.followers(index, where, places)}):
            if not where.holds(places[v]):
                return None
            begin = places[v].begin - where.begin
            shown[v] = content[begin : begin + places[v].end - places[v].begin]
    return shown


_INTEGERS: Final[Mapping[ScalarType, str]] = {
    ScalarType.Byte: "B",
    ScalarType.Char: "b",
    ScalarType.Short: "h",
    ScalarType.Int: "i",
    ScalarType.Long: "q",
    ScalarType.Bool: "?",
}
_FLOATS: Final[Mapping[ScalarType, tuple[str, int]]] = {
    ScalarType.Float: ("f", 24),
    ScalarType.Double: ("d", 53),
}


def converted(data: bytes, dtype: ScalarType, to: ScalarType) -> bytes | None:
    """Items of one dtype as those of another; None unless that is exact for all."""
    if dtype is to:
        return data
    if dtype not in _INTEGERS or to is ScalarType.Bool:
        return None
    count = len(data) // dtype.item_bytes
    items = [int(i) for i in struct.unpack(f"<{count}{_INTEGERS[dtype]}", data)]
    if to in _FLOATS:
        code, bits = _FLOATS[to]
        exact = all(abs(item) <= 1 << bits for item in items)
        return struct.pack(f"<{count}{code}", *items) if exact else None
    code = _INTEGERS.get(to, "")
    try:
        return struct.pack(f"<{count}{code}", *items) if code else None
    except struct.error:
        return None  # too large for the dtype
