"""Options that name files for results: their files are looked at before any work."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from orchestrator.cli.command_table import COMMANDS
from orchestrator.cli.declaring import Option
from orchestrator.errors import Diagnostic, UsageError
from orchestrator.shell.output_file import lost


def check_outputs(args: Namespace) -> None:
    """Refuse to write over inputs, sources, links and folders.

    Raises:
        UsageError: Every option that would (`would-overwrite`).
    """
    given = [one for one in COMMANDS[args.command].options if one.is_given(args)]
    inputs = [path for one in given if not one.writes for path in _paths(one, args)]
    problems = []
    written: dict[str, str] = {}
    for option in given:
        for path in _paths(option, args) if option.writes else ():
            # Not resolved: a link in the place of an output is refused by itself
            # (`lost`).
            place = os.path.abspath(path)  # noqa: PTH100  # keeps links
            other = written.setdefault(place, option.long_name)
            found = f"what {other} writes" if other != option.long_name else ""
            if found := found or lost(path, option.writes, inputs):
                problems.append(would_overwrite(option.long_name, path, found))
    if problems:
        raise UsageError(problems)


def would_overwrite(option: str, path: str, found: str) -> Diagnostic:
    """The problem of an option that names a file which would be lost."""
    return Diagnostic.of(
        "would-overwrite",
        f"{option} would write over {path}",
        found=found,
        hint="name a new file, or the one of an earlier run",
    )


def _paths(option: Option, args: Namespace) -> Iterator[str]:
    """Paths that an option or argument names; a text may be the name of a file, too."""
    value = getattr(args, option.key)
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, Path) or option.value.startswith(("FILE", "DATA")):
            yield str(one)
