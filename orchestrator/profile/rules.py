"""What rules over several values of a profile know besides its tables.

A rule is a generator of diagnostics over tables of the right types. Where it reads a
value that is wrong itself it ends with `BrokenValueError`: that one is reported.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic
from orchestrator.profile.table import sound

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from orchestrator.profile.paths import NamedFile
    from orchestrator.profile.source_map import FindSpan


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the profile's text and the machine decide.

    Args:
        span: Where a key path was written.
        keys: Of the top of the file, right or wrong.
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
        """The problem of a path where there is no file.

        Args:
            file: What the profile names.
            key_path: Of the value.
            what: What the file is to the profile, "model file".
            expected: What it should hold.
        """
        with suppress(OSError):  # a name that the file system cannot have
            if self.is_file(file.path):
                return
        yield Diagnostic(
            code="missing-file",
            message=f'there is no {what} "{file.written}"',
            where=self.span(*key_path),
            notes=(
                ("found", f"nothing to read at {file.path}"),
                ("expected", expected),
            ),
            hint="check the path: it is relative to the file that names it",
        )

    def missing_files(
        self,
        files: Iterable[NamedFile],
        *key_path: str | int,
        what: str,
        expected: str,
    ) -> Iterator[Diagnostic]:
        """The same of an array; the build reports patterns without a match."""
        for at, file in sound(files):
            if not file.is_pattern:
                yield from self.missing_file(
                    file, *key_path, at, what=what, expected=expected
                )
