"""The command line: run the command that the arguments name."""

from __future__ import annotations

import signal
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from orchestrator.cli.arguments import parser
from orchestrator.cli.console import Console
from orchestrator.cli.manual import PLUMBING, RENAMED
from orchestrator.cli.outputs import check_outputs
from orchestrator.errors import ExitCode, OrchestratorError
from orchestrator.shell.signals import Ended

if TYPE_CHECKING:
    from orchestrator.build import Shell

ISSUES = "https://github.com/orchestrator-dev/orchestrator/issues"


def run(arguments: Sequence[str], *, shell: Shell | None = None) -> int:
    """Run a command line and return its exit code.

    Args:
        arguments: Its arguments, without the name of the program.
        shell: Tools to build with; None for those of this machine.
    """
    # Before parsing: errors of the command line are JSON too.
    console = Console(json="--json" in arguments, shell=shell)
    try:
        arguments, note = _renamed(arguments)
        args = _parsed(arguments, console)
        # Before any work: a build of minutes should not end at a file that it must not
        # write.
        check_outputs(args)
        console.settings(color=args.color, quiet=args.quiet, verbose=args.verbose)
        if note and not console.json:
            console.status(note)
        name = args.command.replace("-", "_")
        module = import_module(f"orchestrator.cli.commands.{name}")
        code: ExitCode = module.run(args, console)
    except OrchestratorError as error:
        console.failure(error)
        return int(error.exit_code)
    except BrokenPipeError:
        raise  # the reader of our output closed it, as `head` does: no error
    except OSError as error:
        console.refusal(error)
        return int(ExitCode.USAGE)
    except (KeyboardInterrupt, Ended) as ended:
        number = ended.number if isinstance(ended, Ended) else signal.SIGINT
        name = signal.Signals(number).name
        with suppress(OSError):  # the terminal may be gone
            console.status("interrupted" if name == "SIGINT" else f"ended by {name}")
        # As shells count programs that a signal ended: 130 for SIGINT, 143 for SIGTERM.
        return 128 + number
    except Exception as error:  # noqa: BLE001  # the last resort: never a traceback
        console.bug(error, ISSUES)
        return int(ExitCode.INTERNAL)
    return int(code)


def _renamed(arguments: Sequence[str]) -> tuple[Sequence[str], str]:
    """Arguments with the command by its name of today, and a note if it had another."""
    if arguments[:1] == ["help"]:
        wanted = " ".join(arguments[1:]).split()  # of two words in quotes as well
        arguments = [*([] if wanted == ["help"] else wanted), "--help"]
    # The command is the first word that is no option; `--color` has a value.
    for place, word in enumerate(arguments):
        if now := RENAMED.get(word):
            note = f"note: `orchestrator {word}` is now `orchestrator {now}`"
            return [*arguments[:place], *now.split(), *arguments[place + 1 :]], note
        if not word.startswith("-") and arguments[place - 1] != "--color":
            break
    return arguments, ""


def _parsed(arguments: Sequence[str], console: Console) -> Namespace:
    if list(arguments) in ([], [PLUMBING]):
        arguments = [*arguments, "--help"]
    try:
        return parser().parse_args(arguments)
    except SystemExit:
        console.put("")  # flushes what --help or --version printed
        raise
