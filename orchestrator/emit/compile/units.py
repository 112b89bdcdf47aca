"""Compile units, and their places in ninja's folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orchestrator.errors import SourceSpan

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
