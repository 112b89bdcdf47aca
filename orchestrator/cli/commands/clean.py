"""`orchestrator clean`: remove what builds made in a build folder."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from orchestrator.build import Project, Shell
from orchestrator.cli.commands.options import project_of
from orchestrator.cli.commands.workspace import needs_profile, run_workspace
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode
from orchestrator.shell.build_folder import remove_made


def run(args: Namespace, console: Console) -> ExitCode:
    """Remove what builds made, and the folder if that was all; the lock stays."""
    if not needs_profile(args, args.profile):
        return run_workspace(args, console, _clean)
    project = project_of(args)
    found = _clean(project, console.shell())
    return console.result(found["details"], f"{project.folder}: {found['done']}")


def _clean(project: Project, _: Shell) -> dict[str, Any]:
    """Fields of the outcome: what became of a build folder."""
    folder = project.folder
    existed = folder.exists() or folder.is_symlink()
    left = remove_made(folder) if existed else ()
    removed = existed and not folder.exists()
    done = "removed" if removed else "removed build outputs"
    if left:
        done += f"; kept {', '.join(left)}"
    return {
        "done": done if existed else "nothing to remove",
        "before": None,
        "details": {"folder": str(folder), "removed": removed, "left": list(left)},
    }
