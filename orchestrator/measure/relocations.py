"""Which sections of an object refer to which: read from its relocations."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrator.errors import CompileError, Diagnostic

if TYPE_CHECKING:
    from collections.abc import Iterator

_REL, _RELA, _SYMBOLS = 9, 4, 2
"""Section types. Source: ELF gABI, chapter 4, sh_type."""
_LOCAL: Final = 0
_SECTION_TYPE: Final = 3
_LAST_INDEX: Final = 0xFF00
"""Section indices from here on mean something else (absolute, common)."""


class _Form(NamedTuple):
    """Layouts of a class of ELF. Source: ELF gABI, chapter 4."""

    sections_at: str
    sections_at_offset: int
    counts_offset: int
    section: str
    symbol: str
    rel: str
    rela: str
    symbol_shift: int


_FORMS: Final = {
    1: _Form("<I", 32, 46, "<IIIIIIIIII", "<IIIBBH", "<II", "<IIi", 8),
    2: _Form("<Q", 40, 58, "<IIQQQQIIQQ", "<IBBHQQ", "<QQ", "<QQq", 32),
}


@dataclass(frozen=True, slots=True)
class Reference:
    """What a relocation refers to.

    Args:
        section: Of the same object; "" if it is defined elsewhere.
        symbol: Name that other objects know it by; "" for what is local.
    """

    section: str
    symbol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFile:
    """An object as far as it says who needs whom.

    Args:
        defined: Section of each symbol that other objects know.
        references: By section. Sections of one name count as one.
    """

    defined: dict[str, str]
    references: dict[str, set[Reference]]


def read_object(data: bytes, *, path: str) -> ObjectFile:
    """Symbols and references of an object file.

    Raises:
        CompileError: It is no little-endian ELF object, or damaged
            (`object-unreadable`).
    """
    try:
        return _read(data)
    except (struct.error, LookupError, ValueError) as error:
        raise CompileError(
            Diagnostic(
                code="object-unreadable",
                message=f"{path} cannot be read",
                notes=(
                    ("found", f"{len(data)} bytes, {error or type(error).__name__}"),
                    ("expected", "a little-endian ELF object"),
                ),
                hint="delete the build folder and build again",
            )
        ) from error


def _read(data: bytes) -> ObjectFile:
    if data[:4] != b"\x7fELF" or data[5] != 1:
        raise ValueError("another kind of file")
    form = _FORMS[data[4]]
    (start,) = struct.unpack_from(form.sections_at, data, form.sections_at_offset)
    size, count, names_at = struct.unpack_from("<HHH", data, form.counts_offset)
    headers = [
        struct.unpack_from(form.section, data, start + index * size)
        for index in range(count)
    ]
    name_table = _contents(data, headers[names_at])
    names = [_text(name_table, header[0]) for header in headers]
    found = ObjectFile(defined={}, references={})
    symbols: list[Reference] = []
    for header in headers:
        if header[1] == _SYMBOLS:
            texts = _contents(data, headers[header[6]])
            for entry in _entries(data, header, form.symbol):
                name, info, index = _symbol(entry, form)
                is_known = info >> 4 != _LOCAL and info & 15 != _SECTION_TYPE
                section = names[index] if 0 < index < _LAST_INDEX else ""
                text = _text(texts, name) if is_known else ""
                symbols.append(Reference(section, text))
                if text and section:
                    found.defined[text] = section
    for header in headers:
        if header[1] in (_REL, _RELA):
            # Several such sections may belong to sections of one name.
            references = found.references.setdefault(names[header[7]], set())
            layout = form.rel if header[1] == _REL else form.rela
            for entry in _entries(data, header, layout):
                references.add(symbols[entry[1] >> form.symbol_shift])
    return found


def _symbol(entry: tuple[int, ...], form: _Form) -> tuple[int, int, int]:
    """Name, type with binding, and section index."""
    if form is _FORMS[1]:
        return entry[0], entry[3], entry[5]
    return entry[0], entry[1], entry[3]


def _contents(data: bytes, header: tuple[int, ...]) -> bytes:
    return data[header[4] : header[4] + header[5]]


def _entries(
    data: bytes, header: tuple[int, ...], layout: str
) -> Iterator[tuple[int, ...]]:
    return struct.iter_unpack(layout, _contents(data, header))


def _text(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode()
