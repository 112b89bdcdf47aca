"""Text from files, made safe to show: names in a program can steer a terminal."""

from __future__ import annotations

import re

# Control characters, line separators, and marks that reorder the text around them.
# Controls carry the escape sequences of terminals (ECMA-48, C0 and C1); with marks of
# the bidirectional algorithm (Unicode UAX 9) a name can look like another one. An
# unchanged build imports this module, so it imports nothing but `re`.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Text of one line: tabs as spaces, what is no character to look at as escapes."""
    return _UNPRINTABLE.sub(lambda m: f"\\u{ord(m[0]):04x}", text.replace("\t", "    "))


def printable_lines(text: str) -> str:
    """Like `printable`, but for text of several lines, which it keeps."""
    return "\n".join(map(printable, text.split("\n")))
