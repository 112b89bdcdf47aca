"""Standard streams that are closed, full, or that nobody reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODEL = str(ROOT / "tests" / "data" / "corpus" / "add_mul" / "model.pte")
ORCHESTRATOR = f"'{sys.executable}' -m orchestrator"
NO_SPACE = """\
error[system-error]: cannot write to stdout: no space left on device
   hint: free space where stdout goes, or leave it open
"""
CLOSED = NO_SPACE.replace("no space left on device", "bad file descriptor")
MISSING = 'error[missing-file]: there is no profile "gone.toml"'


def shell(command: str, cwd: Path) -> tuple[int, str]:
    """Exit code and stderr of a command, whose `O` is the program."""
    done = subprocess.run(
        ["/bin/bash", "-c", command.replace("O ", f"{ORCHESTRATOR} ", 1)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MODEL": MODEL},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("O inspect $MODEL >/dev/full", 2, NO_SPACE),
        ("O inspect $MODEL --json >/dev/full", 2, NO_SPACE),
        ("O --help >/dev/full", 2, NO_SPACE),
        ("O inspect $MODEL >&-", 2, CLOSED),
        ("O schema --json >&-", 2, CLOSED),
        # Data is lost, so it is an error; lost progress is not.
        ("O inspect $MODEL >/dev/null 2>&-", 0, ""),
        ("O inspect $MODEL <&- >&- 2>&-", 2, ""),
        ("O check gone.toml 2>/dev/full", 3, ""),
    ],
)
def test_a_stream_that_cannot_be_written(
    command: str, code: int, said: str, tmp_path: Path
) -> None:
    assert shell(command, tmp_path) == (code, said)


@pytest.mark.parametrize("stream", [">&-", ">/dev/full"])
def test_the_error_that_came_first_is_shown(stream: str, tmp_path: Path) -> None:
    code, said = shell(f"O check gone.toml --json {stream}", tmp_path)
    assert code == 3
    assert said.startswith(MISSING)
    assert "stdout" not in said


# The other end of the pipe is closed before anything is written.
@pytest.mark.parametrize(
    "command",
    [
        "O plumbing schema > >(exec <&-; touch closed)",
        "O check gone.toml --json > >(exec <&-; touch closed)",
        "O check gone.toml 2> >(exec <&-; touch closed)",
    ],
)
def test_a_reader_that_is_gone(command: str, tmp_path: Path) -> None:
    wait = "until [ -e closed ]; do sleep 0.01; done; exec "
    start, _, redirect = command.partition(" > " if " > " in command else " 2> ")
    mark = "2>" if " 2> " in command else ">"
    code, said = shell(f"exec {mark} {redirect}; {wait}{start}".replace("exec O ", "O "), tmp_path)
    assert (code, said) == (141, "")
