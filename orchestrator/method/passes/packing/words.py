"""Numbers that all packed weights are made with."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from orchestrator.core.lazy_bytes import Bytes, settled

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


def bytes_of(words: Sequence[int]) -> Bytes:
    """Words as a constant has them."""
    return settled(struct.pack(f"<{len(words)}i", *words))
