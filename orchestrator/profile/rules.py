"""Facts for rules over several values of a profile.

A rule is a generator of diagnostics over typed tables. If it reads a value that is
invalid itself, it ends with `BrokenValueError`: that value is reported already.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, nearest_path
from orchestrator.profile.table import sound

if TYPE_CHECKING:
    from orchestrator.profile.paths import NamedFile
    from orchestrator.profile.source_map import FindSpan


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
        """The same for an array; the build reports patterns without a match."""
        for at, file in sound(files):
            if not file.is_pattern:
                yield from self.missing_file(file, *key_path, at, what=what, expected=expected)
