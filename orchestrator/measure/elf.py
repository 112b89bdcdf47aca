"""What an ELF says of itself: sections that occupy memory, and symbols."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from orchestrator.errors import CompileError, Diagnostic

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_WRITE = 1
_ALLOC = 2
"""Section flags. Source: ELF gABI, chapter 4, sh_flags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElfSection:
    """An output section that occupies memory when the program runs.

    Args:
        name: Of the section.
        address: When running.
        size_bytes: More than 0.
        align_bytes: Of the address.
        load_address: Where its contents are stored; None if it has no contents.
        writable: The program may change it.
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
    """A function or object with an address and a size."""

    name: str
    address: int
    size_bytes: int
    is_function: bool
    is_local: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Elf:
    """Sections by address; symbols by address, size, then name."""

    sections: tuple[ElfSection, ...]
    symbols: tuple[ElfSymbol, ...]


def read_elf(data: bytes) -> Elf:
    """Sections and symbols of an executable.

    Raises:
        CompileError: The bytes are no ELF, or a damaged one (`elf-unreadable`).
    """
    # Slow to import, and only builds that measure need it.
    from elftools.common.exceptions import ELFError  # noqa: PLC0415
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415

    # pyelftools checks little: damage shows as errors of many kinds.
    damage = (ELFError, ArithmeticError, AttributeError, LookupError, ValueError)
    try:
        elf = ELFFile(BytesIO(data))
        return Elf(sections=_sections(elf), symbols=_symbols(elf))
    except damage as error:
        raise CompileError(
            Diagnostic(
                code="elf-unreadable",
                message="the linked firmware cannot be read",
                notes=(
                    ("found", f"{len(data)} bytes, {error or type(error).__name__}"),
                    ("expected", "an ELF executable"),
                ),
                hint="delete the build folder and build again",
            )
        ) from error


def _sections(elf: ELFFile) -> tuple[ElfSection, ...]:
    segments = [s.header for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"]
    found = []
    for section in elf.iter_sections():
        header = section.header
        if not header["sh_flags"] & _ALLOC or header["sh_size"] == 0:
            continue
        found.append(
            ElfSection(
                name=section.name,
                address=header["sh_addr"],
                size_bytes=header["sh_size"],
                align_bytes=max(header["sh_addralign"], 1),
                load_address=None
                if header["sh_type"] == "SHT_NOBITS"
                else _load_address(header, segments),
                writable=bool(header["sh_flags"] & _WRITE),
            )
        )
    return tuple(sorted(found, key=lambda s: (s.address, s.name)))


def _load_address(section: Any, segments: list[Any]) -> int:  # noqa: ANN401  # pyelftools' containers
    address: int = section["sh_addr"]
    for segment in segments:
        offset: int = address - segment["p_vaddr"]
        if 0 <= offset < segment["p_filesz"]:
            load_address: int = segment["p_paddr"] + offset
            return load_address
    return address


def _symbols(elf: ELFFile) -> tuple[ElfSymbol, ...]:
    from elftools.elf.sections import SymbolTableSection  # noqa: PLC0415

    table = elf.get_section_by_name(".symtab")
    if not isinstance(table, SymbolTableSection):
        return ()  # stripped
    # On Arm, bit 0 of a function's value says that it is Thumb code.
    thumb = 1 if elf["e_machine"] == "EM_ARM" else 0
    found = []
    for symbol in table.iter_symbols():
        kind = symbol["st_info"]["type"]
        is_defined = symbol["st_size"] and symbol["st_shndx"] != "SHN_UNDEF"
        if kind not in ("STT_FUNC", "STT_OBJECT") or not is_defined:
            continue
        is_function = kind == "STT_FUNC"
        value = symbol["st_value"]
        found.append(
            ElfSymbol(
                name=symbol.name,
                address=value & ~thumb if is_function else value,
                size_bytes=symbol["st_size"],
                is_function=is_function,
                is_local=symbol["st_info"]["bind"] == "STB_LOCAL",
            )
        )
    return tuple(sorted(found, key=lambda s: (s.address, s.size_bytes, s.name)))
