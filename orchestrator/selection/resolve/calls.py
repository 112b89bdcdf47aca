"""Calls that their kernel would reject: conditions, checked before the program runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from orchestrator.catalog.expressions.condition import named_arguments, refusal
from orchestrator.catalog.expressions.values import Changing, Range, TensorFacts, Value
from orchestrator.catalog.model import Catalog
from orchestrator.core.kernel import Kernel, KernelKey
from orchestrator.core.operator import OperatorName
from orchestrator.errors import KernelError, SourceSpan
from orchestrator.program.program import KernelCall, Program
from orchestrator.selection.call_facts import MethodFacts, argument_facts
from orchestrator.selection.op_info import OpInfo, Origin
from orchestrator.selection.resolution import Resolution
from orchestrator.selection.resolve.gaps import Gaps


def check_calls(
    programs: Mapping[str, Program],
    infos: Collection[OpInfo],
    resolution: Resolution,
    catalog: Catalog,
    *,
    span_of: Callable[[Origin], SourceSpan | None],
    allow_missing: Collection[str] = (),
) -> None:
    """Every call meets the conditions of the kernel it was given.

    Facts that only a run can show are left to the kernel's own checks; sizes
    of dynamic tensors count with their bounds.

    Args:
        programs: By model.
        infos: Their calls.
        resolution: Which kernel serves which call.
        catalog: Kernels on offer.
        span_of: The profile line of a request.
        allow_missing: Operators whose gaps are no errors.

    Raises:
        KernelError: All calls that do not (`no-kernel-for-arguments`).
    """
    kernels = _kernels(resolution)
    gaps = Gaps(catalog, span_of, None, allow_missing)
    for info in infos:
        program = programs[info.model]
        methods = {method.name: method for method in program.methods}
        facts = {name: MethodFacts.of(method) for name, method in methods.items()}
        for call in info.calls:
            key = call.pattern.key
            kernel = kernels.get((call.operator, key)) or kernels.get((call.operator, None))
            if kernel is None or not kernel.requires:
                continue  # allowed to be missing
            method = methods[call.method]
            instruction = method.instructions[call.instruction]
            if not isinstance(instruction, KernelCall):
                raise TypeError(instruction)
            arguments = argument_facts(
                method.values,
                instruction.args,
                kernel.schema,
                facts[call.method],
                program.data_bytes,
            )
            if found := refusal(kernel.requires, kernel.schema, arguments):
                names = named_arguments(found.condition, kernel.schema)
                shown = [f"{name} {shown_value(arguments[name])}" for name in names]
                origin = Origin(source=info.model, method=call.method, instruction=call.instruction)
                gaps.refused(kernel, found, "; ".join(shown), origin)
    if problems := gaps.diagnostics():
        raise KernelError(problems)


def _kernels(resolution: Resolution) -> dict[tuple[OperatorName, KernelKey | None], Kernel]:
    """The kernel that the device finds for a call, by operator and key."""
    of_function = {
        binding.kernel.function: binding.kernel
        for operator in resolution.operators
        for binding in operator.bindings
    }
    return {
        (entry.operator, entry.key): of_function[entry.function]
        for entry in resolution.table_entries
    }


def shown_value(value: Value) -> str:
    """An argument as messages show it."""
    match value:
        case TensorFacts(dtype=dtype, sizes=sizes, dim_order=order):
            text = f"{dtype.name} {shown_value(sizes)}"
            if order != tuple(range(len(order))):
                text += f" in dim order {','.join(map(str, order))}"
            return text
        case Range(low=low, high=high):
            return f"{low} to {high}"
        case Changing(type=kind):
            return f"a {kind.__name__} that the program computes"
        case tuple():
            return f"[{', '.join(map(shown_value, value))}]"
    return str(value)
