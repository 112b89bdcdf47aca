"""Arguments that several commands have, and how errors in them are reported."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Final, NoReturn

from orchestrator.cli.manual import SYNONYMS
from orchestrator.errors import Diagnostic, UsageError, did_you_mean

PROFILE: Final = "profile of the product, a TOML file; - for stdin"
OUT: Final = "build folder; default: build/NAME in the current folder"
JOBS: Final = "compile steps at a time; default: what ninja chooses"


class CommandParser(argparse.ArgumentParser):
    """Reports usage errors like all other errors."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of printing and exiting."""
        if match := re.match(r"argument COMMAND: invalid choice: '(.*?)' \(", message):
            raise UsageError(
                Diagnostic(
                    code="usage",
                    message=f'there is no command "{match[1]}"',
                    hint=_near(message)
                    or "run `orchestrator --help` to see all commands",
                )
            )
        raise UsageError(
            Diagnostic(
                code="usage",
                message=message,
                hint=_near(message) or f"run `{self.prog} --help` to see its options",
            )
        )


def _near(message: str) -> str:
    """A hint for a misspelt choice, from argparse's error message."""
    if match := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
        if message.startswith("argument COMMAND") and match[1].lower() in SYNONYMS:
            return f'did you mean "{SYNONYMS[match[1].lower()]}"?'
        return did_you_mean(match[1], re.findall(r"[\w-]+", match[2]))
    return ""


def add_out(command: argparse.ArgumentParser) -> None:
    """The build folder."""
    command.add_argument("--out", type=Path, metavar="DIR", help=OUT)


def add_locking(command: CommandParser) -> None:
    """Lock options of commands that build."""
    add_lock_file(command)
    lock = command.add_mutually_exclusive_group()
    lock.add_argument(
        "--no-lock", action="store_true", help="neither read nor write a lock"
    )
    lock.add_argument(
        "--locked", action="store_true", help="fail if the lock would change"
    )
    lock.add_argument(
        "--frozen",
        action="store_true",
        help="like --locked, and compare the inputs first",
    )


def add_lock_file(command: CommandParser) -> None:
    """The lock, where it is not beside the profile."""
    command.add_argument(
        "--lock",
        type=Path,
        metavar="FILE",
        dest="lock_file",
        help="the lock; default: beside the profile",
    )
