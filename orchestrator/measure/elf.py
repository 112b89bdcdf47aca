"""Reads ELF files: objects, and the firmware that is linked out of them.

One reader for all that sizes and stacks need of them, of 32 and 64 bits, little-endian.
It unpacks tables whole: a wide product has hundreds of objects.

Source: ELF gABI, chapters 4 (object files) and 5 (program headers).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from orchestrator.errors import CompileError

# EM_ARM, EM_RISCV, ET_REL, SHN_UNDEF, SHN_LORESERVE.
ARM: Final = 40
"""Machine: Arm, 32 bits."""
RISCV: Final = 243
"""Machine: RISC-V, 32 or 64 bits."""
OBJECT: Final = 1
"""Kind of file: an object, not linked yet."""
UNDEFINED: Final = 0
"""Section index of a symbol that another file defines."""
LAST_INDEX: Final = 0xFF00
"""Section indices from here on mean something else (absolute, common)."""
# STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_SECTION; then STB_LOCAL.
NOTYPE, VARIABLE, FUNCTION, SECTION = 0, 1, 2, 3
"""Types of symbols."""
LOCAL: Final = 0
"""Binding of a symbol that other files do not know."""
# SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_REL; PT_LOAD; SHF_WRITE, SHF_ALLOC,
# SHF_EXECINSTR; SHT_PROGBITS.
_SYMBOLS, _RELA, _NO_CONTENTS, _REL = 2, 4, 8, 9
_LOAD: Final = 1
_WRITE, _ALLOCATE, _EXECUTE = 1, 2, 4
_PROGRAM: Final = 1
# Debug information names every function, and nothing that runs uses it.
_DEBUG: Final = ".debug_"
_NARROW: Final = 32


class Section(NamedTuple):
    """A section, in the order of the header's fields."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size_bytes: int
    link: int
    info: int
    align_bytes: int

    @property
    def is_code(self) -> bool:
        """It holds instructions."""
        return self.kind == _PROGRAM and bool(self.flags & _EXECUTE)


class Symbol(NamedTuple):
    """An entry of the symbol table.

    Args:
        name: "" for sections.
        value: In objects the offset in its section, else the address. On Arm, bit 0 of
            a function's value says that it is Thumb code.
        size_bytes: 0 if the compiler does not say.
        kind: `FUNCTION`, `VARIABLE`, `SECTION` or another type.
        binding: `LOCAL` or another one.
        visibility: 0 is the default.
        section: Index of the section that defines it.
    """

    name: str
    value: int
    size_bytes: int
    kind: int
    binding: int
    visibility: int
    section: int

    @property
    def is_defined(self) -> bool:
        """It is in a section of this file."""
        return UNDEFINED < self.section < LAST_INDEX


class Segment(NamedTuple):
    """What a loader places in memory: bytes of the file, and where they go."""

    address: int
    load_address: int
    file_bytes: int


class Relocation(NamedTuple):
    """A place that linkers fill in.

    Args:
        section: Index of the section that the place is in.
        offset: In that section.
        kind: Type; its meaning depends on the machine.
        symbol: What it refers to.
    """

    section: int
    offset: int
    kind: int
    symbol: Symbol


class _Form(NamedTuple):
    """Layouts of one class of ELF, and where the header has offsets and counts."""

    offsets: str
    offsets_at: int
    counts_at: int
    section: str
    segment: str
    symbol: str
    rel: str
    rela: str
    symbol_shift: int


_FORMS: Final = {
    # By EI_CLASS. Elf32_Ehdr has e_phoff at 28 and e_phentsize at 42, Elf64_Ehdr at 32
    # and 54; Elf64_Sym has other fields first. The symbol of a relocation is above 8 or
    # 32 bits of `r_info`.
    1: _Form("<II", 28, 42, "<10I", "<8I", "<IIIBBH", "<II", "<IIi", 8),
    2: _Form("<QQ", 32, 54, "<IIQQQQIIQQ", "<II6Q", "<IBBHQQ", "<QQ", "<QQq", 32),
}


class ElfFile:
    """Sections, symbols, segments and relocations of one file.

    Args:
        data: Its bytes.

    Raises:
        ValueError: Not a little-endian ELF file, or a damaged one.
    """

    def __init__(self, data: bytes) -> None:
        # EI_CLASS 1 or 2, EI_DATA 1: little-endian, as all targets are.
        if data[:4] != b"\x7fELF" or data[4:6] not in (b"\1\1", b"\2\1"):
            raise ValueError("another kind of file")
        self._data = data
        self._form = _FORMS[data[4]]
        try:
            self.kind, self.machine = struct.unpack_from("<HH", data, 16)
            self.segments, self.sections = self._headers()
            self.symbols = tuple(self._symbols())
        except (struct.error, IndexError) as error:
            raise ValueError(str(error)) from error

    @property
    def bits(self) -> int:
        """Bits of an address: 32 or 64."""
        return _NARROW if self._form is _FORMS[1] else 64

    @property
    def entry(self) -> int:
        """Where it begins; on Arm, bit 0 says that it is Thumb code."""
        (found,) = struct.unpack_from("<I" if self.bits == _NARROW else "<Q", self._data, 24)
        return int(found)

    def contents(self, section: Section) -> bytes:
        """Bytes of a section; none if it is only memory."""
        if section.kind == _NO_CONTENTS:
            return b""
        return self._data[section.offset : section.offset + section.size_bytes]

    def relocations(self) -> Iterator[Relocation]:
        """All places that linkers fill in, except in debug information.

        Raises:
            ValueError: The file is damaged.
        """
        try:
            # Damaged files end in ValueError, whichever field is wrong:
            # tests/unit/measure/test_users.py tries many.
            yield from self._relocations()
        except (struct.error, IndexError) as error:
            raise ValueError(str(error)) from error

    def _headers(self) -> tuple[tuple[Segment, ...], tuple[Section, ...]]:
        data, form = self._data, self._form
        segments_at, sections_at = struct.unpack_from(form.offsets, data, form.offsets_at)
        segment_size, segment_count, size, count, names_at = struct.unpack_from(
            "<5H", data, form.counts_at
        )
        segments = []
        for at in range(segment_count):
            # The flags are the second field with 64 bits, and the seventh with 32.
            header = struct.unpack_from(form.segment, data, segments_at + at * segment_size)
            first = 1 if form is _FORMS[1] else 2
            _, address, load_address, file_bytes = header[first : first + 4]
            if header[0] == _LOAD:
                segments.append(Segment(address, load_address, file_bytes))
        headers = [
            struct.unpack_from(form.section, data, sections_at + at * size) for at in range(count)
        ]
        # Without a table of names, sections have none.
        table = Section("", *headers[names_at][1:9]) if names_at else None
        names = self.contents(table) if table else b""
        sections = tuple(
            Section(_text(names, header[0]) if table else "", *header[1:9]) for header in headers
        )
        return tuple(segments), sections

    def _symbols(self) -> Iterator[Symbol]:
        is_32_bit = self._form is _FORMS[1]
        for section in self.sections:
            if section.kind != _SYMBOLS:
                continue
            texts = self.contents(self.sections[section.link])
            for entry in struct.iter_unpack(self._form.symbol, self.contents(section)):
                if is_32_bit:
                    name, value, size, info, other, index = entry
                else:
                    name, info, other, index, value, size = entry
                yield Symbol(
                    _text(texts, name), *(value, size, info & 15, info >> 4, other & 3, index)
                )

    def _relocations(self) -> Iterator[Relocation]:
        shift = self._form.symbol_shift
        for section in self.sections:
            if section.kind not in (_REL, _RELA):
                continue
            if self.sections[section.info].name.startswith(_DEBUG):
                continue
            layout = self._form.rel if section.kind == _REL else self._form.rela
            for offset, info, *_ in struct.iter_unpack(layout, self.contents(section)):
                kind, symbol = info & (1 << shift) - 1, self.symbols[info >> shift]
                yield Relocation(section.info, offset, kind, symbol)


def _text(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class ElfSection:
    """An output section that occupies memory when the firmware runs.

    Args:
        name: Of the section.
        address: When running.
        size_bytes: More than 0.
        align_bytes: Of the address.
        load_address: Where its contents are stored; None if it has no contents.
        writable: The firmware may change it.
    """

    name: str
    address: int
    size_bytes: int
    align_bytes: int
    load_address: int | None
    writable: bool

    @property
    def end(self) -> int:
        """First address after it."""
        return self.address + self.size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ElfSymbol:
    """A function or variable with an address and a size."""

    name: str
    address: int
    size_bytes: int
    is_function: bool
    is_local: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Firmware:
    """Sections by address; symbols by address, size, then name."""

    sections: tuple[ElfSection, ...]
    symbols: tuple[ElfSymbol, ...]


def read_firmware(data: bytes) -> Firmware:
    """What is in memory when a linked firmware runs.

    Raises:
        CompileError: Not an ELF file, or a damaged one (`elf-unreadable`).
    """
    try:
        elf = ElfFile(data)
    except ValueError as error:
        raise CompileError.of(
            "elf-unreadable",
            "the linked firmware cannot be read",
            found=f"{len(data)} bytes, {error}",
            expected="a little-endian ELF executable",
            hint="delete the build folder and build again",
        ) from error
    return Firmware(
        sections=tuple(sorted(_memory_sections(elf), key=lambda s: (s.address, s.name))),
        symbols=tuple(
            sorted(_memory_symbols(elf), key=lambda s: (s.address, s.size_bytes, s.name))
        ),
    )


def build_id(data: bytes) -> bytes:
    """The digest by which a linker names its output; empty without one."""
    try:
        elf = ElfFile(data)
    except ValueError:
        return b""
    # Sizes of name and digest, a type, and the name "GNU" with its NUL.
    found = (elf.contents(s)[16:] for s in elf.sections if s.name == ".note.gnu.build-id")
    return next(found, b"")


def loaded_bytes(data: bytes) -> list[tuple[int, bytes]]:
    """What is stored when a firmware is loaded: load addresses, and the bytes there."""
    elf = ElfFile(data)
    return [
        (_load_address(section.address, elf), contents)
        for section in elf.sections
        if section.flags & _ALLOCATE and (contents := elf.contents(section))
    ]


def _memory_sections(elf: ElfFile) -> Iterator[ElfSection]:
    for section in elf.sections:
        if not section.flags & _ALLOCATE or section.size_bytes == 0:
            continue
        yield ElfSection(
            name=section.name,
            address=section.address,
            size_bytes=section.size_bytes,
            align_bytes=max(section.align_bytes, 1),
            load_address=None
            if section.kind == _NO_CONTENTS
            else _load_address(section.address, elf),
            writable=bool(section.flags & _WRITE),
        )


def _load_address(address: int, elf: ElfFile) -> int:
    for segment in elf.segments:
        offset = address - segment.address
        if 0 <= offset < segment.file_bytes:
            return segment.load_address + offset
    return address


def _memory_symbols(elf: ElfFile) -> Iterator[ElfSymbol]:
    # Addresses of Thumb functions have bit 0 set (AAELF32, "Symbol Values").
    thumb = 1 if elf.machine == ARM else 0
    for symbol in elf.symbols:
        is_function = symbol.kind == FUNCTION
        # Symbols of linker scripts have neither kind nor size.
        if symbol.kind not in (FUNCTION, VARIABLE) or not symbol.size_bytes:
            continue
        if symbol.section == UNDEFINED:
            continue
        yield ElfSymbol(
            name=symbol.name,
            address=symbol.value & ~thumb if is_function else symbol.value,
            size_bytes=symbol.size_bytes,
            is_function=is_function,
            is_local=symbol.binding == LOCAL,
        )
