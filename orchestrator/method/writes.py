"""Check that no kernel call writes into a constant.

The device rejects such programs at load; the build finds them first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.errors import Diagnostic, ModelError, SourceSpan
from orchestrator.method.access import written_positions
from orchestrator.program.caller import caller_outputs, caller_values
from orchestrator.program.interface import with_items
from orchestrator.program.program import KernelCall, Method, MoveCall, Program
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.selection.resolution import Resolution


def check_writes(
    programs: Mapping[str, Program], resolution: Resolution, spans: Mapping[str, SourceSpan]
) -> None:
    """Reject programs that write into constants.

    A value that a move replaces counts as a constant: it may share the memory of a
    constant. runtime/src/find_kernel.cpp has the same rule.

    Args:
        programs: By model name.
        resolution: Has the op schema of every operator that is called.
        spans: By model name, the profile line that names it.

    Raises:
        ModelError: With every such call (`write-to-constant`).
    """
    schemas = {operator.name: operator.schema for operator in resolution.operators}
    problems = [
        Diagnostic.of(
            "write-to-constant",
            f'model "{model}" writes into memory that must not change',
            where=spans.get(model),
            found=f"method {method.name}, {what}",
            hint="export the model again; if it was exported just now, report it to ExecuTorch",
        )
        for model, program in programs.items()
        for method in program.methods
        for what in _writes(method, schemas)
    ]
    if problems:
        raise ModelError(problems)


def _writes(method: Method, schemas: Mapping[OperatorName, OpSchema]) -> Iterator[str]:
    moved = {i.target for i in method.instructions if isinstance(i, MoveCall)}
    given = caller_outputs(method)

    def fixed(indices: Iterable[int]) -> Iterator[int]:
        for index in with_items(method, indices):
            value = method.values[index]
            if isinstance(value, TensorValue) and (
                index in moved or not (value.is_planned or index in given)
            ):
                yield index

    yield from _fixed_inputs(method, moved)
    for number, call in enumerate(method.instructions):
        if not isinstance(call, KernelCall):
            continue
        schema = schemas.get(method.operators[call.operator])
        if schema is None:
            continue
        for position in written_positions(schema):
            what = "the result"
            if position < len(schema.arguments):
                what = f'argument "{schema.arguments[position].name}"'
            for index in fixed([call.args[position]]):
                yield f"instruction {number}, {what} (value {index})"


def _fixed_inputs(method: Method, moved: set[int]) -> Iterator[str]:
    """Inputs that callers cannot write."""
    given = caller_values(method)
    for position, index in enumerate(method.inputs):
        for item in with_items(method, [index]):
            value = method.values[item]
            if isinstance(value, TensorValue) and (
                (item in moved and item not in given) or value.is_constant
            ):
                yield f"input {position} (value {item})"
