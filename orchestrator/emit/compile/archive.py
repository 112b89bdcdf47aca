"""Libraries that any linker accepts without a warning."""

from __future__ import annotations

from typing import Final

_STACK_NOTE: Final = b"\0.note.GNU-stack\0"
_NO_NOTE: Final = b"\0.note.no-linker\0"


def linkable(made: bytes, *, is_bare: bool) -> bytes:
    """The bytes of a library; for a board, without notes about an executable stack.

    clang always adds a section to each object that marks its stack as not executable.
    gcc adds none for boards, and if only some objects of a program have it, GNU ld
    warns about the others. On boards it has no other effect, so the section gets a name
    that linkers ignore.
    """
    return made.replace(_STACK_NOTE, _NO_NOTE) if is_bare else made
