"""Calls that their kernel would reject: conditions, checked before the program runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping

from orchestrator.catalog.entry import Catalog
from orchestrator.catalog.expressions.condition import named_arguments, refusal
from orchestrator.catalog.expressions.values import Changing, Range, TensorFacts, Value
from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import Kernel, KernelKey
from orchestrator.core.operator import OperatorName
from orchestrator.errors import KernelError, SourceSpan
from orchestrator.program.program import KernelCall, Program
from orchestrator.selection.call import MethodFacts, argument_facts
from orchestrator.selection.op_info import OpInfo, Origin
from orchestrator.selection.resolution import Binding, Resolution
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


# `resolution.json`: what is linked, and why.


def resolution_json(resolution: Resolution) -> str:
    """Canonical JSON text of a resolution, ending in a newline.

    It holds no paths but those of sources, which are relative to their library, and no
    line numbers, so it changes only if what is linked changes.
    """
    document = {
        "schema": 1,
        "operators": [
            {
                "operator": str(operator.name),
                "schema": operator.schema.text,
                "kernels": [_kernel(binding) for binding in operator.bindings],
            }
            for operator in resolution.operators
        ],
        "sources": [
            {"library": library, "files": list(files)} for library, files in resolution.sources
        ],
        "delegates": [
            {
                "backend": delegate.code.backend,
                "namespace": delegate.code.namespace,
                "sources": list(delegate.code.sources),
                "state_bytes": delegate.code.state_bytes,
                **({"named_data": True} if delegate.code.named_data else {}),
                "origins": _origins(delegate.origins),
            }
            for delegate in resolution.delegates
        ],
        "missing": [
            {"name": missing.name, "reason": missing.reason, "origins": _origins(missing.origins)}
            for missing in resolution.missing
        ],
        "table": [
            {
                "operator": str(entry.operator),
                "key": None if entry.key is None else str(entry.key),
                "function": entry.function,
                "signature": entry.signature,
                "dtypes": _names(entry.dtypes),
            }
            for entry in resolution.table_entries
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _kernel(binding: Binding) -> dict[str, object]:
    return {
        "library": binding.kernel.library,
        "function": binding.kernel.function,
        "sources": sorted(binding.kernel.sources),
        "keys": [str(key) for key in binding.keys],
        "dtypes": _names(binding.dtypes),
        "argument_dtypes": {n: _names(dtypes) for n, dtypes in binding.argument_dtypes},
        "every_dtype": binding.every_dtype,
        "origins": _origins(binding.origins),
    }


def _names(dtypes: Iterable[ScalarType]) -> list[str]:
    return [dtype.name for dtype in sorted(dtypes)]


def _origins(origins: Iterable[Origin]) -> list[dict[str, object]]:
    """One item per method, with all of its instructions, or per profile key."""
    methods: dict[tuple[str, str], list[int]] = {}
    for origin in origins:
        key = (origin.source, origin.method)
        methods.setdefault(key, []).append(origin.instruction)
    return [
        {"source": source, "method": method, "instructions": [i for i in instructions if i >= 0]}
        if method
        else {"source": source}
        for (source, method), instructions in methods.items()
    ]
