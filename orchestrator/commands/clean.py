"""`orchestrator clean`: remove a build folder."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, ExitCode, UsageError
from orchestrator.pipeline import WORK, BuildOptions, Pipeline, load

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Remove the build folder of a profile; the lock stays."""
    folder = Pipeline(load(args.profile), BuildOptions(out=args.out)).folder
    existed = folder.exists()
    is_ours = (folder / WORK).is_dir()
    if existed and not is_ours and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            Diagnostic(
                code="not-a-build-folder",
                message=f"{folder} is not a build folder of Orchestrator",
                notes=(("expected", f"a folder {WORK} in it"),),
                hint="remove it by hand if you mean it",
            )
        )
    if existed:
        shutil.rmtree(folder)
    console.document({"folder": str(folder), "removed": existed})
    console.data(f"{folder}: {'removed' if existed else 'was not there'}")
    return ExitCode.OK
