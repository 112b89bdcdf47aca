"""Floats between `dequantize` and `quantize` become a table, or nothing.

The lowering of this project leaves few of them; those of others keep more. The table
has the result for each of 256 items, computed with the bits of the kernels.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.joining import at_each_call, reads_earlier, without_copy
from orchestrator.method.passes.tables import QUANTIZE, table_at, view_of, with_table
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orchestrator.method.passes.dataflow import Dataflow
    from orchestrator.method.passes.joining import Changed

    Floats = NDArray[np.float64]
    from orchestrator.method.passes.tables import Table


def is_quantize(call: LinkedCall) -> bool:
    """Whether a call may end an island."""
    return call.function in QUANTIZE


def cancel_quantize(method: LinkedMethod, *, planned: bool = False) -> LinkedMethod:
    """Remove islands of floats that give back the int8 items that they are made of.

    Args:
        method: The method.
        planned: Whether memory is planned afterwards. Arenas may then grow, and other
            islands become tables: that is for models that the device does not load.
    """
    return at_each_call(method, partial(_cancelled, planned=planned))


def _cancelled(
    method: LinkedMethod, flow: Dataflow, at: int, call: LinkedCall, *, planned: bool
) -> Changed | None:
    table = table_at(method, flow, at) if is_quantize(call) else None
    if table is not None and table.is_identity:
        return _without(method, flow, table, grows=planned)
    if table is not None and planned and _may_be_table(method, call, table):
        return _looked_up(method, flow, table)
    return None


def as_one_call(
    method: LinkedMethod, flow: Dataflow, table: Table, *, grows: bool
) -> Changed | None:
    """The method where one call, `table.number`, looks items up."""
    if not table.island:
        return method, flow
    method, call = with_table(method, table)
    return reads_earlier(
        method, table.island, table.number, call, table.source, flow=flow, grows=grows
    )


def _without(method: LinkedMethod, flow: Dataflow, table: Table, *, grows: bool) -> Changed | None:
    """The method where readers of the results read the items themselves."""
    joined = as_one_call(method, flow, table, grows=grows)
    if joined is None:
        return None
    method, flow = joined
    view = view_of(method, table)
    return without_copy(method, table.number, view, flow=flow, grows=grows)


def _may_be_table(method: LinkedMethod, call: LinkedCall, table: Table) -> bool:
    """Whether the library of the call has tables, for tensors like these."""
    source, out = method.values[table.source], method.values[table.out]
    return (
        call.function.startswith("orch::cortex_m::")
        and isinstance(source, TensorValue)
        and isinstance(out, TensorValue)
        and (source.sizes, source.dim_order) == (out.sizes, out.dim_order)
    )


def _looked_up(method: LinkedMethod, flow: Dataflow, table: Table) -> Changed | None:
    return as_one_call(method, flow, table, grows=True)
