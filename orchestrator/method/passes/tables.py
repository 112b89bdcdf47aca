"""Calls that compute each item of an int8 tensor from one item of another, as a table.

In: a method and the number of a call. Out: the tensor that is read, and the result for
each of the 256 items there are, computed as the kernels do. Such a call is one of the
int8 operators, or the `quantize` at the end of an island of floats, which becomes a table,
or nothing. The lowering of this project leaves few islands; those of others keep more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.core.operator import OperatorName
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import UnknownCallError, need
from orchestrator.method.passes.context import Context
from orchestrator.method.passes.evaluate import LIMITS, results_of
from orchestrator.method.passes.joining import Site, at_each_call, constant_of, with_slots
from orchestrator.method.passes.views import items_in_order
from orchestrator.method.places import Access
from orchestrator.program.values import Allocation, TensorValue

if TYPE_CHECKING:
    from orchestrator.method.passes.views import View

ITEMS: Final = 256
ALL_ITEMS: Final = bytes((128 + i) % ITEMS for i in range(ITEMS))
"""From -128 to 127; the table of the function that changes nothing."""

TABLE: Final = "orch::cortex_m::quantized_activation_out"
_TABLE_OPERATOR: Final = OperatorName.parse("cortex_m::quantized_activation.out")
_MINIMUM: Final = "orch::cortex_m::minimum_out"
_MAXIMUM: Final = "orch::cortex_m::maximum_out"
INT8_FUNCTIONS: Final = frozenset({TABLE, _MINIMUM, _MAXIMUM})
QUANTIZE: Final = frozenset(
    {"orch::cortex_m::quantize_per_tensor_out", "orch::quantized::quantize_per_tensor_out"}
)
_DEQUANTIZE: Final = frozenset(
    {"orch::cortex_m::dequantize_per_tensor_out", "orch::quantized::dequantize_per_tensor_out"}
)
_ARITHMETIC: Final = frozenset(
    f"orch::portable::{name}_out" for name in ("add", "div", "mul", "neg", "sub")
)
# Chosen by hand: an island is an activation between its two ends.
_MOST_CALLS: Final = 8
"""Most calls of an island."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A function of the items of a tensor, which a call computes.

    Args:
        island: Calls before it that take part, in order; floats lie in between.
        source: The tensor that is read.
        out: The tensor that is written.
        results: By item, that for -128 first.
    """

    island: tuple[int, ...]
    source: int
    out: int
    results: bytes

    @property
    def is_identity(self) -> bool:
        """Whether every item stays."""
        return self.results == ALL_ITEMS

    def item(self, given: int) -> int:
        """The result for an item."""
        found = self.results[given + ITEMS // 2]
        return found - ITEMS if found >= ITEMS // 2 else found


def table_at(site: Site) -> Table | None:
    """The function that a call computes of items, if it is one.

    Raises:
        UnknownCallError: It is none.
    """
    found: Table | None = None
    if site.call.function in INT8_FUNCTIONS:
        found = _of_int8(site)
    elif site.call.function in QUANTIZE:
        found = _of_island(site)
    if found is None:
        return None
    # Items correspond by their place in memory.
    source, out = map(site.arguments.tensor_at, (found.source, found.out))
    need(source.dtype is out.dtype is ScalarType.Char)
    need(source.numel == out.numel > 0)
    return found


def view_of(method: LinkedMethod, table: Table) -> View:
    """How items of the two tensors correspond."""
    return items_in_order(method, table.source, table.out)


def as_one_call(site: Site, table: Table) -> Site | None:
    """The method where one call, that of the site, looks items up in a constant."""
    if not table.island:
        return site
    constant = constant_of(ScalarType.Char, ITEMS)
    site, (slot,) = site.with_slots((constant, table.results))
    call = LinkedCall(
        operator=_TABLE_OPERATOR,
        function=TABLE,
        args=(table.source, slot, table.out),
        accesses=(Access.READS, Access.READS, Access.FILLS),
        outs=(table.out,),
        in_place=(0,),
        names=("input", "lut", "out"),
    )
    return site.reads_earlier(table.island, call, table.source)


def _of_int8(site: Site) -> Table:
    """Raises UnknownCallError if something is not constant, or not the same for all."""
    method, call = site.method, site.call
    constants = method.contents
    one, other, out = call.args if call.function != TABLE else (call.args[1], *call.args[::2])
    if one not in constants:
        one, other = other, one
    tensor = method.values[one]
    need(one in constants and isinstance(tensor, TensorValue) and tensor.is_constant)
    items = bytes(constants[one])
    if call.function == TABLE:
        results = items
    else:
        need(len({*items}) == 1)
        limit = (items[0] + ITEMS // 2) % ITEMS
        choose = min if call.function == _MINIMUM else max
        results = bytes(ALL_ITEMS[choose(item, limit)] for item in range(ITEMS))
    need(len(results) == ITEMS)
    return Table(island=(), source=other, out=out, results=results)


def _of_island(site: Site) -> Table | None:
    """None unless floats come from int8 items alone.

    Raises:
        UnknownCallError: A call is not known, or depends on more than one item.
    """
    steps = [site]
    given = _input_of(site)
    while steps[0].call.function not in _DEQUANTIZE:
        found = steps[0].producer(given)
        if found is None or len(steps) > _MOST_CALLS:
            return None
        known = _DEQUANTIZE | LIMITS | _ARITHMETIC
        need(found.call.function in known and found.number < steps[0].number)
        steps.insert(0, found)
        given = _input_of(found)
    items: Bytes = ALL_ITEMS
    for step in steps:
        items = _computed(step, items)
    island = tuple(step.number for step in steps[:-1])
    return Table(island=island, source=given, out=site.call.args[-1], results=bytes(items))


def _input_of(site: Site) -> int:
    """The one tensor of many items that a call reads, item by item.

    Raises:
        UnknownCallError: There are others.
    """
    arguments, call = site.arguments, site.call
    tensors = {i for i in call.args if isinstance(site.method.values[i], TensorValue)}
    found = tensors - {*call.outs}
    out = arguments.tensor(len(call.args) - 1)
    given = [i for i in found if arguments.tensor_at(i).allocation is not None]
    need(len(given) == 1 and call.outs == call.args[-1:])
    tensor = arguments.tensor_at(given[0])
    # Items correspond by their place in memory all along.
    need((tensor.sizes, tensor.dim_order) == (out.sizes, out.dim_order))
    # One number for all items; others would make the result depend on where an item lies.
    need(all(arguments.tensor_at(i).numel == 1 for i in found - {*given}))
    return given[0]


def _computed(site: Site, items: Bytes) -> Bytes:
    """What a call makes of these items.

    Raises:
        UnknownCallError: That is not known.
    """
    method, call = site.method, site.call
    given, out = _input_of(site), call.args[-1]

    def line(index: int, *, place: int | None) -> TensorValue:
        return replace(
            method.tensor(index),
            sizes=(ITEMS,),
            dim_order=(0,),
            data_buffer_index=int(place is None),
            allocation=None if place is None else Allocation(memory_id=1, offset_bytes=place),
        )

    scratch, (x, y) = with_slots(
        method, (line(given, place=None), items), (line(out, place=0), None)
    )
    renamed = {given: x, out: y}
    call = replace(call, args=tuple(renamed.get(a, a) for a in call.args), outs=(y,))
    results = results_of(scratch, call, method.written)
    if results is None:
        raise UnknownCallError
    return results[y]


# Islands of floats become a table, or nothing.


def is_quantize(call: LinkedCall) -> bool:
    """Whether a call may end an island."""
    return call.function in QUANTIZE


def cancel_quantize(method: LinkedMethod, context: Context) -> LinkedMethod:
    """Remove islands of floats that give back the int8 items that they are made of.

    Other islands become tables, which the device's loader has no kernel for.
    """
    has_tables = context.plans and not context.modest
    return at_each_call(method, partial(_cancelled, has_tables=has_tables), grows=has_tables)


def _cancelled(site: Site, *, has_tables: bool) -> Site | None:
    table = table_at(site) if is_quantize(site.call) else None
    if table is None:
        return None
    if not table.is_identity:
        return as_one_call(site, table) if has_tables and _may_be_table(site, table) else None
    # Readers of the results read the items themselves.
    joined = as_one_call(site, table)
    return joined.without_copy(view_of(joined.method, table)) if joined else None


def _may_be_table(site: Site, table: Table) -> bool:
    """Whether the library of the call has tables, for tensors like these."""
    source, out = map(site.method.tensor, (table.source, table.out))
    is_alike = (source.sizes, source.dim_order) == (out.sizes, out.dim_order)
    return site.call.function.startswith("orch::cortex_m::") and is_alike
