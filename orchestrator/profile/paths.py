"""Paths in a profile, and the problem of a missing file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import InstanceOf

from orchestrator.profile.fields import ReadFrom, bad_value, text_schema

if TYPE_CHECKING:
    from orchestrator.profile.document import Text

_PATH: Final = r"[^/\\][^\\]*"
_SOURCE_SUFFIXES: Final = (".cpp", ".cc", ".cxx", ".c", ".S")
"""Suffixes of sources that a custom library may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFile:
    """A file, folder or pattern of files that a profile names.

    Args:
        path: Its path, relative to the user's current folder.
        written: The path as written in the profile.
    """

    path: Path
    written: str

    @property
    def is_pattern(self) -> bool:
        """Whether it is a pattern, which may match any number of files."""
        return "*" in self.written

    def beside(self, path: Path) -> str:
        """As the profile would write another path with as many names."""
        return "/".join(path.parts[-len(PurePosixPath(self.written).parts) :])


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonCallable(NamedFile):
    """A Python file and the name of a callable in it; `written` is the file alone."""

    function: str


def is_relative_path(text: str) -> bool:
    """Whether the text is a relative path that is portable between machines."""
    windows = PureWindowsPath(text)
    anchored = text.startswith("/") or windows.drive or windows.root
    return bool(text) and not anchored and "\\" not in text and "\0" not in text


def _read_path(value: Text) -> NamedFile:
    if value.split("/").count("**") > 1:  # Python takes minutes to match many
        raise bad_value(value, expected="at most one `**`", hint="write more patterns")
    if is_relative_path(value):
        return NamedFile(path=value.folder / value, written=str(value))
    windows = PureWindowsPath(value)
    relative = value and not (windows.drive or windows.root) and "\0" not in value
    raise bad_value(
        value,
        expected="a path relative to the profile, with / between folders",
        hint=f'write "{windows.as_posix()}"'
        if relative
        else "write the path as seen from the folder of the profile",
    )


def _read_model_path(value: Text) -> NamedFile:
    # Models and their data may be on this machine only.
    if is_relative_path(value.lstrip("/")):
        return NamedFile(path=value.folder / value, written=str(value))
    return _read_path(value)


def _read_callable(value: Text) -> PythonCallable:
    path, _, function = value.rpartition(":")
    if path.endswith(".py") and is_relative_path(path) and function.isidentifier():
        return PythonCallable(path=value.folder / path, written=path, function=function)
    near = value if value.endswith(".py") else f"{PurePosixPath(value).stem}.py"
    raise bad_value(
        value,
        expected="a Python file relative to the profile, and a callable in it",
        hint=f'write it as "{near}:build"'
        if ":" not in value and value
        else 'write it as "models/kws.py:build"',
    )


def _read_source(value: Text) -> NamedFile:
    file = _read_path(value)
    if value.endswith(_SOURCE_SUFFIXES):
        return file
    raise bad_value(
        value,
        expected=f"a file or pattern that ends in {', '.join(_SOURCE_SUFFIXES)}",
        hint="headers need not be named: those of the library's folders are found",
    )


RelativePath = Annotated[
    NamedFile, ReadFrom(InstanceOf[str], _read_path), text_schema("path", _PATH)
]
RelativePattern = Annotated[
    NamedFile, ReadFrom(InstanceOf[str], _read_path), text_schema("path or pattern", _PATH)
]
SourcePattern = Annotated[
    NamedFile,
    ReadFrom(InstanceOf[str], _read_source),
    text_schema("path or pattern", _PATH + r"\.(cpp|cc|cxx|c|S)"),
]
ModelPath = Annotated[
    NamedFile, ReadFrom(InstanceOf[str], _read_model_path), text_schema("path", r"[^\\]+")
]
ModelCode = Annotated[
    PythonCallable,
    ReadFrom(InstanceOf[str], _read_callable),
    text_schema("file and callable", _PATH + r"\.py:[A-Za-z_]\w*"),
]
