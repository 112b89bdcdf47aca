"""Processes: whatever becomes of them is an answer, never an exception."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from orchestrator.shell.process import NOT_STARTED, TIMED_OUT, Finished, run

if TYPE_CHECKING:
    from pathlib import Path


def _python(code: str, folder: Path, timeout_s: float = 60.0) -> Finished:
    command = (sys.executable, "-c", code)
    return run(command, cwd=folder, env={"WHO": "me"}, timeout_s=timeout_s)


def test_output_status_folder_and_environment(tmp_path: Path) -> None:
    code = (
        "import os, sys; print(os.getcwd(), os.environ['WHO'], sys.stdin.read() == '');"
        "sys.stderr.write('talk'); sys.exit(3)"
    )
    done = _python(code, tmp_path)
    assert done == Finished(
        status=3, stdout=f"{tmp_path.resolve()} me True\n", stderr="talk"
    )


def test_output_need_not_be_text(tmp_path: Path) -> None:
    done = _python("import os; os.write(1, b'a\\xff')", tmp_path)
    assert done == Finished(status=0, stdout="a�", stderr="")


def test_a_signal_is_a_negative_status(tmp_path: Path) -> None:
    assert _python("import os; os.kill(os.getpid(), 9)", tmp_path).status == -9


def test_a_process_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    code = "import os, time; os.write(1, b'before'); time.sleep(60)"
    done = _python(code, tmp_path, timeout_s=1.0)
    assert done == Finished(status=TIMED_OUT, stdout="before", stderr="")


def test_a_program_that_is_missing_does_not_start(tmp_path: Path) -> None:
    done = run(("./missing",), cwd=tmp_path, env={}, timeout_s=1)
    assert done.status == NOT_STARTED
    assert "No such file or directory" in done.stderr


def test_a_file_that_is_no_program_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"\x7fELF, but not really")
    (tmp_path / "text").chmod(0o755)
    done = run(("./text",), cwd=tmp_path, env={}, timeout_s=1)
    assert done.status == NOT_STARTED
    assert "Exec format error" in done.stderr


def test_a_missing_folder_does_not_start(tmp_path: Path) -> None:
    done = run((sys.executable,), cwd=tmp_path / "missing", env={}, timeout_s=1)
    assert done.status == NOT_STARTED
