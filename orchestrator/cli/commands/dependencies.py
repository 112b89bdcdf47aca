"""The options `--depfile` and `--depfile-target`, which several commands have."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, UsageError
from orchestrator.shell.depfile import write_depfile

if TYPE_CHECKING:
    from argparse import Namespace


def depfile_problems(args: Namespace) -> list[Diagnostic]:
    """Problems of `--depfile-target` without `--depfile`."""
    if args.depfile_target is None or args.depfile is not None:
        return []
    return [
        Diagnostic.of(
            "usage",
            "--depfile-target requires --depfile",
            found=f"--depfile-target {args.depfile_target}",
            hint="name the file to write with --depfile FILE",
        )
    ]


def write_dependencies(depfile: Path, *, target: str, inputs: Iterable[str]) -> None:
    """Write a depfile.

    Raises:
        UsageError: `bad-depfile`: a path has a character that depfiles cannot hold.
    """
    try:
        write_depfile(str(depfile), target=target, inputs=inputs)
    except ValueError as error:
        raise UsageError.of(
            "bad-depfile",
            "a depfile cannot hold the path of a file",
            found=ascii(error.args[0]),
            expected="a path without tabs and line ends",
            hint="rename the file or its folder, or build without --depfile",
        ) from error
