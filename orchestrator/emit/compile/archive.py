"""Libraries as other people's linkers take them."""

from __future__ import annotations

from typing import Final

_STACK_NOTE: Final = b"\0.note.GNU-stack\0"
_NO_NOTE: Final = b"\0.note.no-linker\0"


def linkable(made: bytes, *, is_bare: bool) -> bytes:
    """The bytes of a library; for a board, its objects ask nothing of the stack.

    clang puts a section into each object that says that its stack need not be
    executable, and cannot leave it out. gcc has none for boards, and as soon as one
    object of a program has it, GNU ld warns of all that have not: there it means
    nothing but that warning, so the section gets a name that linkers do not know.
    """
    return made.replace(_STACK_NOTE, _NO_NOTE) if is_bare else made
