"""`orchestrator verify`: a second build, elsewhere, or one file against the lock."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.build import (
    BuildOptions,
    ExportChoice,
    Project,
    build_product,
    load,
)
from orchestrator.build.checking import identify
from orchestrator.build.locking import MACHINE_FILES
from orchestrator.errors import (
    Diagnostic,
    ExitCode,
    ReproducibilityError,
    SourceSpan,
    UsageError,
)
from orchestrator.shell.publish import published_files

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Compare two builds, or a file with the lock."""
    _check(args)
    if args.artefact is not None:
        return _identify(args, console)
    return _build_twice(args, console)


def _check(args: Namespace) -> None:
    """Check what the parser cannot. Raises UsageError."""
    if args.artefact is None and args.lock_file is not None:
        message = "--lock requires --artefact"
        hint = "two builds are compared with each other, without a lock"
    elif args.profile is None and args.lock_file is None:
        message = "verify needs a profile, or a lock with --artefact"
        hint = "run `orchestrator verify --help` to see its options"
    else:
        return
    raise UsageError(Diagnostic(code="usage", message=message, hint=hint))


def _identify(args: Namespace, console: Console) -> ExitCode:
    """Identify a file as an output of the lock."""
    lock_file = args.lock_file or args.profile.with_suffix(".lock")
    found = identify(args.artefact, lock_file)
    console.document(
        {
            "file": str(args.artefact),
            "lock": str(lock_file),
            "sha256": found.sha256,
            "kind": found.kind,
            "outputs": list(found.paths),
        }
    )
    paths = ", ".join(found.paths)
    console.data(f"{args.artefact}: the {found.kind} of {lock_file} ({paths})")
    return ExitCode.OK


def _build_twice(args: Namespace, console: Console) -> ExitCode:
    """Build in place and in a fresh folder; every published byte must be the same."""
    profile = load(args.profile)
    with tempfile.TemporaryDirectory(prefix="orchestrator-verify-") as name:
        # A deeper folder, so that a difference in path lengths shows as well.
        elsewhere = Path(name) / "another" / "folder"
        with console.progress() as reporter:
            exact = BuildOptions(write_lock=False, trust_cache=False)
            shell = console.shell(reporter)
            here = build_product(Project(profile, replace(exact, out=args.out)), shell)
            options = replace(
                exact,
                out=elsewhere,
                export=ExportChoice(cache=Path(name) / "exports"),
            )
            build_product(Project(profile, options), shell)
        ours, theirs = published_files(here.folder), published_files(elsewhere)
    compared = sorted((ours.keys() | theirs.keys()) - MACHINE_FILES)
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
