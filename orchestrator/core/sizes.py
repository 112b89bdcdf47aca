"""Sizes of memory as people write them: `96 KiB`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

SIZE: Final = "([1-9][0-9]{0,8}) ?(B|KiB|MiB)"
"""A size, as a regular expression."""
UNIT_BYTES: Final[Mapping[str, int]] = MappingProxyType({"B": 1, "KiB": 1024, "MiB": 1024 * 1024})


def parse_size(text: str) -> int | None:
    """Bytes of a size such as `96 KiB`; None if it is not a size."""
    match = re.fullmatch(SIZE, text)
    return int(match[1]) * UNIT_BYTES[match[2]] if match else None


def size_text(size_bytes: int) -> str:
    """The shortest exact way to write a size: `96 KiB`."""
    for unit in ("MiB", "KiB"):
        if size_bytes % UNIT_BYTES[unit] == 0:
            return f"{size_bytes // UNIT_BYTES[unit]} {unit}"
    return f"{size_bytes} B"
