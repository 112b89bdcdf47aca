"""Arguments that several commands have, and how errors in them are reported."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from orchestrator.cli.argument_types import finite_number, job_count, shard
from orchestrator.cli.manual import RENAMED, SYNONYMS
from orchestrator.errors import UsageError, did_you_mean, nearest

if TYPE_CHECKING:
    Arguments: TypeAlias = argparse._ActionsContainer  # noqa: SLF001  # no other name

PROFILE: Final = "profile of the product, a TOML file; - for stdin"
OUT: Final = "build folder; default: build/NAME in the current folder"
JOBS: Final = "compile steps at a time; default: what ninja chooses"
WORKERS: Final = "products at a time; default: as many as there are cores"


class CommandParser(argparse.ArgumentParser):
    """Reports usage errors like all other errors."""

    _given: Sequence[str] = ()

    def parse_args(  # type: ignore[override]  # argparse has overloads for namespaces
        self, args: Sequence[str], namespace: None = None
    ) -> argparse.Namespace:
        """All arguments; what is left over is an error with its remedy."""
        self._given = args
        found, rest = self.parse_known_args(args, namespace)
        if rest:
            raise UsageError.of(
                "usage",
                f"unrecognized arguments: {' '.join(rest)}",
                hint=self._place(found.command, rest[0]),
            )
        return found

    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of printing and exiting."""
        if match := re.match(r"argument COMMAND: invalid choice: '(.*?)' \(", message):
            name = f"{self.prog} {match[1]}".partition(" ")[2]
            message = f'there is no command "{name}"'
            hint = command_near(match[1], self)
            first = next(iter(self._given), "")
            if first.startswith("-") and first not in self._option_string_actions:
                message = f"{first} stands before the command"
                hint = _AFTER
        else:
            hint = self._near(message)
            short, _, choices = message.rpartition(" (choose from ")
            if len(choices) > _LONG_LIST:  # of cores or boards: no other is as long
                message = short
                hint = hint or "run `orchestrator targets` to list them"
            hint = hint or f"run `{self.prog} --help` to see its options"
        raise UsageError.of("usage", message, hint=hint)

    def _near(self, message: str) -> str:
        """A hint for a misspelt choice, or one of another option; or ""."""
        pattern = r"(--board)?: invalid choice: '(.*?)' \(choose from (.*)\)"
        if (wrong := re.search(pattern, message)) is None:
            return ""
        is_board, word, own = wrong.groups()
        if is_board and word.endswith(".toml"):
            return f'leave it out, and write board = "{word}" in the profile'
        options = {
            str(choice): action.option_strings[-1]
            for action in self._actions
            for choice in (action.choices if action.option_strings else None) or ()
        }
        known = () if word in options else re.findall(r"[\w-]+", own)
        if hint := did_you_mean(word, known):
            return hint
        near = nearest(word, options)
        return f"did you mean {options[near]} {near}?" if near else ""

    def _place(self, name: str, unknown: str) -> str:
        """Where an argument that is left over belongs, or what it is meant to be."""
        commands = commands_of(self)
        options = {
            command: command._option_string_actions  # noqa: SLF001  # no other way
            for command in commands.values()
        }
        option, known = unknown.partition("=")[0], options[commands[name]]
        if option in known:
            return _AFTER
        having = [name_of(c) for c, others in options.items() if option in others]
        if option.startswith("--") and having:
            return f"{option} is an option of {', '.join(having)}"
        if near := did_you_mean(option, known):
            return near
        return f"run `{commands[name].prog} --help` to see its arguments"


_LONG_LIST: Final = 200
_AFTER: Final = (
    "options of a command follow it: `orchestrator COMMAND --option`; only -q, -v,"
    " --json and --color may come first"
)


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of all commands by name, without the group of plumbing."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:  # noqa: SLF001  # argparse has no public way
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for name, command in action.choices.items():
                found |= commands_of(command) or {name: command}
    return found


def name_of(command: argparse.ArgumentParser) -> str:
    """What is typed for a command after `orchestrator`, such as `plumbing man`."""
    return command.prog.partition(" ")[2]


def command_near(word: str, program: argparse.ArgumentParser) -> str:
    """A hint at what a command is called that the program does not have."""
    meant = SYNONYMS.get(word.lower(), word)
    meant = RENAMED.get(meant, meant)
    if meant != word:
        return f'did you mean "{meant}"?'
    known = (*commands_of(program), *RENAMED.values(), "help")
    return did_you_mean(word, known) or (f"run `{program.prog} --help` to see all commands")


def option(
    to: Arguments,
    name: str,
    metavar: str | None,
    text: str,
    **more: Any,  # noqa: ANN401  # argparse's own, likewise below
) -> None:
    """An argument with a value, of a command or a group of arguments."""
    to.add_argument(*name.split(), metavar=metavar, help=text, **more)


def path(to: Arguments, name: str, metavar: str, text: str, **more: Any) -> None:  # noqa: ANN401
    """An argument whose value is a path."""
    option(to, name, metavar, text, type=Path, **more)


def several(to: Arguments, name: str, metavar: str, text: str, **more: Any) -> None:  # noqa: ANN401
    """An option that may be repeated."""
    option(to, name, metavar, text, action="append", default=[], **more)


def flag(to: Arguments, name: str, text: str, **more: Any) -> None:  # noqa: ANN401
    """An option without a value."""
    to.add_argument(*name.split(), help=text, **{"action": "store_true", **more})


def add_jobs(command: CommandParser, text: str = JOBS) -> None:
    """How many steps run at a time."""
    option(command, "-j --jobs", "N", text, type=job_count)


def add_timeout(command: CommandParser, text: str) -> None:
    """How long firmware may run."""
    option(command, "--timeout", "SECONDS", text, type=finite_number, default=600.0)


def add_workspace(command: CommandParser) -> None:
    """Options of commands that work on a whole workspace without PROFILE."""
    group = command.add_argument_group("without PROFILE: all products of the workspace")
    path(
        group,
        "--workspace",
        "FILE",
        "orchestrator.toml or its folder; default: the nearest one from the current folder upwards",
    )
    what = "only this product; * stands for any text; may be repeated"
    several(group, "-p --product", "NAME", what, dest="products")
    what = "only part I of N of the products, chosen by their names"
    option(group, "--shard", "I/N", what, type=shard)
    what = "do the work on the workers of a Dask scheduler: tcp://HOST:8786"
    option(group, "--scheduler", "ADDRESS", what)
    option(group, "--base", "REV", "show changes from the locks at a git revision")
    path(group, "--junit", "FILE", "write results as JUnit XML")
    path(group, "--markdown", "FILE", "write a summary in Markdown")


WORKSPACE_OPTIONS: Final = (
    *(("--workspace", "workspace"), ("--product", "products"), ("--shard", "shard")),
    *(("--scheduler", "scheduler"), ("--base", "base"), ("--junit", "junit")),
    ("--markdown", "markdown"),
)
"""Options of `add_workspace`, with their places in a namespace."""


def add_out(command: argparse.ArgumentParser) -> None:
    """The build folder."""
    path(command, "--out", "DIR", OUT)


def add_deny_float(command: CommandParser) -> None:
    """What models that are exported have to meet."""
    what = "fail if a model exported in int8 computes with floats"
    flag(command, "--deny-float", what)


def add_locking(command: CommandParser) -> None:
    """Lock options of commands that build."""
    add_lock_file(command)
    lock = command.add_mutually_exclusive_group()
    flag(lock, "--no-lock", "neither read nor write a lock")
    flag(lock, "--locked", "fail if the lock would change")
    flag(lock, "--frozen", "like --locked, and compare the inputs first")


def add_lock_file(command: CommandParser) -> None:
    """The lock, where it is not beside the profile."""
    what = "the lock; default: beside the profile"
    path(command, "--lock", "FILE", what, dest="lock_file")
