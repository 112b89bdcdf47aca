"""Transposes that cancel each other, or that weights can take.

Two calls that move items cancel if all items come back to their place. Where an int8
matrix product reads items in another order, its constant weights get that order: sums
of integers do not depend on it. Sums of floats do, and stay.
"""

from __future__ import annotations

from array import array
from dataclasses import replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Final

from orchestrator.core.lazy_bytes import settled
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import Arguments, need
from orchestrator.method.passes.joining import (
    at_each_call,
    producer_of,
    reads_earlier,
    with_slots,
    without_copy,
)
from orchestrator.method.passes.views import items_in_order, moves_items, views_of

if TYPE_CHECKING:
    from orchestrator.method.passes.dataflow import Dataflow
    from orchestrator.method.passes.joining import Changed
    from orchestrator.method.passes.views import View

_LINEAR: Final = "orch::cortex_m::quantized_linear_out"
_WEIGHTS: Final = 1
_INDEX_BYTES: Final = 4


def may_be_transposed(call: LinkedCall) -> bool:
    """Whether a call may move items."""
    return moves_items(call.operator)


def fold_transposes(method: LinkedMethod, *, grows: bool = False) -> LinkedMethod:
    """Remove transposes that others undo, or that weights can take.

    Args:
        method: The method.
        grows: Whether arenas may grow, as memory is planned afterwards.
    """
    return at_each_call(method, partial(_folded, grows=grows))


def _folded(
    method: LinkedMethod, flow: Dataflow, number: int, call: LinkedCall, *, grows: bool
) -> Changed | None:
    if call.function == _LINEAR:
        return _with_other_weights(method, flow, number, call, grows=grows)
    if may_be_transposed(call):
        return _cancelled(method, flow, number, call, grows=grows)
    return None


def _cancelled(
    method: LinkedMethod, flow: Dataflow, number: int, call: LinkedCall, *, grows: bool
) -> Changed | None:
    """The method without a call and the one that it undoes."""
    second = _transpose(method, call)
    if second is None:
        return None
    found = producer_of(method, flow, number, second.source)
    first = None if found is None else _transpose(method, found[1])
    if found is None or first is None:
        return None
    if _order(second, _order(first, None)) != _order(None, None, prod(first.sizes)):
        return None
    # A copy then, which may lie where it is: it only goes.
    args = tuple(first.source if a == second.source else a for a in call.args)
    places = tuple(at for at, a in enumerate(args) if a == first.source)
    read = replace(call, args=args, in_place=places)
    joined = reads_earlier(method, (found[0],), number, read, first.source, flow=flow, grows=grows)
    if joined is None:
        return None
    method, flow = joined
    view = items_in_order(method, first.source, second.target)
    return without_copy(method, number, view, flow=flow, grows=grows)


def _with_other_weights(
    method: LinkedMethod, flow: Dataflow, number: int, call: LinkedCall, *, grows: bool
) -> Changed | None:
    """The method where a matrix product reads what was transposed before."""
    arguments = Arguments(method, call)
    found = producer_of(method, flow, number, call.args[0])
    first = None if found is None else _transpose(method, found[1])
    if found is None or first is None:
        return None
    x, weights = arguments.tensor(0), arguments.tensor(_WEIGHTS)
    outputs, depth = weights.sizes
    given, index = bytes(arguments.constant(_WEIGHTS)), call.args[_WEIGHTS]
    need(weights.is_contiguous)
    users = [i for i in method.instructions if isinstance(i, LinkedCall)]
    need(sum(i.args.count(index) for i in users) == 1)
    order = _order(first, None)
    need(x.numel == len(order))
    need(
        all(
            order[start + k] == start + order[k]
            for start in range(0, len(order), depth)
            for k in range(depth)
        )
    )
    moved = bytearray(outputs * depth)
    for k in range(depth):
        moved[order[k] :: depth] = given[k::depth]
    source = arguments.tensor_at(first.source)
    method, slots = with_slots(
        method, (replace(x, allocation=source.allocation), None), (weights, settled(bytes(moved)))
    )
    new = replace(call, args=(*slots, *call.args[2:]))
    return reads_earlier(method, (found[0],), number, new, slots[0], flow=flow, grows=grows)


def _transpose(method: LinkedMethod, call: LinkedCall) -> View | None:
    """The view of a call that moves all items of a tensor to other places."""
    views = views_of(method, call)
    if views is None or len(views) != 1 or call.outs != (views[0].target,):
        return None
    (view,) = views
    arguments = Arguments(method, call)
    source, size = arguments.tensor_at(view.source), prod(view.sizes)
    if view.is_block or source.numel != size or source.allocation is None:
        return None
    order = _order(view, None)
    return view if sorted(order) == list(range(size)) else None


def _order(view: View | None, given: array[int] | None, size: int = 0) -> array[int]:
    """Which item lies at each place after a view, of items in an order before."""
    size = size or (prod(view.sizes) if view else 0)
    before = array("I", range(size)) if given is None else given
    if view is None:
        return before
    target = bytearray(size * _INDEX_BYTES)
    view.moved(before.tobytes(), target, _INDEX_BYTES)
    return array("I", bytes(target))
