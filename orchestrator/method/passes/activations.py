"""Activations become limits of the call that computes their input.

A table or an island of floats is an activation if its results are its items within
limits, at least for the items that the call before it stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import Arguments, need
from orchestrator.method.passes.islands import as_one_call
from orchestrator.method.passes.joining import at_each_call, producer_of, with_slots, writes_later
from orchestrator.method.passes.tables import INT8_FUNCTIONS, QUANTIZE, table_at, view_of
from orchestrator.program.values import IntValue

if TYPE_CHECKING:
    from orchestrator.method.passes.dataflow import Dataflow
    from orchestrator.method.passes.joining import Changed
    from orchestrator.method.passes.tables import Table

_LOWEST, _HIGHEST = -128, 127


_LIMITED: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        f"orch::cortex_m::{name}_out": limits
        for names, limits in (
            (("quantized_conv2d", "quantized_conv2d_nhwc"), (10, 11)),
            (("quantized_depthwise_conv2d", "quantized_depthwise_conv2d_nhwc"), (11, 12)),
            (("quantized_transpose_conv2d", "quantized_transpose_conv2d_nhwc"), (11, 12)),
            (("quantized_linear",), (10, 9)),
            (("quantized_add",), (11, 12)),
            (("quantized_max_pool2d", "quantized_max_pool2d_nhwc"), (8, 9)),
        )
        for name in names
    }
)
"""By kernel that limits what it stores: positions of its lowest and highest item."""


def may_be_activation(call: LinkedCall) -> bool:
    """Whether a call may limit items."""
    return call.function in INT8_FUNCTIONS | QUANTIZE


def fuse_activations(method: LinkedMethod, *, grows: bool = False) -> LinkedMethod:
    """Let calls store items within the limits of the activation after them.

    Args:
        method: The method.
        grows: Whether arenas may grow, as memory is planned afterwards.
    """
    return at_each_call(method, partial(_fused, grows=grows))


def _fused(
    method: LinkedMethod, flow: Dataflow, at: int, call: LinkedCall, *, grows: bool
) -> Changed | None:
    if not may_be_activation(call):
        return None
    table = table_at(method, flow, at)
    if table is None:
        return None
    first = (*table.island, table.number)[0]
    found = producer_of(method, flow, first, table.source)
    if found is None or found[1].function not in _LIMITED or found[0] > first:
        return None
    number, producer = found
    low_at, high_at = _LIMITED[producer.function]
    arguments = Arguments(method, producer)
    given = arguments.number(low_at), arguments.number(high_at)
    low, high = _limits(table, *given)
    joined = as_one_call(method, flow, table, grows=grows)
    if joined is None:
        return None
    method, flow = joined
    view = view_of(method, table)
    method, slots = with_slots(method, (IntValue(low), None), (IntValue(high), None))
    args = [*producer.args]
    args[low_at], args[high_at] = slots
    new = replace(producer, args=tuple(args))
    return writes_later(method, number, table.number, new, view, flow=flow, grows=grows)


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
