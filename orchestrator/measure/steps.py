"""What instructions do to the stack and whom they call, whatever the machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple


class Kind(Enum):
    """What an instruction does, as far as it matters."""

    CALL = auto()
    """Calls the target."""
    BRANCH = auto()
    """Goes to the target: within the function, or a tail call."""
    CALL_POINTER = auto()
    """Calls, or goes to, an address in a register."""
    JUMP_POINTER = auto()
    """Goes to an address in a register: a tail call, or a case of a `switch`."""
    GROW = auto()
    """Makes the stack larger by `value` bytes."""
    UNKNOWN_GROW = auto()
    """Sets the stack pointer to a value that is not in the instruction."""
    RETURN = auto()
    """Goes back to the caller."""
    TRAP = auto()
    """Looks like a branch and is none."""


class Step(NamedTuple):
    """An instruction that matters.

    Args:
        offset: Of its first byte in the code.
        kind: What it does.
        value: Of a call or branch, the target's distance from `offset` as encoded: in
            an object, relocations may change it. Of GROW, bytes.
    """

    offset: int
    kind: Kind
    value: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """Code from one offset to another, exclusive; data between instructions is out."""

    begin: int
    end: int
