"""Libraries that any linker accepts without a warning."""

from __future__ import annotations

from typing import Final

_STACK_NOTE: Final = b"\0.note.GNU-stack\0"
_NO_NOTE: Final = b"\0.note.no-linker\0"


def linkable(made: bytes, *, is_bare: bool) -> bytes:
    """The bytes of a library; for a board, its objects say nothing about the stack.

    clang always adds a section to each object that marks its stack as not executable.
    gcc has none for boards, and as soon as one object of a program has it, GNU ld warns
    about all others. On boards it has no other effect, so the section gets a name that
    linkers do not know.
    """
    return made.replace(_STACK_NOTE, _NO_NOTE) if is_bare else made
