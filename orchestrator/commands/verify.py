"""`orchestrator verify`: build again from nothing, elsewhere, and compare bytes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, ExitCode, ReproducibilityError, SourceSpan
from orchestrator.pipeline import BuildOptions, ExportChoice, Pipeline, load
from orchestrator.shell.publish import published_files

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.console import Console

# Names the folder of the machine on purpose, for editors and ninja.
_MACHINE_FILES = frozenset({"compile_commands.json", "build.ninja"})


def run(args: Namespace, console: Console) -> ExitCode:
    """Build in place and in a fresh folder; every published byte must be the same."""
    profile = load(args.profile)
    with tempfile.TemporaryDirectory(prefix="orchestrator-verify-") as name:
        # A deeper folder, so that lengths of paths differ as well.
        elsewhere = Path(name) / "another" / "folder"
        reporter = console.reporter(explain=False)
        try:
            first = Pipeline(profile, BuildOptions(out=args.out, write_lock=False))
            here = first.build(reporter)
            options = BuildOptions(
                out=elsewhere,
                write_lock=False,
                export=ExportChoice(cache=Path(name) / "exports"),
            )
            Pipeline(profile, options).build(reporter)
        finally:
            reporter.close()
        ours, theirs = published_files(here.folder), published_files(elsewhere)
    compared = sorted((ours.keys() | theirs.keys()) - _MACHINE_FILES)
    different = [n for n in compared if ours.get(n) != theirs.get(n)]
    if different:
        raise ReproducibilityError(
            Diagnostic(
                code="not-reproducible",
                message=f"{len(different)} files differ between two builds",
                where=SourceSpan(file=str(args.profile)),
                notes=tuple(("differs", n) for n in different),
                hint="find what reaches the file from outside the profile: paths,"
                " times or the environment",
            )
        )
    console.document({"profile": profile.name, "compared": compared, "same": True})
    console.data(f"{profile.name}: {len(compared)} files are the same, byte for byte")
    return ExitCode.OK
