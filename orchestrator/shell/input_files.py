"""Read the input files of a build, and keep their states for its stamp."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

from orchestrator.core.lazy_bytes import Bytes
from orchestrator.shell import sources
from orchestrator.shell.files import MOST_BYTES, lazy_file, read_file
from orchestrator.shell.stamp import State, state_of


class CommonFiles:
    """Orchestrator's own files and sources: builds of one command read them once.

    What changes while the command runs is seen by the next one: the states are those
    from before the files were read.
    """

    def __init__(self) -> None:
        self._read: dict[Path, tuple[str, State, bytes]] = {}

    @cached_property
    def native(self) -> tuple[str, ...]:
        """See `sources.native_files`."""
        return sources.native_files()

    @cached_property
    def package(self) -> tuple[Path, ...]:
        """See `sources.package_files`."""
        return sources.package_files()

    @cached_property
    def _paths(self) -> frozenset[Path]:
        root = sources.native_root()
        return frozenset((*self.package, *(root / name for name in self.native)))

    def read(self, path: Path) -> tuple[str, State, bytes] | None:
        """Absolute path, state and bytes of a file; None if it is not one of them.

        Raises:
            OSError: It cannot be read.
        """
        found = self._read.get(path)
        if found is None and path in self._paths:
            absolute = str(path.absolute())
            # State first: if the file changes in between, the stamp has the old state
            # and the next build runs. The other way round it would never be noticed.
            found = (absolute, state_of(absolute), read_file(path))
            self._read[path] = found
        return found


class InputFiles:
    """Reads files, and remembers their states.

    Args:
        common: Files that were read for other builds of the command.
    """

    def __init__(self, common: CommonFiles | None = None) -> None:
        self._states: dict[str, State] = {}
        self._common = common

    def read(self, path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
        """Bytes of a file. Raises OSError."""
        if self._common is not None and (found := self._common.read(path)):
            absolute, state, data = found
            self._states.setdefault(absolute, state)
            return data
        self.note([str(path.absolute())])
        return read_file(path, most_bytes=most_bytes)

    def native_files(self) -> tuple[str, ...]:
        """See `sources.native_files`."""
        return self._common.native if self._common else sources.native_files()

    def package_files(self) -> tuple[Path, ...]:
        """See `sources.package_files`."""
        return self._common.package if self._common else sources.package_files()

    def lazy(self, path: Path) -> Bytes:
        """The bytes of a file; those of a large one are read when they are needed."""
        self.note([str(path.absolute())])
        return lazy_file(path)

    def note(self, paths: Iterable[str]) -> None:
        """Remember files that other code read, by absolute path."""
        for path in paths:
            # The first state that was seen stays: a file that changed between two reads
            # makes the stamp stale.
            self._states.setdefault(path, state_of(path))

    @property
    def states(self) -> Mapping[str, State]:
        """By absolute path: the state of each file before it was read."""
        return dict(self._states)
