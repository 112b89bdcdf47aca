"""Whose bytes these are: from an input file and section to a contributor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final

from orchestrator.measure.size import ContributorKind as Kind
from orchestrator.memory.plan import (
    MemoryPlan,
    arena_section,
    common_section,
    method_symbol,
    model_section,
)

_ARCHIVE_MEMBER: Final = re.compile(r"^(.*)\(([^()]+)\)$")
# Flags SHF_MERGE and SHF_STRINGS say so, but maps show names only: `.rodata.str1.1` is
# of characters of 1 byte, `.rodata.cst8` of numbers of 8.
_MERGEABLE: Final = re.compile(r"\.(str\d+\.\d+|cst\d+)$")
"""Ends of the names compilers give to sections whose equal items are merged."""
_LINKER_MADE: Final = ("<internal>", "linker stubs")
"""What lld and GNU ld call themselves in their maps."""
_START_UP: Final = re.compile(r"^[A-Za-z]?crt\w*\.o$")
_OBJECTS: Final = "obj/"
"""Folder of the objects; below it they are named after their sources."""
# An object among ours that is the toolchain's: zig's compiler_rt, which
# shell/toolchain.py compiles for the core.
_BUILTINS: Final = "obj/compiler_rt.o"
# Folders of sources as `obj/` has them. A new folder of runtime/ needs a row here, or
# its bytes are listed under "other".
_FOLDERS: Final = (
    ("runtime/src/", Kind.RUNTIME),
    ("runtime/app/", Kind.APPLICATION),
    ("runtime/platform/", Kind.PLATFORM),
    ("runtime/freestanding/", Kind.MEMORY_FUNCTIONS),
    ("kernels/", Kind.KERNEL),
    ("delegates/", Kind.DELEGATE),
)
_HEADERS: Final = (".h", ".hpp", ".yaml")
_GENERATED: Final = {
    # Names of files that emit/generate/ writes.
    "gen/src/api.cpp": (Kind.API, "api"),
    "gen/src/registered_kernels.cpp": (Kind.KERNEL_TABLE, "kernel table"),
    "gen/src/registered_delegates.cpp": (Kind.DELEGATE, "delegate table"),
}


@dataclass(frozen=True, slots=True)
class Owner:
    """A contributor, and what the bytes were compiled from ("" if unknown).

    `operators` are those that need the bytes, if nothing else does.
    """

    kind: Kind
    name: str
    object: str = ""
    operators: tuple[str, ...] = ()


PADDING: Final = Owner(Kind.PADDING, "alignment")
STACK: Final = Owner(Kind.STACK, "stack")


class Owners:
    """Knows the parts of one product.

    Args:
        profile: Its name.
        objects: Paths of its objects from ninja's folder,
            `obj/runtime/src/model.cpp.o`.
        memory: Names its models, methods and arenas.
        users: Operators that need an input section, by object and name of the section;
            without those that something else needs, too.
    """

    def __init__(
        self,
        profile: str,
        objects: Iterable[str],
        memory: MemoryPlan,
        users: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType({}),
    ) -> None:
        self._library = f"lib{profile}.a"
        self._users = users
        self._members: dict[str, list[str]] = {}
        for path in sorted(objects):
            self._members.setdefault(PurePosixPath(path).name, []).append(path)
        self._sections: dict[str, Owner] = {}
        self._variables: dict[str, Owner] = {}
        for common in memory.common:
            self._sections[common_section(common.name)] = Owner(
                Kind.ARENA, f"{common.name} arena of all methods"
            )
        for model in memory.models:
            self._sections[model_section(model.model)] = Owner(Kind.MODEL, model.model)
            for method in model.methods:
                name = f"{model.model}.{method.method}"
                for arena in method.own_arenas:
                    section = arena_section(model.model, method.method, arena.memory_id)
                    shared = ", shared" if arena.shared else ""
                    what = f"{name} arena {arena.memory_id}{shared}"
                    owner = Owner(Kind.ARENA, what)
                    self._sections[section] = owner
                base = method_symbol(profile, model.model, method.method)
                for what in ("state", "loaded"):
                    owner = Owner(Kind.METHOD_STATE, name)
                    self._variables[f"{base}_{what}"] = owner

    def of_variable(self, name: str) -> Owner | None:
        """Owner of a variable that counts on its own; `name` is demangled."""
        return self._variables.get(name.rpartition("::")[2])

    @staticmethod
    def unlisted(section: str) -> Owner:
        """Owner of bytes of an output section that the map says nothing about."""
        return Owner(Kind.OTHER, f"unlisted in {section}")

    def of_piece(self, section: str, file: str) -> Owner:
        """Owner of an input section.

        Args:
            section: Name of the input section.
            file: As in the linker's map.
        """
        known = self._sections.get(section) or self._sections.get(
            # Those sections are called after the model's with ".c" and a number.
            section.rpartition(".c")[0]  # a constant of a prelinked model
        )
        if known is not None:
            return Owner(known.kind, known.name, self._object(file))
        if file in _LINKER_MADE:
            if found := _MERGEABLE.search(section):
                what = "strings" if found[1].startswith("str") else "numbers"
                return Owner(Kind.CONSTANTS, f"merged {what}")
            return Owner(Kind.OTHER, f"linker {section}")
        owner = self._of_object(self._object(file))
        if users := self._users.get((owner.object, section)):
            return replace(owner, operators=users)
        return owner

    def _of_object(self, name: str) -> Owner:
        if name in _GENERATED:
            return Owner(*_GENERATED[name], name)
        if found := contributor_of(name):
            return Owner(*found, name)
        # An archive that is not the product's library: libgcc, libc, compiler-rt of
        # zig.
        if member := _ARCHIVE_MEMBER.match(name):
            library = member[1].removesuffix(".a")
            return Owner(Kind.TOOLCHAIN, library, name)
        if "/" in name:
            return Owner(Kind.OTHER, name, name)
        if _START_UP.match(name):
            return Owner(Kind.TOOLCHAIN, "start-up files", name)
        return Owner(Kind.TOOLCHAIN, name.partition(".")[0], name)

    def _object(self, file: str) -> str:
        """Source of one of our objects; a base name for the toolchain's files.

        Paths of the toolchain are the machine's, and do not belong in a report.
        """
        if file == _BUILTINS:
            return PurePosixPath(file).name
        if file.startswith(_OBJECTS):
            return source_of(file)
        found = _ARCHIVE_MEMBER.match(file)
        if not found:
            return PurePosixPath(file).name
        archive, member = PurePosixPath(found[1]).name, found[2]
        if archive != self._library:
            return f"{archive}({member})"
        # ar keeps base names only, so that a map says `op_add.cpp.o` and no folder.
        paths = self._members.get(member, [])
        if len(paths) == 1:
            return source_of(paths[0])
        # Two libraries can have a kernel of one name; the map does not say which.
        folder = "kernels/" if member.startswith("op_") else "gen/src/"
        return folder + member.removesuffix(".o")

    def reported(self, path: str) -> str:
        """What `Owner.object` is for bytes of an object, given by its path."""
        if path.startswith(f"{_OBJECTS}runtime/") and "/src/" not in path:
            return source_of(path)  # linked by itself, not out of the library
        return self._object(f"{self._library}({PurePosixPath(path).name})")


def contributor_of(source: str) -> tuple[Kind, str] | None:
    """The contributor of a source, `kernels/portable/op_add.cpp`; None of headers."""
    path = PurePosixPath(source)
    if path.suffix in _HEADERS:
        return None
    for folder, kind in _FOLDERS:
        if source.startswith(folder):
            return kind, str(path.relative_to(folder).with_suffix(""))
    return None


def is_merged(section: str) -> bool:
    """Whether linkers merge equal items of input sections of this name."""
    return bool(_MERGEABLE.search(section))


def source_of(path: str) -> str:
    """Source of one of our objects: objects are named after their sources."""
    return path.removeprefix(_OBJECTS).removesuffix(".o")


# Readable names of C++ symbols.
#
# LLVM's demangler does the reading, in the version that comes with pycxxfilt: every machine shows
# the same names.

_PREFIX: Final = "_Z"
# Characters. LLVM's demangler recurses with the nesting of a name, on the stack of this
# process; chosen by hand.
_LONGEST: Final = 10_000
"""Longer symbols are shown as they are: the demangler recurses."""


def mangled_start(name: str) -> str:
    """What symbols of functions of a qualified C++ name begin with."""
    parts = name.split("::")
    lengths = "".join(f"{len(part)}{part}" for part in parts)
    return f"_ZN{lengths}E" if len(parts) > 1 else f"_Z{lengths}"


@cache
def demangle(symbol: str) -> str:
    """The qualified name of a symbol, without its parameters and return type.

    For example `orch::portable::(anonymous namespace)::add_same<float>`. What compilers
    append to copies of a function, such as `.isra.0`, stays at the end. Names of C, and
    names that are not valid in C++, stay as they are.

    A mangled function begins with its name, and that name alone is a valid symbol: the
    shortest valid prefix, with its template arguments if there are any.

    Source: Itanium C++ ABI, 5.1.2 (general structure) and 5.1.7 (template arguments).
    """
    mangled, dot, suffix = symbol.partition(".")
    if not mangled.startswith(_PREFIX) or len(mangled) > _LONGEST:
        return symbol
    # The shortest start that is a whole name is the function without its parameters. A
    # name that goes on with template arguments is longer ("I" begins them).
    for end in range(len(_PREFIX) + 1, len(mangled) + 1):
        has_arguments = mangled.startswith("I", end)
        if not has_arguments and (name := _full_name(mangled[:end])):
            return name + dot + suffix
    return symbol


def _full_name(mangled: str) -> str | None:
    # Imported late: most commands read no symbols.
    from pycxxfilt import itanium_demangle  # noqa: PLC0415

    try:
        return itanium_demangle(mangled)
    except ValueError:
        return None
