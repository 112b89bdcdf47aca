"""Processes: whatever becomes of them is an answer, never an exception."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.shell.process import NOT_STARTED, TIMED_OUT, Finished, run, started
from tests.tools import heed_signals

ROOT = Path(__file__).parents[3]


def _python(code: str, folder: Path, timeout_s: float = 60.0) -> Finished:
    command = (sys.executable, "-c", code)
    return run(command, cwd=folder, env={"WHO": "me"}, timeout_s=timeout_s)


def test_output_status_folder_and_environment(tmp_path: Path) -> None:
    code = (
        "import os, sys; print(os.getcwd(), os.environ['WHO'], sys.stdin.read() == '');"
        "sys.stderr.write('talk'); sys.exit(3)"
    )
    done = _python(code, tmp_path)
    assert done == Finished(status=3, stdout=f"{tmp_path.resolve()} me True\n", stderr="talk")


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


# What ends with us


def _gone(number: int) -> bool:
    """Whether a process has ended, within some seconds."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{number}/stat").read_text().split()[2] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def _number(file: Path) -> int:
    """What a process writes of itself once it has started."""
    end = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    return int(file.read_text())


NOTE = (
    "import os, sys, time; from pathlib import Path;"
    "note = lambda name: (Path(name + '.tmp').write_text(str(os.getpid())),"
    " os.replace(name + '.tmp', name));"
)


def test_what_a_process_started_ends_with_it_when_it_takes_too_long(tmp_path: Path) -> None:
    """It would keep its pipes open, and us waiting."""
    code = f"{NOTE} os.fork() or note('child'); time.sleep(90)"
    start = time.monotonic()
    assert _python(code, tmp_path, timeout_s=2.0).status == TIMED_OUT
    assert time.monotonic() - start < 60
    assert _gone(_number(tmp_path / "child"))


def test_what_a_process_started_ends_with_it_when_we_are_interrupted(tmp_path: Path) -> None:
    code = f"{NOTE} os.fork() or note('child'); time.sleep(90)"
    command = (sys.executable, "-c", code)
    children = []

    def interrupted() -> None:
        with started(command, cwd=tmp_path, env={}) as process:
            children.append(_number(tmp_path / "child"))
            assert os.getpgid(children[0]) == process.pid != os.getpgid(0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert _gone(children[0])


def test_a_process_that_does_not_end_when_asked_is_made_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.shell.process._GRACE_S", 0.1)
    ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    command = (sys.executable, "-c", f"{ignore} {NOTE} note('me'); time.sleep(90)")
    with started(command, cwd=tmp_path, env={}, ask_first=True) as process:
        _number(tmp_path / "me")
    assert process.returncode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children")
@pytest.mark.parametrize("ask_first", [False, True])
def test_a_process_ends_when_we_are_killed(tmp_path: Path, ask_first: bool) -> None:  # noqa: FBT001
    child = f"{NOTE} note('child'); time.sleep(90)"
    parent = (
        "from orchestrator.shell.process import started; import sys, time, pathlib\n"
        f"with started((sys.executable, '-c', {child!r}), cwd=pathlib.Path.cwd(),"
        f" env={{}}, ask_first={ask_first}): time.sleep(90)"
    )
    with subprocess.Popen(
        (sys.executable, "-c", parent),
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        preexec_fn=heed_signals,  # noqa: PLW1509  # there are no threads
    ) as process:
        number = _number(tmp_path / "child")
        process.kill()
    assert _gone(number)


def test_there_is_no_other_way_to_start_a_process() -> None:
    """One that other modules started could outlive us."""
    package = ROOT / "orchestrator"
    ways = re.compile(r"subprocess\.(run|Popen|check_|call)|os\.(system|exec|spawn|fork)")
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if ways.search(path.read_text())
    }
    assert found == {"shell/process.py"}
