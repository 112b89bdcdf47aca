"""Paths in a profile, and the problem of a missing file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Annotated, Final

from pydantic import InstanceOf

from orchestrator.errors import Diagnostic, nearest_path
from orchestrator.profile.document import Text
from orchestrator.profile.fields import ReadFrom, bad_value, text_schema
from orchestrator.profile.source_map import FindSpan
from orchestrator.profile.table import sound

# No backslash: profiles are the same on each system, and locks name files as the
# profile does.
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
    # Python 3.11 takes 22 s to match eight of them in a tree that is 14 deep.
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


# Facts for rules over several values of a profile.
#
# A rule is a generator of diagnostics over typed tables. If it reads a value that is invalid
# itself, it ends with `BrokenValueError`: that value is reported already.


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts from the profile's text and from the machine.

    Args:
        span: Where a key path was written.
        keys: Keys at the top of the file, valid or not.
        is_file: Whether a path is a file; may raise `OSError`.
        libraries: Names of the kernel libraries that exist without the profile.
    """

    span: FindSpan
    keys: Collection[str]
    is_file: Callable[[Path], bool]
    libraries: Collection[str]

    def missing_file(
        self, file: NamedFile, *key_path: str | int, what: str, expected: str
    ) -> Iterator[Diagnostic]:
        """The problem of a missing file.

        Args:
            file: The file that the profile names.
            key_path: Key path of the value.
            what: Kind of the file: "model file".
            expected: What it should contain.
        """
        there, near = "nothing to read", None
        with suppress(OSError):  # a name that the file system cannot have
            if self.is_file(file.path):
                return
            if file.path.exists():
                there = "a folder, a pipe or a device"
            near = nearest_path(file.path)
        yield Diagnostic.of(
            "missing-file",
            f'there is no {what} "{file.written}"',
            where=self.span(*key_path),
            found=f"{there} at {file.path}",
            expected=expected,
            hint=f'did you mean "{file.beside(near)}"?'
            if near
            else "check the path: it is relative to the file that names it",
        )

    def missing_files(
        self, files: Iterable[NamedFile], *key_path: str | int, what: str, expected: str
    ) -> Iterator[Diagnostic]:
        """Problems of an array of paths; the build reports patterns without a match."""
        for at, file in sound(files):
            if not file.is_pattern:
                yield from self.missing_file(file, *key_path, at, what=what, expected=expected)
