"""The API a firmware engineer sees: include/<profile>.h and its implementation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.core.artifact import GeneratedFile
from orchestrator.core.dtype import ScalarType
from orchestrator.core.memory import arena_section
from orchestrator.pte.values import (
    BoolValue,
    DoubleValue,
    IntValue,
    StringValue,
    TensorValue,
    Value,
)
from orchestrator.stages.generate.tables import model_symbol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from orchestrator.core.memory import MemoryPlan, MethodMemory
    from orchestrator.pte.program import Method, Program

C_TYPES = {
    ScalarType.Byte: "uint8_t",
    ScalarType.Char: "int8_t",
    ScalarType.Short: "int16_t",
    ScalarType.Int: "int32_t",
    ScalarType.Long: "int64_t",
    ScalarType.Half: "uint16_t",
    ScalarType.Float: "float",
    ScalarType.Double: "double",
    ScalarType.Bool: "uint8_t",
    ScalarType.BFloat16: "uint16_t",
    ScalarType.UInt16: "uint16_t",
    ScalarType.UInt32: "uint32_t",
    ScalarType.UInt64: "uint64_t",
}
"""C type of a tensor's elements. Half and BFloat16 are bit patterns, Bool is 0 or 1."""

_SCALARS = {IntValue: "int64_t", DoubleValue: "double", BoolValue: "uint8_t"}
_GETTERS = {IntValue: "to_int", DoubleValue: "to_double", BoolValue: "to_bool"}


@dataclass(frozen=True, slots=True)
class _Port:
    """An input or output of a method."""

    index: int
    value: Value
    is_input: bool

    @property
    def name(self) -> str:
        return f"{'input' if self.is_input else 'output'}{self.index}"

    @property
    def comment(self) -> str:
        """`float32-like [1, 12]`, with what else a caller must know."""
        if not isinstance(self.value, TensorValue):
            return type(self.value).__name__.removesuffix("Value").lower()
        text = f"{self.value.dtype.name} {list(self.value.sizes)}"
        if not self.value.is_contiguous:
            text += f", in memory in dim order {list(self.value.dim_order)}"
        if self.value.is_dynamic:
            text += ", sizes are upper bounds"
        return text


@dataclass(frozen=True, slots=True)
class _Method:
    """A method with the names its functions go by."""

    model: str
    method: Method
    base: str
    index: int

    @property
    def ports(self) -> list[_Port]:
        """Inputs, then outputs; None is no port."""
        m = self.method
        ports = [_Port(i, m.values[v], True) for i, v in enumerate(m.inputs)]
        ports += [_Port(i, m.values[v], False) for i, v in enumerate(m.outputs)]
        return [p for p in ports if _is_port(p.value)]


def _is_port(value: Value) -> bool:
    return isinstance(value, TensorValue | StringValue) or type(value) in _SCALARS


def identifier(name: str) -> str:
    """A profile, model or method name as part of a C identifier."""
    return "".join(c if c.isalnum() else "_" for c in name)


def _methods(profile: str, programs: Mapping[str, Program]) -> list[_Method]:
    return [
        _Method(
            model,
            method,
            f"{identifier(profile)}_{model}_{identifier(method.name)}",
            index,
        )
        for model, program in programs.items()
        for index, method in enumerate(program.methods)
    ]


def _memory_of(memory: MemoryPlan, method: _Method) -> MethodMemory:
    return next(
        x
        for model in memory.models
        for x in model.methods
        if x.model == method.model and x.method == method.method.name
    )


def api_header(
    profile: str, head: str, programs: Mapping[str, Program], memory: MemoryPlan
) -> GeneratedFile:
    """The public header: constants for every buffer, typed functions, C and C++."""
    guard = f"{identifier(profile).upper()}_H_"
    methods = _methods(profile, programs)
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
    parts += [_c_method(m, _memory_of(memory, m)) for m in methods]
    parts += [
        "#ifdef __cplusplus\n}  // extern \"C\"",
        *(_cpp_method(profile, m) for m in methods),
        "#endif",
        "#undef ORCH_AT_LEAST",
        f"#endif /* {guard} */",
    ]
    return GeneratedFile(f"gen/include/{profile}.h", "\n\n".join(parts) + "\n")


def _c_method(method: _Method, memory: MethodMemory) -> str:
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
        f"orch_status {method.base}({_c_parameters(method)});"
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
    lines.append(f"orch_status {method.base}_run({_run_parameters(method)});")
    return "\n".join(lines)


def _parameter(port: _Port, *, bound: str) -> Iterable[str]:
    """Declarations of a port's parameters; `bound` formats an array length."""
    value, name = port.value, port.name
    if isinstance(value, TensorValue):
        const = "const " if port.is_input else ""
        length = bound.format(max(value.numel, 1))
        array = f"(&{name})[{length}]" if bound == "{}" else f"{name}[{length}]"
        if bound == "{}" and value.is_dynamic:
            array = f"*{name}"  # the caller has what the sizes say
        yield f"{const}{C_TYPES[value.dtype]} {array}"
        if value.is_dynamic:
            rank = bound.format(max(len(value.sizes), 1))
            sizes = f"(&{name}_sizes)" if bound == "{}" else f"{name}_sizes"
            yield f"{const}int32_t {sizes}[{rank}]"
    elif isinstance(value, StringValue):
        yield f"const char** {name}"
        yield f"uint32_t* {name}_length"
    else:
        star = "" if port.is_input else "*"
        yield f"{_SCALARS[type(value)]}{star} {name}"  # type: ignore[index]  # is a port


def _is_data(port: _Port) -> bool:
    return not (port.is_input and isinstance(port.value, StringValue))


def _c_parameters(method: _Method) -> str:
    parameters = [
        text
        for port in method.ports
        if _is_data(port)
        for text in _parameter(port, bound="ORCH_AT_LEAST({})")
    ]
    return ", ".join(parameters) or "void"


def _run_parameters(method: _Method) -> str:
    """Run takes what is not written through a pointer: scalars and changing sizes."""
    parameters = []
    for port in method.ports:
        if not port.is_input or not _is_data(port):
            continue
        declarations = list(_parameter(port, bound="ORCH_AT_LEAST({})"))
        is_tensor = isinstance(port.value, TensorValue)
        parameters += declarations[1:] if is_tensor else declarations
    return ", ".join(parameters) or "void"


def _cpp_method(profile: str, method: _Method) -> str:
    ports = [p for p in method.ports if _is_data(p)]
    parameters = ", ".join(t for p in ports for t in _parameter(p, bound="{}"))
    arguments = ", ".join(_argument_names(ports))
    return (
        f"namespace {identifier(profile)}::{method.model} {{\n"
        f"/// {method.base} with arrays of checked length.\n"
        f"inline orch_status {identifier(method.method.name)}({parameters}) {{\n"
        f"  return {method.base}({arguments});\n"
        "}\n"
        f"}}  // namespace {identifier(profile)}::{method.model}"
    )


def _argument_names(ports: list[_Port]) -> Iterable[str]:
    for port in ports:
        yield port.name
        if isinstance(port.value, TensorValue) and port.value.is_dynamic:
            yield f"{port.name}_sizes"
        elif isinstance(port.value, StringValue):
            yield f"{port.name}_length"


def api_source(
    profile: str, head: str, programs: Mapping[str, Program], memory: MemoryPlan
) -> GeneratedFile:
    """Memory of every method, the method table, and the functions of the header."""
    methods = _methods(profile, programs)
    symbols = "\n".join(
        f"extern const uint8_t {model_symbol(name)}[];" for name in programs
    )
    blocks = "\n\n".join(_blocks(m, _memory_of(memory, m), programs) for m in methods)
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

namespace {{

orch_status status(orch::Error error) {{ return static_cast<orch_status>(error); }}

}}  // namespace

extern "C" {{

{functions}

}}  // extern "C"
"""
    return GeneratedFile("gen/src/api.cpp", text)


def _blocks(method: _Method, memory: MethodMemory, programs: object) -> str:
    del programs
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


def _table_entry(method: _Method, programs: Mapping[str, Program]) -> str:
    m = method.method
    state = f"{method.base}_state" if m.values or m.instructions else ""
    arenas = f"{method.base}_arenas" if len(m.arena_bytes) > 1 else ""
    size = programs[method.model].size_bytes
    return (
        f'    {{"{method.model}", "{m.name}",'
        f" {{{model_symbol(method.model)}, {size}}}, {method.index},\n"
        f"     {{{state}}}, {{{arenas}}}, &{method.base}_loaded}}"
    )


def _functions(index: int, method: _Method) -> str:
    entry = f"orch::kMethodTable[{index}]"
    ports = [p for p in method.ports if _is_data(p)]
    inputs = [p for p in ports if p.is_input]
    outputs = [p for p in ports if not p.is_input]
    parameters = _defined(_c_parameters(method))
    run_parameters = _defined(_run_parameters(method))
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
        f"orch_status {method.base}_run({run_parameters}) {{",
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
    return "" if parameters == "void" else re.sub(r"ORCH_AT_LEAST\((\d+)\)", r"\1", parameters)


def _set_scalar(port: _Port) -> str:
    setter = _GETTERS[type(port.value)].replace("to_", "set_")  # type: ignore[index]  # is a port
    value = f"{port.name} != 0" if setter == "set_bool" else port.name
    return f"orch::input(method, {port.index}).{setter}({value});"


def _get_output(port: _Port) -> list[str]:
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
    getter = _GETTERS[type(value)]  # type: ignore[index]  # is a port
    return [f"*{port.name} = {source}.{getter}();"]
