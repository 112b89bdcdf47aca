"""`orchestrator clean`: remove what builds made in a build folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.build import BuildOptions, Project, load
from orchestrator.errors import ExitCode
from orchestrator.shell.build_folder import remove_made

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Remove what builds made, and the folder if that was all; the lock stays."""
    folder = Project(load(args.profile), BuildOptions(out=args.out)).folder
    existed = folder.exists() or folder.is_symlink()
    left = remove_made(folder) if existed else ()
    removed = existed and not folder.exists()
    console.document({"folder": str(folder), "removed": removed, "left": list(left)})
    if not existed:
        console.data(f"{folder}: nothing to remove")
    elif removed:
        console.data(f"{folder}: removed")
    elif left:
        console.data(f"{folder}: removed build outputs; kept {', '.join(left)}")
    else:
        console.data(f"{folder}: removed build outputs")
    return ExitCode.OK
