"""Numbers that all packed weights are made with."""

from __future__ import annotations

from typing import Final

WORD: Final = 4
"""Bytes of a pointer, and of what the kernels load."""
TILE: Final = 4
"""Channels of a tile."""


def up(count: int, step: int) -> int:
    """The next multiple of `step`."""
    return -(-count // step) * step


def int32(word: int) -> int:
    """The low 32 bits, signed."""
    return (word + (1 << 31)) % (1 << 32) - (1 << 31)
