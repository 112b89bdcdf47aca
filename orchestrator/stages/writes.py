"""Check that no kernel call writes where it must not: into a constant.

The device refuses such programs at load; a profile that builds must not get there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, ModelError, SourceSpan
from orchestrator.pte.caller import caller_outputs
from orchestrator.pte.program import KernelCall, MoveCall
from orchestrator.pte.values import (
    OptionalTensorListValue,
    TensorListValue,
    TensorValue,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from orchestrator.core.operator import OperatorName, OpSchema
    from orchestrator.core.resolution import Resolution
    from orchestrator.pte.program import Method, Program

_LISTS = (TensorListValue, OptionalTensorListValue)


def check_writes(
    programs: Mapping[str, Program],
    resolution: Resolution,
    spans: Mapping[str, SourceSpan],
) -> None:
    """Refuse programs that write into constants.

    A value that a move replaces counts as one: it may come to share the memory of a
    constant. The rule is that of runtime/src/find_kernel.cpp.

    Args:
        programs: By model name.
        resolution: Has the op schema of every operator that is called.
        spans: By model name, the profile line that names it.

    Raises:
        ModelError: With every such call (`write-to-constant`).
    """
    schemas = {operator.name: operator.schema for operator in resolution.operators}
    problems = [
        Diagnostic(
            code="write-to-constant",
            message=f'model "{model}" writes into memory that must not change',
            where=spans.get(model),
            notes=(
                ("found", f"method {method.name}, instruction {instruction}, {what}"),
            ),
            hint="export the model again; if it was exported just now, report it to"
            " ExecuTorch",
        )
        for model, program in programs.items()
        for method in program.methods
        for instruction, what in _writes(method, schemas)
    ]
    if problems:
        raise ModelError(problems)


def _writes(
    method: Method, schemas: Mapping[OperatorName, OpSchema]
) -> Iterator[tuple[int, str]]:
    moved = {i.target for i in method.instructions if isinstance(i, MoveCall)}
    given = caller_outputs(method)
    for number, call in enumerate(method.instructions):
        if not isinstance(call, KernelCall):
            continue
        schema = schemas.get(method.operators[call.operator])
        for position, what in _written(schema) if schema else ():
            index = call.args[position]
            found = method.values[index]
            items = found.items if isinstance(found, _LISTS) else (index,)
            for item in items:
                value = method.values[item]
                if isinstance(value, TensorValue) and (
                    item in moved or not (value.is_planned or item in given)
                ):
                    yield number, f"{what} (value {item})"


def _written(schema: OpSchema) -> Iterator[tuple[int, str]]:
    """Position and name of what a call writes: out arguments, or else the result."""
    outs = [(n, a) for n, a in enumerate(schema.arguments) if a.is_out]
    yield from ((n, f'argument "{a.name}"') for n, a in outs)
    if not outs and schema.result is not None:
        yield len(schema.arguments), "the result"
