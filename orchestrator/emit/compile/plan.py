"""All sources with their flags, and how they are linked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator.catalog.scratch_arguments import scratch_arguments
from orchestrator.core.dtype import COMPLEX, FLOATING, ScalarType
from orchestrator.core.operator import ArgKind
from orchestrator.emit.compile.units import (
    SELECTED,
    SOURCES,
    CompilePlan,
    CompileUnit,
    LibraryOptions,
    header_folders,
    ninja_text,
    own_includes,
)
from orchestrator.method.compact import WIDE_TABLES, TableLayout
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.program.interface import has_lists, has_tensors_only
from orchestrator.program.program import Program
from orchestrator.program.values import TensorValue
from orchestrator.targets.cores import Toolchain

if TYPE_CHECKING:
    from orchestrator.selection.resolution import DelegateCode, Resolution
    from orchestrator.targets.cores import Target


# Macros that leave out parts of the runtime that a product does not need.

ONLY_FOR_DELEGATES = "src/load_delegates.cpp"
_ONLY_FOR_ROWS = "src/rows.cpp"
_LOADER = frozenset(
    {
        "src/find_kernel.cpp",
        ONLY_FOR_DELEGATES,
        "src/load_method.cpp",
        "src/load_values.cpp",
        "src/program.cpp",
    }
)
"""Sources that only products with a program to load need."""

_PRODUCT = "orch::portable::matrix_product"
# Prefixes: `_limited`, `_relu`, `_rows` and others follow. Names must change with
# kernels/portable/matrix_product and convolution.
_OF_SUMS = (_PRODUCT, "orch::portable::convolution")
_IN_PLACE = frozenset(f"{_PRODUCT}{how}" for how in ("_rows", "_scaled"))
"""Prepared calls that finish sums where they lie."""

BESIDE_MODELS = ("runtime/app/", "runtime/platform/")
"""Folders of sources that do not affect the time of an inference."""


def smallest(flags: tuple[str, ...]) -> tuple[str, ...]:
    """The flags with clang's -Oz in place of -Os, if they have that.

    Without outlining, as the stack use of outlined code would be unknown.
    """
    if "-Os" not in flags:
        return flags
    return (*("-Oz" if f == "-Os" else f for f in flags), "-mno-outline")


_ONLY_FOR_UPDATES = "src/update.cpp"


def has_source(source: str, tables: TableLayout, *, delegates: bool, updates: bool = False) -> bool:
    """Whether a product needs a file of runtime/src.

    Args:
        source: Path relative to runtime/.
        tables: Table layout of the product.
        delegates: Whether it links delegates.
        updates: Whether it takes signed updates.
    """
    return (
        (delegates or source != ONLY_FOR_DELEGATES)
        and (updates or source != _ONLY_FOR_UPDATES)
        and (not tables.compact or source not in _LOADER)
        and (tables.given_rows or source != _ONLY_FOR_ROWS)
    )


def port_switches(programs: Iterable[Program]) -> tuple[str, ...]:
    """Macros of the application: kinds of inputs and outputs in the product."""
    methods = [method for program in programs for method in program.methods]
    # Two macros, as a runner with tensors alone is smaller than one with numbers, and
    # that than one with lists.
    if any(map(has_lists, methods)):
        return ("-DORCH_LISTS=1",)
    tensors = bool(methods) and all(map(has_tensors_only, methods))
    return ("-DORCH_TENSORS_ONLY=1",) if tensors else ()


def value_flags(tables: TableLayout) -> tuple[str, ...]:
    """Flags that decide what values and tensors look like: of runtime and kernels."""
    # Changes the layout of Value and Tensor: objects with another number must not be
    # linked together, so it is a flag of all sources.
    index = (f"-DORCH_INDEX_BYTES={tables.index_bytes}",) if tables.compact else ()
    sizes = () if tables.dynamic_sizes else ("-DORCH_DYNAMIC_SIZES=0",)
    return (*index, *sizes)


def sums_flags(linked: Iterable[LinkedMethod], isa: str) -> tuple[str, ...]:
    """Macros for what vectors do with sums of floats before they store them.

    Args:
        linked: All methods of prelinked models.
        isa: Instruction set of the core.
    """
    if isa != "mve":
        return ()
    # By what calls name: a loop over sums has code for bias and limits only if some
    # call of the product needs it (decision 0025).
    functions = {
        call.function
        for method in linked
        for call in method.instructions
        if isinstance(call, LinkedCall)
        and call.prepared is not None
        and call.function.startswith(_OF_SUMS)
    }
    added = any(f.startswith(_PRODUCT) and f not in _IN_PLACE for f in functions)
    limited = any(f.endswith(("_limited", "_relu")) for f in functions)
    return (*("-DORCH_SUMS_ADDED=1",) * added, *("-DORCH_SUMS_LIMITED=1",) * limited)


def has_floats(
    models: Collection[str], linked: Mapping[str, Sequence[LinkedMethod]], resolution: Resolution
) -> bool:
    """Whether calls have tensors or parameters of floats.

    Prelinked methods hold what is left of their calls; for programs that the device loads,
    the kernel table says it.

    Args:
        models: Names of all models.
        linked: By name of a prelinked model: its methods.
        resolution: The kernels to link.
    """
    dtypes: set[ScalarType] = set()
    kinds: set[str] = set()
    # All prelinked: what calls have. Otherwise later programs may call every kernel of
    # the table.
    if set(models) == set(linked):
        schemas = resolution.schemas
        for method in (m for of_model in linked.values() for m in of_model):
            dtypes |= {v.dtype for v in method.values if isinstance(v, TensorValue)}
            for call in method.instructions:
                if isinstance(call, LinkedCall) and call.operator in schemas:
                    kinds |= set(schemas[call.operator].signature)
    else:
        for entry in resolution.table_entries:
            dtypes |= entry.dtypes
            kinds |= set(entry.signature)
    return bool(dtypes & (FLOATING | COMPLEX) or kinds & {ArgKind.FLOAT, ArgKind.FLOAT_LIST})


def method_flags(tables: TableLayout) -> tuple[str, ...]:
    """Flags that decide what tables of methods look like: not of kernels.

    Kernels see values, but no method. Without these flags more products have objects
    in common.
    """
    calls = () if tables.kernel_calls else ("-DORCH_KERNEL_CALLS=0",)
    steps = ("-DORCH_BY_ROWS=1",) if tables.steps else ()
    given = ("-DORCH_GIVEN_ROWS=1",) if tables.given_rows else ()
    return (*calls, *steps, *given)


def table_switches(source: str, tables: TableLayout) -> tuple[str, ...]:
    """Macros for one source of the runtime."""
    # Macros for one source only, so that all others are objects that products share.
    if source == "runtime/src/executor.cpp":
        flags = () if tables.control_flow else ("-DORCH_CONTROL_FLOW=0",)
        mixed = tables.prepared_calls and tables.kernel_calls
        return (*flags, "-DORCH_PREPARED_CALLS=1") if mixed else flags
    if source == _MAKES_READY:
        if not tables.initial_bytes:
            return ("-DORCH_INITIAL_BYTES=0",)
        return () if tables.initial_zeros else ("-DORCH_INITIAL_ZEROS=0",)
    return ()


# A section for each function and datum lets the linker drop what nothing names. Unwind
# tables would be flash that nothing reads: there are no exceptions.
# docs/reproducibility.md says what the flags promise.
_COMMON = (
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-ffp-contract=off",  # the same floats on every target
    # Writes a .su file beside each object, from which the worst stack is computed
    # (measure/call_graph.py).
    "-fstack-usage",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wshadow",
    "-Wundef",
)
_CXX = (
    "-std=c++17",
    "-fno-exceptions",
    "-fno-rtti",
    # Guards of local statics would call __cxa_guard_acquire of a C++ library that is
    # not there.
    "-fno-threadsafe-statics",
    # Destructors of globals would be registered with a function of the C library; there
    # are none.
    "-fno-use-cxa-atexit",
)
# No vectorization: it would change the size, and on MVE the rounding of
# subnormals.
_BY_TOOLCHAIN = {
    # Vectors that a compiler makes of loops take subnormal numbers for 0 on MVE;
    # kernels with MVE are written by hand. -fno-ident: clang's version would be in each
    # object as a string.
    "gnu": ("-fno-tree-vectorize",),
    "zig": ("-fno-vectorize", "-fno-slp-vectorize", "-fno-ident"),
}
# At -O2, in loops of one block, clang adds to pointers in front of loads, for Cortex-M
# without vectors: one instruction more than at -Os, where loads themselves add.
# 82 of 500 calls with DSP took more instructions with `speed` than with `size`, and 27
# with this option; kernels became 1 % smaller. Options of -mllvm change without notice:
# tests/qemu/test_speed_rule.py would see it.
_ADD_IN_LOADS = ("-mllvm", "-lsr-preferred-addressing-mode=none")
_OPTIMIZE = {
    ("size", "gnu"): ("-Os",),
    ("size", "zig"): ("-Os",),
    ("speed", "gnu"): ("-O2",),
    ("speed", "zig"): ("-O2", *_ADD_IN_LOADS),
    ("debug", "gnu"): ("-Og",),
    ("debug", "zig"): ("-Og",),
}
# For debuggers: no byte of flash. Paths are those in ninja's folder.
_DEBUG_INFO = {
    # DWARF 5 has an MD5 of each source, with which a changed comment changes objects.
    "gnu": ("-gdwarf-4", "-ffile-prefix-map=/proc/self/cwd=."),
    "zig": ("-gdwarf-4", "-fdebug-compilation-dir=."),
}
# Otherwise the compiler may turn the loops of memcpy and memset into calls of these.
_MEMORY_FUNCTIONS = {
    # gcc turns such loops into calls in a pass that -fno-builtin does not switch off.
    "gnu": ("-fno-builtin", "-fno-tree-loop-distribute-patterns"),
    "zig": ("-fno-builtin",),
}
# Enums in users' code have the size that arm-none-eabi-gcc gives them, whose
# libraries that code may call; clang's default differs.
_ARM_ENUMS = ("-fshort-enums",)
# Warnings for our own sources, but not for those of users.
_OWN_WARNINGS = ("-Wconversion", "-Wshadow", "-Wundef")


def plan_compile(
    *,
    profile: str,
    target: Target,
    toolchain: Toolchain,
    resolution: Resolution,
    runtime_sources: tuple[str, ...],
    models: tuple[str, ...],
    custom: Mapping[str, LibraryOptions] = MappingProxyType({}),
    delegates: Mapping[str, LibraryOptions] = MappingProxyType({}),
    traced: bool = False,
    checked: bool = False,
    scratch_checks: bool = False,
    programs: Mapping[str, Program] = MappingProxyType({}),
    caller_bytes: int = 0,
    external: bool = False,
    inline_constants: bool = False,
    common_arenas: bool = False,
    shares_state: bool = False,
    tables: TableLayout = WIDE_TABLES,
    proved_calls: bool = False,
    sums: tuple[str, ...] = (),
    floats: bool = False,
    is_empty: Callable[[str], bool] = lambda _: False,
    updates: bool = False,
    sections: Mapping[str, str] = MappingProxyType({}),
) -> CompilePlan:
    """List every compile and link step.

    Args:
        profile: Name of the profile.
        target: Target of the build.
        toolchain: Compiler, linker and archiver.
        resolution: The kernels to link, with their sources.
        runtime_sources: Files under runtime/ by POSIX path relative to it: src/, the
            platform's, app/ and, for freestanding targets, freestanding/.
        models: Files of programs and constants that go into flash.
        custom: Custom kernel libraries, by name.
        delegates: How the sources of delegates are compiled, by backend.
        traced: The product has hooks around every instruction.
        checked: The product can check that flash holds what was linked.
        scratch_checks: Kernels check the size of their scratch memory.
        programs: By model name; whether an input or output is a list depends on them.
        caller_bytes: Most bytes of one method's inputs and outputs in memory of the
            caller: the application of `run` reserves them.
        external: Programs have external constants, which the loader finds by name.
        inline_constants: Programs have constants inside the flatbuffer.
        common_arenas: Arenas of methods overlap.
        shares_state: Methods of a model share state.
        tables: The layout of the tables of methods.
        proved_calls: No check of an argument in a kernel can fail.
        sums: Macros of kernels for sums of floats.
        floats: Kernels compute with floats: `has_floats`.
        is_empty: Whether a source of our kernels has no code for the target.
        updates: The product takes signed updates.
        sections: Names of sections in the library.
    """
    common = (
        *target.isa.machine_flags,
        f"-DORCH_ISA={target.isa.level}",
        # Decided here and not by __OPTIMIZE_SIZE__: packages of sources are compiled
        # with flags of others, and have to choose the loops that the build planned
        # with.
        f"-DORCH_FAVOUR_SPEED={int(target.optimize != 'size')}",
        *value_flags(tables),
        *_wide_items(resolution, programs),
        *((f"--target={_triple(target)}",) if toolchain.name == "zig" else ()),
        *_OPTIMIZE[target.optimize, toolchain.name],
        *_DEBUG_INFO[toolchain.name],
        *_COMMON,
        *_BY_TOOLCHAIN[toolchain.name],
        *(_ARM_ENUMS if target.cpu.is_arm else ()),
        # Programs of Linux are linked without PIE: addresses in constant tables are
        # then known, and need no relocation at start.
        *(() if target.board else ("-fno-pic",)),
    )
    # Kernels get `common` without the macros of methods, so that products with other
    # tables share their objects.
    flags = (*common, *method_flags(tables), *_CXX)

    def own_unit(source: str) -> CompileUnit:
        switches = _switches(
            source,
            resolution,
            traced=traced,
            caller_bytes=caller_bytes,
            inline_constants=inline_constants,
        )
        if source == _RUNNER:
            switches += ("-DORCH_CHECKS_IMAGE=1",) if checked else ()
            switches += port_switches(programs.values())
        if common_arenas and source == _LOADS_STATE:
            switches = ("-DORCH_COMMON_ARENAS=1", *switches)
        if not shares_state and source == _LOADS_METHODS:
            switches = ("-DORCH_SHARES_STATE=0", *switches)
        if external and source in _EXTERNAL_DATA:
            switches = ("-DORCH_EXTERNAL_DATA=1", *switches)
        if source.endswith("/startup.cpp") and target.board:
            switches += ("-DORCH_COPIES_CODE=1",) * target.board.copies_code
            if target.board.settings:
                # Not by its source: a header that most builds lack would leave that without a key.
                switches += ("-DORCH_HAS_SETTINGS=1", "-include", "gen/include/orch_start.h")
        if source == _MAKES_READY and target.cpu.has_float_modes and floats:
            # Only where firmware may have set the FPU and floats are computed: 12 bytes
            # of flash on a Cortex-M4.
            switches += ("-DORCH_CHECKS_FLOATS=1",)
        switches += table_switches(source, tables)
        return _unit(source, (*flags, *switches), target, toolchain)

    library_sources = tuple(
        f"runtime/{s}"
        for s in runtime_sources
        if s.startswith("src/")
        and has_source(s, tables, delegates=bool(resolution.delegates), updates=updates)
    )
    kernel_flags = (
        *common,
        *(("-DORCH_PROVED_CALLS=1",) * proved_calls),
        *(() if tables.volumes else ("-DORCH_VOLUMES=0",)),
        *sums,
    )
    checking = _with_scratch(resolution) if scratch_checks else frozenset[str]()
    kernel_units = [
        _kernel_unit(
            f"kernels/{library}",
            source,
            (*kernel_flags, *(("-DORCH_CHECKS_SCRATCH=1",) * (library in checking))),
            target,
            custom.get(library),
        )
        for library, sources in resolution.sources
        for source in sources
        # Kernels for another instruction set are files without code: not compiled at
        # all, they need no object in any store.
        if library in custom or not is_empty(f"kernels/{library}/{source}")
    ]
    delegate_units = [
        _kernel_unit(
            f"delegates/{code.backend}",
            source,
            common,
            target,
            _with_facts(delegates[code.backend], code),
        )
        for code in (delegate.code for delegate in resolution.delegates)
        for source in code.sources
    ]
    if delegate_units:
        delegate_units.append(_generated_unit("registered_delegates.cpp", flags, target))
    firmware_sources = tuple(f"runtime/{s}" for s in runtime_sources if not s.startswith("src/"))
    library_units = [
        *(own_unit(s) for s in library_sources),
        *kernel_units,
        *delegate_units,
        _generated_unit("api.cpp", flags, target),
        _generated_unit("registered_kernels.cpp", flags, target),
        CompileUnit(
            "gen/src/models.S",
            "obj/gen/src/models.S.o",
            # Assembly has neither warnings nor frames that a compiler knows.
            tuple(f for f in common if not f.startswith(("-W", "-fstack"))),
            models,
        ),
    ]
    firmware_units = [own_unit(s) for s in firmware_sources]
    link_flags = _link_flags(target, toolchain)
    library = f"lib{profile}.a"
    return CompilePlan(
        units=(*library_units, *firmware_units),
        library=library,
        flags=flags,
        link_flags=link_flags,
        ninja=ninja_text(
            profile,
            toolchain,
            library,
            library_units=library_units,
            firmware_units=firmware_units,
            link_flags=link_flags,
        ),
        sources=tuple(
            sorted(
                unit.source.removeprefix(f"{SOURCES}/")
                for unit in (*library_units, *firmware_units)
                if unit.source.startswith(f"{SOURCES}/")
            )
        ),
        exports=tuple(
            export
            for options in (
                *(custom[name] for name, _ in resolution.sources if name in custom),
                *(delegates[d.code.backend] for d in resolution.delegates),
            )
            for export in options.exports
        ),
        sections=sections,
    )


_RUNNER = "runtime/app/runner.cpp"
# All of these sets name the sources that read the macro: a source that begins to read
# one has to be added, or it sees the default.
_TRACED = frozenset(
    f"runtime/{name}.cpp"
    for name in (
        *("src/executor", "app/runner", "platform/cortex_m/startup"),
        *("platform/semihosting/semihosting", "platform/uart/uart"),
    )
)
_DELEGATING = frozenset(
    f"runtime/src/{name}.cpp"
    for name in ("executor", "load_delegates", "load_method", "load_values")
)


def _with_facts(options: LibraryOptions, code: DelegateCode) -> LibraryOptions:
    facts = (
        f"ORCH_DELEGATE_STATE_BYTES={code.state_bytes}",
        f"ORCH_DELEGATE_NAMED_DATA={int(code.named_data)}",
    )
    return replace(options, defines=(*options.defines, *facts))


def _with_scratch(resolution: Resolution) -> frozenset[str]:
    """Kernel libraries with a linked kernel that needs scratch memory."""
    return frozenset(
        binding.kernel.library
        for operator in resolution.operators
        if scratch_arguments(operator.schema)
        for binding in operator.bindings
    )


_CALLER_IO = frozenset(
    f"runtime/src/{name}.cpp" for name in ("load_method", "load_values", "model")
)
_INLINE_CONSTANTS = frozenset(f"runtime/src/{name}.cpp" for name in ("load_values", "program"))
_LOADS_STATE = "runtime/src/load_values.cpp"
_LOADS_METHODS = "runtime/src/load_method.cpp"
_MAKES_READY = "runtime/src/model.cpp"
_EXTERNAL_DATA = frozenset(
    f"runtime/src/{name}.cpp" for name in ("load_delegates", "load_method", "load_values", "model")
)


def _switches(
    source: str, resolution: Resolution, *, traced: bool, caller_bytes: int, inline_constants: bool
) -> tuple[str, ...]:
    """Macros of a runtime source: features that the product adds or leaves out."""
    found: tuple[str, ...] = ()
    if source in _CALLER_IO and not caller_bytes:
        found = ("-DORCH_CALLER_IO=0",)
    if source in _INLINE_CONSTANTS and not inline_constants:
        found = (*found, "-DORCH_INLINE_CONSTANTS=0")
    if source == _RUNNER and caller_bytes:
        found = (*found, f"-DORCH_CALLER_BYTES={caller_bytes}")
    if traced and source in _TRACED:
        found = (*found, "-DORCH_TRACE=1")
    if resolution.delegates and source in _DELEGATING:
        found = (*found, "-DORCH_DELEGATES=1")
    if source == "runtime/src/load_delegates.cpp":
        takes_named = any(d.code.named_data for d in resolution.delegates)
        found += () if takes_named else ("-DORCH_NAMED_DATA=0",)
    return (*found, *_kernel_switches(source, resolution))


def _kernel_switches(source: str, resolution: Resolution) -> tuple[str, ...]:
    """Macros that leave out what no kernel needs.

    That is `settle_result`, if none returns such a number, and kernel keys, if none is
    found by one.
    """
    entries = resolution.table_entries
    if source == _LOADS_METHODS:
        returned = {entry.signature.partition(">")[2] for entry in entries}
        if not returned & {ArgKind.SCALAR, ArgKind.BOOL, ArgKind.FLOAT}:
            return ("-DORCH_SETTLES_RESULTS=0",)
    if source == "runtime/src/find_kernel.cpp":
        return () if any(entry.key is not None for entry in entries) else ("-DORCH_KERNEL_KEYS=0",)
    return ()


def _wide_items(resolution: Resolution, programs: Mapping[str, Program]) -> tuple[str, ...]:
    """The macro for the one dtype of 16 bytes, where a tensor may have it."""
    dtypes = {d for e in resolution.table_entries for d in e.dtypes}
    tensors = (
        value.dtype
        for program in programs.values()
        for method in program.methods
        for value in method.values
        if isinstance(value, TensorValue)
    )
    if ScalarType.ComplexDouble in dtypes or ScalarType.ComplexDouble in tensors:
        return ("-DORCH_COMPLEX_DOUBLE=1",)
    return ()


def _triple(target: Target) -> str:
    import platform  # noqa: PLC0415  # only hosts need it

    return target.cpu.clang_triple.format(machine=platform.machine())


def _unit(source: str, flags: tuple[str, ...], target: Target, toolchain: Toolchain) -> CompileUnit:
    path = PurePosixPath(source)
    includes = own_includes(target)
    if source.startswith("runtime/freestanding/"):
        flags = (*flags, *_MEMORY_FUNCTIONS[toolchain.name])
    elif toolchain.name == "zig" and source.startswith(BESIDE_MODELS):
        flags = smallest(flags)
    if source.startswith("runtime/platform/"):
        includes = (*includes, f"-I{SOURCES}/{path.parent}")
    return CompileUnit(f"{SOURCES}/{source}", f"obj/{source}.o", (*flags, *includes))


def _kernel_unit(
    folder: str,
    source: str,
    common: tuple[str, ...],
    target: Target,
    options: LibraryOptions | None,
) -> CompileUnit:
    """A source of a kernel library or delegate; our own have no `options`."""
    kind, _, library = folder.partition("/")
    includes = own_includes(target) if options is None else header_folders(target)
    if kind == "kernels":
        includes = (f"-I{SELECTED}/{library}", *includes)
    language: tuple[str, ...] = _CXX
    if options is not None:
        common = tuple(flag for flag in common if flag not in _OWN_WARNINGS)
        includes += tuple(_folder(f"-I{SOURCES}/{folder}", f) for f in options.include)
        includes += tuple(f"-D{define}" for define in options.defines)
        if source.endswith(".c"):
            # The command is the C++ driver's, which would compile a .c file as C++.
            language = ("-x", "c", "-std=c11")
        elif source.endswith(".S"):
            language = ()
    return CompileUnit(
        f"{SOURCES}/{folder}/{source}", f"obj/{folder}/{source}.o", (*common, *language, *includes)
    )


def _folder(above: str, name: str) -> str:
    return above if name == "." else f"{above}/{name}"


def _generated_unit(name: str, flags: tuple[str, ...], target: Target) -> CompileUnit:
    flags = (*flags, *own_includes(target))
    return CompileUnit(f"gen/src/{name}", f"obj/gen/src/{name}.o", flags)


def _link_flags(target: Target, toolchain: Toolchain) -> tuple[str, ...]:
    # A digest of the output, which a device reports over a UART. Locks have their own.
    build_id = f"--build-id={'sha1' if target.via == 'uart' else 'none'}"
    if toolchain.name == "zig":
        script = (
            ("-T", "gen/firmware.ld", "-z", "max-page-size=4")
            if target.board
            else ("-static", "-z", "noexecstack")
        )
        # zig links with ld.lld itself, without a driver. max-page-size=4: lld would
        # begin segments at multiples of a page, of which a flash has none.
        return (*script, "--gc-sections", "-Map=firmware.map", build_id)
    common = ("-Wl,--gc-sections", "-Wl,-Map=firmware.map", f"-Wl,{build_id}")
    if target.board:
        return (
            *target.isa.machine_flags,
            # No C library and no start-up files (decision 0003); libgcc is named in the
            # ninja file.
            "-nostdlib",
            "-T",
            "gen/firmware.ld",
            *common,
            # binutils from 2.39 on warn of a memory that is written and executed, as an
            # ITCM is that the start-up copies code to.
            "-Wl,--no-warn-rwx-segments",
        )
    static = () if target.cpu.is_host else ("-static",)
    return (*target.isa.machine_flags, "-no-pie", *static, *common)
