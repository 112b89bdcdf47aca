"""Floats between `dequantize` and `quantize` become a table, or nothing.

The lowering of this project leaves few of them; those of others keep more. The table
has the result for each of 256 items, computed with the bits of the kernels.
"""

from __future__ import annotations

from functools import partial

from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.context import Context
from orchestrator.method.passes.joining import Site, at_each_call
from orchestrator.method.passes.tables import QUANTIZE, Table, as_one_call, table_at, view_of


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
