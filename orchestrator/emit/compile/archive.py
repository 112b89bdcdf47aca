"""Libraries that any linker accepts, beside those of other products."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from orchestrator.memory.plan import ARENA_SECTIONS, MODEL_SECTIONS

# Names of sections in the library and in packages, as the profile wants them.
#
# Firmware for `run` keeps the build's names: its linker script is generated with them.

_CODE: Final = ".text"


def named_section(section: str, names: Mapping[str, str]) -> str:
    """The name of a section that the build calls `section`.

    `.text.f` becomes `.itcm.f`, `.bss.orch_arena_kws_forward_1` becomes
    `.dtcm.kws_forward_1`: linker scripts take `.itcm .itcm.*`, and can still drop or
    place single functions, constants and arenas.

    Args:
        section: The build's name.
        names: The profile's, by the keys of `[memory.sections]`.
    """
    if section == _CODE or section.startswith(f"{_CODE}."):
        return names.get("code", _CODE) + section.removeprefix(_CODE)
    # A part for each model follows the name: linkers drop sections one by one.
    if "weights" in names and section.startswith(MODEL_SECTIONS):
        return f"{names['weights']}.{section.removeprefix(MODEL_SECTIONS)}"
    if "arenas" in names and section.startswith(ARENA_SECTIONS):
        _, _, rest = section.removeprefix(ARENA_SECTIONS).partition("_")
        return f"{names['arenas']}.{rest}"
    return section


_STACK_NOTE: Final = b"\0.note.GNU-stack\0"
# As long as what it replaces, so that no offset in the archive changes. Every linker
# script has or drops `.comment`; Zephyr 3.4 warned of the other one, and its twister
# takes warnings for errors.
_COMMENT: Final = b"\0.comment".ljust(len(_STACK_NOTE), b"\0")
_MAGIC: Final = b"!<arch>\n"
# GNU's form of `ar`: name 16, date 12, user 6, group 6, mode 8, size 10 digits, and two
# bytes of mark. `ar rcsD` writes zeros for what is of the machine.
_HEADER_BYTES: Final = 60
_INDEX: Final = b"/".ljust(16)
"""Name of the member that lists the symbols of all others."""
# Long names; the index with 64-bit offsets, which no library here is large enough for.
_NAMES: Final = (b"//".ljust(16), b"/SYM64/".ljust(16))
# Itanium C++ ABI, 5.1: all but functions in extern "C", which are those of the header.
_CXX: Final = b"_Z"
"""Begin of mangled names."""
# The one symbol that keeps its name and is no function of a product's own API (decision
# 0031).
STATUS_TEXT: Final = "orch_status_text"
"""A function that all products have, weak: linkers take one."""
# SHT_SYMTAB, STB_LOCAL and SHN_UNDEF of the ELF gABI, chapter 4.
_SYMBOL_TABLE: Final = 2
_RELOCATIONS: Final = (".rela", ".rel")
_LOCAL: Final = 0
_UNDEFINED: Final = 0


# By the class of a file (its fifth byte): 1 is ELF32, 2 ELF64. The fields that lie
# between are skipped by `x`.
class _Form(NamedTuple):
    """Where an ELF header, and one of a section, have what is read here."""

    sections_at: int
    counts_at: int
    section: str
    symbol: str
    offset_at: int
    size_at: int
    word: str


_FORMS: Final = {
    1: _Form(32, 46, "<4xI8xIII", "<I8xBxH", 16, 20, "<I"),
    2: _Form(40, 58, "<4xI16xQQI", "<IBxH16x", 24, 32, "<Q"),
}


def linkable(made: bytes, *, is_bare: bool) -> bytes:
    """The bytes of a library; for a board, without notes about an executable stack.

    clang always adds a section to each object that marks its stack as not executable.
    gcc adds none for boards, and if only some objects of a program have it, GNU ld
    warns about the others. On boards it has no other effect, so the section, which is
    empty, gets a name that every linker script knows.
    """
    return made.replace(_STACK_NOTE, _COMMENT) if is_bare else made


def own_symbols(
    library: bytes,
    api: bytes,
    *,
    suffix: str,
    exports: Collection[str] = (),
    sections: Mapping[str, str] = MappingProxyType({}),
    used: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """The library with symbols that no other product's library has.

    Runtime and kernels are compiled for one product: for its dtypes, tables and core.
    Two products have functions of the same name that differ, and a linker that sees
    both would take one for both without a word. So every symbol that the library
    defines gets a suffix: functions of C++, C and assembly alike. Symbols that it only
    uses, such as `memcpy`, stay, but for `used`. No code or constant changes.

    Args:
        library: An archive of ELF objects, as GNU ar and llvm-ar write it.
        api: The object whose functions of C applications call: they keep their names.
        suffix: An identifier that no other product has.
        exports: Symbols that keep their names, too.
        sections: What sections are called.
        used: Names that symbols get which the application defines.
    """
    members = [*_members(library)]
    objects = [_Object(body) for _, body in members]
    kept = {name.encode() for name in (STATUS_TEXT, *exports)}
    # api.cpp defines the functions of the header in extern "C"; all else that it
    # defines is C++.
    kept |= {n for n in _Object(api).defined if not n.startswith(_CXX)}
    # A symbol that no object of the library defines stays as it is: memcpy,
    # compiler-rt, functions of the application.
    defined = {n for part in objects for n in part.defined} - kept
    end = f".{suffix}".encode()
    own = {name: name + end for name in defined}
    own |= {name.encode(): other.encode() for name, other in used.items()}
    for part in objects:
        part.rename(own)
        if sections:
            part.rename_sections(sections)
    return _archive(
        [(header, part.data) for (header, _), part in zip(members, objects, strict=True)],
        [part.defined for part in objects],
        _names_member(library),
    )


def defined_symbols(library: bytes) -> frozenset[str]:
    """Symbols that the objects of a library define for others."""
    return frozenset(
        name.decode() for _, body in _members(library) for name in _Object(body).defined
    )


def _all_members(library: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Header and bytes of each member."""
    at = len(_MAGIC)
    while at < len(library):
        header = library[at : at + _HEADER_BYTES]
        size = int(header[48:58])
        begin = at + _HEADER_BYTES
        yield header, library[begin : begin + size]
        # Members begin at even offsets.
        at = begin + size + size % 2


def _members(library: bytes) -> Iterator[tuple[bytes, bytes]]:
    for header, body in _all_members(library):
        if header[:16] != _INDEX and header[:16] not in _NAMES:
            yield header, body


def _names_member(library: bytes) -> tuple[bytes, bytes] | None:
    """The member with names that are too long for a header, if there is one."""
    return next((m for m in _all_members(library) if m[0][:16] == _NAMES[0]), None)


def _archive(
    members: Sequence[tuple[bytes, bytes]],
    symbols: Sequence[Sequence[bytes]],
    names: tuple[bytes, bytes] | None,
) -> bytes:
    """An archive with an index of its symbols."""
    texts = b"".join(name + b"\0" for found in symbols for name in found)
    count = sum(map(len, symbols))
    index_bytes = 4 + 4 * count + len(texts)
    index_bytes += index_bytes % 2
    at = len(_MAGIC) + _HEADER_BYTES + index_bytes
    if names is not None:
        at += _HEADER_BYTES + len(names[1]) + len(names[1]) % 2
    offsets = []
    for (_, body), found in zip(members, symbols, strict=True):
        offsets += [at] * len(found)
        at += _HEADER_BYTES + len(body) + len(body) % 2
    # Big-endian on every machine, as the archive's index is older than ELF.
    index = struct.pack(f">{1 + count}I", count, *offsets) + texts
    # Zeros for date, user and group, as `ar` writes with D: the same bytes everywhere.
    header = b"/".ljust(16) + b"0".ljust(12) + b"0     0     0       "
    parts = [_MAGIC, _member(header + b" " * 10 + b"`\n", index.ljust(index_bytes, b"\0"))]
    parts += [_member(*names)] if names is not None else []
    parts += [_member(header, body) for header, body in members]
    return b"".join(parts)


def _member(header: bytes, body: bytes) -> bytes:
    size = str(len(body)).encode().ljust(10)
    return header[:48] + size + header[58:] + body + b"\n" * (len(body) % 2)


@dataclass(slots=True)
class _Object:
    """An ELF object whose symbols and sections can be renamed; others have none.

    Source: ELF gABI, chapter 4.
    """

    data: bytes

    @property
    def defined(self) -> list[bytes]:
        """Names that other objects can refer to, in the order of the table."""
        return [
            name
            for _, name, binding, section in self._symbols()
            if binding != _LOCAL and section != _UNDEFINED
        ]

    def rename(self, names: Mapping[bytes, bytes]) -> None:
        """Give symbols, defined or used, other names."""
        found = [
            (at, names[name])
            for at, name, binding, _ in self._symbols()
            # Local symbols clash with nothing, and debuggers know functions by them.
            if binding != _LOCAL and name in names
        ]
        if not found:
            return
        _, names_header = self._headers()
        self._name(found, names_header)

    def rename_sections(self, sections: Mapping[str, str]) -> None:
        """Name the object's sections, and relocations after what they relocate."""
        found = []
        headers, names_header = self._section_headers()
        _, names, _, _ = self._section(names_header) if headers else (0, 0, 0, 0)
        for header in headers:
            (name,) = struct.unpack_from("<I", self.data, header)
            start = names + name
            text = self.data[start : self.data.index(b"\0", start)].decode()
            kind = next((k for k in _RELOCATIONS if text.startswith(f"{k}.")), "")
            new = kind + named_section(text.removeprefix(kind), sections)
            if new != text:
                found.append((header, new.encode()))
        if found:
            self._name(found, names_header)

    def _name(self, found: Iterable[tuple[int, bytes]], names_header: int) -> None:
        """Give what has the index of its name at these places other names.

        Args:
            found: Place in the file of an index, and the name.
            names_header: Of the section with the names.
        """
        form = _FORMS[self.data[4]]
        _, begin, size, _ = self._section(names_header)
        data, table = bytearray(self.data), bytearray(self.data[begin : begin + size])
        for at, name in found:
            # The name's index is the first field of a symbol and of a section header
            # alike.
            struct.pack_into("<I", data, at, len(table))
            table += name + b"\0"
        # At the end of the file, as there is no room in its place.
        struct.pack_into(form.word, data, names_header + form.offset_at, len(data))
        struct.pack_into(form.word, data, names_header + form.size_at, len(table))
        self.data = bytes(data + table)

    def _section(self, header: int) -> tuple[int, int, int, int]:
        """Kind, offset, size and link of a section."""
        found: tuple[int, int, int, int] = struct.unpack_from(
            _FORMS[self.data[4]].section, self.data, header
        )
        return found

    def _section_headers(self) -> tuple[range, int]:
        """Places of the headers of all sections, and of the one with their names."""
        if self.data[:4] != b"\x7fELF":
            return range(0), 0
        form = _FORMS[self.data[4]]
        (first,) = struct.unpack_from(form.word, self.data, form.sections_at)
        size, count, names = struct.unpack_from("<HHH", self.data, form.counts_at)
        return range(first, first + size * count, size), first + size * names

    def _headers(self) -> tuple[int, int]:
        """Places of the headers of the symbol table and of its names; 0 without."""
        headers, _ = self._section_headers()
        for header in headers:
            kind, _, _, link = self._section(header)
            if kind == _SYMBOL_TABLE:
                return header, headers[link]
        return 0, 0

    def _symbols(self) -> Iterator[tuple[int, bytes, int, int]]:
        """Place in the file, name, binding and section of each symbol."""
        header, names_header = self._headers()
        if not header:
            return
        layout = _FORMS[self.data[4]].symbol
        _, begin, size, _ = self._section(header)
        _, names, _, _ = self._section(names_header)
        for at in range(begin, begin + size, struct.calcsize(layout)):
            name, info, section = struct.unpack_from(layout, self.data, at)
            start = names + name
            text = self.data[start : self.data.index(b"\0", start)]
            yield at, text, info >> 4, section
