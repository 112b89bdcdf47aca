"""Linker maps: which input file each byte of an output section came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.errors import CompileError, Diagnostic
from orchestrator.stages.measure import gnu_map, lld_map

if TYPE_CHECKING:
    from orchestrator.stages.measure.elf import ElfSection
    from orchestrator.stages.measure.map_types import MapSection


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
        problem = _difference(section, in_map)
        if problem is not None:
            problems.append(problem)
        elif in_map is not None:
            result[section] = in_map
    if problems:
        raise CompileError([_diagnostic("map-mismatch", p) for p in problems])
    return result


def _difference(section: ElfSection, in_map: MapSection | None) -> _Problem | None:
    where = f"section {section.name} at {section.address:#x}"
    if in_map is None:
        return _Problem(
            f"{where} of the firmware is not in the linker's map",
            "no such section",
            f"{section.size_bytes} bytes",
        )
    if in_map.size_bytes != section.size_bytes:
        return _Problem(
            f"{where} has another size in the linker's map",
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


def _diagnostic(code: str, problem: _Problem) -> Diagnostic:
    return Diagnostic(
        code=code,
        message=problem.message,
        notes=(("found", problem.found), ("expected", problem.expected)),
        hint="delete the build folder and build again; if that does not help, report"
        " it with firmware.map",
    )
