"""Linker maps: which input file each byte of an output section came from."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.errors import CompileError, Diagnostic
from orchestrator.measure import gnu_map, lld_map

if TYPE_CHECKING:
    from orchestrator.measure.elf import ElfSection
    from orchestrator.measure.map_types import MapSection


@dataclass(frozen=True, slots=True)
class _Problem:
    message: str
    found: str
    expected: str


def read_map(
    text: str, sections: tuple[ElfSection, ...]
) -> dict[ElfSection, MapSection]:
    """What the map says of every section of the ELF.

    Args:
        text: Map of GNU ld or lld.
        sections: Sections of the ELF that was linked with it.

    Raises:
        CompileError: It is no map of these linkers (`map-unreadable`), or not that of
            this ELF (`map-mismatch`): all differences.
    """
    if gnu_map.is_map(text):
        parsed = gnu_map.parse(text)
    elif lld_map.is_map(text):
        parsed = lld_map.parse(text)
    else:
        first = text.lstrip().partition("\n")[0][:60]
        raise CompileError(
            _diagnostic(
                "map-unreadable",
                _Problem(
                    "the linker's map cannot be understood",
                    f'"{first}" in the first line' if first else "an empty file",
                    "a map of GNU ld or lld",
                ),
            )
        )
    # Names may repeat; sections without contents lie anywhere.
    by_place = {(s.name, s.address): s for s in parsed if s.size_bytes}
    problems: list[_Problem] = []
    result = {}
    for section in sections:
        in_map = by_place.get((section.name, section.address))
        if in_map is not None:
            in_map = _without_merged(in_map)
        if in_map is None:
            problems.append(
                _Problem(
                    f"{_place(section)} of the firmware is not in the linker's map",
                    "no such section",
                    f"{section.size_bytes} bytes",
                )
            )
        elif problem := _difference(section, in_map):
            problems.append(problem)
        else:
            result[section] = in_map
    if problems:
        raise CompileError([_diagnostic("map-mismatch", p) for p in problems])
    return result


def _without_merged(section: MapSection) -> MapSection:
    """The section without pieces that were merged into others before it.

    GNU ld places constants and strings of equal contents once, but lists each with
    its size at the place it would have had: the last ones past the section's end.
    """
    end = section.address + section.size_bytes
    return replace(
        section,
        pieces=tuple(
            p for p in section.pieces if p.end <= end or not _MERGED.search(p.section)
        ),
    )


_MERGED = re.compile(r"\.(cst|str\d+\.)\d+$")


def _difference(section: ElfSection, in_map: MapSection) -> _Problem | None:
    if in_map.size_bytes != section.size_bytes:
        return _Problem(
            f"{_place(section)} has another size in the linker's map",
            f"{in_map.size_bytes} bytes",
            f"{section.size_bytes} bytes",
        )
    for piece in in_map.pieces:
        if not section.address <= piece.address <= piece.end <= section.end:
            return _Problem(
                f"the linker's map puts {piece.section} of {piece.file} outside its"
                f" section {section.name}",
                f"{piece.address:#x} to {piece.end:#x}",
                f"inside {section.address:#x} to {section.end:#x}",
            )
    return None


def _place(section: ElfSection) -> str:
    return f"section {section.name} at {section.address:#x}"


def _diagnostic(code: str, problem: _Problem) -> Diagnostic:
    return Diagnostic(
        code=code,
        message=problem.message,
        notes=(("found", problem.found), ("expected", problem.expected)),
        hint="delete the build folder and build again; if that does not help, report"
        " it with firmware.map",
    )
