"""Linker maps: which input file each byte of an output section came from.

Source: what GNU ld 2.40 and lld 22 write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from orchestrator.errors import CompileError, Diagnostic
from orchestrator.measure.owner import is_merged

if TYPE_CHECKING:
    from orchestrator.measure.elf import ElfSection


@dataclass(frozen=True, slots=True)
class MapPiece:
    """An input section that was linked.

    Args:
        section: Its name, `.text._ZN4orch7executeE`.
        address: When running.
        size_bytes: More than 0.
        file: Object, or `archive(member)`; for what the linker made, its own name.
    """

    section: str
    address: int
    size_bytes: int
    file: str

    @property
    def end(self) -> int:
        """First address after it."""
        return self.address + self.size_bytes


@dataclass(frozen=True, slots=True)
class MapSection:
    """An output section and its input sections, in the order of the map."""

    name: str
    address: int
    size_bytes: int
    pieces: tuple[MapPiece, ...]


def read_map(text: str, sections: tuple[ElfSection, ...]) -> dict[ElfSection, MapSection]:
    """The part of the map for each section of the ELF.

    Args:
        text: Map of GNU ld or lld.
        sections: Sections of the ELF that was linked with it.

    Raises:
        CompileError: Not a map of these linkers (`map-unreadable`), or not that of
            this ELF (`map-mismatch`): all differences.
    """
    if text.startswith(_GNU_HEADING) or f"\n{_GNU_HEADING}" in text:
        parsed = parse_gnu(text)
    elif _LLD_HEADING.match(text.partition("\n")[0]):
        parsed = parse_lld(text)
    else:
        first = text.lstrip().partition("\n")[0][:60]
        raise CompileError.of(
            "map-unreadable",
            "cannot read the linker's map",
            found=f'"{first}" in the first line' if first else "an empty file",
            expected="a map of GNU ld or lld",
            hint=_HINT,
        )
    # Names may repeat; sections without contents lie anywhere.
    # The map must agree with the ELF to the byte: a line that is not understood would
    # move its bytes to another part, and a report would be wrong without a word.
    by_place = {(s.name, s.address): s for s in parsed if s.size_bytes}
    problems: list[Diagnostic] = []
    result = {}
    for section in sections:
        listed = by_place.get((section.name, section.address))
        if listed is None:
            problems.append(
                _mismatch(
                    f"{_place(section)} of the firmware is not in the linker's map",
                    found="no such section",
                    expected=f"{section.size_bytes} bytes",
                )
            )
            continue
        result[section] = in_map = _without_merged(listed)
        problems += _differences(section, in_map)
    if problems:
        raise CompileError(problems)
    return result


def _without_merged(section: MapSection) -> MapSection:
    """The section without pieces that were merged into others before it.

    GNU ld places constants and strings of equal contents once, but lists each with
    its size at the place it would have had: the last ones past the section's end.
    """
    end = section.address + section.size_bytes
    return replace(
        section, pieces=tuple(p for p in section.pieces if p.end <= end or not is_merged(p.section))
    )


def _differences(section: ElfSection, in_map: MapSection) -> Iterator[Diagnostic]:
    """The first difference, if there is one."""
    if in_map.size_bytes != section.size_bytes:
        yield _mismatch(
            f"{_place(section)} has another size in the linker's map",
            f"{in_map.size_bytes} bytes",
            f"{section.size_bytes} bytes",
        )
        return
    for piece in in_map.pieces:
        if not section.address <= piece.address <= piece.end <= section.end:
            yield _mismatch(
                f"the linker's map puts {piece.section} of {piece.file} outside its"
                f" section {section.name}",
                f"{piece.address:#x} to {piece.end:#x}",
                f"inside {section.address:#x} to {section.end:#x}",
            )
            return


def _place(section: ElfSection) -> str:
    return f"section {section.name} at {section.address:#x}"


def _mismatch(message: str, found: str, expected: str) -> Diagnostic:
    return Diagnostic.of("map-mismatch", message, found=found, expected=expected, hint=_HINT)


_HINT: Final = (
    "delete the build folder and build again; if that does not help, report it with firmware.map"
)
_GNU_HEADING: Final = "Linker script and memory map"
_GNU_END: Final = "Cross Reference Table"
_HEX: Final = r"0x([0-9a-f]+)"
# GNU ld writes a section on one line, or its name alone and the rest on the next line
# if the name needs 16 columns or more. Input sections begin in column 1.
_GNU_NAME: Final = re.compile(r"^( ?)([^\s*]\S*)(?:\s+(\S.*))?$")
_GNU_OUTPUT: Final = re.compile(rf"^{_HEX}\s+{_HEX}(?:\s+load address {_HEX})?$")
_GNU_INPUT: Final = re.compile(rf"^{_HEX}\s+{_HEX}\s+(\S.*)$")


def parse_gnu(text: str) -> tuple[MapSection, ...]:
    """Sections in a map of GNU ld, in its order.

    Output sections start in column 0, input sections in column 1; a name that is too
    long stands on a line of its own. Discarded sections come before the heading.
    """
    sections: list[tuple[str, int, int, list[MapPiece]]] = []
    pending: tuple[str, str] | None = None
    for line in text.partition(_GNU_HEADING)[2].splitlines():
        if line.startswith(_GNU_END):
            break
        named = _GNU_NAME.match(line)
        if named:
            column, name, rest = named.groups()
            pending = (column, name) if rest is None else None
        elif pending and line.startswith("  "):
            (column, name), rest, pending = pending, line.strip(), None
        else:
            pending = None
            continue
        if rest is None:
            continue
        if column:
            if (found := _GNU_INPUT.match(rest)) and sections:
                address, size = int(found[1], 16), int(found[2], 16)
                if size:
                    piece = MapPiece(name, address, size, found[3])
                    sections[-1][3].append(piece)
        elif found := _GNU_OUTPUT.match(rest):
            sections.append((name, int(found[1], 16), int(found[2], 16), []))
    return tuple(MapSection(n, a, s, tuple(pieces)) for n, a, s, pieces in sections)


_LLD_HEADING: Final = re.compile(r"^ *VMA +LMA +Size Align Out +In +Symbol *$")
# Input sections are indented by 8 more characters than output sections, symbols by 16.
# `-Map` of lld 22, as tests/unit/measure/test_maps.py has it.
_LLD_LINE: Final = re.compile(r"^ *([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+) +\d+ ( *)(\S.*)$")
_LLD_INPUT: Final = re.compile(r"^(.+):\((.+)\)$")
_OUTPUT_INDENT: Final = 0
_INPUT_INDENT: Final = 8


def parse_lld(text: str) -> tuple[MapSection, ...]:
    """Sections in a map of lld, in its order.

    Columns are VMA, LMA, size and alignment; then, by indent, an output section (0), an
    input section (8) or a symbol (16). Assignments of the linker script stand between.
    """
    sections: list[tuple[str, int, int, list[MapPiece]]] = []
    for line in text.splitlines()[1:]:
        found = _LLD_LINE.match(line)
        if not found:
            continue
        address, size = int(found[1], 16), int(found[2], 16)
        indent, what = len(found[3]), found[4]
        if indent == _OUTPUT_INDENT:
            # Assignments of the script stand in the same column.
            if " " not in what:  # `symbol = expression`
                sections.append((what, address, size, []))
        elif indent == _INPUT_INDENT and size and sections:
            source = _LLD_INPUT.match(what)
            if source:
                piece = MapPiece(source[2], address, size, source[1])
                sections[-1][3].append(piece)
    return tuple(MapSection(n, a, s, tuple(pieces)) for n, a, s, pieces in sections)
