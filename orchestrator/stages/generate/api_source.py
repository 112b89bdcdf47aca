"""Memory and functions behind include/<profile>.h."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator.core.artifact import GeneratedFile
from orchestrator.pte.linked import LinkedCall
from orchestrator.pte.values import StringValue, TensorValue
from orchestrator.stages.generate.accessors import accessors
from orchestrator.stages.generate.caller import (
    check_memory,
    clear_memory,
    set_memory,
)
from orchestrator.stages.generate.external import external_symbols, external_table
from orchestrator.stages.generate.load_function import load_function
from orchestrator.stages.generate.ports import (
    ApiMethod,
    Port,
    accessor,
    api_methods,
    c_parameters,
    is_data,
    memory_of,
    run_at_parameters,
    run_parameters,
)
from orchestrator.stages.generate.prelinked import (
    constant_symbol,
    constants_of,
    prelinked_block,
)
from orchestrator.stages.generate.shared import (
    arena_blocks,
    extra_includes,
    start_declarations,
    start_definitions,
    start_function,
)
from orchestrator.stages.generate.tables import kernel_declaration, model_symbol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from orchestrator.core.memory import MemoryPlan, MethodMemory
    from orchestrator.pte.linked import LinkedMethod
    from orchestrator.pte.program import Program


def api_source(
    profile: str,
    head: str,
    programs: Mapping[str, Program],
    memory: MemoryPlan,
    linked: Mapping[str, Sequence[LinkedMethod]] = MappingProxyType({}),
) -> GeneratedFile:
    """Memory of every method, the method table, and the functions of the header.

    Args:
        profile: Its name.
        head: For the first line.
        programs: By model name, in the profile's order.
        memory: Sizes of all blocks.
        linked: By name of a prelinked model: its methods in the program's order.
    """
    methods = api_methods(profile, programs)
    constants = {name: constants_of(of_model) for name, of_model in linked.items()}
    symbols = "\n".join(
        f"extern const uint8_t {symbol}[];"
        for name in programs
        for symbol in (
            [constant_symbol(name, i) for i in range(len(constants[name]))]
            if name in linked
            else [model_symbol(name), *external_symbols(programs, name)]
        )
    )
    functions_called = sorted(
        {
            i.function
            for of_model in linked.values()
            for m in of_model
            for i in m.instructions
            if isinstance(i, LinkedCall)
        }
    )
    declarations = "".join(f"{kernel_declaration(f)}\n" for f in functions_called)
    blocks = "\n\n".join(
        _prelinked(m, memory_of(memory, m), linked[m.model], constants[m.model])
        if m.model in linked
        else _blocks(m, memory_of(memory, m))
        for m in methods
    )
    entries = "\n\n".join(
        [
            *start_declarations(methods, memory),
            *(_method(m, programs, linked, memory_of(memory, m)) for m in methods),
            *start_definitions(methods, memory, linked),
        ]
    )
    table = ", ".join(f"&{m.base}_method" for m in methods)
    tables = (
        f"static constexpr const ModelMethod* kMethodTable[{len(methods)}] ="
        f" {{{table}}};\n"
        "extern constexpr Span<const ModelMethod* const> kModelMethods{kMethodTable};"
        if methods
        else "extern constexpr Span<const ModelMethod* const> kModelMethods{};"
    )
    functions = "\n\n".join(_functions(m, is_linked=m.model in linked) for m in methods)
    data = f"{found}\n\n" if (found := external_table(programs, linked)) else ""
    data_span = (
        "extern constexpr Span<const ModelData> kModelData{kDataTable};\n"
        if data
        else ""
    )
    include = extra_includes(methods, memory)
    text = f"""\
// {head}

#include "{profile}.h"

#include "orch/model.h"
{include}
extern "C" {{
{symbols}
}}

{declarations}
namespace orch {{
namespace {{

{blocks}

{entries}

{data}}}  // namespace

/// Read by the runner application.
extern const Span<const ModelMethod* const> kModelMethods;
{tables}
{data_span}
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
        f"                      + {words} * sizeof(int32_t)\n"
        f"                  == {method.base.upper()}_STATE_BYTES,\n"
        '              "the plan knows the size of the method state");',
        f"alignas(kStateAlignment) uint8_t {method.base}_state[{memory.state_bytes}];"
        if memory.state_bytes
        else "",
        f"LoadedMethod {method.base}_loaded;",
    ]
    lines += arena_blocks(method, memory)
    if memory.arenas:
        spans = ", ".join(
            f"Span<uint8_t>({method.base}_arena{a.memory_id}, {a.size_bytes})"
            if a.shared
            else f"Span<uint8_t>({method.base}_arena{a.memory_id})"
            if a.size_bytes
            else "Span<uint8_t>()"
            for a in memory.arenas
        )
        lines.append(f"constexpr Span<uint8_t> {method.base}_arenas[] = {{{spans}}};")
    return "\n".join(line for line in lines if line)


def _prelinked(
    method: ApiMethod,
    memory: MethodMemory,
    methods: Sequence[LinkedMethod],
    constants: Sequence[bytes],
) -> str:
    lines = [f"LoadedMethod {method.base}_loaded;", *arena_blocks(method, memory)]
    lines += [
        prelinked_block(methods[method.index], method.base, constants),
        f"static_assert({method.base}_prelinked.state_bytes\n"
        f"                  == {method.base.upper()}_STATE_BYTES,\n"
        '              "the plan knows the size of what changes");',
    ]
    return "\n".join(lines)


def _method(
    method: ApiMethod,
    programs: Mapping[str, Program],
    linked: Collection[str],
    memory: MethodMemory,
) -> str:
    """The method as the functions below see it.

    Each is an object of its own, so that the linker drops what is not used.
    """
    m = method.method
    start = start_function(method) if any(a.shared for a in memory.arenas) else ""
    if method.model in linked:
        return (
            f"constexpr ModelMethod {method.base}_method = {{\n"
            f'    "{method.model}", "{m.name}", {{}}, {method.index}, {{}}, {{}},\n'
            f"    &{method.base}_loaded, &{method.base}_prelinked,"
            f" {start or 'start_prelinked'}}};"
        )
    state = f"{method.base}_state" if m.values or m.instructions else ""
    arenas = f"{method.base}_arenas" if len(m.arena_bytes) > 1 else ""
    size = programs[method.model].size_bytes
    return (
        f"constexpr ModelMethod {method.base}_method = {{\n"
        f'    "{method.model}", "{m.name}",'
        f" {{{model_symbol(method.model)}, {size}}}, {method.index},\n"
        f"    {{{state}}}, {{{arenas}}}, &{method.base}_loaded, nullptr,"
        f" {start or 'load_linked'}}};"
    )


def _functions(method: ApiMethod, *, is_linked: bool) -> str:
    entry = f"orch::{method.base}_method"
    ports = [p for p in method.ports if is_data(p)]
    inputs = [p for p in ports if p.is_input]
    outputs = [p for p in ports if not p.is_input]
    parameters = _defined(c_parameters(method))
    body = [
        f"orch_status {method.base}({parameters}) {{",
        f"  const orch::ModelMethod& method = {entry};",
        "  orch::Error error = orch::prepare(method);",
    ]
    for port in inputs:
        if port.is_given:
            body += [*set_memory(port), *_resized(port)]
        elif isinstance(port.value, TensorValue):
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
    for port in outputs:
        body += set_memory(port) if port.is_given else ()
    body += [
        *check_memory(method),
        "  if (error == orch::Error::Ok) {",
        "    error = orch::execute(method.loaded->image).error;",
        "  }",
    ]
    for port in outputs:
        if port.is_given and not _resized(port):
            continue  # it is where it belongs
        body += [
            "  if (error == orch::Error::Ok) {",
            *(f"    {line}" for line in _get_output(port)),
            "  }",
        ]
    body += [*clear_memory(method), "  return status(error);", "}"]
    body += accessors(entry, method, ports)
    body += [
        "",
        f"orch_status {method.base}_run({_defined(run_parameters(method))}) {{",
        *_prepared(entry, inputs),
        *check_memory(method),
        "  if (error == orch::Error::Ok) {",
        "    error = orch::execute(method.loaded->image).error;",
        "  }",
        "  return status(error);",
        "}",
        "",
        f"orch_status {method.base}_run_at({_defined(run_at_parameters(method))}) {{",
        *_prepared(entry, inputs),
        "  *instruction = UINT32_MAX;",
        *check_memory(method),
        "  if (error == orch::Error::Ok) {",
        "    const orch::RunStatus run = orch::execute(method.loaded->image);",
        "    error = run.error;",
        "    if (error != orch::Error::Ok) *instruction = run.instruction;",
        "  }",
        "  return status(error);",
        "}",
    ]
    if not is_linked:
        body += ["", *load_function(entry, method)]
    return "\n".join(body)


def _prepared(entry: str, inputs: list[Port]) -> list[str]:
    """A loaded method with everything that is not written through a pointer."""
    body = [
        f"  const orch::ModelMethod& method = {entry};",
        "  orch::Error error = orch::prepare(method);",
    ]
    for port in inputs:
        body += _resized(port)
        if not isinstance(port.value, TensorValue):
            body += [
                "  if (error == orch::Error::Ok) {",
                f"    {_set_scalar(port)}",
                "  }",
            ]
    return body


def _resized(port: Port) -> list[str]:
    """Gives an input whose sizes change those that the caller told."""
    if not (isinstance(port.value, TensorValue) and port.value.is_dynamic):
        return []
    return [
        "  if (error == orch::Error::Ok) {",
        f"    error = orch::resize(orch::input(method, {port.index}).tensor(),",
        f"                         {{{port.name}_sizes, {len(port.value.sizes)}}});",
        "  }",
    ]


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
    if port.is_given:
        return [f"orch::get_sizes(method, {port.index}, {port.name}_sizes);"]
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
