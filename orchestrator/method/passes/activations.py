"""Activations become limits of the call that computes their input.

A table or an island of floats is an activation if its results are its items within
limits, at least for the items that the call before it stores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from typing import Final

from orchestrator.core.dtype import ScalarType
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import Arguments, UnknownCallError, need
from orchestrator.method.passes.context import Context
from orchestrator.method.passes.joining import Site, at_each_call, with_call, with_slots
from orchestrator.method.passes.preparing.floats import NO_LIMITS, RELU, form_of_sums, limits_of
from orchestrator.method.passes.tables import (
    INT8_FUNCTIONS,
    QUANTIZE,
    Table,
    as_one_call,
    table_at,
    view_of,
)
from orchestrator.method.passes.views import items_in_order
from orchestrator.method.places import Access
from orchestrator.program.values import DoubleValue, IntValue

_LOWEST, _HIGHEST = -128, 127


_LIMITS: Final = "activation_min", "activation_max"
"""Arguments of kernels of int8 that limit what they store: the lowest and highest item."""


def may_be_activation(call: LinkedCall) -> bool:
    """Whether a call may limit items."""
    return call.function in INT8_FUNCTIONS | QUANTIZE


def fuse_activations(method: LinkedMethod, context: Context) -> LinkedMethod:
    """Let calls store items within the limits of the activation after them."""
    return at_each_call(method, _fused, grows=context.plans)


def _fused(site: Site) -> Site | None:
    table = table_at(site) if may_be_activation(site.call) else None
    if table is None:
        return None
    first = (*table.island, site.number)[0]
    found = site.at(first).producer(table.source)
    if found is None or found.number > first:
        return None
    producer, arguments = found.call, found.arguments
    if not producer.function.startswith("orch::cortex_m::") or _LIMITS[0] not in arguments.names:
        return None
    low, high = _limits(table, *map(arguments.number, _LIMITS))
    joined = as_one_call(site, table)
    if joined is None:
        return None
    joined, slots = joined.with_slots((IntValue(low), None), (IntValue(high), None))
    new = replace(producer, args=arguments.replaced(dict(zip(_LIMITS, slots, strict=True))))
    view = view_of(joined.method, table)
    return joined.at(found.number).writes_later(site.number, new, view)


def _limits(table: Table, low: int, high: int) -> tuple[int, int]:
    """Limits with which a call stores what the table makes of its items.

    Args:
        table: A function of the items.
        low: The lowest item that the call stores.
        high: The highest one.

    Raises:
        UnknownCallError: There are none.
    """
    need(_LOWEST <= low <= high <= _HIGHEST)
    results = [table.item(item) for item in range(low, high + 1)]
    least, most = min(results), max(results)
    # What the kernel limits may be beyond all items, as both numbers at the ends are.
    for value in range(_LOWEST - 1, _HIGHEST + 2):
        stored = table.item(min(max(value, low), high))
        need(stored == min(max(value, least), most))
    return least, most


# Relu and other limits become part of the float call that computes their input.
#
# This is for prelinked models, whose calls can be prepared. With vectors, convolutions and products
# finish their sums so before they store them, each with limits or without. Without vectors only
# convolutions do: one with limits and one without would have their loops twice, so all of a
# method are of one kind, where that saves something.

_SPACE: Final = "orch::portable"
_RELU: Final = f"{_SPACE}::relu_out"
_CLAMP: Final = f"{_SPACE}::clamp_out"
_ACTIVATIONS: Final = frozenset({_RELU, _CLAMP, f"{_SPACE}::hardtanh_out"})
_WITH_RELU: Final = f"{_SPACE}::convolution_relu_out"
_LIMITED_SUFFIX: Final = "_limited_out"
_CONVOLUTION: Final = f"{_SPACE}::convolution_out"
_PRODUCTS: Final = frozenset(f"{_SPACE}::{name}_out" for name in ("mm", "bmm", "addmm", "linear"))


def is_activation(call: LinkedCall) -> bool:
    """Whether a call is relu, clamp or hardtanh of any dtype."""
    return call.function in _ACTIVATIONS


def fuse_float_activations(method: LinkedMethod, context: Context) -> LinkedMethod:
    """Let calls that compute sums of floats compute the limits after them."""
    isa = context.isa
    # On an M4 limits in the loop of matrix products made the autoencoder 2 % slower: a separate
    # relu takes about as much.
    sums = {_CONVOLUTION, *(_PRODUCTS if isa == "mve" else ())}
    fused = at_each_call(method, partial(_fused_floats, sums=sums, isa=isa), grows=True)
    if isa == "mve" or fused is method:
        return fused
    return _of_one_kind(fused, isa) or method


def _fused_floats(site: Site, *, sums: Collection[str], isa: str) -> Site | None:
    method, call = site.method, site.call
    source, out = call.args[0], call.args[-1]
    found = site.producer(source) if is_activation(call) else None
    if found is None or found.call.function not in sums or found.number > site.number:
        return None
    producer, arguments = found.call, found.arguments
    form = form_of_sums(producer.function, arguments, isa)
    places = (place for _, place in form.memory if place is not None)
    tensors = [arguments.tensor(p) for p in places if not arguments.is_none(p)]
    need(all(tensor.size_bytes > 0 for tensor in tensors))
    need(not method.given.intersection((*producer.args, out)))
    activation = site.arguments
    before, after = activation.tensor(0), activation.tensor(len(call.args) - 1)
    need(before.dtype is after.dtype is ScalarType.Float)
    need((before.sizes, before.dim_order) == (after.sizes, after.dim_order))
    limits = _float_limits(activation, call)
    limits_of(*limits)
    method, new = _with_limits(method, producer, limits)
    view = items_in_order(method, source, out)
    return replace(found, method=method).writes_later(site.number, new, view)


def _float_limits(activation: Arguments, call: LinkedCall) -> tuple[float, float]:
    if call.function == _RELU:
        return RELU
    low, high = (
        limit if activation.is_none(place) else activation.scalar(place)
        for place, limit in ((1, -inf), (2, inf))
    )
    return float(low), float(high)


def _with_limits(
    method: LinkedMethod, call: LinkedCall, limits: tuple[float, float]
) -> tuple[LinkedMethod, LinkedCall]:
    """The method with values for limits, and the call with them as arguments."""
    values = (DoubleValue(limit) for limit in limits)
    method, slots = with_slots(method, *((value, None) for value in values))
    return method, replace(
        call,
        function=f"{call.function.removesuffix('_out')}{_LIMITED_SUFFIX}",
        args=(*call.args, *slots),
        accesses=(*call.accesses, Access.READS, Access.READS),
        names=(*call.names, "low", "high"),
    )


def _of_one_kind(method: LinkedMethod, isa: str) -> LinkedMethod | None:
    """A method whose convolutions are of one kind; None if that saves nothing.

    Args:
        method: The method, with limits wherever it can have them.
        isa: Instruction set of the core.
    """
    items: Counter[tuple[int, int]] = Counter()
    calls: list[tuple[int, LinkedCall]] = []
    for number, call in enumerate(method.instructions):
        if not isinstance(call, LinkedCall):
            continue
        plain = call.function.replace(_LIMITED_SUFFIX, "_out")
        if plain != _CONVOLUTION:
            continue
        arguments = Arguments(method, call)
        with suppress(UnknownCallError):
            form_of_sums(plain, arguments, isa)
            items[_limits_of_sums(arguments, call)] += arguments.tensor("out").numel
            calls.append((number, call))
    relu, none = limits_of(*RELU), limits_of(*NO_LIMITS)
    if items.keys() == {relu}:
        for number, call in calls:
            method = with_call(method, number, replace(call, function=_WITH_RELU))
        return method
    # Where calls differ, relu alone is as cheap.
    others = items[relu] + items[none]
    # Limits for all pay if more outputs have limits than have none.
    if items.total() - others <= others:
        return None
    for number, call in calls:
        if not call.function.endswith(_LIMITED_SUFFIX):
            method, new = _with_limits(method, call, NO_LIMITS)
            method = with_call(method, number, new)
    return method


def _limits_of_sums(arguments: Arguments, call: LinkedCall) -> tuple[int, int]:
    """Limits of a convolution, by their bits: -0 is not 0."""
    if not call.function.endswith(_LIMITED_SUFFIX):
        return limits_of(*NO_LIMITS)
    return limits_of(arguments.real("low"), arguments.real("high"))
