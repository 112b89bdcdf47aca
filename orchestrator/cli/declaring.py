"""What a command line may consist of, as records: options, groups of them, commands."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Option:
    """An argument of a command.

    Args:
        line: As help shows it, `-j --jobs N  compile steps at a time`: names, value, two
            spaces, and what it is for. A name alone is a flag. `--by {op,kernel}` takes
            one of these, as does `--svg KIND{flash,graph}`, `--input FILE...` may be
            repeated. An argument without dashes has its place as a name, and `?`, `*`
            or `+` for the number of its values: `models MODEL*`.
        read: Makes the value of a text; None for what the table has for such a value.
        choices: What the value may be, if `line` does not say it.
        default: The value without it; a flag sets the opposite.
        place: Its name in the namespace; "" for the first long name.
        required: It must be given.
        needs_profile: It requires PROFILE, without which the command works on a workspace.
        writes: It names a file for results, with one of these suffixes.
    """

    line: str
    read: Callable[[str], Any] | None = None
    choices: tuple[str, ...] = ()
    default: Any = None
    place: str = ""
    required: bool = False
    needs_profile: bool = False
    writes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What help says it is for; without, help does not show it."""
        return self.line.partition("  ")[2]

    @property
    def names(self) -> list[str]:
        """What is typed for it; its place if it has no dashes."""
        words = self.line.partition("  ")[0].split()
        return [word for word in words if word.startswith("-")] or words[:1]

    @property
    def value(self) -> str:
        """What help shows for its value, and how many there may be; "" for a flag."""
        return self.line.partition("  ")[0].removeprefix(" ".join(self.names)).strip()

    @property
    def long_name(self) -> str:
        """Its first name with two dashes; its place if it has none."""
        return next((name for name in self.names if name.startswith("--")), self.names[0])

    @property
    def key(self) -> str:
        """Its name in the namespace."""
        return self.place or self.long_name.removeprefix("--").replace("-", "_")

    def is_given(self, args: Namespace) -> bool:
        """Whether a command line has it, with a value that is not empty."""
        return bool(getattr(args, self.key))


@dataclass(frozen=True, slots=True)
class Group:
    """Options below a title of their own; without one, at most one of them is given."""

    options: tuple[Option, ...]
    title: str = ""
    text: str | None = None


Arguments: TypeAlias = tuple[Option | Group, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """A command: what it does, and its arguments in the order of help."""

    text: str
    arguments: Arguments

    @property
    def options(self) -> Iterator[Option]:
        """Its arguments without groups."""
        for argument in self.arguments:
            yield from argument.options if isinstance(argument, Group) else (argument,)
