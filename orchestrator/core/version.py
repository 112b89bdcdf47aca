"""Versions of firmware, as a device compares them."""

from __future__ import annotations

import re
from typing import Final

VERSION: Final = r"(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,4})"
"""MAJOR.MINOR.PATCH, as a regular expression."""
_PLACES: Final = ((24, 0xFF), (16, 0xFF), (0, 0xFFFF))


def packed_version(text: str) -> int | None:
    """A version in 32 bits that order as versions do; None if it is not a version."""
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
