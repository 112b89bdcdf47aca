"""Expressions for the sizes of scratch arguments, in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from orchestrator.catalog.cmsis_nn import Backend
from orchestrator.catalog.expressions.reader import compiled
from orchestrator.catalog.expressions.values import ExpressionError, Kind, Undecided
from orchestrator.core.operator import OpSchema

if TYPE_CHECKING:
    from orchestrator.catalog.expressions.values import Value

_MAX_BYTES = 2**31 - 1


def check_size(text: str, schema: OpSchema) -> None:
    """Read an expression for a scratch argument of an operator.

    Raises:
        ExpressionError: The expression is invalid.
    """
    compiled(text, schema, Kind.NUMBER)


def scratch_bytes(text: str, schema: OpSchema, arguments: Mapping[str, Value], isa: str) -> int:
    """Compute the size of a scratch argument of a call.

    Args:
        text: An expression that `check_size` accepts for this schema.
        schema: Schema of the operator.
        arguments: By name, all that sizes may depend on; None for a missing one. Those
            that the program computes are left out.
        isa: One of `ISAS`.

    Raises:
        ExpressionError: There is no result: the arguments do not fit the expression.
    """
    size = compiled(text, schema, Kind.NUMBER)({**arguments, "isa": Backend(isa)})
    if not isinstance(size, int):
        raise Undecided("it is known only when the program runs")
    if not 0 <= size <= _MAX_BYTES:
        raise ExpressionError(f"it gives {size} bytes")
    return size
