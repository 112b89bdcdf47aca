"""The command line: arguments to one call, its result to an exit code."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from orchestrator.arguments import parser
from orchestrator.console import Console
from orchestrator.errors import (
    ExitCode,
    OrchestratorError,
)
from orchestrator.shell.signals import Ended

if TYPE_CHECKING:
    from collections.abc import Sequence

ISSUES = "https://github.com/orchestrator-dev/orchestrator/issues"


def run(arguments: Sequence[str]) -> int:
    """Carry out a command line; the result is the exit code."""
    console = Console(json="--json" in arguments)
    try:
        args = parser().parse_args(arguments)
        name = args.command.replace("-", "_")
        module = import_module(f"orchestrator.commands.{name}")
        code: ExitCode = module.run(args, console)
        sys.stdout.flush()
    except OrchestratorError as error:
        console.failure(error)
        return int(error.exit_code)
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep Python from complaining.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.OK)
    except OSError as error:
        console.refusal(error)
        return int(ExitCode.USAGE)
    except (KeyboardInterrupt, Ended) as ended:
        number = ended.number if isinstance(ended, Ended) else signal.SIGINT
        name = signal.Signals(number).name
        with suppress(OSError):  # the terminal may be gone
            sys.stderr.write(
                "interrupted\n" if name == "SIGINT" else f"ended by {name}\n"
            )
            sys.stderr.flush()
        return 128 + number
    except Exception as error:  # noqa: BLE001  # the last resort: never a traceback
        console.bug(error, ISSUES)
        return int(ExitCode.INTERNAL)
    return int(code)
