"""Reads the map of GNU ld.

Source: what ld 2.40 writes. Output sections start in column 0, input sections in
column 1; a name that is too long stands on a line of its own. What was discarded
comes first, before the heading.
"""

from __future__ import annotations

import re
from typing import Final

from orchestrator.measure.map_types import MapPiece, MapSection

_HEADING: Final = "Linker script and memory map"
_END: Final = "Cross Reference Table"
_HEX: Final = r"0x([0-9a-f]+)"
_NAME: Final = re.compile(r"^( ?)([^\s*]\S*)(?:\s+(\S.*))?$")
_OUTPUT: Final = re.compile(rf"^{_HEX}\s+{_HEX}(?:\s+load address {_HEX})?$")
_INPUT: Final = re.compile(rf"^{_HEX}\s+{_HEX}\s+(\S.*)$")


def is_map(text: str) -> bool:
    """Whether the text is a map of GNU ld."""
    return text.startswith(_HEADING) or f"\n{_HEADING}" in text


def parse(text: str) -> tuple[MapSection, ...]:
    """Output sections with their input sections, in the order of the map."""
    sections: list[tuple[str, int, int, list[MapPiece]]] = []
    pending: tuple[str, str] | None = None
    for line in text.partition(_HEADING)[2].splitlines():
        if line.startswith(_END):
            break
        named = _NAME.match(line)
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
            if (found := _INPUT.match(rest)) and sections:
                address, size = int(found[1], 16), int(found[2], 16)
                if size:
                    piece = MapPiece(name, address, size, found[3])
                    sections[-1][3].append(piece)
        elif found := _OUTPUT.match(rest):
            sections.append((name, int(found[1], 16), int(found[2], 16), []))
    return tuple(MapSection(n, a, s, tuple(pieces)) for n, a, s, pieces in sections)
