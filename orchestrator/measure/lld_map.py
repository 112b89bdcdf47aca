"""Reads the map of lld.

Source: what lld 22 writes. Columns VMA, LMA, size and alignment; then, by how far it
is indented, an output section (0), an input section (8) or a symbol (16). Assignments
of the linker script stand between them.
"""

from __future__ import annotations

import re
from typing import Final

from orchestrator.measure.map_types import MapPiece, MapSection

_HEADING: Final = re.compile(r"^ *VMA +LMA +Size Align Out +In +Symbol *$")
_LINE: Final = re.compile(r"^ *([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+) +\d+ ( *)(\S.*)$")
_INPUT: Final = re.compile(r"^(.+):\((.+)\)$")
_OUTPUT_INDENT: Final = 0
_INPUT_INDENT: Final = 8


def is_map(text: str) -> bool:
    """Whether the text is a map of lld."""
    return _HEADING.match(text.partition("\n")[0]) is not None


def parse(text: str) -> tuple[MapSection, ...]:
    """Output sections with their input sections, in the order of the map."""
    sections: list[tuple[str, int, int, list[MapPiece]]] = []
    for line in text.splitlines()[1:]:
        found = _LINE.match(line)
        if not found:
            continue
        address, size = int(found[1], 16), int(found[2], 16)
        indent, what = len(found[3]), found[4]
        if indent == _OUTPUT_INDENT:
            if " " not in what:  # `symbol = expression`
                sections.append((what, address, size, []))
        elif indent == _INPUT_INDENT and size and sections:
            source = _INPUT.match(what)
            if source:
                piece = MapPiece(source[2], address, size, source[1])
                sections[-1][3].append(piece)
    return tuple(MapSection(n, a, s, tuple(pieces)) for n, a, s, pieces in sections)
