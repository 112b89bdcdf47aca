"""The stamp of a finished build: shows in milliseconds that nothing changed.

Imports nothing that is slow to import.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

STAMP_NAME = "stamp.json"

State = list[int]
"""Size, times of change of content and of status, inode of a file; empty if missing.

The second time cannot be set, so it also shows new content with an old date.
"""


def state_of(path: str) -> State:
    """The state of a file, links followed."""
    with suppress(OSError):
        found = os.stat(path)  # noqa: PTH116  # pathlib is slow to import
        times = (found.st_mtime_ns, found.st_ctime_ns)
        return [found.st_size, *times, found.st_ino]
    return []


def folders_of(paths: list[str]) -> list[str]:
    """Folders of the files: their times change when a file is added or removed."""
    return sorted({os.path.dirname(p) or "." for p in paths})  # noqa: PTH120


class Looked:
    """States of files, each looked at once: many stamps name the same files."""

    def __init__(self) -> None:
        self._states: dict[str, State] = {}

    def state_of(self, path: str) -> State:
        """See `state_of`."""
        found = self._states.get(path)
        if found is None:
            found = self._states[path] = state_of(path)
        return found


def is_current(
    stamp_file: str, *, profile: str, looked: Looked | None = None
) -> dict[str, object] | None:
    """The stamp's facts if no file it names has changed, else None.

    Args:
        stamp_file: Path of the stamp.
        profile: Path of the profile as the user names it now.
        looked: States that are known already; gets more.
    """
    looked = looked or Looked()
    try:
        with open(stamp_file, "rb") as file:  # noqa: PTH123
            stamp = json.loads(file.read())
        if stamp["profile"] != os.path.abspath(profile):  # noqa: PTH100
            return None
        if stamp["environment"] != environment():
            return None
        for path, state in stamp["files"].items():
            if looked.state_of(path) != state:
                return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return stamp if isinstance(stamp, dict) else None


def inputs_of(stamp: dict[str, object]) -> list[str]:
    """The files that the build read, which come first in its stamp; [] if invalid."""
    files, count = stamp.get("files"), stamp.get("input_count")
    if not isinstance(files, dict) or not isinstance(count, int):
        return []
    return list(files)[:count]


def environment() -> dict[str, str]:
    """What decides which compilers and Pythons are found, and this installation."""
    return {
        "PATH": os.environ.get("PATH", ""),
        "python": sys.executable,
        "export": os.environ.get("ORCHESTRATOR_EXPORT_PYTHON", ""),
        "stamp": os.path.abspath(__file__),  # noqa: PTH100  # pathlib is slow to import
    }
