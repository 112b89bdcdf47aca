"""The parser of the command line, made from the table of commands, and its errors."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

import orchestrator
from orchestrator.cli.command_table import COMMANDS, COMMON, READERS
from orchestrator.cli.declaring import Arguments, Option
from orchestrator.cli.manual import GROUP_OF, GROUPS, PLUMBING, RENAMED, SYNONYMS, epilog
from orchestrator.errors import UsageError, did_you_mean, nearest


class _CMakeFolder(argparse.Action):
    """Prints the folder of the CMake package; argparse would wrap a long path."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from orchestrator.shell.sources import native_root  # noqa: PLC0415

        sys.stdout.write(f"{native_root() / 'cmake'}\n")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    # No abbreviated options: a new option could break scripts that use them.
    top = CommandParser(
        prog="orchestrator",
        usage="orchestrator [OPTIONS] COMMAND ...",
        description=_description(),
        epilog="`orchestrator help COMMAND` shows the arguments of a command, with\n"
        "examples and exit codes.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument(
        "--version", action="version", version=f"orchestrator {orchestrator.__version__}"
    )
    what = "print the folder of the CMake package and exit"
    top.add_argument("--cmakedir", action=_CMakeFolder, nargs=0, help=what)
    _add(top, COMMON)
    # Former names (RENAMED in `manual`) are no commands here: `main` replaces them
    # before it parses, so that help and completion show today's names alone.
    commands = top.add_subparsers(
        dest="command",
        metavar="COMMAND",
        required=True,
        parser_class=CommandParser,
        prog="orchestrator",
        help=argparse.SUPPRESS,  # the description lists them by group
    )
    plumbing = commands.add_parser(
        PLUMBING,
        help="for build systems, editors and packagers",
        description="Commands for build systems, editors and packagers.",
        allow_abbrev=False,
    )
    # A default of the command would overwrite what stands before it.
    _add(plumbing, COMMON, default=argparse.SUPPRESS)
    below = plumbing.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True
    )
    for name, command in COMMANDS.items():
        sub = (below if GROUP_OF[name] == PLUMBING else commands).add_parser(
            name,
            help=command.text,
            description=f"{command.text[0].upper()}{command.text[1:]}.",
            epilog=epilog(name),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        _add(sub, COMMON, default=argparse.SUPPRESS)
        _add(sub, command.arguments)
    return top


def _add(
    to: argparse._ActionsContainer,  # parsers and groups have no other name
    arguments: Arguments,
    **fixed: Any,  # noqa: ANN401  # argparse's own
) -> None:
    """Give a parser arguments, all with the settings that are fixed."""
    for one in arguments:
        if isinstance(one, Option):
            to.add_argument(*one.names, **{**_settings(one), **fixed})
        elif one.title:
            _add(to.add_argument_group(one.title, one.text), one.options, **fixed)
        else:
            _add(to.add_mutually_exclusive_group(), one.options, **fixed)


def _settings(option: Option) -> dict[str, Any]:
    """What argparse has to know of an option besides its names."""
    found: dict[str, Any] = {"help": option.text or argparse.SUPPRESS}
    if option.place:
        found["dest"] = option.place
    if option.required:
        found["required"] = True
    if option.default is not None:
        found["default"] = option.default
    value, choices = option.value, option.choices
    if not value and not choices and option.names[0].startswith("-"):
        return {**found, "action": "store_false" if option.default is True else "store_true"}
    value, brace, among = value.partition("{")
    if brace:
        choices = tuple(among.removesuffix("}").split(","))
    # An option that may be repeated. Without a default of its own argparse gives None,
    # and commands would have to tell it from an empty list.
    if value.endswith("..."):
        found |= {"action": "append"} if option.required else {"action": "append", "default": []}
        value = value.removesuffix("...")
    if value.endswith(("?", "*", "+")):
        value, found["nargs"] = value[:-1], value[-1]
    read = option.read or READERS.get(value)
    return {**found, "metavar": value or None, "choices": choices or None, "type": read}


def _description() -> str:
    """What Orchestrator is, and every command by group with its text."""
    lines = [(orchestrator.__doc__ or "").strip()]
    for title, names in GROUPS.items():
        below = {PLUMBING: ", ".join(names)}
        shown = below if title == PLUMBING else {name: COMMANDS[name].text for name in names}
        lines += ["", f"{title}:", *(f"  {name:<12}{text}" for name, text in shown.items())]
    return "\n".join(lines)


class CommandParser(argparse.ArgumentParser):
    """Reports usage errors like all other errors."""

    _given: Sequence[str] = ()

    def parse_args(  # type: ignore[override]  # argparse has overloads for namespaces
        self, args: Sequence[str], namespace: None = None
    ) -> argparse.Namespace:
        """All arguments; what is left over is an error with its remedy."""
        # argparse reports all arguments that are left over with the usage of the top:
        # the hint needs the command.
        found, rest = self.parse_known_args(args, namespace)
        if rest:
            raise UsageError.wrong(
                f"unrecognized arguments: {' '.join(rest)}", self._place(found.command, rest[0])
            )
        return found

    def parse_known_args(  # type: ignore[override]  # argparse has overloads for namespaces
        self, args: Sequence[str], namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Arguments of this command, also one of several; they are kept for messages."""
        self._given = args
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of printing and exiting."""
        # The text is argparse's, which has no other way; tests/unit/cli/test_manual.py
        # holds it.
        if "arguments are required: -" in message:
            for option in (word.partition("=")[0] for word in self._given):
                known = self._option_string_actions
                if (
                    option.startswith("--")
                    and option not in known
                    and (hint := _meant(option, known))
                ):
                    raise UsageError.wrong(f"unrecognized arguments: {option}", hint)
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
        raise UsageError.wrong(message, hint)

    def _near(self, message: str) -> str:
        """A hint for a misspelt choice, or one of another option; or ""."""
        pattern = r"(--board)?: invalid choice: '(.*?)' \(choose from (.*)\)"
        if (wrong := re.search(pattern, message)) is None:
            return ""
        is_board, word, own = wrong.groups()
        if is_board and word.endswith(".toml"):
            from orchestrator.shell.files import read_text_file  # noqa: PLC0415  # errors only

            with suppress(OSError, UnicodeDecodeError):
                if re.search(r"^\s*\[\[\s*models", read_text_file(Path(word)), re.MULTILINE):
                    return f"it is a profile: `orchestrator build {word}` builds it"
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
        if not option.startswith("-") and "--product" in known:
            return f"it takes one PROFILE; for several products: -p NAME -p {option}"
        having = [name_of(c) for c, others in options.items() if option in others]
        if option.startswith("--") and having:
            return f"{option} is an option of {', '.join(having)}"
        hint = _meant(option, known)
        return hint or f"run `{commands[name].prog} --help` to see its arguments"


def _meant(option: str, known: Iterable[str]) -> str:
    """A hint at an option that is spelt nearly so; or ""."""
    # Dashes alone would make any two options alike.
    words = {name.lstrip("-"): name for name in known}
    near = nearest(option.lstrip("-"), words)
    return f'did you mean "{words[near]}"?' if near else ""


# Characters: 17 cores and 47 boards fill a terminal, and hide the hint below.
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
    if word in RENAMED.values():
        return f"leave out the quotes: `orchestrator {word}`"
    known = (*commands_of(program), *RENAMED.values(), "help")
    return did_you_mean(word, known) or (f"run `{program.prog} --help` to see all commands")
