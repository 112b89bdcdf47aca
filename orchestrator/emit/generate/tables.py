"""Kernel table, dtype selection headers, and the models as assembly."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import Kernel
from orchestrator.emit.artifact import GeneratedFile
from orchestrator.emit.generate.prelinked import constant_symbol
from orchestrator.emit.generate.render import render
from orchestrator.memory.plan import model_section, same_programs
from orchestrator.program.program import Program

if TYPE_CHECKING:
    from orchestrator.selection.resolution import Resolution, ResolvedDelegate


# Tables of external constants, in which the loader finds them by name.


def external_symbols(programs: Mapping[str, Program], model: str) -> list[str]:
    """Symbols of the data of a loaded model."""
    return [constant_symbol(model, i) for i in range(len(programs[model].external))]


def external_table(programs: Mapping[str, Program], linked: Collection[str]) -> str:
    """The table for all loaded models; "" if no model needs it."""
    models = [n for n, p in programs.items() if p.external and n not in linked]
    if not models:
        return ""
    parts = []
    for model in models:
        entries = ",\n".join(
            f"    {{{_text(e.name)}, {symbol}, {len(e.data)}, ScalarType::{e.dtype.name}}}"
            for e, symbol in zip(
                programs[model].external, external_symbols(programs, model), strict=True
            )
        )
        parts.append(f"constexpr ExternalData {model}_data[] = {{\n{entries}}};")
    rows = ",\n".join(f'    {{"{model}", {model}_data}}' for model in models)
    parts.append(f"constexpr ModelData kDataTable[] = {{\n{rows}}};")
    return "\n\n".join(parts)


def _text(name: str) -> str:
    """A C string literal with exactly these bytes."""
    plain = b"._-/: " + bytes(range(48, 58)) + bytes(range(65, 91)) + bytes(range(97, 123))
    # Octal with three digits: a hexadecimal escape would take the next letters that
    # look like digits, and trigraphs begin with `?`.
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in name.encode()) + '"'


def dtype_set(dtypes: Iterable[ScalarType]) -> str:
    """A `DtypeSet` in C++; `dtype_set()` if empty."""
    return f"dtype_set({', '.join(f'ScalarType::{d.name}' for d in sorted(dtypes))})"


def model_symbol(model: str) -> str:
    """Symbol of a model's first byte."""
    return f"orch_model_{model}"


def registered_kernels(head: str, resolution: Resolution) -> GeneratedFile:
    """The kernel table: constant, sorted, with exactly the linked kernels."""
    entries = resolution.table_entries
    text = render(
        "registered_kernels.cpp",
        head=head,
        missing=resolution.missing,
        declarations=[kernel_declaration(f) for f in sorted({e.function for e in entries})],
        entries=entries,
        schemas={o.name: o.schema.text for o in resolution.operators},
        dtype_set=dtype_set,
    )
    return GeneratedFile("gen/src/registered_kernels.cpp", text)


def registered_delegates(head: str, delegates: Iterable[ResolvedDelegate]) -> GeneratedFile:
    """The delegate table of a product that has delegates."""
    codes = [delegate.code for delegate in delegates]
    namespaces = [code.namespace for code in sorted({c.namespace: c for c in codes}.values())]
    text = render("registered_delegates.cpp", head=head, codes=codes, namespaces=namespaces)
    return GeneratedFile("gen/src/registered_delegates.cpp", text)


def kernel_declaration(function: str) -> str:
    """Declaration of a kernel's C++ function."""
    namespace, _, name = function.rpartition("::")
    return f"namespace {namespace} {{\norch::Error {name}(const orch::Args& args);\n}}"


def selected_headers(
    head: str, resolution: Resolution, kernels: tuple[Kernel, ...]
) -> list[GeneratedFile]:
    """Per kernel source: a header with the dtypes to instantiate for its operators.

    A source names all of its operators, so those that are not selected get an empty
    set. With one header per source, a changed selection recompiles only
    the kernels it affects. Each library has its own folder, as two may have a source of
    the same name; sources of the same name in two folders of a library share a header.
    """
    selected: dict[tuple[str, str], set[ScalarType]] = {}
    for operator in resolution.operators:
        for binding in operator.bindings:
            sets = [("", binding.dtypes), *binding.argument_dtypes]
            for argument, dtypes in sets:
                key = (binding.kernel.library, _set_name(binding.kernel, argument))
                selected.setdefault(key, set()).update(dtypes)
    # A source has the header of all of its operators, also of those that are not
    # selected: their set is empty, and nothing of them is instantiated.
    used = {(library, s) for library, sources in resolution.sources for s in sources}
    operators: dict[tuple[str, str], set[str]] = {}
    for kernel in kernels:
        for source in kernel.sources:
            if (kernel.library, source) in used:
                stem = PurePosixPath(source).stem
                names = operators.setdefault((kernel.library, stem), set())
                names.update(_set_name(kernel, a) for a in ("", *kernel.argument_sets))
    return [
        GeneratedFile(
            f"gen/selected/{library}/orch_selected/{stem}.h",
            render(
                "selected.h",
                head=head,
                sets=[(name, selected.get((library, name), ())) for name in sorted(names)],
                dtype_set=dtype_set,
            ),
        )
        for (library, stem), names in operators.items()
    ]


def _set_name(kernel: Kernel, argument: str) -> str:
    """Name of the dtype set of an operator, or of one of its arguments."""
    name = kernel.operator.identifier
    return f"{name}_of_{argument}" if argument else name


def models_assembly(
    head: str,
    programs: Mapping[str, Program],
    prelinked: Mapping[str, str],
    external: Mapping[str, str],
) -> GeneratedFile:
    """The programs, byte for byte, each in its own section; equal ones once.

    Args:
        head: Text of the first line.
        programs: By model name.
        prelinked: By name of a prelinked model: its constants as assembly.
        external: By name of a model whose program has external constants: these.
    """
    text = f"// {head}\n\n"
    first = same_programs(programs, prelinked)
    for name in programs:
        if name in prelinked:
            text += prelinked[name]
            continue
        # Instances of a model, and models of one file: `.set` gives the same bytes a
        # second name.
        if (same := first[name]) != name:
            text += "".join(
                f"  .globl {symbol}\n  .set {symbol}, {other}\n\n"
                for symbol, other in zip(
                    (model_symbol(name), *external_symbols(programs, name)),
                    (model_symbol(same), *external_symbols(programs, same)),
                    strict=True,
                )
            )
            continue
        symbol = model_symbol(name)
        text += (
            f'  .section {model_section(name)},"a"\n'
            "  .balign 16\n"
            f"  .globl {symbol}\n"
            f"{symbol}:\n"
            f'  .incbin "models/{name}.pte"\n\n'
        )
        text += external.get(name, "")
    # GNU ld takes an object without this note for one that needs an executable stack,
    # and warns.
    text += "#if defined(__ELF__) && defined(__linux__)\n"
    text += '  .section .note.GNU-stack,""\n#endif\n'
    return GeneratedFile("gen/src/models.S", text)
