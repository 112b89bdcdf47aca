"""Read the input files of a build, and keep their states for its stamp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from orchestrator.shell.files import MOST_BYTES, lazy_file, read_file
from orchestrator.shell.stamp import State, state_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from orchestrator.core.lazy_bytes import Bytes


class InputFiles(Protocol):
    """Reads files, and remembers their states."""

    def read(self, path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
        """Bytes of a file. Raises OSError."""

    def lazy(self, path: Path) -> Bytes:
        """The same, but those of a large file are read when they are needed."""

    def note(self, paths: Iterable[str]) -> None:
        """Remember files that other code read, by absolute path."""

    @property
    def states(self) -> Mapping[str, State]:
        """By absolute path: the state of each file before it was read."""


class DiskFiles:
    """Files of this machine."""

    def __init__(self) -> None:
        self._states: dict[str, State] = {}

    def read(self, path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
        """See `InputFiles`."""
        self.note([str(path.absolute())])
        return read_file(path, most_bytes=most_bytes)

    def lazy(self, path: Path) -> Bytes:
        """See `InputFiles`."""
        self.note([str(path.absolute())])
        return lazy_file(path)

    def note(self, paths: Iterable[str]) -> None:
        """See `InputFiles`."""
        for path in paths:
            self._states.setdefault(path, state_of(path))

    @property
    def states(self) -> Mapping[str, State]:
        """See `InputFiles`."""
        return dict(self._states)
