"""The public header: include/<profile>.h."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.core.spelling import packed_version
from orchestrator.emit.artifact import GeneratedFile, comment_text
from orchestrator.emit.generate.api_functions import (
    count_of,
    cpp_instances,
    groups_of,
    instance_functions,
)
from orchestrator.emit.generate.caller import (
    FORWARD_TEXT,
    SET_TEXT,
    cpp_rows,
    cpp_setters,
    has_quantization,
    quantization_lines,
    rows_declarations,
    set_declarations,
)
from orchestrator.emit.generate.integrity import (
    check_declaration,
    check_method_declaration,
    cpp_check,
)
from orchestrator.emit.generate.names import cpp_name, cpp_namespace, with_attributes
from orchestrator.emit.generate.ports import (
    ApiMethod,
    Port,
    api_methods,
    c_item,
    c_parameters,
    c_scalar,
    has_complex,
    memory_of,
    parameter,
    run_at_parameters,
    run_parameters,
    step_parameters,
)
from orchestrator.emit.generate.random_numbers import (
    hook_names,
    random_declarations,
    trace_declarations,
)
from orchestrator.emit.generate.shared import common_constant
from orchestrator.emit.generate.target_check import target_check
from orchestrator.emit.generate.update import update_declarations
from orchestrator.memory.plan import MemoryPlan, MethodMemory, identifier, method_symbol
from orchestrator.program.interface import NUMBER_LISTS
from orchestrator.program.program import Program
from orchestrator.program.values import IntListValue, StringValue, TensorValue

if TYPE_CHECKING:
    from orchestrator.selection.resolution import Missing
    from orchestrator.targets.cores import Target


END: Final = "/* The same sizes in structs: no flash unless they are used. */"
"""Constants that are known after linking are inserted before it."""


def api_header(
    profile: str,
    head: str,
    programs: Mapping[str, Program],
    memory: MemoryPlan,
    missing: Sequence[Missing] = (),
    *,
    linked: Collection[str] = (),
    traced: bool = False,
    checked: bool = False,
    target: Target | None = None,
    limits: Mapping[str, int] = MappingProxyType({}),
    has_random: bool = False,
    instances: Mapping[str, str] = MappingProxyType({}),
    updates: Collection[str] = (),
    steps: Mapping[tuple[str, str], int] = MappingProxyType({}),
    versions: Mapping[str, str] = MappingProxyType({}),
) -> GeneratedFile:
    """The public header: constants for every buffer, typed functions, C and C++.

    Methods of models in `linked` take no other program: they are prelinked. With
    `traced` it declares the hooks, and numbers the methods as these get them; with
    `checked`, the functions that compare flash with what was linked; with `target`
    it does not compile for a core that cannot run the library. `limits`: by model,
    how many instructions a run executes; 0: any number. `has_random`: kernels draw
    random numbers. `instances`: by model that is an instance, what the profile names
    it. `updates`: models that take signed updates. `steps`: by model and method, cycles
    of its longest step. `versions`: by name of a constant.
    """
    guard = f"{identifier(profile).upper()}_H_"
    methods = api_methods(profile, programs, checked=checked, updates=updates)
    parts = [
        f"/* {head} */",
        f"#ifndef {guard}\n#define {guard}",
        f"/** @file\n * Models of {profile}, as functions. */",
        *([target_check(profile, target)] if target else []),
        "#include <stdint.h>",
        *(['#include "orch/complex.h"'] if has_complex(programs) else []),
        *(['#include "orch/quantize.h"'] if has_quantization(methods) else []),
        ('#include "orch/sizes.h"\n' if methods else "")
        + '#include "orch/status.h"'
        + ('\n#include "orch/trace.h"' if traced else "")
        + ('\n#include "orch/update.h"' if updates else ""),
        "#ifdef __cplusplus\n"
        "#define ORCH_AT_LEAST(count) count\n"
        'extern "C" {\n'
        "#else\n"
        "#define ORCH_AT_LEAST(count) static count\n"
        "#endif",
        "#ifdef __cplusplus\n"
        '#define ORCH_ASSERT(what) static_assert(what, "what the build computed")\n'
        "#elif __STDC_VERSION__ >= 201112L\n"
        '#define ORCH_ASSERT(what) _Static_assert(what, "what the build computed")\n'
        "#else /* C99: names that no other product has */\n"
        f"#define ORCH_ASSERTED(line) {identifier(profile)}_asserted_##line\n"
        "#define ORCH_ASSERT_AT(line, what) \\\n"
        "  typedef char ORCH_ASSERTED(line)[(what) ? 1 : -1]\n"
        "#define ORCH_ASSERT(what) ORCH_ASSERT_AT(__LINE__, what)\n"
        "#endif",
        *(_version(profile, name, text) for name, text in versions.items()),
        f"/* All static RAM of the models: arenas and method states. */\n"
        f"#define {identifier(profile).upper()}_RAM_BYTES"
        f" {memory.arena_bytes + memory.state_bytes}",
    ]
    if memory.common:
        sizes = "".join(
            f"\n#define {common_constant(profile, c.name)} {c.size_bytes}" for c in memory.common
        )
        parts.append(
            "/* Arenas of methods overlap here. Methods must not run at the same\n"
            " * time, and a run overwrites inputs and outputs of all other methods:\n"
            f" * read them before. */{sizes}"
        )
    if missing:
        lines = "".join(f" *   {comment_text(str(m))}\n" for m in missing)
        parts.append(
            "/* Not in this product, as its profile allows. Methods that call it do\n"
            f" * not load:\n{lines} */\n"
            f"#define {identifier(profile).upper()}_MISSING {len(missing)}"
        )
    if traced:
        parts.append(trace_declarations(profile, methods))
    if checked:
        parts.append(check_declaration(profile))
    if has_random:
        parts.append(random_declarations(profile))
    texts: dict[str, str] = {}
    for m in methods:
        limit = limits.get(m.model, 0)
        text = _c_method(
            m,
            memory_of(memory, m),
            is_linked=m.model in linked,
            limit=limit,
            step_cycles=steps.get((m.model, m.method.name)),
        )
        if checked:
            text += f"\n\n{check_method_declaration(m)}"
        texts[m.base] = text
    parts += texts.values()
    parts += [update_declarations(profile, model) for model in updates]
    groups = groups_of(methods, instances)
    for model, first in groups.items():
        count = count_of(model, instances)
        parts.append(f"#define {method_symbol(profile, model, 'instances').upper()} {count}")
        parts += [instance_functions(profile, model, count, m, texts[m.base]) for m in first]
    if methods:
        parts.append(_total(profile, methods, memory))
    parts += [
        '#ifdef __cplusplus\n}  // extern "C"\n#endif',
        "#if defined(__cplusplus) && !defined(ORCH_C_ONLY)",
        *([cpp_check(profile, programs)] if checked else []),
        *(_cpp_method(profile, m) for m in methods),
        *(
            cpp_instances(
                profile,
                model,
                m,
                parameters=_cpp_parameters(m),
                arguments=", ".join(_argument_names(m.ports)),
            )
            for model, first in groups.items()
            for m in first
        ),
        "#endif",
        *([_sizes(profile, methods, memory, groups)] if methods else []),
        "#undef ORCH_AT_LEAST\n#undef ORCH_ASSERT\n#undef ORCH_ASSERT_AT\n#undef ORCH_ASSERTED",
        f"#endif /* {guard} */",
    ]
    return GeneratedFile(
        f"gen/include/{profile}.h",
        with_attributes("\n\n".join(parts), users=hook_names(profile).values()) + "\n",
    )


def _version(profile: str, name: str, text: str) -> str:
    """A version as text and, if it is MAJOR.MINOR.PATCH, as a number."""
    constant, packed = f"{identifier(profile).upper()}_{name}", packed_version(text)
    lines = [f'#define {constant} "{text}"']
    lines += [f"#define {constant}_NUMBER 0x{packed:08x}u"] if packed is not None else []
    return "\n".join(lines)


def _constants(method: ApiMethod, memory: MethodMemory) -> list[str]:
    """Constants of a method, with what its inputs and outputs are."""
    upper = method.base.upper()
    lines = [f"/* Model {method.model}, method {method.method.name}. */"]
    lines += [f"/* {comment_text(remark)} */" for remark in method.remarks]
    for port in method.ports:
        lines.append(f"/* {port.name}: {port.comment} */")
        if isinstance(port.value, TensorValue):
            count = f"{upper}_{port.name.upper()}_COUNT"
            lines += [
                f"#define {count} {port.value.numel}",
                f"#define {upper}_{port.name.upper()}_BYTES {port.value.size_bytes}",
                f"ORCH_ASSERT({count} * sizeof({port.c_type})\n"
                f"            == {upper}_{port.name.upper()}_BYTES);",
                *quantization_lines(method, port),
            ]
            for bound in port.bounds:
                name = f"{upper}_{port.name.upper()}_DIM{bound.dim}"
                lines.append(f"#define {name}_MIN {bound.least}")
                lines.append(f"#define {name}_STEP {bound.step}")
        elif isinstance(port.value, NUMBER_LISTS):
            lines.append(f"#define {upper}_{port.name.upper()}_COUNT {port.most_items}")
    lines += [
        f"/* Arena {a.memory_id} holds state that these methods share:"
        f" {', '.join(a.shared)}. They\n"
        " * must not run at the same time. */"
        for a in memory.arenas
        if a.shared
    ]
    lines += [f"#define {upper}_ARENA{a.memory_id}_BYTES {a.size_bytes}" for a in memory.arenas]
    lines.append(f"#define {upper}_STATE_BYTES {memory.state_bytes}")
    lines.append(f"#define {upper}_TEMPORARY_BYTES {memory.temporary_bytes}")
    return lines


def unknown_stack(base: str) -> str:
    """The stack of a method in its sizes, before it is known."""
    return f"0 /* {base}: stack not known */"


def _sizes(
    profile: str,
    methods: Sequence[ApiMethod],
    memory: MemoryPlan,
    groups: Mapping[str, Sequence[ApiMethod]],
) -> str:
    """Constants of each method as one value."""
    lines = [END]
    for method in methods:
        upper = method.base.upper()
        arenas = [f"{upper}_ARENA{a.memory_id}_BYTES" for a in memory_of(memory, method).arenas]
        tensors = [p for p in method.ports if isinstance(p.value, TensorValue)]
        inputs, outputs = (
            [f"{upper}_{p.name.upper()}_BYTES" for p in tensors if p.is_input is side]
            for side in (True, False)
        )
        lines += [
            f"static const orch_sizes {method.base}_sizes = {{",
            f"    {' + '.join(arenas) or 0},",
            f"    {upper}_STATE_BYTES,",
            f"    {upper}_TEMPORARY_BYTES,",
            f"    {' + '.join(inputs) or 0},",
            f"    {' + '.join(outputs) or 0},",
            f"    {unknown_stack(method.base)}}};",
        ]
    lines += [
        f"#define {method_symbol(profile, model, m.method.name)}_sizes {m.base}_sizes"
        for model, first in groups.items()
        for m in first
    ]
    return "\n".join(lines)


def _warm_calls(method: ApiMethod) -> list[str]:
    """Of inputs that are streams."""
    return [
        "/* From this call on, outputs are those of a whole window of"
        f" {port.name}. */\n"
        f"#define {method.base.upper()}_{port.name.upper()}_WARM_CALLS"
        f" {port.border.warm_calls}"
        for port in method.ports
        if port.border is not None and port.border.warm_calls
    ]


def _by_rows(method: ApiMethod, port: Port) -> list[str]:
    """Functions of a method whose input comes by rows."""
    outputs = [p for p in method.ports if not p.is_input]
    return [
        rows_declarations(method, port),
        "\n/* Begins a run, pushes all rows, and copies the outputs out. */\n"
        f"orch_status {method.base}({c_parameters(method)});",
        "\n/* Outputs without copies; null if the method cannot begin. */",
        *(line for output in outputs for line in _accessors(method, output)),
        _reset_text(method),
    ]


def _c_method(
    method: ApiMethod, memory: MethodMemory, *, is_linked: bool, limit: int, step_cycles: int | None
) -> str:
    lines = [*_constants(method, memory), *_warm_calls(method)]
    if method.by_rows is not None:
        return "\n".join([*lines, *_by_rows(method, method.by_rows)])
    if not is_linked:
        lines.append(_limit_text(method.base.upper(), limit))
    does = "\n/* Copies the inputs in, runs the method, copies the outputs out. */\n"
    if method.given:
        does = FORWARD_TEXT
    lines.append(f"{does}orch_status {method.base}({c_parameters(method)});")
    if method.given:
        lines.append(SET_TEXT + "\n".join(set_declarations(method)))
    lines.append(
        "\n/* The same without copies: write to the inputs, run, read the outputs.\n"
        f"{_reuse_text(method)}"
        " * Pointers are null if the method cannot be loaded; run returns why. */"
    )
    if any(not p.is_input and not isinstance(p.value, TensorValue) for p in method.ports):
        lines.append("/* Numbers and counts are 0 then. */")
    for port in method.ports:
        if not port.is_given:
            lines += _accessors(method, port)
    lines.append(
        "/* Runs the method on what its inputs hold. */\n"
        f"orch_status {method.base}_run({run_parameters(method)});"
    )
    lines.append(
        "/* As run, and stores which instruction failed; UINT32_MAX if none did. With\n"
        " * it `orchestrator decode` explains the status. */\n"
        f"orch_status {method.base}_run_at({run_at_parameters(method)});"
    )
    lines.append(
        "\n/* Gets ready to run, which the first call does otherwise. */\n"
        f"orch_status {method.base}_prepare(void);"
    )
    lines.append(
        "\n/* As run, in parts: executes at most so many instructions and returns\n"
        " * ORCH_NOT_DONE, until a call executes the last one. In between, call no\n"
        " * other function of the method, and leave inputs and outputs alone; cancel\n"
        " * gives the run up. */\n"
        f"orch_status {method.base}_step({step_parameters(method)});\n"
        f"void {method.base}_cancel(void);"
    )
    if step_cycles is not None:
        lines.append(
            "/* Cycles of the longest step of one instruction: an estimate, of memory\n"
            " * without wait states. */\n"
            f"#define {method.base.upper()}_STEP_MOST_CYCLES {step_cycles}"
        )
    lines.append(_reset_text(method) if is_linked else _load_text(method))
    return "\n".join(lines)


def _reuse_text(method: ApiMethod) -> str:
    kept = [port.name for port in method.ports if port.is_kept]
    if not kept:
        return " * Inputs have to be written before every run: the run reuses their memory.\n"
    lines = f" * A run leaves {' and '.join(kept)} as it is.\n"
    if len(kept) < sum(port.is_input for port in method.ports):
        lines += (
            " * Other inputs have to be written before every run: the run reuses\n"
            " * their memory.\n"
        )
    return lines


def _limit_text(upper: str, limit: int) -> str:
    if not limit:
        return "/* A run of a program that loops for ever does not end. */"
    return (
        "/* A run ends with ORCH_INSTRUCTION_LIMIT when it has executed so many\n"
        " * instructions of the program and there are more. */\n"
        f"#define {upper}_MAX_INSTRUCTIONS {limit}"
    )


def _load_text(method: ApiMethod) -> str:
    return (
        "\n/* Loads the method out of another program with the same inputs and\n"
        " * outputs: it runs in place of the linked one. It lies at a multiple of\n"
        " * 16 and stays there. If it cannot be loaded, the next call loads the\n"
        " * linked one; to go back to that, load null. Either begins with its\n"
        " * initial state. */\n"
        f"orch_status {method.base}_load(const void* program, uint32_t size);"
    )


def _reset_text(method: ApiMethod) -> str:
    return (
        "\n/* Resets the method, and those that share its state, to the state before\n"
        " * the first call. What was written to inputs is lost. */\n"
        f"orch_status {method.base}_reset(void);"
    )


def _accessors(method: ApiMethod, port: Port) -> Iterable[str]:
    """Declarations of functions that access a port without a copy."""
    name, value = f"{method.base}_{port.name}", port.value
    if isinstance(value, TensorValue):
        const = "" if port.is_input else "const "
        yield f"{const}{port.c_type}* {name}(void);"
    elif port.is_input:
        return  # a parameter of run
    elif isinstance(value, StringValue):
        yield f"const char* {name}(void);"
        yield f"uint32_t {name}_length(void);"
    elif isinstance(value, IntListValue):
        yield f"int64_t {name}_item(uint32_t index);"
        yield f"uint32_t {name}_count(void);"
    elif isinstance(value, NUMBER_LISTS):
        yield f"const {c_item(value)}* {name}(void);"
        yield f"uint32_t {name}_count(void);"
    else:
        yield f"{c_scalar(value)} {name}(void);"


def _total(profile: str, methods: Sequence[ApiMethod], memory: MemoryPlan) -> str:
    """Asserts that the blocks of all methods add up to the models' static RAM."""
    blocks = [common_constant(profile, c.name) for c in memory.common]
    blocks += [
        f"{method.base.upper()}_{block}_BYTES"
        for method in methods
        for block in (
            *(f"ARENA{a.memory_id}" for a in memory_of(memory, method).own_arenas),
            "STATE",
        )
    ]
    total = f"{identifier(profile).upper()}_RAM_BYTES"
    # One line per block, so that reordering models only reorders lines.
    lines = "".join(f"            + {block}\n" for block in blocks)
    return f"ORCH_ASSERT({total} == 0\n{lines});"


def _cpp_method(profile: str, method: ApiMethod) -> str:
    ports = method.ports
    parameters = _cpp_parameters(method)
    arguments = ", ".join(_argument_names(ports))
    # Not `outer::inner {`, which C++11 does not have.
    outer, inner = cpp_namespace(profile), cpp_name(method.model)
    return (
        f"namespace {outer} {{\nnamespace {inner} {{\n"
        f"/// {method.base} with arrays of checked length.\n"
        f"inline orch_status {cpp_name(method.method.name)}({parameters}) {{\n"
        f"  return ::{method.base}({arguments});\n"
        "}\n"
        f"{''.join(cpp_setters(method))}"
        f"{''.join(cpp_rows(method, method.by_rows)) if method.by_rows else ''}"
        f"}}  // namespace {inner}\n}}  // namespace {outer}"
    )


def _cpp_parameters(method: ApiMethod) -> str:
    return ", ".join(t for p in method.ports for t in parameter(p, bound="{}"))


def _argument_names(ports: list[Port]) -> Iterable[str]:
    for port in ports:
        yield port.name
        if isinstance(port.value, TensorValue) and port.value.is_dynamic:
            yield f"{port.name}_sizes"
        elif isinstance(port.value, StringValue):
            yield f"{port.name}_length"
        elif isinstance(port.value, NUMBER_LISTS):
            yield f"{port.name}_count"
