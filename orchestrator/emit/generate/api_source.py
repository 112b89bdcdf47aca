"""Memory and functions behind include/<profile>.h."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.emit.artifact import GeneratedFile
from orchestrator.emit.generate.api_functions import api_functions
from orchestrator.emit.generate.integrity import check_functions, image_function, intact_functions
from orchestrator.emit.generate.names import as_declared
from orchestrator.emit.generate.ports import ApiMethod, api_methods, memory_of
from orchestrator.emit.generate.prelinked import constant_symbol, constant_symbols, prelinked_block
from orchestrator.emit.generate.prepared import prepared_declaration, prepared_header
from orchestrator.emit.generate.random_numbers import random_functions
from orchestrator.emit.generate.shared import (
    arena_blocks,
    common_blocks,
    common_table,
    extra_includes,
    reset_functions,
    sharing,
    start_declarations,
    start_definitions,
    start_function,
)
from orchestrator.emit.generate.tables import (
    external_symbols,
    external_table,
    kernel_declaration,
    model_symbol,
)
from orchestrator.emit.generate.update import update_functions
from orchestrator.memory.plan import MemoryPlan, MethodMemory, own_constants
from orchestrator.method.compact import table_layout
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.profile.choices import CheckImage
from orchestrator.program.program import Method, Program
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.emit.generate.update import UpdateTarget


def api_source(
    profile: str,
    head: str,
    programs: Mapping[str, Program],
    memory: MemoryPlan,
    linked: Mapping[str, Sequence[LinkedMethod]] = MappingProxyType({}),
    *,
    delegates: Mapping[str, int] = MappingProxyType({}),
    integrity: CheckImage = CheckImage.NEVER,
    limits: Mapping[str, int] = MappingProxyType({}),
    schemas: Mapping[OperatorName, OpSchema] = MappingProxyType({}),
    has_random: bool = False,
    updates: Mapping[str, UpdateTarget] = MappingProxyType({}),
) -> GeneratedFile:
    """Memory of every method, the method table, and the functions of the header.

    Args:
        profile: Name of the profile.
        head: Text of the first line.
        programs: By model name, in the profile's order.
        memory: Sizes of all blocks.
        linked: By name of a prelinked model: its methods in the program's order.
        delegates: State bytes of the delegates of the product, by backend.
        integrity: When the product checks that flash holds what was linked.
        limits: By model, the most instructions that a run executes; 0: any number.
        schemas: Schemas of operators that prelinked methods call, for comments.
        has_random: Kernels draw random numbers.
        updates: By model that takes signed updates, which ones.
    """
    checked = integrity is not CheckImage.NEVER
    methods = api_methods(profile, programs, checked=checked, updates=updates)
    own = own_constants(linked)
    constants = constant_symbols(own)
    symbols = "\n".join(
        f"extern const uint8_t {symbol}[];"
        for name in programs
        for symbol in (
            [constant_symbol(name, i) for i in range(len(own[name]))]
            if name in linked
            else [model_symbol(name), *external_symbols(programs, name)]
        )
    )
    calls = [
        i
        for of_model in linked.values()
        for m in of_model
        for i in m.instructions
        if isinstance(i, LinkedCall)
    ]
    declarations = "".join(f"{declared}\n" for declared in _declarations(calls))
    layout = table_layout(programs, linked)
    texts = {
        m.base: prelinked_block(
            linked[m.model][m.index], m.base, constants, layout=layout, schemas=schemas
        )
        for m in methods
        if m.model in linked
    }
    blocks = "\n\n".join(
        _prelinked(m, memory_of(memory, m), texts[m.base].text, memory.alignment)
        if m.model in linked
        else _blocks(m, memory_of(memory, m), delegates, memory.alignment)
        for m in methods
    )
    at_load = integrity is CheckImage.LOAD
    if checked:
        together = {m.base for group in sharing(methods, memory) for m in group}
        ready = [m for m in methods if m.base not in together] if at_load else []
        blocks += "\n\n"
        blocks += intact_functions(methods, programs, linked, texts, ready=ready, layout=layout)
    entries = "\n\n".join(
        [
            *start_declarations(methods, memory),
            *(
                _prelinked_method(m, memory_of(memory, m), at_load=at_load, compact=layout.compact)
                if m.model in linked
                else _method(
                    m, programs, memory_of(memory, m), at_load=at_load, limit=limits.get(m.model, 0)
                )
                for m in methods
            ),
            *start_definitions(methods, memory, linked, checks=at_load),
        ]
    )
    entries += "".join(f"\n\nPartialRun {m.base}_partial;" for m in methods if m.by_rows is None)
    table = ", ".join(f"&{m.base}_method" for m in methods)
    tables = (
        f"static constexpr const ModelMethod* kMethodTable[{len(methods)}] ="
        f" {{{table}}};\n"
        "extern constexpr Span<const ModelMethod* const> kModelMethods{kMethodTable};"
        if methods
        else "extern constexpr Span<const ModelMethod* const> kModelMethods{};"
    )
    functions = [api_functions(m, is_linked=m.model in linked) for m in methods]
    functions += reset_functions(methods, memory, linked)
    functions += [random_functions(profile)] if has_random else []
    functions += [
        update_functions(profile, model, taken, [m for m in methods if m.model == model])
        for model, taken in updates.items()
    ]
    if checked:
        functions += check_functions(profile, methods)
        tables += f"\n\n{image_function(methods, linked)}"
    data = f"{found}\n\n" if (found := external_table(programs, linked)) else ""
    data_span = "extern constexpr Span<const ModelData> kModelData{kDataTable};\n" if data else ""
    includes = '#include "orch/delegate.h"\n' if delegates else ""
    includes += '#include "orch/integrity.h"\n' if checked else ""
    includes += '#include "orch/random.h"\n' if has_random else ""
    includes += '#include "orch/part.h"\n' if methods else ""
    includes += '#include "orch/rows.h"\n' if layout.given_rows else ""
    includes += '#include "orch/check_update.h"\n' if updates else ""
    includes += extra_includes(methods, memory)
    headers = {prepared_header(c.prepared) for c in calls if c.prepared is not None}
    includes += "".join(f'#include "{header}"\n' for header in sorted(headers))
    text = f"""\
// {head}

// The product's namespace may have any name: it must not meet those used here.
#define ORCH_C_ONLY
#include "{profile}.h"

#include "orch/model.h"
{includes}
extern "C" {{
{symbols}
}}

{declarations}
namespace orch {{
namespace {{
{_IN_WORDS if any(delegates.values()) else ""}
{common_blocks(profile, memory)}{blocks}

{entries}

{data}}}  // namespace

/// Read by the runner application.
extern const Span<const ModelMethod* const> kModelMethods;
{tables}
{data_span}{common_table(memory)}
}}  // namespace orch

{_implementation(functions)}"""
    return GeneratedFile("gen/src/api.cpp", text)


def _declarations(calls: Collection[LinkedCall]) -> list[str]:
    """Declarations of the functions that calls name."""
    prepared = {c.function for c in calls if c.prepared is not None}
    return [
        prepared_declaration(f) if f in prepared else kernel_declaration(f)
        for f in sorted({call.function for call in calls})
    ]


def _implementation(functions: Sequence[str]) -> str:
    if not functions:
        return ""  # no models
    text = "\n\n".join(functions)
    return f"""\
{_STATUS if "status(" in text else ""}extern "C" {{

{as_declared(text)}

}}  // extern "C"
"""


_STATUS = """\
namespace {

orch_status status(orch::Error error) { return static_cast<orch_status>(error); }

}  // namespace

"""
_IN_WORDS = """
/// Room for the state of a delegate, and for what is in front of it.
constexpr size_t in_words(size_t bytes) {
  return (bytes + kDelegateStateAlignment - 1) / kDelegateStateAlignment
         * kDelegateStateAlignment;
}
"""


def _state_text(method: Method, delegates: Mapping[str, int]) -> str:
    """The size of a method's state, as a C++ expression over the loader's layout."""
    words = sum(
        1 + len(v.sizes) for v in method.values if isinstance(v, TensorValue) and v.is_dynamic
    )
    text = (
        f"{len(method.values)} * sizeof(Value)"
        f" + {len(method.instructions)} * sizeof(Instruction)\n"
        f"                      + {words} * sizeof(int32_t)"
    )
    if not delegates or not method.delegates:
        return text
    text += f"\n                      + {len(method.delegates)} * sizeof(DelegateHandle)"
    sizes = [delegates.get(d.backend, 0) for d in method.delegates]
    if not any(sizes):
        return text
    states = " + ".join(f"in_words({s})" for s in sizes)
    return f"in_words({text})\n                      + {states}"


def _blocks(
    method: ApiMethod, memory: MethodMemory, delegates: Mapping[str, int], alignment: int
) -> str:
    lines = [
        f"static_assert({_state_text(method.method, delegates)}\n"
        f"                  == {method.base.upper()}_STATE_BYTES,\n"
        '              "the plan knows the size of the method state");',
        f"alignas(kStateAlignment) uint8_t {method.base}_state[{memory.state_bytes}];"
        if memory.state_bytes
        else "",
        f"LoadedMethod {method.base}_loaded;",
    ]
    lines += arena_blocks(method, memory, alignment)
    if memory.arenas:
        spans = ", ".join(
            f"Span<uint8_t>({method.base}_arena{a.memory_id}, {a.size_bytes})"
            if a.shared or a.common
            else f"Span<uint8_t>({method.base}_arena{a.memory_id})"
            if a.size_bytes
            else "Span<uint8_t>()"
            for a in memory.arenas
        )
        lines.append(f"constexpr Span<uint8_t> {method.base}_arenas[] = {{{spans}}};")
    return "\n".join(line for line in lines if line)


def _prelinked(method: ApiMethod, memory: MethodMemory, tables: str, alignment: int) -> str:
    lines = [f"LoadedMethod {method.base}_loaded;"]
    lines += arena_blocks(method, memory, alignment)
    lines += [
        tables,
        f"static_assert({method.base}_prelinked.state_bytes\n"
        f"                  == {method.base.upper()}_STATE_BYTES,\n"
        '              "the plan knows the size of what changes");',
    ]
    return "\n".join(lines)


def _start(method: ApiMethod, memory: MethodMemory) -> str:
    """The function that starts methods that share memory; "" for others."""
    return start_function(method) if any(a.shared for a in memory.arenas) else ""


def _prelinked_method(
    method: ApiMethod, memory: MethodMemory, *, at_load: bool, compact: bool
) -> str:
    """The `ModelMethod` of a prelinked method.

    Each is a separate object, so that the linker can drop unused ones.
    """
    ready = f"{method.base}_ready" if at_load else "start_prelinked"
    name, index = method.method.name, method.index
    loader = f'    "{method.model}", "{name}", {{}}, {index}, {{}}, {{}},\n'
    return (
        f"constexpr ModelMethod {method.base}_method = {{\n"
        f"{'' if compact else loader}"
        f"    &{method.base}_loaded, &{method.base}_prelinked,"
        f" {_start(method, memory) or ready}}};"
    )


def _method(
    method: ApiMethod,
    programs: Mapping[str, Program],
    memory: MethodMemory,
    *,
    at_load: bool,
    limit: int,
) -> str:
    """The `ModelMethod` of a loaded method."""
    m = method.method
    state = f"{method.base}_state" if m.values or m.instructions else ""
    arenas = f"{method.base}_arenas" if len(m.arena_bytes) > 1 else ""
    size = programs[method.model].size_bytes
    ready = f"{method.base}_ready" if at_load else "load_linked"
    last = f",\n    {limit}" if limit else ""
    return (
        f"constexpr ModelMethod {method.base}_method = {{\n"
        f'    "{method.model}", "{m.name}",'
        f" {{{model_symbol(method.model)}, {size}}}, {method.index},\n"
        f"    {{{state}}}, {{{arenas}}}, &{method.base}_loaded, nullptr,"
        f" {_start(method, memory) or ready}{last}}};"
    )
