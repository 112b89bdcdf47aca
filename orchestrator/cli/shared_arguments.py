"""Arguments that several commands have, and how errors in them are reported."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from orchestrator.cli.manual import RENAMED, SYNONYMS
from orchestrator.core.spelling import parse_size
from orchestrator.errors import UsageError, did_you_mean, nearest

if TYPE_CHECKING:
    from orchestrator.evaluation.fit import Quantization

    Arguments: TypeAlias = argparse._ActionsContainer  # noqa: SLF001  # no other name


# Parse and check the values of options.

_Reader: TypeAlias = Callable[[str], int]


def finite_number(text: str) -> float:
    """A number from 0 on."""
    with suppress(ValueError):
        if 0 <= (number := float(text)) < float("inf"):
            return number
    raise argparse.ArgumentTypeError(f"{text} is not a finite number of at least 0")


def _whole(first: int, last: int, problem: str = "", *, base: int = 10) -> _Reader:
    """What reads a whole number within bounds."""
    expected = problem or f"a number from {first} to {last}"

    def read(text: str) -> int:
        with suppress(ValueError):
            if first <= (number := int(text, base)) <= last:
                return number
        raise argparse.ArgumentTypeError(f"{text} is not {expected}")

    return read


_MOST_JOBS = 1000
_MOST_DIGITS = 16
_MOST_ZERO_POINT = 1 << 15
_MOST_BYTES = 1 << 48

job_count = _whole(1, _MOST_JOBS)
port_number = _whole(1, 65_535, "a port from 1 to 65535")
# The device reports an index in 32 bits.
instruction_index = _whole(0, (1 << 32) - 1, "the index of an instruction", base=0)
byte_count = _whole(0, _MOST_BYTES, f"a number of bytes from 0 to {_MOST_BYTES}")
count = _whole(0, 1_000_000)


def memory_size(text: str) -> int:
    """Bytes of a size such as `256 MiB`."""
    if (size := parse_size(text)) is not None:
        return size
    raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 256 MiB")


def sample_range(text: str) -> tuple[int, int | None]:
    """`BEGIN:END`, either of which may be left out; a number alone is the end."""
    begin, colon, end = text.rpartition(":")
    if not colon:
        begin, end = "", text
    numbers = [_index(part) if part else None for part in (begin, end)]
    first, last = numbers[0] or 0, numbers[1]
    if not text.strip(":") or (last is not None and last <= first):
        raise argparse.ArgumentTypeError(
            f"{text} is not a part of the samples, such as 100:200, 100: or :100"
        )
    return first, last


def _index(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < _MOST_DIGITS:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text} is not the number of a sample")


def names(text: str) -> tuple[str, ...]:
    """Names between commas."""
    found = tuple(name.strip() for name in text.split(","))
    if all(found):
        return found
    raise argparse.ArgumentTypeError(f"{text} has an empty name")


def pixel_range(text: str) -> tuple[float, float]:
    """What black and white become."""
    with suppress(ValueError):
        low, high = map(float, text.split(","))
        if abs(low) < float("inf") and abs(high) < float("inf") and low != high:
            return low, high
    raise argparse.ArgumentTypeError(f"{text} is not two numbers such as 0,255")


def quantization(text: str) -> Quantization:
    """Scale and zero point."""
    from orchestrator.evaluation.fit import Quantization  # noqa: PLC0415  # numpy

    scale, _, zero_point = text.partition(",")
    with suppress(ValueError):
        found = Quantization(scale=float(scale), zero_point=int(zero_point))
        if 0 < found.scale < float("inf") and abs(found.zero_point) <= _MOST_ZERO_POINT:
            return found
    raise argparse.ArgumentTypeError(
        f"{text} is not a scale above 0 and a zero point, such as 0.0625,-128"
    )


def prim_op_count(text: str) -> int | str:
    """A number of prim ops, or `listed`."""
    return text if text == "listed" else count(text)


def shard(text: str) -> tuple[int, int]:
    """`1/4`: part 1 of 4."""
    number, slash, parts = text.partition("/")
    is_number = slash and number.isdecimal() and parts.isdecimal()
    if is_number and 1 <= int(number) <= int(parts) <= _MOST_JOBS:
        return int(number), int(parts)
    raise argparse.ArgumentTypeError(f"{text} is not a part such as 1/4: the first of four")


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
