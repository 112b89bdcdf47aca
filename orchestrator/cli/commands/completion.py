"""`orchestrator plumbing completion`: a completion script, made from the arguments."""

from __future__ import annotations

import argparse
from argparse import Namespace

from orchestrator.cli.arguments import parser
from orchestrator.cli.console import Console
from orchestrator.cli.manual import GROUP_OF
from orchestrator.errors import ExitCode

_FILES = frozenset(
    {*("PROFILE", "FILE", "MODEL", "PROGRAM", "OTHER", "FIRMWARE", "TABLE"), *("F.csv", "F.svg")}
)


def run(args: Namespace, console: Console) -> ExitCode:
    """Print the script for a shell."""
    import shtab  # noqa: PLC0415  # nothing else needs it

    top = parser()
    _prepare(top, shtab.FILE, shtab.DIRECTORY)
    script: str = shtab.complete(top, shell=args.shell)
    console.document({"shell": args.shell, "script": script})
    if not console.json:
        console.put(script)
    return ExitCode.OK


def _prepare(top: argparse.ArgumentParser, file: object, folder: object) -> None:
    """Show the group of each command; complete files and folders where they go."""
    for action in top._actions:  # noqa: SLF001  # argparse has no public way
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            action.help = None  # the help of all commands hides it
            for name, command in action.choices.items():
                if name in GROUP_OF:
                    command.description = f"{GROUP_OF[name]}: {command.description}"
                _prepare(command, file, folder)
        elif action.metavar in _FILES:
            action.complete = file  # type: ignore[attr-defined]  # what shtab reads
        elif action.metavar == "DIR":
            action.complete = folder  # type: ignore[attr-defined]  # likewise
