"""A parsed profile: values, and the place of each.

When a file and its base are merged, each text still knows the folder of its file, as
paths are relative to it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

import tomli

from orchestrator.errors import ProfileError, SourceSpan, nearest_path
from orchestrator.profile.source_map import (
    MOST_PARTS,
    KeyPath,
    TooManyPartsError,
    find_span,
    map_lines,
)


class Text(str):
    """A string of a profile.

    Args:
        text: As written.
        folder: Folder of the file in which it is written.
    """

    __slots__ = ("folder",)

    folder: Path

    def __new__(cls, text: str, folder: Path) -> Self:
        """Make a string with the folder of its file."""
        self = super().__new__(cls, text)
        self.folder = folder
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Values of a profile, or of a profile merged with its base.

    Args:
        path: Path of the profile.
        data: As TOML parses it, but each string is a `Text`; must not be changed.
        spans: Where each key path was written.
    """

    path: Path
    data: Mapping[str, Any]
    spans: Mapping[KeyPath, SourceSpan]

    def span(self, *key_path: str | int) -> SourceSpan:
        """The place of a key path, or else of its nearest parent."""
        return find_span(self.spans, key_path) or SourceSpan(file=str(self.path))

    def with_value(self, table: str, key: str, value: object) -> Document:
        """The document with another value in the place of one that it has."""
        data = {**self.data, table: {**self.data[table], key: value}}
        return Document(path=self.path, data=data, spans=self.spans)

    def named(self, name: str) -> Document:
        """The document of a product with another name."""
        data = {**self.data, "name": Text(name, self.path.parent)}
        return Document(path=self.path, data=data, spans=self.spans)

    def over(self, base: Document) -> Document:
        """Merge this profile over its base.

        Tables are merged key by key; everything else, arrays too, is replaced.
        `name` and `description` belong to one product and are not inherited.
        """
        # A name that is inherited would give two products the same folder, lock and
        # library.
        inherited = {k: v for k, v in base.data.items() if k not in _OWN_KEYS}
        spans = {p: s for p, s in base.spans.items() if _is_inherited(self.data, p)}
        return Document(
            path=self.path, data=_merge(self.data, inherited), spans={**spans, **self.spans}
        )


_OWN_KEYS = frozenset({"name", "description"})


def _merge(table: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**base, **table}
    for key in table.keys() & base.keys():
        if isinstance(table[key], dict) and isinstance(base[key], dict):
            merged[key] = _merge(table[key], base[key])
    return merged


def _is_inherited(table: object, base_path: KeyPath) -> bool:
    """Whether the value at a key path of the base is not overridden."""
    if base_path[0] in _OWN_KEYS:
        return False
    for key in base_path:
        # Merging arrays item by item has no meaning that fits models, sources and
        # libraries alike; docs/profile.md says that arrays are replaced.
        if not isinstance(table, dict) or isinstance(key, int):
            return False  # arrays are replaced as a whole
        if key not in table:
            return True
        table = table[key]
    return False


_FORMER_NAMES = MappingProxyType({"prelink": "passes"})
"""Tables by the names that they had in earlier releases."""

# Decision 0019; far above real files, which have a few hundred. Chosen by hand.
MOST_VALUES = 10_000
"""Most keys and items of a profile: each is checked and may produce a message."""


_KINDS: Final = {
    "profile": ({"models"}, 'name a profile; it names a board below [target]: board = "{}"'),
    "board file": (
        {"cpu", "regions"},
        "name a file that describes a board: docs/howto-own-board.md",
    ),
    "workspace": ({"workspace"}, "name an orchestrator.toml, or the profile without --workspace"),
}
"""Kinds of files: keys that only they have, and what to do about one of another kind."""


def read_document(
    path: Path,
    *,
    text_of: Callable[[Path], str],
    named_by: SourceSpan | None = None,
    what: str = "profile",
) -> Document:
    """Read and parse one file.

    Args:
        path: Path of the file.
        text_of: Reads a file's text; raises `OSError` or `UnicodeDecodeError`.
        named_by: Where another file names this one.
        what: Kind of the file, for messages.

    Raises:
        ProfileError: The file cannot be read, is not TOML, or is of another kind.
    """
    # Editors on Windows may write a byte order mark, which tomli refuses.
    text = _read_text(path, text_of, named_by, what).removeprefix("\ufeff")
    # Not splitlines, which also splits at form feeds and U+2028: line numbers would
    # differ from those of the parser and of editors.
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    file = str(path)
    # Checked before parsing, which is slow for many keys in deep tables.
    try:
        found = map_lines(text, most=MOST_VALUES)
        line = max(found.values(), default=0) if len(found) >= MOST_VALUES else 0
    except TooManyPartsError as error:
        found = {}
        line = error.args[0]
    if line:
        raise ProfileError.of(
            "too-many-values",
            f"a key of the {what} has more than {MOST_PARTS} parts"
            if not found
            else f"the {what} has more than {MOST_VALUES:,} keys and items",
            where=SourceSpan(file=file, line=line, text=lines[line - 1]),
            expected="a file of a few hundred lines, for one product",
            hint="name lists of operators with operators.include_yaml",
        )
    try:
        data = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        where = SourceSpan(file=file, line=error.lineno, text=lines[error.lineno - 1])
        raise _syntax_error(error, where) from error
    except (RecursionError, ValueError) as error:
        # The parser's own limits: 400 levels, 4300 digits of a number.
        raise ProfileError.of(
            "toml-syntax",
            "a value is nested too deeply or has too many digits",
            where=SourceSpan(file=file),
            found=str(error).partition(";")[0],
            hint="see docs/profile.md for what a profile may hold",
        ) from error
    # Told before keys are checked: a board's file in the place of a profile would be a
    # list of unknown keys.
    kinds = [kind for kind, (keys, _) in _KINDS.items() if keys <= data.keys()]
    if kinds and what not in kinds:
        raise ProfileError.of(
            "other-file",
            f"{file} is a {kinds[0]}, not a {what}",
            where=named_by or SourceSpan(file=file),
            hint=_KINDS[what][1].format(path.name),
        )
    spans = {
        key_path: SourceSpan(file=file, line=line, text=lines[line - 1])
        for key_path, line in found.items()
    }
    # Before values are validated, with their lines: all messages then have the new
    # name.
    for former, name in _FORMER_NAMES.items():
        if former in data and name not in data:
            data[name] = data.pop(former)
            spans = {
                (name, *path[1:]) if path[0] == former else path: span
                for path, span in spans.items()
            }
    _add_folders(data, path.parent)
    return Document(path=path, data=data, spans=spans)


def _add_folders(values: Any, folder: Path) -> None:  # noqa: ANN401  # of any shape
    """Make every string of a table or an array a `Text`."""
    # Recursive: the parser accepts only a few hundred levels.
    for key, value in values.items() if isinstance(values, dict) else enumerate(values):
        if isinstance(value, str):
            values[key] = Text(value, folder)
        elif isinstance(value, dict | list):
            _add_folders(value, folder)


def _syntax_error(error: tomli.TOMLDecodeError, where: SourceSpan) -> ProfileError:
    at_end = error.pos >= len(error.doc.rstrip())
    place = "the end of the file" if at_end else f"the error at column {error.colno}"
    return ProfileError.of(
        "toml-syntax",
        f"not TOML: {error.msg[:1].lower()}{error.msg[1:]}",
        where=where,
        found=place,
        expected='TOML 1.0, such as key = "text", key = 1, [table]',
        hint="texts need quotes, and each key may occur once in its table",
    )


def _read_text(
    path: Path, text_of: Callable[[Path], str], named_by: SourceSpan | None, what: str
) -> str:
    file = str(path)
    try:
        return text_of(path)
    except FileNotFoundError as error:
        start = "profile" if named_by else "current folder"
        hint = f"check the path: it is relative to the {start}"
        if near := nearest_path(path):
            if named_by:
                near = Path(os.path.relpath(near, Path(named_by.file).parent))
            hint = f'did you mean "{near}"?'
        raise ProfileError.of(
            "missing-file",
            f'there is no {what} "{file}"',
            where=named_by or SourceSpan(file=file),
            expected="a TOML file",
            hint=hint,
        ) from error
    except UnicodeDecodeError as error:
        # The text is not there, so lines are counted in bytes: 0x0a is a newline in
        # UTF-8 and in the encodings that are usually in its place. UTF-16 fails at its
        # byte order mark.
        before = bytes(error.object[: error.start])
        raise ProfileError.of(
            "not-utf8",
            f'"{file}" is not UTF-8 text',
            where=SourceSpan(file=file, line=before.count(b"\n") + 1),
            found=f"byte 0x{error.object[error.start]:02x} at {error.start}",
            expected="TOML, which is always UTF-8",
            hint="save the file as UTF-8",
        ) from error
    except OSError as error:
        hint = _TOO_LARGE if error.errno == errno.EFBIG else _A_FILE
        if isinstance(error, PermissionError):
            hint = "check the permissions of the file"
        raise ProfileError.of(
            "unreadable-file",
            f'cannot read the {what} "{file}"',
            where=named_by or SourceSpan(file=file),
            found=error.strerror or type(error).__name__,
            expected="a TOML file",
            hint=hint,
        ) from error


_TOO_LARGE = "a profile describes one product, in a few hundred lines at most"
_A_FILE = (
    "save it as a file: its paths start at the folder of that file, and its lock goes beside it"
)
