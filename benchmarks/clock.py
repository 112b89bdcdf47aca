"""Times and peak memory of commands, and of calls in this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.table import NotMeasuredError, short

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parent.parent
"""Folder that holds the package `orchestrator`."""

_LAUNCHER = Path(__file__).parent / "launcher.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command to measure; programs as paths.

    Args:
        words: Program and arguments.
        before: Command that is run before each run of it, and not measured.
    """

    words: Sequence[str]
    before: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Medians over the repetitions of one command.

    Args:
        cpu_s: Seconds of processor time, user and system, of the process and its
            children. Other work on the machine hardly changes it.
        wall_s: Seconds on the clock.
        peak_bytes: Largest resident memory of any one process of it.
    """

    cpu_s: float
    wall_s: float
    peak_bytes: int


def cost_of(
    commands: Sequence[Command], *, folder: Path, repetitions: int, package_root: Path = ROOT
) -> list[Cost]:
    """What each command costs.

    The commands take turns, so that what else the machine does hits all of them.

    Args:
        commands: What to run.
        folder: To run them in.
        repetitions: How often each runs, after one run that warms the caches.
        package_root: Where Python finds `orchestrator`.

    Raises:
        NotMeasuredError: A command failed.
    """
    request = {
        "commands": [asdict(command) for command in commands],
        "repetitions": repetitions,
        "folder": str(folder),
        "environment": environment(package_root),
    }
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(_LAUNCHER)],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotMeasuredError(f"a command failed: {short(done.stderr)}")
    return [
        Cost(
            cpu_s=median(r["cpu_s"] for r in runs),
            wall_s=median(r["wall_s"] for r in runs),
            peak_bytes=int(median(r["peak_bytes"] for r in runs)),
        )
        for runs in json.loads(done.stdout)
    ]


def environment(package_root: Path = ROOT) -> dict[str, str]:
    """The environment of measured commands: this one, with the package in reach.

    Python finds compiled modules as it does for installed programs, but in a folder of
    ours, whatever this environment says about writing them.
    """
    left_out = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
    return {
        **{name: text for name, text in os.environ.items() if name not in left_out},
        "PYTHONPATH": str(package_root),
        "PYTHONPYCACHEPREFIX": _bytecode_folder().name,
    }


@cache
def _bytecode_folder() -> tempfile.TemporaryDirectory[str]:
    """Removed when this process ends."""
    return tempfile.TemporaryDirectory(prefix="bench-bytecode-")


def orchestrator(*arguments: str) -> list[str]:
    """The command `orchestrator ARGUMENTS`, as the installed script would run it."""
    script = "import sys; from orchestrator.__main__ import main; sys.exit(main())"
    return [sys.executable, "-c", script, *arguments]


def cpu_seconds(call: Callable[[], object]) -> float:
    """Processor time of one call in this process."""
    start = time.process_time()
    call()
    return time.process_time() - start
