"""Options of commands that build: the build folder, jobs, and the lock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.build import BuildOptions, ExportChoice
from orchestrator.build.project import piped_name
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from argparse import Namespace


def build_options(args: Namespace) -> BuildOptions:
    """The build options of a command line.

    Raises:
        UsageError: Two of its options contradict each other.
    """
    has = {
        "--lock": args.lock_file is not None,
        "--no-lock": args.no_lock,
        "--locked": args.locked,
        "--frozen": args.frozen,
        "--no-build": getattr(args, "no_build", False),
    }
    for option, other in _CONTRADICTIONS:
        if has[option] and has[other]:
            raise UsageError.of(
                "usage",
                f"argument {option}: not allowed with argument {other}",
                hint="leave one of them out",
            )
    return BuildOptions(
        out=args.out,
        jobs=args.jobs,
        locked=args.locked or args.frozen,
        frozen=args.frozen,
        lock=args.lock_file,
        write_lock=not args.no_lock,
        export=ExportChoice(deny_float=getattr(args, "deny_float", False)),
    )


def options_of(options: BuildOptions, profile: Path) -> BuildOptions:
    """The options for a profile: one from a pipe has no lock unless one is named.

    Raises:
        UsageError: A lock is needed.
    """
    if piped_name(profile) is None or options.lock is not None:
        return options
    if options.locked:
        raise no_place_for_lock()
    return replace(options, write_lock=False)


def no_place_for_lock() -> UsageError:
    """A profile from a pipe has no lock beside it."""
    return UsageError.of(
        "usage",
        "a profile from a pipe has no lock beside it",
        hint="name the lock with --lock FILE",
    )


_CONTRADICTIONS = (
    ("--no-lock", "--lock"),
    ("--no-build", "--lock"),
    ("--no-build", "--locked"),
    ("--no-build", "--frozen"),
)
"""Besides those that the parser checks."""
