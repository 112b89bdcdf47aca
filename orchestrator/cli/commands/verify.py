"""`orchestrator verify`: a second build, elsewhere, or one file against the lock."""

from __future__ import annotations

from argparse import Namespace

from orchestrator.build import load
from orchestrator.build.checking import build_twice, identify
from orchestrator.cli.commands.options import build_options
from orchestrator.cli.commands.workspace import needs_profile, run_workspace
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode, UsageError
from orchestrator.fleet.outcome import Kind


def run(args: Namespace, console: Console) -> ExitCode:
    """Compare two builds, or a file with the lock."""
    about_one = args.profile or args.artefact or args.lock_file
    if not needs_profile(args, about_one):
        return run_workspace(args, console, Kind.VERIFY)
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
    raise UsageError.wrong(message, hint)


def _identify(args: Namespace, console: Console) -> ExitCode:
    """Identify a file as an output of the lock."""
    lock_file = args.lock_file or load(args.profile).lock_file
    found = identify(args.artefact, lock_file)
    paths = ", ".join(found.paths)
    return console.result(
        {
            "file": str(args.artefact),
            "lock": str(lock_file),
            "sha256": found.sha256,
            "kind": found.kind,
            "outputs": list(found.paths),
        },
        f"{args.artefact}: the {found.kind} of {lock_file} ({paths})",
    )


def _build_twice(args: Namespace, console: Console) -> ExitCode:
    """Build in place and in a fresh folder; every published byte must be the same."""
    profile = load(args.profile)
    with console.progress() as reporter:
        _, compared = build_twice(profile, build_options(args), console.shell(reporter))
    return console.result(
        {"profile": profile.name, "compared": compared, "same": True},
        f"{profile.name}: {len(compared)} files are the same, byte for byte",
    )
