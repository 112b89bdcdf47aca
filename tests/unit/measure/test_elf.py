"""What the reader of ELF files sees, on linked programs and a hand-made one."""

from __future__ import annotations

import struct
from io import BytesIO

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from orchestrator.measure.elf import ARM, ElfFile, ElfSection, loaded_bytes, read_firmware
from tests.unit.measure.measure_cases import BOARDS, CASES, case


def small_elf() -> bytes:
    """An Arm executable with .data that is stored in flash, .bss, and no symbols."""
    names = b"\0.data\0.bss\0.names\0"
    # type, offset, address when running, when stored, bytes in the file, in memory
    segments = [
        (0, 0, 0x2000, 0x9000, 8, 8, 0, 4),  # no PT_LOAD: says nothing
        (1, 0, 0x2000, 0x100, 8, 16, 6, 4),
    ]
    start = 52 + 32 * len(segments)
    # name, type, flags, address, offset, size, link, info, alignment, item size
    sections = [
        (0,) * 10,
        (1, 1, 3, 0x2000, 0, 8, 0, 0, 4, 0),
        (7, 8, 3, 0x2008, 0, 8, 0, 0, 0, 0),
        (12, 3, 0, 0, start, len(names), 0, 0, 1, 0),
    ]
    ident = b"\x7fELF\x01\x01\x01".ljust(16, b"\0")
    header = struct.pack(
        "<HHIIIIIHHHHHH",
        *(2, 40, 1, 0, 52, start + len(names), 0, 52, 32, len(segments), 40),
        *(len(sections), 3),
    )
    return b"".join(
        (
            ident,
            header,
            *(struct.pack("<IIIIIIII", *s) for s in segments),
            names,
            *(struct.pack("<IIIIIIIIII", *s) for s in sections),
        )
    )


def test_the_elf_says_where_contents_are_stored() -> None:
    found = read_firmware(small_elf())
    assert found.symbols == ()
    assert found.sections == (
        ElfSection(
            name=".data",
            address=0x2000,
            size_bytes=8,
            align_bytes=4,
            load_address=0x100,
            writable=True,
        ),
        ElfSection(
            name=".bss",
            address=0x2008,
            size_bytes=8,
            align_bytes=1,
            load_address=None,
            writable=True,
        ),
    )


@pytest.mark.parametrize("name", CASES)
def test_another_reader_sees_the_same(name: str) -> None:
    """The oracle is pyelftools."""
    data = case(name).elf
    oracle = ELFFile(BytesIO(data))
    found = ElfFile(data)
    assert (found.kind, found.machine) == (
        {"ET_EXEC": 2, "ET_DYN": 3}[oracle["e_type"]],
        {"EM_ARM": ARM, "EM_X86_64": 62}[oracle["e_machine"]],
    )
    assert [(s.name, s.address, s.size_bytes, s.align_bytes) for s in found.sections] == [
        (s.name, s["sh_addr"], s["sh_size"], s["sh_addralign"]) for s in oracle.iter_sections()
    ]
    assert [found.contents(s) for s in found.sections] == [
        b"" if s["sh_type"] in ("SHT_NOBITS", "SHT_NULL") else s.data()
        for s in oracle.iter_sections()
    ]
    table = oracle.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    assert [(s.name, s.value, s.size_bytes) for s in found.symbols] == [
        (s.name, s["st_value"], s["st_size"]) for s in table.iter_symbols()
    ]
    assert [tuple(s) for s in found.segments] == [
        (s["p_vaddr"], s["p_paddr"], s["p_filesz"])
        for s in oracle.iter_segments()
        if s["p_type"] == "PT_LOAD"
    ]


@pytest.mark.parametrize("name", BOARDS)
def test_what_is_loaded_are_the_bytes_of_segments(name: str) -> None:
    """The oracle is pyelftools; between sections, linkers fill segments with zeros."""
    data = case(name).elf
    stored = {
        at: byte
        for s in ELFFile(BytesIO(data)).iter_segments()
        if s["p_type"] == "PT_LOAD"
        for at, byte in enumerate(s.data(), s["p_paddr"])
    }
    loaded = {
        at: byte for start, piece in loaded_bytes(data) for at, byte in enumerate(piece, start)
    }
    assert loaded.items() <= stored.items()
    assert not any(byte for at, byte in stored.items() if at not in loaded)


def test_data_are_loaded_from_flash() -> None:
    (piece,) = loaded_bytes(small_elf())
    assert piece == (0x100, small_elf()[:8])
