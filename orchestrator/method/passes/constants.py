"""Calls that are given constants only are made by the build."""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.evaluate import may_be_computed, number_of, results_of
from orchestrator.method.passes.fold import SMALL_BYTES, folded
from orchestrator.method.passes.views import ITEM_BYTES, moves_items, views_of
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.method.linked import LinkedMethod
    from orchestrator.method.passes.effects import Effects
    from orchestrator.method.passes.views import View
    from orchestrator.program.values import Value

PERMUTE: Final = "aten::permute_copy.out"


def fold_permutes(method: LinkedMethod) -> LinkedMethod:
    """Permute constants at build time."""
    return folded(method, partial(_made, permutes=True), may_grow=True)


def fold_constants(method: LinkedMethod) -> LinkedMethod:
    """Make all other copies, views and parts of constants at build time.

    Their items become another dtype where that is exact.
    """
    return folded(method, partial(_made, permutes=False), may_grow=True)


def evaluate_constants(method: LinkedMethod) -> LinkedMethod:
    """Compute calls that are given constants only, where flash does not grow.

    What is computed may then be copied, permuted and so on as well. A number is put
    where the call would have written it.
    """
    given = frozenset(index for index, _ in method.data)
    make = partial(_evaluated, given=given)
    return folded(method, make, may_grow=False, tell=_told)


def _told(
    method: LinkedMethod, effects: Effects, written: frozenset[int], call: LinkedCall
) -> Value | None:
    """The number that a call returns."""
    return number_of(method, call, written | effects.moved, effects.moved)


def _evaluated(
    method: LinkedMethod,
    effects: Effects,
    written: frozenset[int],
    call: LinkedCall,
    *,
    given: frozenset[int],
) -> dict[int, bytes] | None:
    """Items of a call's outputs; `given`: constants that were there before the pass."""
    outs = [method.values[out] for out in call.outs]
    if not effects.moved.isdisjoint(call.outs) or not all(
        isinstance(out, TensorValue) and (out.allocation or not out.size_bytes)
        for out in outs
    ):
        return None
    if may_be_computed(method, call):
        made = results_of(method, call, written | effects.moved)
        if made is not None:
            return made
    views = views_of(method, call, written, converts=True)
    if views is None or given.issuperset(view.source for view in views):
        return None
    return _moved(method, effects, call, views)


def _made(
    method: LinkedMethod,
    effects: Effects,
    written: frozenset[int],
    call: LinkedCall,
    *,
    permutes: bool,
) -> dict[int, bytes] | None:
    """Items of a call's outputs, if it only moves those of constants."""
    if (str(call.operator) == PERMUTE) is not permutes:
        return None
    views = views_of(method, call, written, converts=True)
    if views is None:
        return None
    data = dict(method.data)
    found = _moved(method, effects, call, views)
    if found is None:
        return None
    sources = {view.source for view in views}
    worth = all(
        len(content) <= SMALL_BYTES or content in data.values()
        for content in found.values()
    )
    return found if worth or _replaces(method, effects, sources) else None


def _moved(
    method: LinkedMethod, effects: Effects, call: LinkedCall, views: tuple[View, ...]
) -> dict[int, bytes] | None:
    """Items of a call's outputs, if those that it moves are constant."""
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
