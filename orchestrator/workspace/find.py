"""Find the workspace that a folder is in."""

from __future__ import annotations

import os
from pathlib import Path

from orchestrator.shell.stamp import State, state_of
from orchestrator.workspace.product import WORKSPACE_FILE


def looked_for(folder: Path) -> tuple[tuple[str, State], ...]:
    """Absolute paths that the workspace's file may have, nearest first, with states.

    The last one is the workspace's file, or that of the file system's root.
    """
    found = []
    absolute = Path(os.path.abspath(folder))  # noqa: PTH100  # keeps links
    for parent in (absolute, *absolute.parents):
        path = str(parent / WORKSPACE_FILE)
        found.append((path, state_of(path)))
        if found[-1][1]:
            break
    return tuple(found)


def find_workspace(folder: Path) -> Path | None:
    """The nearest `orchestrator.toml` in a folder or above, as seen from here."""
    path, state = looked_for(folder)[-1]
    return Path(os.path.relpath(path)) if state else None
