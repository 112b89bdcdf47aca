"""Sources that are empty on a target, as one condition spans all of their code."""

from __future__ import annotations

import re
from typing import Final

_LEVELS: Final = {b"SCALAR": 0, b"DSP": 1, b"MVE": 2}
"""As kernels/util/isa.h numbers them."""
_CODE: Final = re.compile(rb'^(?!\s*(?://.*|#\s*include ".*)?$).*$', re.MULTILINE)
"""A line that is neither empty, nor a comment, nor an own header."""
_GUARD: Final = re.compile(rb"#if (ORCH_ISA [^/]*?)\s*(?://.*)?")
_TERM: Final = re.compile(rb"ORCH_ISA (==|!=) ORCH_ISA_(SCALAR|DSP|MVE)")


def is_empty(source: bytes, level: int) -> bool:
    """Whether a source has no code for an instruction set.

    Args:
        source: Its bytes.
        level: Of the instruction set, the value of the macro ORCH_ISA.
    """
    first = _CODE.search(source)
    guard = first and _GUARD.fullmatch(first[0])
    if not first or not guard or not _spans(source[first.start() :]):
        return False
    terms = [_TERM.fullmatch(term) for term in guard[1].split(b" || ")]
    # A condition of another form: the compiler decides.
    return all(terms) and not any(
        (level == _LEVELS[term[2]]) == (term[1] == b"==") for term in terms if term
    )


def _spans(code: bytes) -> bool:
    """Whether the condition that code begins with ends where the code ends."""
    depth = 0
    lines = [line.strip() for line in code.rstrip().splitlines()]
    for number, line in enumerate(lines):
        if line.startswith(b"#if"):
            depth += 1
        elif depth == 1 and line.startswith((b"#else", b"#elif")):
            return False
        elif line.startswith(b"#endif"):
            depth -= 1
            if depth == 0:
                return number == len(lines) - 1
    return False
