"""Processes: one way to run them, and what a failure looks like."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TIMED_OUT = -1000
NOT_STARTED = -1001


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A process that ended.

    Args:
        status: Its exit status; negative for a signal, TIMED_OUT, NOT_STARTED.
        stdout: What it wrote.
        stderr: What it wrote, or why it did not start.
    """

    status: int
    stdout: str
    stderr: str


def run(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
) -> Finished:
    """Run a program to its end without standard input. Never raises for its failure."""
    try:
        done = subprocess.run(  # noqa: S603  # a list of arguments, no shell
            command,
            cwd=cwd,
            env=dict(env),
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        return Finished(
            status=TIMED_OUT,
            stdout=_text(expired.stdout),
            stderr=_text(expired.stderr),
        )
    except OSError as error:
        return Finished(status=NOT_STARTED, stdout="", stderr=str(error))
    return Finished(
        status=done.returncode, stdout=_text(done.stdout), stderr=_text(done.stderr)
    )


def _text(data: bytes | str | None) -> str:
    if isinstance(data, str):
        return data
    return (data or b"").decode(errors="replace")
