"""Keys of objects: equal keys, equal bytes, in whatever product and folder."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Final

from orchestrator.core.lazy_bytes import Bytes
from orchestrator.emit.compile.units import toolchain_text
from orchestrator.targets.cores import Toolchain

if TYPE_CHECKING:
    from orchestrator.emit.compile.units import CompileUnit

# Not a preprocessor: each include counts, under whatever condition. A file too many
# makes a key too special, one too few would be a wrong object: what is not plain has no
# key.
_INCLUDE: Final = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)')
_ANY_INCLUDE: Final = re.compile(rb"^[ \t]*#[ \t]*(?:include|include_next|embed)\b")
# Both read the file system without an #include.
_OTHER_FILES: Final = re.compile(rb"\.incbin\b|__has_include")
# An object with the time of its compilation is never equal to another one.
_TIMES: Final = re.compile(rb"__(?:DATE|TIME|TIMESTAMP)__")
_OF_GCC: Final = frozenset(
    {"stdint.h", "stddef.h", "stdbool.h", "stdarg.h", "limits.h", "float.h"}
    | {"arm_mve.h", "arm_acle.h"}
)
"""Headers that gcc has itself: its version decides about them.

That is also so for `stdint.h` and `limits.h` of a host, as far as their names mean the
same wherever this compiler runs.
"""


def object_keys(
    units: Iterable[CompileUnit], files: Mapping[str, Bytes], *, toolchain: Toolchain
) -> dict[str, str]:
    """Keys by path of an object, for those that other products may have as well.

    A key is the SHA-256 of all that decides about the bytes: the compiler, the flags,
    and the bytes of the source and of every file that it may include, on any target.

    Left out are generated sources, which no other product has, and sources that include
    what is not known here: headers of the system, or a macro's value.

    Args:
        units: Compile steps.
        files: Bytes by path in ninja's folder.
        toolchain: Of all steps.
    """
    includes = _Includes(files, has_headers=toolchain.name == "zig")
    keys = {}
    for unit in units:
        # Assembly includes models by .incbin; generated sources are of one product.
        if unit.inputs or not unit.source.endswith((".cpp", ".c")):
            continue
        if unit.source.startswith("gen/"):
            continue
        read = includes.closure(unit)
        if read is None:
            continue
        # Source and object by path: both are in debug information. Flags in their
        # order, as later ones win.
        lines = [toolchain_text(toolchain), unit.source, unit.object, *unit.flags]
        lines += [f"{path} {includes.digest(path)}" for path in sorted(read)]
        keys[unit.object] = hashlib.sha256("\0".join(lines).encode()).hexdigest()
    return keys


class _Includes:
    """What sources include, each file read once."""

    def __init__(self, files: Mapping[str, Bytes], *, has_headers: bool) -> None:
        self._files = files
        self._has_headers = has_headers
        self._names: dict[str, tuple[tuple[str, bool], ...] | None] = {}
        self._digests: dict[str, str] = {}

    def digest(self, path: str) -> str:
        """SHA-256 of a file."""
        if path not in self._digests:
            data = bytes(self._files[path])
            self._digests[path] = hashlib.sha256(data).hexdigest()
        return self._digests[path]

    def closure(self, unit: CompileUnit) -> set[str] | None:
        """Every file that a source may read, itself included; None if not known.

        Conditions are not evaluated: what is included under any is in it.
        """
        folders = [f.removeprefix("-I") for f in unit.flags if f.startswith("-I")]
        forced = [name for flag, name in pairwise(unit.flags) if flag == "-include"]
        left, found = [unit.source, *forced], set[str]()
        while left:
            path = left.pop()
            if path in found:
                continue
            if path not in self._files:
                return None
            found.add(path)
            names = self._included(path)
            if names is None:
                return None
            for name, is_quoted in names:
                own = [str(PurePosixPath(path).parent)] if is_quoted else []
                # The first that exists, as compilers look for it.
                places = (normpath(f"{folder}/{name}") for folder in (*own, *folders))
                place = next((p for p in places if p in self._files), None)
                if place is not None:
                    left.append(place)
                elif not self._has_headers and name not in _OF_GCC:
                    # A header of the system: the key of an object must not depend on
                    # what else is installed.
                    return None
        return found

    def _included(self, path: str) -> tuple[tuple[str, bool], ...] | None:
        """(name, whether in quotes) of each include; None if a name is not plain."""
        if path not in self._names:
            self._names[path] = _names(bytes(self._files[path]))
        return self._names[path]


def _names(text: bytes) -> tuple[tuple[str, bool], ...] | None:
    if _OTHER_FILES.search(text) or _TIMES.search(text):
        return None
    names = []
    for line in text.splitlines():
        if match := _INCLUDE.match(line):
            quoted, angled = match.groups()
            names.append(((quoted or angled).decode(errors="replace"), bool(quoted)))
        elif _ANY_INCLUDE.match(line):
            return None
    return tuple(names)
