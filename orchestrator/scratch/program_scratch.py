"""Scratch memory that the calls of a method need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.catalog.expressions.scratch_size import scratch_bytes
from orchestrator.catalog.expressions.values import ExpressionError
from orchestrator.catalog.scratch_arguments import (
    ScratchRequest,
    entry_of,
    missing_size,
    scratch_arguments,
)
from orchestrator.errors import Diagnostic, KernelError
from orchestrator.program.values import TensorValue
from orchestrator.selection.call_facts import MethodFacts, call_arguments

if TYPE_CHECKING:
    from orchestrator.core.kernel import Kernel
    from orchestrator.program.program import KernelCall, Method


def scratch_requests(
    method: Method,
    call: KernelCall,
    kernel: Kernel,
    isa: str,
    *,
    facts: MethodFacts | None = None,
) -> tuple[ScratchRequest, ...]:
    """What a call needs for its scratch arguments, in order of the op schema.

    An optional one that is None needs nothing. Sizes of tensors that may change are
    their upper bounds.

    Args:
        method: The method.
        call: One of its instructions; it fits the schema.
        kernel: That serves the call.
        isa: Of the target.
        facts: `MethodFacts.of(method)`, for those who ask for many calls.

    Raises:
        KernelError: The kernel does not say how much (`missing-scratch-size`), or its
            expression has no result for this call (`no-scratch-size`).
    """
    given = scratch_arguments(kernel.schema)
    if not given:
        return ()
    expressions = dict(kernel.scratch)
    facts = facts or MethodFacts.of(method)
    arguments = call_arguments(method, call, kernel.schema, facts)
    requests = []
    for position, argument in given:
        index = call.args[position]
        value = method.values[index]
        if not isinstance(value, TensorValue):
            continue
        if argument.name not in expressions:
            raise KernelError(missing_size(kernel))
        try:
            size_bytes = scratch_bytes(
                expressions[argument.name],
                kernel.schema,
                arguments,
                isa,
            )
        except ExpressionError as error:
            problem = _no_size(method, call, kernel, argument.name, str(error))
            raise KernelError(problem) from error
        requests.append(
            ScratchRequest(
                argument=argument.name,
                value=index,
                size_bytes=size_bytes,
                reserved_bytes=value.size_bytes,
                is_private=is_private(value) and facts.uses[index] == 1,
            )
        )
    return tuple(requests)


def is_private(value: TensorValue) -> bool:
    """Whether a tensor that is used once holds nothing but scratch."""
    return value.is_planned and not value.is_dynamic and value.data_buffer_index == 0


def _no_size(
    method: Method, call: KernelCall, kernel: Kernel, argument: str, reason: str
) -> Diagnostic:
    numbers = [n for n, i in enumerate(method.instructions) if i is call]
    place = f"instruction {numbers[0]}, " if numbers else ""
    return Diagnostic(
        code="no-scratch-size",
        message=f"`scratch` of {argument} has no size for a call: {reason}",
        where=entry_of(kernel),
        notes=(
            ("call", f"method {method.name}, {place}{kernel.operator}"),
            ("found", dict(kernel.scratch)[argument]),
        ),
        hint="correct the expression, or export the model again",
    )
