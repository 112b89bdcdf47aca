"""How a kernel uses each of its arguments, from the op schema alone."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import Final

from orchestrator.catalog.scratch_arguments import is_scratch
from orchestrator.core.operator import OpSchema


class Access(StrEnum):
    """How a kernel accesses an argument, or each tensor of a list.

    Outputs of unknown operators count as `WRITES`: by definition of an out variant its
    kernel does not read them, but nothing guarantees that it writes every item.
    """

    READS = "reads"
    FILLS = "fills"  # writes every item without reading any
    WRITES = "writes"  # writes some items and leaves the others
    UPDATES = "updates"  # reads, and writes some items
    SCRATCH = "scratch"  # undefined before the call and after it


_FILL_OUTPUTS: Final = frozenset(
    {*("aten", "cortex_m", "dim_order_ops", "et_copy", "executorch_prim"), "quantized_decomposed"}
)
"""Namespaces whose operators are defined to write every item of their outputs."""

_EXCEPTIONS: Final = {
    "aten::copy_": Access.FILLS,
    "executorch_prim::et_copy_index.tensor": Access.WRITES,  # one row
}
"""Operators that do not read the positional argument they write."""


def written_positions(schema: OpSchema) -> tuple[int, ...]:
    """Positions of the out arguments; of the result if there are none.

    An instruction repeats its out arguments as results, which kernels do not take.
    """
    outs = tuple(n for n, a in enumerate(schema.arguments) if a.is_out)
    return outs or ((len(schema.arguments),) if schema.result else ())


@lru_cache(maxsize=1024)
def accesses(schema: OpSchema) -> tuple[Access, ...]:
    """How a call uses its arguments, and its result if it has no out arguments."""
    written = written_positions(schema)
    found = [
        Access.SCRATCH if is_scratch(argument) else Access.READS for argument in schema.arguments
    ]
    if len(found) in written:
        return (*found, _output(schema))
    for position in written:
        # `add_(Tensor(a!) self, ...)` reads what it writes; `add.out` does not.
        in_place = position < schema.positional_count
        found[position] = (
            _EXCEPTIONS.get(str(schema.name), Access.UPDATES) if in_place else _output(schema)
        )
    return tuple(found)


def _output(schema: OpSchema) -> Access:
    name = schema.name
    fills = name.namespace in _FILL_OUTPUTS and "empty" not in name.base
    return Access.FILLS if fills else Access.WRITES
