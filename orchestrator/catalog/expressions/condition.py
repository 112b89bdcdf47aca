"""Conditions of a kernel on the arguments of a call."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from orchestrator.catalog.cmsis_nn import Backend
from orchestrator.catalog.expressions.reader import compiled
from orchestrator.catalog.expressions.values import ExpressionError, Kind, Undecided
from orchestrator.core.operator import OpSchema

if TYPE_CHECKING:
    from orchestrator.catalog.expressions.values import Value


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Refusal:
    """Why a kernel rejects a call.

    Args:
        condition: The condition that is not met.
        reason: Why it has no result; "" if it is false.
    """

    condition: str
    reason: str = ""


def refusal(
    requires: Iterable[str], schema: OpSchema, arguments: Mapping[str, Value]
) -> Refusal | None:
    """The first condition that a call certainly does not meet.

    Args:
        requires: Conditions of a kernel; its dtypes and dim orders suit the call.
        schema: Of its operator.
        arguments: By name, see `selection.call_facts.argument_facts`.

    Returns:
        None if there is none: then the kernel accepts the call, as far as that can be
        known before the program runs.
    """
    for text in requires:
        try:
            if not compiled(text, schema, Kind.TRUTH)(arguments):
                return Refusal(condition=text)
        except Undecided:
            continue
        # No result: the kernel computes the same numbers, and reports an error.
        except ExpressionError as error:
            return Refusal(condition=text, reason=str(error))
    return None


def holds(requires: Iterable[str], schema: OpSchema, arguments: Mapping[str, Value]) -> bool:
    """Whether a call certainly meets all conditions, whatever a run shows.

    Args:
        requires: Conditions of a kernel; its dtypes and dim orders suit the call.
        schema: Of its operator.
        arguments: By name, see `selection.call_facts.argument_facts`.
    """
    try:
        return all(compiled(t, schema, Kind.TRUTH)(arguments) for t in requires)
    except ExpressionError:  # Undecided is one
        return False


@lru_cache(maxsize=1024)
def named_arguments(text: str, schema: OpSchema) -> tuple[str, ...]:
    """Arguments that a condition names, in the schema's order."""
    names = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    return tuple(a.name for a in schema.arguments if a.name in names)


# Expressions for the sizes of scratch arguments, in bytes.

# Sizes of tensors are 32-bit integers in programs.
_MAX_BYTES = 2**31 - 1


def scratch_bytes(text: str, schema: OpSchema, arguments: Mapping[str, Value], isa: str) -> int:
    """Compute the size of a scratch argument of a call.

    Args:
        text: An expression that gives a number with this schema.
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
