"""Scratch memory of a program on a firmware that came before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.catalog.expressions.scratch_size import scratch_bytes
from orchestrator.catalog.expressions.values import ExpressionError
from orchestrator.compat.firmware import ScratchRule
from orchestrator.core.operator import parse_schema
from orchestrator.errors import Diagnostic
from orchestrator.program.program import KernelCall
from orchestrator.program.values import TensorValue
from orchestrator.selection.call_facts import MethodFacts, call_arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.compat.firmware import Firmware
    from orchestrator.program.program import Method
    from orchestrator.selection.resolution import Resolution


def scratch_rules(resolution: Resolution, isa: str) -> tuple[ScratchRule, ...]:
    """Sizes of scratch arguments that are not always 0, by operator and argument.

    Args:
        resolution: Has the kernels.
        isa: Of the target.
    """
    rules = {
        (str(kernel.operator), argument): ScratchRule(
            operator=kernel.operator,
            argument=argument,
            isa=isa,
            expression=expression,
            schema=kernel.schema.text,
        )
        for operator in resolution.operators
        for binding in operator.bindings
        for kernel in (binding.kernel,)
        for argument, expression in kernel.scratch
        if expression != "0"
    }
    return tuple(rules[key] for key in sorted(rules))


def scratch_problems(
    firmware: Firmware, method: Method, *, name: str
) -> Iterator[Diagnostic]:
    """Calls whose scratch tensors are smaller than the firmware's kernels need.

    Args:
        firmware: What there is.
        method: Of the new program.
        name: Of program and method, for messages.
    """
    facts = MethodFacts.of(method)
    for number, call in enumerate(method.instructions):
        if not isinstance(call, KernelCall):
            continue
        for rule in firmware.scratch:
            if rule.operator != method.operators[call.operator]:
                continue
            schema = parse_schema(rule.schema)
            names = [argument.name for argument in schema.arguments]
            scratch = method.values[call.args[names.index(rule.argument)]]
            if not isinstance(scratch, TensorValue):
                continue
            arguments = call_arguments(method, call, schema, facts)
            try:
                needs = scratch_bytes(rule.expression, schema, arguments, rule.isa)
            except ExpressionError as error:
                found: tuple[tuple[str, str], ...] = (("found", str(error)),)
            else:
                if needs <= scratch.size_bytes:
                    continue
                found = (
                    ("needs", f"{needs} bytes with {rule.isa}"),
                    ("found", f"{scratch.size_bytes} bytes in the program"),
                )
            yield Diagnostic(
                code="update-scratch",
                message=f"{name}: instruction {number}, {rule.operator}, has too little"
                f" scratch memory in {rule.argument}",
                notes=found,
                hint="export the program for the core of the firmware, or build it with"
                " the firmware's profile and ship models/ of the build folder",
            )
