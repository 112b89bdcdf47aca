"""How a kernel uses each of its arguments, by the op schema alone."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from orchestrator.catalog.scratch_arguments import is_scratch

if TYPE_CHECKING:
    from orchestrator.core.operator import OpSchema


class Access(StrEnum):
    """What a kernel does with an argument; of a list of tensors, with each of them.

    `WRITES` is also the answer for outputs of operators that are not ours to know:
    their kernels do not look at them, but may leave items as they were.
    """

    READS = "reads"
    FILLS = "fills"  # writes every item, whatever it was
    WRITES = "writes"  # writes items and leaves others as they were
    UPDATES = "updates"  # reads, writes items and leaves others as they were
    SCRATCH = "scratch"  # holds nothing before the call and nothing after it


_FILL_OUTPUTS: Final = frozenset(
    {"aten", "cortex_m", "dim_order_ops", "executorch_prim", "quantized_decomposed"}
)
"""Namespaces whose operators are defined to write every item of their outputs."""

_EXCEPTIONS: Final = {
    "aten::copy_": Access.FILLS,
    "executorch_prim::et_copy_index.tensor": Access.WRITES,  # one row
}
"""Operators that use a positional out argument otherwise than by reading it, too."""


def written_positions(schema: OpSchema) -> tuple[int, ...]:
    """Positions of the arguments that a call writes; without any, of its result.

    Out arguments follow once more as the result, which kernels do not see.
    """
    outs = tuple(n for n, a in enumerate(schema.arguments) if a.is_out)
    return outs or ((len(schema.arguments),) if schema.result else ())


@lru_cache(maxsize=1024)
def accesses(schema: OpSchema) -> tuple[Access, ...]:
    """How a call uses its arguments, in order; and its result if it has no out ones."""
    written = written_positions(schema)
    found = [
        Access.SCRATCH if is_scratch(argument) else Access.READS
        for argument in schema.arguments
    ]
    if len(found) in written:
        return (*found, _output(schema))
    for position in written:
        # `add_(Tensor(a!) self, ...)` reads what it writes; `add.out` does not.
        in_place = position < schema.positional_count
        found[position] = (
            _EXCEPTIONS.get(str(schema.name), Access.UPDATES)
            if in_place
            else _output(schema)
        )
    return tuple(found)


def _output(schema: OpSchema) -> Access:
    name = schema.name
    fills = name.namespace in _FILL_OUTPUTS and "empty" not in name.base
    return Access.FILLS if fills else Access.WRITES
