"""Sizes and versions as people write them, and as devices compare them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# Sizes of memory as people write them: `96 KiB`.

# Nine digits of MiB are far beyond 4 GiB, and bound the number before it is computed.
# No KB or MB: whether these have 1000 or 1024 is what a budget must not leave open.
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


# Versions of firmware, as a device compares them.

VERSION: Final = r"(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,4})"
"""MAJOR.MINOR.PATCH, as a regular expression."""
# Layout of `oldest firmware` in runtime/include/orch/update.h: 8, 8 and 16 bits, so
# that a device compares two versions as one number.
_PLACES: Final = ((24, 0xFF), (16, 0xFF), (0, 0xFFFF))


def packed_version(text: str) -> int | None:
    """A version in 32 bits that order as versions do; None if it is not a version."""
    # Without re.ASCII \d matches digits of all scripts, which int() reads too.
    match = re.fullmatch(VERSION, text, re.ASCII)
    if not match:
        return None
    numbers = [int(number) for number in match.groups()]
    if any(n > most for n, (_, most) in zip(numbers, _PLACES, strict=True)):
        return None
    return sum(n << shift for n, (shift, _) in zip(numbers, _PLACES, strict=True))


def version_text(packed: int) -> str:
    """The version as people write it."""
    return ".".join(str(packed >> shift & most) for shift, most in _PLACES)
