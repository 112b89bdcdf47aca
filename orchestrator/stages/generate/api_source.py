"""Memory and functions behind include/<profile>.h."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from orchestrator.core.artifact import GeneratedFile
from orchestrator.core.memory import arena_section
from orchestrator.pte.values import StringValue, TensorValue
from orchestrator.stages.generate.ports import (
    C_TYPES,
    ApiMethod,
    Port,
    accessor,
    api_methods,
    c_parameters,
    is_data,
    memory_of,
    run_parameters,
)
from orchestrator.stages.generate.tables import model_symbol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.core.memory import MemoryPlan, MethodMemory
    from orchestrator.pte.program import Program


def api_source(
    profile: str, head: str, programs: Mapping[str, Program], memory: MemoryPlan
) -> GeneratedFile:
    """Memory of every method, the method table, and the functions of the header."""
    methods = api_methods(profile, programs)
    symbols = "\n".join(
        f"extern const uint8_t {model_symbol(name)}[];" for name in programs
    )
    blocks = "\n\n".join(_blocks(m, memory_of(memory, m)) for m in methods)
    table = ",\n".join(_table_entry(m, programs) for m in methods)
    tables = (
        f"extern constexpr ModelMethod kMethodTable[{len(methods)}] = {{\n{table}}};\n"
        "extern constexpr Span<const ModelMethod> kModelMethods{kMethodTable};"
        if methods
        else "extern constexpr Span<const ModelMethod> kModelMethods{};"
    )
    functions = "\n\n".join(_functions(i, m) for i, m in enumerate(methods))
    text = f"""\
// {head}

#include "{profile}.h"

#include "orch/model.h"

extern "C" {{
{symbols}
}}

namespace orch {{
namespace {{

{blocks}

}}  // namespace

/// Read by the runner application.
extern const Span<const ModelMethod> kModelMethods;
{tables}

}}  // namespace orch

{_implementation(functions)}"""
    return GeneratedFile("gen/src/api.cpp", text)


def _implementation(functions: str) -> str:
    if not functions:
        return ""  # a product without models
    return f"""\
namespace {{

orch_status status(orch::Error error) {{ return static_cast<orch_status>(error); }}

}}  // namespace

extern "C" {{

{functions}

}}  // extern "C"
"""


def _blocks(method: ApiMethod, memory: MethodMemory) -> str:
    m = method.method
    words = sum(
        1 + len(v.sizes)
        for v in m.values
        if isinstance(v, TensorValue) and v.is_dynamic
    )
    lines = [
        f"static_assert({len(m.values)} * sizeof(Value)"
        f" + {len(m.instructions)} * sizeof(Instruction)\n"
        f"                      + {words} * sizeof(int32_t) == {memory.state_bytes},\n"
        '              "the plan knows the size of the method state");',
        f"alignas(kStateAlignment) uint8_t {method.base}_state[{memory.state_bytes}];"
        if memory.state_bytes
        else "",
        f"LoadedMethod {method.base}_loaded;",
    ]
    for arena in memory.arenas:
        section = arena_section(method.model, m.name, arena.memory_id)
        if arena.size_bytes:
            lines.append(
                "alignas(kArenaAlignment)\n"
                f'__attribute__((section("{section}")))\n'
                f"uint8_t {method.base}_arena{arena.memory_id}"
                f"[{arena.size_bytes}];"
            )
    if memory.arenas:
        spans = ", ".join(
            f"Span<uint8_t>({method.base}_arena{a.memory_id})"
            if a.size_bytes
            else "Span<uint8_t>()"
            for a in memory.arenas
        )
        lines.append(f"constexpr Span<uint8_t> {method.base}_arenas[] = {{{spans}}};")
    return "\n".join(line for line in lines if line)


def _table_entry(method: ApiMethod, programs: Mapping[str, Program]) -> str:
    m = method.method
    state = f"{method.base}_state" if m.values or m.instructions else ""
    arenas = f"{method.base}_arenas" if len(m.arena_bytes) > 1 else ""
    size = programs[method.model].size_bytes
    return (
        f'    {{"{method.model}", "{m.name}",'
        f" {{{model_symbol(method.model)}, {size}}}, {method.index},\n"
        f"     {{{state}}}, {{{arenas}}}, &{method.base}_loaded}}"
    )


def _functions(index: int, method: ApiMethod) -> str:
    entry = f"orch::kMethodTable[{index}]"
    ports = [p for p in method.ports if is_data(p)]
    inputs = [p for p in ports if p.is_input]
    outputs = [p for p in ports if not p.is_input]
    parameters = _defined(c_parameters(method))
    sizes_and_numbers = _defined(run_parameters(method))
    body = [
        f"orch_status {method.base}({parameters}) {{",
        f"  const orch::ModelMethod& method = {entry};",
        "  orch::Error error = orch::prepare(method);",
    ]
    for port in inputs:
        if isinstance(port.value, TensorValue):
            rank = len(port.value.sizes)
            sizes = (
                f"{{{port.name}_sizes, {rank}}}"
                if port.value.is_dynamic
                else f"orch::input(method, {port.index}).tensor().sizes()"
            )
            body += [
                "  if (error == orch::Error::Ok) {",
                f"    error = orch::set_input(method, {port.index}, {port.name},",
                f"                            {sizes});",
                "  }",
            ]
        else:
            body += [
                "  if (error == orch::Error::Ok) {",
                f"    {_set_scalar(port)}",
                "  }",
            ]
    body += [
        "  if (error == orch::Error::Ok) {",
        "    error = orch::execute(method.loaded->image).error;",
        "  }",
    ]
    for port in outputs:
        body += [
            "  if (error == orch::Error::Ok) {",
            *(f"    {line}" for line in _get_output(port)),
            "  }",
        ]
    body += ["  return status(error);", "}"]
    for port in ports:
        if not isinstance(port.value, TensorValue):
            continue
        const = "" if port.is_input else "const "
        c_type = C_TYPES[port.value.dtype]
        side = "input" if port.is_input else "output"
        body += [
            "",
            f"{const}{c_type}* {method.base}_{port.name}(void) {{",
            f"  const orch::ModelMethod& method = {entry};",
            "  if (orch::prepare(method) != orch::Error::Ok) return nullptr;",
            f"  return orch::{side}(method, {port.index}).tensor()"
            f".mutable_data<{c_type}>();",
            "}",
        ]
    body += [
        "",
        f"orch_status {method.base}_run({sizes_and_numbers}) {{",
        f"  const orch::ModelMethod& method = {entry};",
        "  orch::Error error = orch::prepare(method);",
    ]
    for port in inputs:
        if isinstance(port.value, TensorValue) and port.value.is_dynamic:
            rank = len(port.value.sizes)
            body += [
                "  if (error == orch::Error::Ok) {",
                f"    error = orch::resize(orch::input(method, {port.index}).tensor(),",
                f"                         {{{port.name}_sizes, {rank}}});",
                "  }",
            ]
        elif not isinstance(port.value, TensorValue):
            body += [
                "  if (error == orch::Error::Ok) {",
                f"    {_set_scalar(port)}",
                "  }",
            ]
    body += [
        "  if (error == orch::Error::Ok) {",
        "    error = orch::execute(method.loaded->image).error;",
        "  }",
        "  return status(error);",
        "}",
    ]
    return "\n".join(body)


def _defined(parameters: str) -> str:
    """Parameters of a declaration as those of its definition in C++."""
    if parameters == "void":
        return ""
    return re.sub(r"ORCH_AT_LEAST\((\d+)\)", r"\1", parameters)


def _set_scalar(port: Port) -> str:
    kind = accessor(port.value)
    value = f"{port.name} != 0" if kind == "bool" else port.name
    return f"orch::input(method, {port.index}).set_{kind}({value});"


def _get_output(port: Port) -> list[str]:
    value = port.value
    source = f"orch::output(method, {port.index})"
    if isinstance(value, TensorValue):
        sizes = f"{port.name}_sizes" if value.is_dynamic else "nullptr"
        return [
            f"error = orch::get_output(method, {port.index}, {port.name},",
            f"                         {value.size_bytes}, {sizes});",
        ]
    if isinstance(value, StringValue):
        return [
            f"*{port.name} = static_cast<const char*>({source}.list().items);",
            f"*{port.name}_length = {source}.list().count;",
        ]
    return [f"*{port.name} = {source}.to_{accessor(value)}();"]
