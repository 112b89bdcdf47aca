"""The header a firmware engineer sees: include/<profile>.h."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.core.artifact import GeneratedFile
from orchestrator.pte.values import StringValue, TensorValue
from orchestrator.stages.generate.ports import (
    C_TYPES,
    ApiMethod,
    Port,
    api_methods,
    c_parameters,
    cpp_name,
    identifier,
    is_data,
    memory_of,
    parameter,
    run_parameters,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from orchestrator.core.memory import MemoryPlan, MethodMemory
    from orchestrator.pte.program import Program


def api_header(
    profile: str, head: str, programs: Mapping[str, Program], memory: MemoryPlan
) -> GeneratedFile:
    """The public header: constants for every buffer, typed functions, C and C++."""
    guard = f"{identifier(profile).upper()}_H_"
    methods = api_methods(profile, programs)
    parts = [
        f"/* {head} */",
        f"#ifndef {guard}\n#define {guard}",
        "#include <stdint.h>",
        '#include "orch/status.h"',
        "#ifdef __cplusplus\n"
        "#define ORCH_AT_LEAST(count) count\n"
        'extern "C" {\n'
        "#else\n"
        "#define ORCH_AT_LEAST(count) static count\n"
        "#endif",
        f"/* All static RAM of the models: arenas and method states. */\n"
        f"#define {identifier(profile).upper()}_RAM_BYTES"
        f" {memory.arena_bytes + memory.state_bytes}",
    ]
    parts += [_c_method(m, memory_of(memory, m)) for m in methods]
    parts += [
        '#ifdef __cplusplus\n}  // extern "C"',
        *(_cpp_method(profile, m) for m in methods),
        "#endif",
        "#undef ORCH_AT_LEAST",
        f"#endif /* {guard} */",
    ]
    return GeneratedFile(f"gen/include/{profile}.h", "\n\n".join(parts) + "\n")


def _c_method(method: ApiMethod, memory: MethodMemory) -> str:
    upper = method.base.upper()
    lines = [f"/* Model {method.model}, method {method.method.name}. */"]
    for port in method.ports:
        lines.append(f"/* {port.name}: {port.comment} */")
        if isinstance(port.value, TensorValue):
            count = f"{upper}_{port.name.upper()}_COUNT"
            lines.append(f"#define {count} {port.value.numel}")
    lines += [
        f"#define {upper}_ARENA{a.memory_id}_BYTES {a.size_bytes}"
        for a in memory.arenas
    ]
    lines.append(f"#define {upper}_STATE_BYTES {memory.state_bytes}")
    lines.append(
        "\n/* Copies the inputs in, runs the method, copies the outputs out. */\n"
        f"orch_status {method.base}({c_parameters(method)});"
    )
    lines.append(
        "\n/* The same without copies: write to the inputs, run, read the outputs.\n"
        " * Inputs have to be written before every run: the run reuses their memory.\n"
        " * Pointers are null if the method cannot be loaded; run tells why. */"
    )
    for port in method.ports:
        if isinstance(port.value, TensorValue):
            const = "" if port.is_input else "const "
            c_type = C_TYPES[port.value.dtype]
            lines.append(f"{const}{c_type}* {method.base}_{port.name}(void);")
    lines.append(f"orch_status {method.base}_run({run_parameters(method)});")
    return "\n".join(lines)


def _cpp_method(profile: str, method: ApiMethod) -> str:
    ports = [p for p in method.ports if is_data(p)]
    parameters = ", ".join(t for p in ports for t in parameter(p, bound="{}"))
    arguments = ", ".join(_argument_names(ports))
    space = f"{cpp_name(profile)}::{cpp_name(method.model)}"
    return (
        f"namespace {space} {{\n"
        f"/// {method.base} with arrays of checked length.\n"
        f"inline orch_status {cpp_name(method.method.name)}({parameters}) {{\n"
        f"  return {method.base}({arguments});\n"
        "}\n"
        f"}}  // namespace {space}"
    )


def _argument_names(ports: list[Port]) -> Iterable[str]:
    for port in ports:
        yield port.name
        if isinstance(port.value, TensorValue) and port.value.is_dynamic:
            yield f"{port.name}_sizes"
        elif isinstance(port.value, StringValue):
            yield f"{port.name}_length"
