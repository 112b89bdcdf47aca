"""Stage `compile`: what to compile and link, as text for ninja.

This stage only writes down the build; ninja runs it. All paths are relative to
ninja's folder, so that nothing of the machine reaches an object.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from io import StringIO
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.core.resolution import Resolution
    from orchestrator.core.toolchain import Toolchain
    from orchestrator.targets import Target

SOURCES = "src"
"""Folder in ninja's folder with copies of runtime/ and kernels/."""
TOOLCHAIN_FILE = "toolchain.txt"
"""File in ninja's folder on which everything depends: `toolchain_text`."""

_COMMON = (
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-ffp-contract=off",  # the same floats on every target
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
    "-fno-threadsafe-statics",
    "-fno-use-cxa-atexit",
)
# Vector code would not change results, but size, and on MVE the rounding of
# subnormals.
_BY_TOOLCHAIN = {
    "gnu": ("-fno-tree-vectorize",),
    "zig": ("-fno-vectorize", "-fno-slp-vectorize", "-fno-ident"),
}
_OPTIMIZE = {
    ("size", "gnu"): ("-Os",),
    ("size", "zig"): ("-Os",),
    ("speed", "gnu"): ("-O2",),
    ("speed", "zig"): ("-O2",),
    ("debug", "gnu"): ("-Og", "-g", "-ffile-prefix-map=/proc/self/cwd=."),
    ("debug", "zig"): ("-Og", "-g", "-fdebug-compilation-dir=."),
}
# The memory functions must not be turned into calls of themselves.
_MEMORY_FUNCTIONS = {
    "gnu": ("-fno-builtin", "-fno-tree-loop-distribute-patterns"),
    "zig": ("-fno-builtin",),
}
_INCLUDES = (
    "-Igen/include",
    f"-I{SOURCES}/runtime/include",
    f"-I{SOURCES}/runtime/src",
    f"-I{SOURCES}/kernels",
)
_FREESTANDING_INCLUDE = f"-I{SOURCES}/runtime/freestanding"


@dataclass(frozen=True, slots=True, order=True)
class CompileUnit:
    """One source and its object, relative to ninja's folder."""

    source: str
    object: str
    flags: tuple[str, ...]
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilePlan:
    """Everything ninja has to do.

    Args:
        units: Library and firmware, in order.
        library: `lib<profile>.a`.
        flags: Of every compile, without paths of the machine: in the lock file.
        link_flags: Of the firmware.
        ninja: Text of build.ninja.
        sources: Every source, relative to the folder of runtime/ and kernels/.
    """

    units: tuple[CompileUnit, ...]
    library: str
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    ninja: str
    sources: tuple[str, ...]


def plan_compile(
    *,
    profile: str,
    target: Target,
    toolchain: Toolchain,
    resolution: Resolution,
    runtime_sources: tuple[str, ...],
    models: tuple[str, ...],
) -> CompilePlan:
    """List every compile and link step.

    Args:
        profile: Name of the profile.
        target: What is built for.
        toolchain: With which programs.
        resolution: Names the kernel sources.
        runtime_sources: Files under runtime/ by POSIX path relative to it: src/, the
            platform's, app/ and, for freestanding targets, freestanding/.
        models: Names of the models whose programs are linked.
    """
    common = (
        *target.isa.machine_flags,
        *((f"--target={_triple(target)}",) if toolchain.name == "zig" else ()),
        *_OPTIMIZE[target.optimize, toolchain.name],
        *_COMMON,
        *_BY_TOOLCHAIN[toolchain.name],
        *(() if target.board else ("-fno-pic",)),
    )
    flags = (*common, *_CXX)
    kernel_sources = tuple(
        f"kernels/{library}/{source}"
        for library, sources in resolution.sources
        for source in sources
    )
    library_sources = (
        *(f"runtime/{s}" for s in runtime_sources if s.startswith("src/")),
        *kernel_sources,
    )
    firmware_sources = tuple(
        f"runtime/{s}" for s in runtime_sources if not s.startswith("src/")
    )
    library_units = [
        *(_unit(s, flags, target, toolchain) for s in library_sources),
        _generated_unit("api.cpp", flags, target),
        _generated_unit("registered_kernels.cpp", flags, target),
        CompileUnit(
            "gen/src/models.S",
            "obj/gen/src/models.S.o",
            tuple(f for f in common if not f.startswith(("-W", "-fstack"))),
            tuple(f"models/{m}.pte" for m in models),
        ),
    ]
    firmware_units = [_unit(s, flags, target, toolchain) for s in firmware_sources]
    link_flags = _link_flags(target, toolchain)
    library = f"lib{profile}.a"
    return CompilePlan(
        units=(*library_units, *firmware_units),
        library=library,
        flags=flags,
        link_flags=link_flags,
        ninja=_ninja(
            profile,
            toolchain,
            library,
            library_units=library_units,
            firmware_units=firmware_units,
            link_flags=link_flags,
        ),
        sources=tuple(sorted({*library_sources, *firmware_sources})),
    )


def _triple(target: Target) -> str:
    import platform  # noqa: PLC0415  # only hosts need it

    return target.cpu.clang_triple.format(machine=platform.machine())


def _unit(
    source: str, flags: tuple[str, ...], target: Target, toolchain: Toolchain
) -> CompileUnit:
    path = PurePosixPath(source)
    includes: tuple[str, ...] = _INCLUDES
    if target.freestanding:
        includes = (*includes, _FREESTANDING_INCLUDE)
    if source.startswith("runtime/freestanding/"):
        flags = (*flags, *_MEMORY_FUNCTIONS[toolchain.name])
    if source.startswith("runtime/platform/"):
        includes = (*includes, f"-I{SOURCES}/{path.parent}")
    return CompileUnit(f"{SOURCES}/{source}", f"obj/{source}.o", (*flags, *includes))


def _generated_unit(name: str, flags: tuple[str, ...], target: Target) -> CompileUnit:
    includes: tuple[str, ...] = _INCLUDES
    if target.freestanding:
        includes = (*includes, _FREESTANDING_INCLUDE)
    return CompileUnit(f"gen/src/{name}", f"obj/gen/src/{name}.o", (*flags, *includes))


def _link_flags(target: Target, toolchain: Toolchain) -> tuple[str, ...]:
    if toolchain.name == "zig":
        script = (
            ("-T", "gen/firmware.ld", "-z", "max-page-size=4")
            if target.board
            else ("-static", "-z", "noexecstack")
        )
        return (*script, "--gc-sections", "-Map=firmware.map", "--build-id=none")
    common = (
        "-Wl,--gc-sections",
        "-Wl,-Map=firmware.map",
        "-Wl,--build-id=none",
    )
    if target.board:
        return (
            *target.isa.machine_flags,
            "-nostdlib",
            "-T",
            "gen/firmware.ld",
            *common,
            "-Wl,--no-warn-rwx-segments",
        )
    return (*target.isa.machine_flags, "-no-pie", *common)


def _ninja(
    profile: str,
    toolchain: Toolchain,
    library: str,
    *,
    library_units: list[CompileUnit],
    firmware_units: list[CompileUnit],
    link_flags: tuple[str, ...],
) -> str:
    from ninja.ninja_syntax import Writer  # noqa: PLC0415  # only real builds need it

    out = StringIO()
    n = Writer(out, width=1000)  # type: ignore[arg-type]  # takes any text file
    n.comment(f"Build of profile {profile}. Do not edit.")
    n.variable("ninja_required_version", "1.10")
    n.variable("cxx", _command(toolchain.compiler))
    n.variable("ar", _command(toolchain.archiver))
    n.variable("ld", _command(toolchain.linker))
    n.newline()
    n.rule(
        "cxx",
        "$cxx $flags -MMD -MF $out.d -c $in -o $out",
        description="compile $in",
        depfile="$out.d",
        deps="gcc",
    )
    n.rule("as", "$cxx $flags -c $in -o $out", description="assemble $in")
    n.rule("ar", "rm -f $out && $ar rcsD $out $in", description="archive $out")
    n.rule("link", "$ld $flags $in $libs -o $out", description="link $out")
    n.newline()
    for unit in (*library_units, *firmware_units):
        n.build(
            [unit.object],
            "as" if unit.source.endswith(".S") else "cxx",
            [unit.source],
            implicit=[*unit.inputs, TOOLCHAIN_FILE],
            variables={"flags": " ".join(unit.flags)},
        )
    n.newline()
    n.build(
        [library],
        "ar",
        [u.object for u in library_units],
        implicit=[TOOLCHAIN_FILE],
    )
    builtins = ["obj/compiler_rt.o"] if toolchain.builtins else []
    script = ["gen/firmware.ld"] if "gen/firmware.ld" in link_flags else []
    n.build(
        ["firmware.elf"],
        "link",
        [u.object for u in firmware_units] + [library, *builtins],
        implicit=[*script, TOOLCHAIN_FILE],
        implicit_outputs=["firmware.map"],
        variables={
            "flags": " ".join(link_flags),
            "libs": "-lgcc" if "-nostdlib" in link_flags else "",
        },
    )
    n.newline()
    n.default(["firmware.elf", library])
    return out.getvalue()


def _command(words: tuple[str, ...]) -> str:
    return " ".join(w.replace("$", "$$").replace(" ", "$ ") for w in words)


def toolchain_text(toolchain: Toolchain) -> str:
    """What tells toolchains apart: with it, what another one compiled is not used."""
    lines = (f"{role} {digest}\n" for role, digest in toolchain.programs)
    return f"{toolchain.version}\n{''.join(lines)}"


def compile_commands(
    plan: CompilePlan, *, compiler: tuple[str, ...], folder: str, sources: str
) -> str:
    """The compilation database for editors, on the sources people edit.

    Args:
        plan: What is compiled.
        compiler: Its command.
        folder: Ninja's, absolute.
        sources: The one that holds runtime/ and kernels/, absolute.
    """

    def there(word: str) -> str:
        for prefix in (f"{SOURCES}/", f"-I{SOURCES}/"):
            if word.startswith(prefix):
                kept = prefix.removesuffix(f"{SOURCES}/")
                return f"{kept}{sources}/{word.removeprefix(prefix)}"
        return word

    entries = [
        {
            "directory": folder,
            "file": there(unit.source),
            "output": unit.object,
            "arguments": [
                *compiler,
                *(there(flag) for flag in unit.flags),
                *("-c", there(unit.source), "-o", unit.object),
            ],
        }
        for unit in plan.units
    ]
    return json.dumps(entries, indent=2) + "\n"
