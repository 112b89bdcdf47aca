"""Sources that any build system can compile: no include folders, no macros to give.

Our build gives each source its own macros and include folders. Other build systems have
one set of flags for all of a package, and some have none. So each source begins with
its macros, and includes name files relative to it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from orchestrator.core.lazy_bytes import Bytes
from orchestrator.emit.compile import SOURCES, CompileUnit
from orchestrator.emit.compile.archive import named_section

RUNNER: Final = f"{SOURCES}/runtime/app/runner.cpp"
"""The application of `run`; the self test is made of it."""
_LIBRARY_SOURCES: Final = f"{SOURCES}/runtime/src/"
_FREESTANDING: Final = f"{SOURCES}/runtime/freestanding"
MODELS: Final = "gen/src/models.S"
_INCLUDE: Final = re.compile(
    r"""^([ \t]*\#[ \t]*include[ \t]*)(?:"([^"\n]+)"|<([^>\n]+)>)""", re.MULTILINE | re.VERBOSE
)
_ASSEMBLY: Final = re.compile(r"\basm\((.*?)\);$", re.DOTALL | re.MULTILINE)
_STRING: Final = re.compile(r'"([^"\n]*)"')
_SECTION: Final = re.compile(r'\bsection\("([^"]+)"\)')
_SYMBOL: Final = re.compile(r"\borch_\w+")
# The first that fits counts, so the longer ones come first.
_MOVED: Final = (
    (_LIBRARY_SOURCES, "runtime/"),
    (f"{SOURCES}/runtime/include/", ""),
    (f"{SOURCES}/runtime/app/", "runtime/"),
    (f"{SOURCES}/", ""),
    ("gen/selected/", "selected/"),
    ("gen/include/", ""),
    ("gen/src/", "product/"),
)
"""Folders in the compile folder, and where their files are in a package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A source with what it needs besides its text.

    Args:
        path: In the compile folder.
        defines: Macros, (name, value).
        folders: Where its includes are looked for, in the compile folder.
        forced: Headers that are included before its first line.
    """

    path: str
    defines: tuple[tuple[str, str], ...]
    folders: tuple[str, ...]
    forced: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the files of a package are.

    Args:
        headers: Folder of the headers that an application includes.
        sources: Folder of all other sources and headers.
        public: Files of the compile folder that applications include.
    """

    headers: str
    sources: str
    public: frozenset[str]

    def of(self, path: str) -> str:
        """Path in the package of a file of the compile folder."""
        top = self.headers if path in self.public else self.sources
        moved = next(m for m in _MOVED if path.startswith(m[0]))
        name = moved[1] + path.removeprefix(moved[0]).replace("/orch_selected/", "/")
        # Build systems that compile all sources of a folder would compile it twice.
        return f"{top}/{name}" if path != RUNNER else f"{top}/runtime/runner.h"


def unit_of(unit: CompileUnit) -> Unit:
    """Macros and include folders of a compile step."""
    flags = unit.flags
    macros = [f.removeprefix("-D").partition("=") for f in flags if f.startswith("-D")]
    folders = (f.removeprefix("-I") for f in flags if f.startswith("-I"))
    return Unit(
        path=unit.source,
        defines=tuple((name, value or "1") for name, _, value in macros),
        # The packager's C library has those headers; ours are for builds without one.
        folders=tuple(f for f in folders if f != _FREESTANDING),
        forced=tuple(after for flag, after in pairwise(flags) if flag == "-include"),
    )


def library_units(units: Iterable[CompileUnit]) -> tuple[Unit, ...]:
    """The sources of the library, without those of `run`'s firmware and the models."""
    return tuple(
        unit_of(unit)
        for unit in units
        if unit.source != MODELS
        and (
            unit.source.startswith(_LIBRARY_SOURCES)
            or not unit.source.startswith(f"{SOURCES}/runtime/")
        )
    )


def common_defines(units: Iterable[Unit]) -> tuple[tuple[str, str], ...]:
    """Macros that all units have, in their order."""
    # Compared as they are: a macro of the same name with another value stays with each
    # source.
    first, *others = units
    return tuple(d for d in first.defines if all(d in unit.defines for unit in others))


def assembly_functions(texts: Iterable[str]) -> frozenset[str]:
    """Functions in assembly of sources and headers in C++: names that both share."""
    parts = [(_ASSEMBLY.findall(text), _INCLUDE.sub("", _ASSEMBLY.sub("", text))) for text in texts]
    # Lines of assembly may come from macros, which also put names together: `"orch_x_" #number`.
    inside = [part for found, rest in parts for part in (*found, *_STRING.findall(rest))]
    outside = "".join(_STRING.sub("", rest) for _, rest in parts)
    return frozenset(_SYMBOL.findall(" ".join(inside))) & {*_SYMBOL.findall(outside)}


def with_own_symbols(text: str, base: str, functions: Collection[str]) -> str:
    """A source in C++ whose functions in assembly begin with the product's name.

    They are in no namespace, and macros do not reach them.

    Args:
        text: The source.
        base: Name of the product in C.
        functions: All functions in assembly, of this source or of others.
    """
    return _SYMBOL.sub(lambda m: f"{base}_{m[0]}" if m[0] in functions else m[0], text)


def with_sections(text: str, names: Mapping[str, str]) -> str:
    """A generated source with constants and arenas in sections of these names."""
    return _SECTION.sub(lambda m: f'section("{named_section(m[1], names)}")', text)


def packaged_sources(
    units: Iterable[Unit],
    files: Mapping[str, bytes],
    places: Places,
    *,
    config: str,
    common: Iterable[tuple[str, str]],
) -> dict[str, bytes]:
    """Sources and every header that they include, by path in the package.

    Args:
        units: What is compiled, and the runner.
        files: All files of the compile folder that may be included.
        places: Where files go.
        config: Path in the package of the header that each source includes first.
        common: Macros that this header defines.
    """
    shared = frozenset(common)
    made: dict[str, bytes] = {}
    for unit in units:
        for path, text in _rewritten(unit, files, places):
            place = places.of(path)
            if path == unit.path and path != RUNNER:
                own = [d for d in unit.defines if d not in shared]
                text = _beginning(own, place, config) + text  # noqa: PLW2901
            data = text.encode()
            # One header with other includes for each source would be two files: there
            # is none, and if one comes, it is an error here and not a wrong package.
            if made.setdefault(place, data) != data:
                raise ValueError(f"{path} includes other files from {unit.path}")
    return made


def _beginning(defines: Iterable[tuple[str, str]], place: str, config: str) -> str:
    macros = "".join(f"#define {name} {value}\n" for name, value in defines)
    return f'{macros}#include "{_relative(config, place)}"\n'


def _relative(path: str, place: str) -> str:
    """A path of the package as a file at `place` includes it."""
    return posixpath.relpath(path, posixpath.dirname(place))


def _rewritten(unit: Unit, files: Mapping[str, bytes], places: Places) -> Iterable[tuple[str, str]]:
    """The source and what it includes, each with includes relative to itself."""
    seen: set[str] = set()
    waiting = [unit.path, *unit.forced]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        text = files[path].decode()
        parts: list[str] = []
        end = 0
        for match in _INCLUDE.finditer(text):
            target = _included(match, path, unit, files)
            if target is not None:
                waiting.append(target)
                name = _relative(places.of(target), places.of(path))
                parts += [text[end : match.start()], match[1], f'"{name}"']
                end = match.end()
        yield path, "".join([*parts, text[end:]])


def _included(
    match: re.Match[str], path: str, unit: Unit, files: Mapping[str, bytes]
) -> str | None:
    """The file of the product that a directive names; None if it is the system's."""
    own = (posixpath.dirname(path),) if match[2] else ()
    for folder in (*own, *unit.folders):
        found = posixpath.normpath(f"{folder}/{match[2] or match[3]}")
        if found in files:
            return found
    return None


# Programs and constants as C: other assemblers and build systems find no files.

_BLOCK: Final = re.compile(
    r"""\ *\.section\ (?P<section>[^,\n]+),"a"\n
    \ *\.balign\ (?P<alignment>\d+)\n
    \ *\.globl\ (?P<symbol>\w+)\n
    (?P=symbol):\n
    \ *\.incbin\ "(?P<file>[^"\n]+)"(?:,\ (?P<begin>\d+),\ (?P<size>\d+))?\n""",
    re.VERBOSE,
)
_SAME: Final = re.compile(r" *\.globl (\w+)\n *\.set \1, (\w+)\n")
"""One more name of bytes that an earlier block has."""
_ROW: Final = 24  # numbers; below 100 columns


def constants_source(head: str, assembly: str, files: Mapping[str, Bytes]) -> str:
    """The generated assembly of programs and constants as arrays in C.

    Args:
        head: Text of the first line.
        assembly: What the build assembles.
        files: What it includes, by path.

    Raises:
        ValueError: The assembly has something else.
    """
    body, _, _ = assembly.partition("#if defined(__ELF__)")
    rest = _SAME.sub("", _BLOCK.sub("", body))
    # Assembly of another form is no longer what this function knows: an error, not a
    # constant less.
    if re.sub(r"//.*", "", rest).strip():
        raise ValueError(f"unknown assembly: {rest.strip()[:200]}")
    blocks = [_array(match, files) for match in _BLOCK.finditer(body)]
    return "\n".join([f"/* {head} */\n#include <stdint.h>\n", *blocks])


def symbols_of(assembly: str) -> dict[str, str]:
    """Symbols of programs and constants; each with the one that is defined as array."""
    own = {match["symbol"]: match["symbol"] for match in _BLOCK.finditer(assembly)}
    return own | {match[1]: match[2] for match in _SAME.finditer(assembly)}


def _array(match: re.Match[str], files: Mapping[str, Bytes]) -> str:
    data = bytes(files[match["file"]])
    if match["begin"] is not None:
        begin = int(match["begin"])
        data = data[begin : begin + int(match["size"])]
    name, size = match["symbol"], max(len(data), 1)
    return (
        f"extern const uint8_t {name}[{size}];\n"
        f"__attribute__((aligned({match['alignment']}),"
        f' section("{match["section"]}")))\n'
        f"const uint8_t {name}[{size}] = {{\n{byte_rows(data or bytes(1))}}};\n"
    )


def byte_rows(data: bytes) -> str:
    """Bytes as the rows of an initializer."""
    rows = (data[at : at + _ROW] for at in range(0, len(data), _ROW))
    return "".join(f"  {','.join(map(str, row))},\n" for row in rows)
