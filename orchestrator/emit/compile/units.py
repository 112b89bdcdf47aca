"""Compile units, and their places in ninja's folder."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import TYPE_CHECKING, Final

from orchestrator.errors import SourceSpan
from orchestrator.targets.cores import TOOLCHAIN_FILE, Toolchain

if TYPE_CHECKING:
    from orchestrator.targets.cores import Target

SOURCES = "src"
"""Folder in ninja's folder with copies of runtime/ and kernels/."""
BUILTINS = "obj/compiler_rt.o"
"""Object in ninja's folder with the compiler's support functions, where these are
needed."""

API_OBJECT = "obj/gen/src/api.cpp.o"
"""Object in ninja's folder with the functions that applications call."""

SELECTED = "gen/selected"
"""Folder of headers with selected dtypes, with a folder per kernel library."""


@dataclass(frozen=True, slots=True, order=True)
class CompileUnit:
    """One source and its object, relative to ninja's folder."""

    source: str
    object: str
    flags: tuple[str, ...]
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryOptions:
    """How the sources of a custom kernel library are compiled.

    Args:
        include: Folders of headers, relative to the library's folder.
        defines: Macros, `NAME` or `NAME=VALUE`.
        exports: Symbols that applications use, and where the profile says so.
    """

    include: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    exports: tuple[tuple[str, SourceSpan], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilePlan:
    """All compile and link steps.

    Args:
        units: Library and firmware, in order.
        library: `lib<profile>.a`.
        flags: Flags of every compile step, without absolute paths, for the lock.
        link_flags: Flags for linking the firmware.
        ninja: Text of build.ninja.
        sources: Every source, relative to the folder of runtime/ and kernels/.
        exports: Symbols of users' sources that applications use, and where the profile
            says so.
        sections: Names of sections in the library.
    """

    units: tuple[CompileUnit, ...]
    library: str
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    ninja: str
    sources: tuple[str, ...]
    exports: tuple[tuple[str, SourceSpan], ...] = ()
    sections: Mapping[str, str] = field(default_factory=dict)


_FOLDERS = (
    "-Igen/include",
    f"-I{SOURCES}/runtime/include",
    f"-I{SOURCES}/runtime/src",
    f"-I{SOURCES}/kernels",
)
_FREESTANDING_FOLDER = f"-I{SOURCES}/runtime/freestanding"
# Our objects have only enums of fixed size; the attribute says so to the linker.
_ARM_ATTRIBUTES = ("-include", f"{SOURCES}/runtime/src/attributes.h")


def header_folders(target: Target) -> tuple[str, ...]:
    """Include flags of every source."""
    return (*_FOLDERS, *((_FREESTANDING_FOLDER,) if target.freestanding else ()))


def own_includes(target: Target) -> tuple[str, ...]:
    """Include flags of our own sources, with the header that all of them include."""
    return (*header_folders(target), *(_ARM_ATTRIBUTES if target.cpu.is_arm else ()))


# Write the build as text for ninja.


def ninja_text(
    profile: str,
    toolchain: Toolchain,
    library: str,
    *,
    library_units: list[CompileUnit],
    firmware_units: list[CompileUnit],
    link_flags: tuple[str, ...],
) -> str:
    """Text of build.ninja.

    Args:
        profile: Name of the profile.
        toolchain: Compiler, linker and archiver.
        library: File name of the static library.
        library_units: Its objects.
        firmware_units: Objects that are linked with it.
        link_flags: Flags for linking the firmware.
    """
    from ninja.ninja_syntax import Writer  # noqa: PLC0415  # only real builds need it

    # width=1000: no line is wrapped. `_without_steps` of shell/compile_folder.py takes
    # lines that begin with a space for those of the step above.
    out = StringIO()
    n = Writer(out, width=1000)  # type: ignore[arg-type]  # takes any text file
    n.comment(f"Build of profile {profile}. Do not edit.")
    n.variable("ninja_required_version", "1.10")
    # `Launcher.ninja_text` looks for "\ncxx = ".
    n.variable("cxx", _command(toolchain.compiler))
    n.variable("ar", _command(toolchain.archiver))
    n.variable("ld", _command(toolchain.linker))
    n.newline()
    n.rule(
        "cxx",
        "$cxx $flags -MMD -MF $out.d -c $in -o $out",
        # `_with_warnings` of shell/compile_folder.py reads these descriptions.
        description="compile $in",
        depfile="$out.d",
        # ninja keeps the dependencies in its own log, and removes the depfiles.
        deps="gcc",
    )
    n.rule("as", "$cxx $flags -c $in -o $out", description="assemble $in")
    # ar adds to an archive: members of an earlier build would stay. D: no times and
    # users.
    n.rule("ar", "rm -f $out && $ar rcsD $out $in", description="archive $out")
    n.rule("link", "$ld $flags $in $libs -o $out", description="link $out")
    n.newline()
    for unit in (*library_units, *firmware_units):
        n.build(
            [unit.object],
            "as" if unit.source.endswith(".S") else "cxx",
            [unit.source],
            # ninja does not look at compilers: their identity is a file on which every
            # step depends.
            implicit=[*unit.inputs, TOOLCHAIN_FILE],
            variables={"flags": _command(unit.flags)},
        )
    n.newline()
    n.build([library], "ar", [u.object for u in library_units], implicit=[TOOLCHAIN_FILE])
    builtins = [BUILTINS] if toolchain.needs_builtins else []
    script = ["gen/firmware.ld"] if "gen/firmware.ld" in link_flags else []
    n.build(
        ["firmware.elf"],
        "link",
        [u.object for u in firmware_units] + [library, *builtins],
        implicit=[*script, TOOLCHAIN_FILE],
        # Removed or missing, it is made again with the firmware; reports need it.
        implicit_outputs=["firmware.map"],
        variables={
            "flags": _command(link_flags),
            # Last: libraries are searched for what is undefined before them.
            "libs": "-lgcc" if "-nostdlib" in link_flags else "",
        },
    )
    n.newline()
    n.default(["firmware.elf", library])
    return out.getvalue()


def _command(words: tuple[str, ...]) -> str:
    """Words quoted for a shell, and escaped for ninja."""
    return shlex.join(words).replace("$", "$$")


def toolchain_text(toolchain: Toolchain) -> str:
    """The toolchain's identity: when it changes, objects are compiled again."""
    lines = (f"{role} {digest}\n" for role, digest in toolchain.programs)
    return f"{toolchain.version}\n{''.join(lines)}"


# The compilation database for editors.


def compile_commands(
    plan: CompilePlan,
    *,
    compiler: tuple[str, ...],
    folder: str,
    sources: str,
    elsewhere: Mapping[str, str],
) -> str:
    """The compilation database for editors, with the sources that users edit.

    Args:
        plan: The compile plan.
        compiler: Its command.
        folder: Ninja's folder, absolute.
        sources: The folder that holds runtime/ and kernels/, absolute.
        elsewhere: Folders in it that are elsewhere on disk: `kernels/my_ops` and
            its absolute path.
    """
    places = {f"{SOURCES}/{name}": path for name, path in elsewhere.items()}
    places[SOURCES] = sources

    def there(word: str) -> str:
        option = "-I" if word.startswith("-I") else ""
        path = word.removeprefix(option)
        for name, place in places.items():
            if path == name or path.startswith(f"{name}/"):
                return f"{option}{place}{path.removeprefix(name)}"
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


# Sources that are empty on a target, as one condition spans all of their code.

# Also `ISA_LEVELS` of targets/cores.py.
_LEVELS: Final = {b"SCALAR": 0, b"DSP": 1, b"MVE": 2}
"""As kernels/util/isa.h numbers them."""
_CODE: Final = re.compile(rb'^(?!\s*(?://.*|#\s*include ".*)?$).*$', re.MULTILINE)
"""A line that is neither empty, nor a comment, nor an own header."""
# Only this form: `#if ORCH_ISA == ORCH_ISA_MVE`, several joined by ||. Any other is
# compiled, and may be empty then.
_GUARD: Final = re.compile(rb"#if (ORCH_ISA [^/]*?)\s*(?://.*)?")
_TERM: Final = re.compile(rb"ORCH_ISA (==|!=) ORCH_ISA_(SCALAR|DSP|MVE)")


def is_empty(source: bytes, level: int) -> bool:
    """Whether a source has no code for an instruction set.

    Args:
        source: Its bytes.
        level: Of the instruction set, the value of the macro ORCH_ISA.
    """
    first = _CODE.search(source)
    guard = first and _GUARD.fullmatch(first[0])
    if not first or not guard or not _spans(source[first.start() :]):
        return False
    terms = [_TERM.fullmatch(term) for term in guard[1].split(b" || ")]
    # A condition of another form: the compiler decides.
    return all(terms) and not any(
        (level == _LEVELS[term[2]]) == (term[1] == b"==") for term in terms if term
    )


def _spans(code: bytes) -> bool:
    """Whether the condition that code begins with ends where the code ends."""
    depth = 0
    lines = [line.strip() for line in code.rstrip().splitlines()]
    for number, line in enumerate(lines):
        if line.startswith(b"#if"):
            depth += 1
        elif depth == 1 and line.startswith((b"#else", b"#elif")):
            return False
        elif line.startswith(b"#endif"):
            depth -= 1
            if depth == 0:
                return number == len(lines) - 1
    return False
