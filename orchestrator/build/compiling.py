"""Stages compile and measure: firmware and library, their cost, and the outputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.build.libraries import Libraries
from orchestrator.build.methods import AdaptedModels, all_pins
from orchestrator.catalog.scratch_arguments import scratch_arguments
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.emit.artifact import GeneratedFile
from orchestrator.emit.compile import (
    API_OBJECT,
    BUILTINS,
    SOURCES,
    CompilePlan,
    LibraryOptions,
    compile_commands,
    has_floats,
    is_empty,
    object_keys,
    plan_compile,
    sums_flags,
    toolchain_text,
)
from orchestrator.emit.compile.archive import defined_symbols, linkable, own_symbols
from orchestrator.emit.generate.names import hook_names
from orchestrator.emit.images import firmware_images
from orchestrator.errors import CompileError, Diagnostic, RegionOverflowError, SourceSpan
from orchestrator.measure import compare_dtypes, measure, report_json
from orchestrator.measure.elf import loaded_bytes
from orchestrator.measure.size import SizeReport
from orchestrator.measure.stack import with_stacks
from orchestrator.memory.plan import MemoryPlan, identifier
from orchestrator.memory.product import link_overflow
from orchestrator.method.checks import are_proved
from orchestrator.method.compact import table_layout
from orchestrator.profile.choices import Image, Load
from orchestrator.profile.kernels import DtypesTable
from orchestrator.profile.tables import BudgetTable, IntegrityTable, ScratchTable, TraceTable
from orchestrator.program.program import Program
from orchestrator.shell import sources
from orchestrator.shell.compile_folder import CompileFolder
from orchestrator.targets.boards import Pins
from orchestrator.targets.cores import TOOLCHAIN_FILE, Target, Toolchain

if TYPE_CHECKING:
    from orchestrator.report import ReportFacts


def plan_commands(
    *,
    name: str,
    target: Target,
    toolchain: Toolchain,
    programs: Mapping[str, Program],
    adapted: AdaptedModels,
    memory: MemoryPlan,
    loads: Mapping[str, Load],
    native: Mapping[str, bytes],
    library_options: Mapping[str, LibraryOptions],
    delegate_options: Mapping[str, LibraryOptions],
    trace: TraceTable,
    integrity: IntegrityTable,
    scratch: ScratchTable,
    inline_constants: bool,
    updates: Mapping[str, str],
    sections: Mapping[str, str],
) -> CompilePlan:
    """Every compile and link step."""
    freestanding = ("freestanding/",) if target.freestanding else ()
    platforms = tuple(f"platform/{name}/" for name in target.platforms)
    # Tools of runtime/ (the emulator's plugin) and other platforms are no part of a
    # product.
    tops = ("src/", "app/", *platforms, *freestanding)
    runtime = tuple(
        path.removeprefix("runtime/")
        for path in native
        if path.startswith("runtime/") and path.endswith(".cpp")
    )
    # True if kernels check their scratch sizes, and the product has such kernels.
    scratch_checks = scratch.runtime_check.applies(target.optimize) and any(
        scratch_arguments(operator.schema) for operator in adapted.resolution.operators
    )
    tables = table_layout(programs, adapted.linked)
    return plan_compile(
        profile=name,
        target=target,
        toolchain=toolchain,
        resolution=adapted.resolution,
        runtime_sources=tuple(n for n in runtime if n.startswith(tops)),
        models=tuple(sorted(adapted.files)),
        custom=library_options,
        delegates=delegate_options,
        traced=trace.enable,
        checked=integrity.check.value != "never",
        scratch_checks=scratch_checks,
        programs=programs,
        caller_bytes=memory.caller_bytes,
        external=any(
            program.external
            for name, program in adapted.programs.items()
            if loads[name] is Load.PTE
        ),
        inline_constants=inline_constants,
        common_arenas=bool(memory.common),
        shares_state=any(a.shared for m in memory.models for x in m.methods for a in x.arenas),
        tables=tables,
        updates=bool(updates),
        sections=sections,
        sums=sums_flags(
            (m for methods in adapted.linked.values() for m in methods), target.isa.name
        ),
        floats=has_floats(programs, adapted.linked, adapted.resolution),
        proved_calls=tables.compact and _are_proved(adapted, library_options),
        is_empty=lambda source: is_empty(native[source], target.isa.level),
    )


def _are_proved(adapted: AdaptedModels, custom: Collection[str]) -> bool:
    """Whether kernels need not check the arguments of any call."""
    methods = [method for methods in adapted.linked.values() for method in methods]
    return are_proved(methods, adapted.resolution, unknown=frozenset(custom))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What ninja made.

    Args:
        firmware: The linked firmware, as the linker left it.
        library: The static library, likewise.
        map_text: The linker's map.
        objects: By path in ninja's folder, in the order of the commands.
        stack_usage: By path of an object: the compiler's report on its stack frames.
        log: Output of ninja and the compilers.
    """

    firmware: bytes = field(repr=False)
    library: bytes = field(repr=False)
    map_text: str = field(repr=False)
    objects: Mapping[str, bytes] = field(repr=False)
    stack_usage: Mapping[str, str] = field(repr=False)
    log: str


def compile_product(
    *,
    commands: CompilePlan,
    generated: Sequence[GeneratedFile],
    adapted: AdaptedModels,
    memory: MemoryPlan,
    programs: Mapping[str, Program],
    pins: Mapping[str, Pins],
    native: Mapping[str, bytes],
    library_options: Mapping[str, LibraryOptions],
    target: Target,
    toolchain: Toolchain,
    builtins: Callable[[Toolchain, Target], bytes],
    compile_folder: CompileFolder,
) -> Compiled:
    """Stage compile: lays out ninja's folder and runs ninja.

    Raises:
        CompileError: A step failed.
        MemoryPlanError: A memory of the board overflowed at link time.
        ToolchainError: The compiler's support functions cannot be built.
    """
    files: dict[str, Bytes] = {
        f"{SOURCES}/{name}": data
        for name, data in native.items()
        if _is_read(name, commands.sources, library_options)
    }
    files |= {f.path: f.text.encode() for f in generated if f.path.startswith("gen/")}
    files |= adapted.files
    files[TOOLCHAIN_FILE] = toolchain_text(toolchain).encode()
    if toolchain.needs_builtins:
        files[BUILTINS] = builtins(toolchain, target)
    files["build.ninja"] = commands.ninja.encode()
    try:
        log = compile_folder.compile(
            files,
            # Files of an earlier build in them go: a header that was removed would
            # still be found by an #include.
            whole=(SOURCES, "gen", "models"),
            keys=object_keys(commands.units, files, toolchain=toolchain),
        )
    except RegionOverflowError as error:
        if target.board is None:
            raise
        found = all_pins(pins, programs)
        # The linker names a region and bytes; the plan knows which model or key makes
        # the difference.
        raise link_overflow(memory, target.board, found, error.over) from error
    stack_usage = {}
    for unit in commands.units:
        with suppress(OSError):
            # None for assembly.
            data = compile_folder.read(unit.object.removesuffix(".o") + ".su")
            stack_usage[unit.object] = data.decode()
    map_text = compile_folder.read("firmware.map").decode(errors="replace")
    return Compiled(
        firmware=compile_folder.read("firmware.elf"),
        library=compile_folder.read(commands.library),
        map_text=map_text,
        objects={u.object: compile_folder.read(u.object) for u in commands.units},
        stack_usage=stack_usage,
        log=log,
    )


def _is_read(name: str, compiled: Collection[str], custom: Collection[str]) -> bool:
    """Whether a compiler may read a file of runtime/, kernels/ or delegates/."""
    if name.endswith(".cpp"):
        # Only users' sources include others. To write the hundreds that a product does not have
        # took longer than ninja does if it has nothing to compile.
        top, library, *_ = name.split("/")
        return name in compiled or top == "delegates" or library in custom
    # Lists of kernels are read by the build alone; in the folder, a change of a comment
    # in them would be a new file for ninja.
    return not name.endswith(".yaml")


def measure_product(
    *,
    name: str,
    compiled: Compiled,
    adapted: AdaptedModels,
    memory: MemoryPlan,
    target: Target,
    dtypes: DtypesTable,
    every_dtype_size: Callable[[], SizeReport | None],
) -> SizeReport:
    """Stage measure."""
    report = measure(
        elf=compiled.firmware,
        map_text=compiled.map_text,
        stack_usage=compiled.stack_usage,
        memory=memory,
        objects=compiled.objects,
        resolution=adapted.resolution,
        linked=[method for methods in adapted.linked.values() for method in methods],
        target=target,
        profile=name,
    )
    data = tuple((n, *d) for n, p in adapted.programs.items() for d in p.delegate_data)
    report = replace(report, prelink=adapted.ledger, named_data=data)
    # Builds the product a second time, so only where the profile asks for it.
    if dtypes.compare and dtypes.select.value != "all":
        every = every_dtype_size()
        if every is not None:
            comparison = compare_dtypes(report, every)
            report = replace(report, dtype_comparison=comparison)
    return report


def collect_report_facts(
    *,
    programs: Mapping[str, Program],
    adapted: AdaptedModels,
    memory: MemoryPlan,
    report: SizeReport,
    target: Target,
    budget: BudgetTable,
) -> ReportFacts:
    """What `report.html` shows."""
    # A build whose stages are all current does not need it.
    from orchestrator.report import report_facts  # noqa: PLC0415

    return report_facts(
        size=report,
        memory=memory,
        originals=programs,
        programs=adapted.programs,
        linked=adapted.linked,
        rewritten=adapted.rewritten,
        resolution=adapted.resolution,
        board=target.board,
        budget_flash=budget.flash_bytes,
        budget_ram=budget.ram_bytes,
    )


def write_images(
    *, compiled: Compiled, target: Target, images: Sequence[Image], span: Callable[..., SourceSpan]
) -> dict[str, bytes]:
    """The firmware in further formats, by path. Raises MemoryPlanError."""
    if not images or target.board is None:
        return {}
    return firmware_images(loaded_bytes(compiled.firmware), images, target.board, span)


def collect_outputs(
    *,
    name: str,
    commands: CompilePlan,
    compiled: Compiled,
    firmware_images: Mapping[str, bytes],
    generated: Sequence[GeneratedFile],
    adapted: AdaptedModels,
    report: SizeReport,
    report_page_facts: ReportFacts,
    toolchain: Toolchain,
    native: Mapping[str, bytes],
    target: Target,
    trace: TraceTable,
    commands_json: bytes,
) -> dict[str, Bytes]:
    """Every published file by path. Files named in the lock hold no absolute path."""
    from orchestrator.report.page import page  # noqa: PLC0415  # imports Jinja2

    files: dict[str, Bytes] = {f.path: f.text.encode() for f in generated}
    is_bare = target.board is not None
    # Measured before this; `linkable` changes the name of one empty section.
    files["firmware.elf"] = linkable(compiled.firmware, is_bare=is_bare)
    files[commands.library] = linkable(_own_library(name, commands, compiled), is_bare=is_bare)
    text = next(f.text for f in generated if f.path == f"gen/include/{name}.h")
    # Known only now: the header that is compiled has no stack figures, and the one that
    # is published does.
    text = with_stacks(text, name, report.methods, compiler=toolchain.version)
    files[f"include/{name}.h"] = text.encode()
    # What the generated header includes, and nothing else: a user's include path gets
    # no header of the runtime's inside.
    public = ["status.h", *(["trace.h"] if trace.enable else [])]
    used = ("complex.h", "quantize.h", "sizes.h", "update.h")
    public += [header for header in used if f'"orch/{header}"' in text]
    for header in public:
        files[f"include/orch/{header}"] = native[f"runtime/include/orch/{header}"]
    files["report.json"] = report_json(report).encode()
    files["report.html"] = page(report_page_facts).encode()
    files["build.ninja"] = commands.ninja.encode()
    files["compile_commands.json"] = commands_json
    return {**files, **firmware_images, **adapted.files}


def _own_library(name: str, commands: CompilePlan, compiled: Compiled) -> bytes:
    """The library with symbols of its own, and sections as the profile names them.

    Raises:
        CompileError: No source has a symbol that the profile exports.
    """
    defined = defined_symbols(compiled.library)
    problems = [
        Diagnostic.of(
            "unknown-export",
            f"no source defines {symbol}, which the profile exports",
            where=where,
            expected='a function or variable, in C++ extern "C"',
            hint="remove it from exports, or check the name",
        )
        for symbol, where in commands.exports
        if symbol not in defined
    ]
    CompileError.raise_if(problems)
    # Sections are renamed in the library alone: firmware.elf is linked from objects as
    # they were (decision 0031).
    return own_symbols(
        compiled.library,
        compiled.objects[API_OBJECT],
        suffix=identifier(name),
        exports=[symbol for symbol, _ in commands.exports],
        sections=commands.sections,
        used=hook_names(name),
    )


def write_commands_json(
    *, commands: CompilePlan, toolchain: Toolchain, libraries: Libraries, work: Path
) -> bytes:
    """The only file that names the absolute build folder: editors need it."""
    return compile_commands(
        commands,
        compiler=toolchain.compiler,
        folder=str(work.absolute()),
        sources=str(sources.native_root()),
        elsewhere=libraries.folders(),
    ).encode()
