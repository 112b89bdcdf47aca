"""The stamp of a finished build: shows in milliseconds that nothing changed.

Imports nothing that is slow to import.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

# Type checkers take it for that of `typing`, which an unchanged build does not import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STAMP_NAME = "stamp.json"

State = list[int]
"""Size, times of change of content and of status, inode of a file; empty if missing.

The second time cannot be set, so it also shows new content with an old date.
"""


def state_of(path: str) -> State:
    """The state of a file, links followed."""
    with suppress(OSError):
        found = os.stat(path)  # noqa: PTH116  # pathlib is slow to import
        # Size and mtime alone missed a compiler that was replaced by one with both
        # (decision 0013): ctime cannot be set, and a rename brings another inode.
        times = (found.st_mtime_ns, found.st_ctime_ns)
        return [found.st_size, *times, found.st_ino]
    return []


def folders_of(paths: list[str]) -> list[str]:
    """Folders of the files: their times change when a file is added or removed."""
    return sorted({os.path.dirname(p) or "." for p in paths})  # noqa: PTH120


class Looked:
    """States of files, each read once: many stamps name the same files."""

    def __init__(self) -> None:
        self._states: dict[str, State] = {}
        self._groups: dict[str, bool] = {}

    def all_are(self, states: dict[str, State]) -> bool:
        """Whether files still have these states."""
        known = self._states
        for path, state in states.items():
            found = known.get(path)
            if found is None:
                found = known[path] = state_of(path)
            if found != state:
                return False
        return True

    def shared_are(self, stamp_file: str, identity: str) -> bool:
        """Whether the shared files of a stamp are as they were; many stamps share them."""
        found = self._groups.get(identity)
        if found is None:
            shared = _shared(stamp_file, identity)
            found = self._groups[identity] = self.all_are(shared["files"])
        return found


def _shared(stamp_file: str, identity: str) -> Any:  # noqa: ANN401  # JSON
    """What is beside a stamp. Raises OSError, and what is raised for damaged files."""
    with open(shared_file(stamp_file), "rb") as file:  # noqa: PTH123
        found = json.loads(file.read())
    # Two files cannot be replaced in one step: the stamp names the content of the
    # other.
    if found["identity"] != identity:
        raise ValueError(identity)  # a build was killed while it wrote both
    return found


def shared_file(stamp_file: str) -> str:
    """The file beside a stamp with states of files that other products read as well.

    It is named by its content in the stamp, and is not read where another product of
    the same command has the same.
    """
    return f"{stamp_file.removesuffix('.json')}-shared.json"


def is_current(
    stamp_file: str, *, profile: str, looked: Looked | None = None
) -> dict[str, object] | None:
    """The stamp's facts if no file it names has changed, else None.

    Args:
        stamp_file: Path of the stamp.
        profile: Path of the profile as the user names it now.
        looked: File states that this command has read; new ones are added.
    """
    looked = looked or Looked()
    try:
        with open(stamp_file, "rb") as file:  # noqa: PTH123
            stamp = json.loads(file.read())
        if (
            # The same bytes under another name have relative paths that mean other
            # files.
            stamp["profile"] != os.path.abspath(profile)  # noqa: PTH100
            or stamp["environment"] != environment()
            or not looked.all_are(stamp["files"])
            or not looked.shared_are(stamp_file, stamp["shared"])
        ):
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return stamp if isinstance(stamp, dict) else None


def inputs_of(stamp_file: str, stamp: dict[str, Any]) -> list[str]:
    """The files that the build read, which come first in its stamp; [] if invalid."""
    try:
        shared = _shared(stamp_file, stamp["shared"])
        return [
            path
            for found in (stamp, shared)
            for path in list(found["files"])[: found["input_count"]]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def environment() -> dict[str, str]:
    """What decides which compilers and Pythons are found, and this installation."""
    return {
        "PATH": os.environ.get("PATH", ""),
        "python": sys.executable,
        "export": os.environ.get("ORCHESTRATOR_EXPORT_PYTHON", ""),
        # Another installation of Orchestrator, though it may have the same version.
        "stamp": os.path.abspath(__file__),  # noqa: PTH100  # pathlib is slow to import
    }
