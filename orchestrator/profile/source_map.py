"""Map key paths to lines, which TOML parsers do not keep.

A scanner for TOML 1.0 (and the looser inline tables of 1.1). It takes
text that the parser has accepted, so it does not validate; at anything it does not
understand it stops, and key paths after that have no line.

Source: TOML 1.0.0, toml.io/en/v1.0.0.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol, TypeAlias

from orchestrator.errors import SourceSpan

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and array indices from the top of a TOML file: `("models", 0, "path")`."""


# Chosen by hand.
MOST_PARTS = 100
"""Most parts of a key: longer ones take the square of their length."""


class FindSpan(Protocol):
    """Finds the place of a key path's value, or else of the table it would be in."""

    def __call__(self, *key_path: str | int) -> SourceSpan:
        """The place of a key path: `span("models", 0)`."""


def find_span(spans: Mapping[KeyPath, SourceSpan], key_path: KeyPath) -> SourceSpan | None:
    """Span of the key path or of its nearest parent that has one."""
    # A missing key has the line of its table.
    for length in range(len(key_path), 0, -1):
        if span := spans.get(key_path[:length]):
            return span
    return None


def map_lines(text: str, *, most: int | None = None) -> Mapping[KeyPath, int]:
    """Line, from 1, of every key path of a TOML text.

    A value has the line of its key; an array item the line it starts on; a table the
    line of its header, or of the first key that implies it. Key paths of text that is
    not TOML may be missing; only a bound raises.

    Args:
        text: Text of the file.
        most: Stop when at least this many are found.

    Raises:
        TooManyPartsError: A key has more than `MOST_PARTS`, and there is a bound.
    """
    scanner = _Scanner(text, most)
    with suppress(_NotTomlError, _EnoughFoundError, RecursionError):
        scanner.scan_document()
    return scanner.lines


class _NotTomlError(Exception):
    """The scanner does not understand what it reads."""


class TooManyPartsError(Exception):
    """A key has more than `MOST_PARTS`; its line is the argument."""


class _EnoughFoundError(Exception):
    """Enough key paths are found."""


_BLANK = re.compile(r"[ \t]*")
_TRIVIA = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_LITERAL = re.compile(r"'([^'\n]*)'")
# Up to two quotes may stand before the closing three.
_MULTI_BASIC = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}', re.DOTALL)
_MULTI_LITERAL = re.compile(r"'''(?:[^']|'(?!''))*'{3,5}")
# A date may be parted from its time by one space.
_SCALAR = re.compile(r"[^\s,\]}#=]+(?: [0-9][^\s,\]}#=]*)?")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})|(.))")
_SHORT = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b"}


def _unescape(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    if not digits:
        return _SHORT.get(match[4], match[4])
    try:
        return chr(int(digits, 16))
    except (ValueError, OverflowError) as error:
        raise _NotTomlError from error


class _Scanner:
    """Position in the text, the current table, and the lines found so far."""

    def __init__(self, text: str, most: int | None) -> None:
        self._most = most
        self.lines: dict[KeyPath, int] = {}
        self._text = text
        self._at = 0
        # Once: counting newlines up to each key takes the square of the length.
        self._newlines = [m.start() for m in re.finditer("\n", text)]
        self._item_counts: dict[KeyPath, int] = {}

    def scan_document(self) -> None:
        table: KeyPath = ()
        self._match(_TRIVIA)
        while self._at < len(self._text):
            if self._peek() == "[":
                table = self._scan_header()
            else:
                self._scan_pair(table)
            self._match(_TRIVIA)

    def _scan_header(self) -> KeyPath:
        line = self._line()
        is_array = self._text.startswith("[[", self._at)
        self._at += 1 + is_array
        *parents, last = self._scan_key()
        self._expect("]")
        if is_array:
            self._expect("]")
        path: KeyPath = ()
        for key in parents:
            path = (*path, key)
            self.lines.setdefault(path, line)
            if path in self._item_counts:  # the newest item of an array
                path = (*path, self._item_counts[path] - 1)
        path = (*path, last)
        if is_array:
            self.lines.setdefault(path, line)
            count = self._item_counts.get(path, 0)
            self._item_counts[path] = count + 1
            path = (*path, count)
        self.lines[path] = line
        return path

    def _scan_pair(self, table: KeyPath) -> None:
        line = self._line()
        path = table
        for key in self._scan_key():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self._expect("=")
        self._match(_BLANK)
        self._scan_value(path)

    def _scan_key(self) -> list[str]:
        keys: list[str] = []
        while True:
            self._match(_BLANK)
            match self._peek():
                case '"':
                    keys.append(_ESCAPE.sub(_unescape, self._match(_BASIC)[1]))
                case "'":
                    keys.append(self._match(_LITERAL)[1])
                case _:
                    keys.append(self._match(_BARE_KEY)[0])
            self._match(_BLANK)
            if self._peek() != ".":
                return keys
            if self._most is not None and len(keys) >= MOST_PARTS:
                raise TooManyPartsError(self._line())
            self._at += 1

    def _scan_value(self, path: KeyPath) -> None:
        match self._peek():
            case "[":
                self._scan_array(path)
            case "{":
                self._scan_inline_table(path)
            case '"':
                triple = self._text.startswith('"""', self._at)
                self._match(_MULTI_BASIC if triple else _BASIC)
            case "'":
                triple = self._text.startswith("'''", self._at)
                self._match(_MULTI_LITERAL if triple else _LITERAL)
            case _:
                self._match(_SCALAR)

    def _scan_array(self, path: KeyPath) -> None:
        self._at += 1
        index = 0
        while self._more("]"):
            self.lines[(*path, index)] = self._line()
            self._scan_value((*path, index))
            index += 1

    def _scan_inline_table(self, path: KeyPath) -> None:
        self._at += 1
        while self._more("}"):
            self._scan_pair(path)

    def _more(self, end: str) -> bool:
        """Whether another item follows; moves to it, or past the end."""
        self._match(_TRIVIA)
        if self._peek() == ",":
            self._at += 1
            self._match(_TRIVIA)
        if self._peek() != end:
            return True
        self._at += 1
        return False

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise _NotTomlError
        self._at = found.end()
        return found

    def _expect(self, char: str) -> None:
        if self._peek() != char:
            raise _NotTomlError
        self._at += 1

    def _line(self) -> int:
        if self._most is not None and len(self.lines) >= self._most:
            raise _EnoughFoundError
        return bisect_right(self._newlines, self._at) + 1
