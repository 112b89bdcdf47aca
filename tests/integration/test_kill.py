"""Builds that are killed, and builds at the same time: outputs and lock stay whole."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.shell.build_folder import STORE
from orchestrator.shell.publish import published_files
from tests.integration.workspace import ROOT, write_product
from tests.tools import heed_signals, need_tool, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

SEED = 20240611


@dataclass(frozen=True)
class Result:
    """All published files, and the lock."""

    files: Mapping[str, bytes]
    lock: bytes | None


def _result(folder: Path) -> Result:
    lock = folder / "product.lock"
    return Result(published_files(folder / "out"), lock.read_bytes() if lock.exists() else None)


def _start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "orchestrator", "build", "product.toml", "--out", "out"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _build(folder: Path) -> None:
    process = _start(folder)
    said, _ = process.communicate()
    assert process.returncode == 0, said


def _choose(folder: Path, optimize: str) -> None:
    """Have the profile ask for one of two versions of all objects.

    A build may be reading the profile, so a whole new file takes its place.
    """
    profile = folder / "product.toml"
    text = re.sub(r'optimize = ".*"\n', "", profile.read_text())
    line = f'optimize = "{optimize}"\n'
    changed = folder / "changed.toml"
    changed.write_text(text.replace("[target]\n", f"[target]\n{line}"))
    changed.replace(profile)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Result], float]:
    """The working folder, the full result of each version, seconds of a build."""
    need_toolchain("host", "zig")
    folder = tmp_path_factory.mktemp("kill") / "w"
    write_product(folder, case="add_mul")
    results = {}
    seconds = []
    for optimize in ("size", "speed"):
        _choose(folder, optimize)
        start = time.perf_counter()
        _build(folder)
        seconds.append(time.perf_counter() - start)
        results[optimize] = _result(folder)
    one, two = results.values()
    changed = {name for name in one.files if one.files[name] != two.files[name]}
    assert {"firmware.elf", "libproduct.a", "report.json"} <= changed
    assert one.lock != two.lock
    return folder, results, max(seconds)


def _kill_after(process: subprocess.Popen[str], seconds: float) -> bool:
    """Kill a build, and nothing that it started; False if it had ended before."""
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return True
    return False


def _check_whole(folder: Path, results: dict[str, Result]) -> None:
    found = _result(folder)
    assert found.files in [result.files for result in results.values()]
    locks = [result.lock for result in results.values()]
    assert found.lock in locks
    out = folder / "out"
    for link in out.iterdir():
        # Every published name leads into the set that is current.
        if link.is_symlink() and link.name != "current":
            assert link.resolve().is_relative_to((out / "current").resolve())
            assert link.exists()


def test_builds_killed_at_any_moment_leave_everything_whole(
    expected: tuple[Path, dict[str, Result], float], pytestconfig: pytest.Config
) -> None:
    """`pytest tests/integration/test_kill.py -k any_moment --kills 300` kills more."""
    folder, results, seconds = expected
    kills = pytestconfig.getoption("--kills")
    moments = random.Random(SEED)  # noqa: S311  # to be repeated, not to be secret
    killed = number = 0
    while killed < kills:
        optimize = ("size", "speed")[number % 2]
        _choose(folder, optimize)
        moment = moments.uniform(0.05, seconds)
        if _kill_after(_start(folder), moment):
            killed += 1
        else:
            # Builds are faster than they were before.
            seconds = moment
        _check_whole(folder, results)
        if number % 3 == 2:
            _build(folder)
            assert _result(folder) == results[optimize]
        number += 1
    for optimize in ("size", "speed"):
        _choose(folder, optimize)
        _build(folder)
        assert _result(folder) == results[optimize]
    assert len(list((folder / "out" / STORE).iterdir())) == 1
    assert {p.name for p in folder.iterdir()} == {
        *("product.toml", "product.lock", "model.pte", "out")
    }


def test_a_first_build_that_is_killed_leaves_nothing_or_everything(
    expected: tuple[Path, dict[str, Result], float], tmp_path: Path
) -> None:
    _, results, seconds = expected
    whole = results["size"]
    moments = random.Random(SEED)  # noqa: S311
    for number in range(3):
        folder = tmp_path / str(number)
        write_product(folder, case="add_mul")
        _choose(folder, "size")
        _kill_after(_start(folder), moments.uniform(0.1, seconds))
        found = _result(folder)
        assert set(found.files) in (set(), set(whole.files))
        assert found.lock in (None, whole.lock)
        _build(folder)
        done = _result(folder)
        assert done.lock == whole.lock
        # One file names the folder, which is another one.
        assert set(done.files) == set(whole.files)
        differing = {n for n in whole.files if done.files[n] != whole.files[n]}
        assert differing == {"compile_commands.json"}


STEPS = {"publish": "current", "lock": "product.lock", "notes": ""}
"""By moment: the name that is about to be replaced."""


@pytest.mark.parametrize(
    "moment", [pytest.param(m, marks=[pytest.mark.nightly] * (m == "notes")) for m in STEPS]
)
def test_a_build_killed_between_outputs_and_lock_is_completed_by_the_next(
    expected: tuple[Path, dict[str, Result], float], moment: str
) -> None:
    """The moments that random delays seldom hit."""
    folder, results, _ = expected
    _choose(folder, "size")
    _build(folder)
    _choose(folder, "speed")
    # The process ends itself just before the step.
    code = (
        "import os, signal, sys\n"
        "from orchestrator.cli.main import run\n"
        "from orchestrator.build import product\n"
        "from orchestrator.shell.files import Files\n"
        "def kill(): os.kill(os.getpid(), signal.SIGKILL)\n"
        "rename = Files.rename\n"
        "def killing(disk, old, new):\n"
        f"    if new.name == {STEPS[moment]!r}: kill()\n"
        "    rename(disk, old, new)\n"
        "Files.rename = killing\n"
        f"if {moment == 'notes'}: product.remember = lambda *_: kill()\n"
        "sys.exit(run(['build', 'product.toml', '--out', 'out']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    _check_whole(folder, results)
    found = _result(folder)
    files, lock = {
        "publish": ("size", "size"),
        "lock": ("speed", "size"),
        "notes": ("speed", "speed"),
    }[moment]
    assert found == Result(results[files].files, results[lock].lock)
    # Back to the version whose notes are still there: they must not be believed.
    _choose(folder, "size")
    _build(folder)
    assert _result(folder) == results["size"]
    _choose(folder, "speed")
    _build(folder)
    assert _result(folder) == results["speed"]


def test_eight_builds_at_once_in_one_folder(
    expected: tuple[Path, dict[str, Result], float], tmp_path: Path
) -> None:
    _, results, _ = expected
    write_product(tmp_path / "w", case="add_mul")
    _choose(tmp_path / "w", "speed")
    processes = [_start(tmp_path / "w") for _ in range(8)]
    said = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 8, said
    # One compiled, the others waited and found everything done.
    assert sorted("up to date" in text for text in said) == [False, *[True] * 7]
    assert _result(tmp_path / "w").lock == results["speed"].lock


def test_a_waiting_build_sees_what_changed_while_it_waited(
    expected: tuple[Path, dict[str, Result], float], tmp_path: Path
) -> None:
    _, results, _ = expected
    write_product(tmp_path / "w", case="add_mul")
    _choose(tmp_path / "w", "size")
    first = _start(tmp_path / "w")
    time.sleep(0.5)
    _choose(tmp_path / "w", "speed")
    second = _start(tmp_path / "w")
    said = [process.communicate()[0] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), said
    assert _result(tmp_path / "w").lock == results["speed"].lock


COMPILER = """\
#!/bin/sh
case " $* " in
  *" -c "*) : > "{notes}/$$"; sleep 600;;
esac
exec {compiler} "$@"
"""
"""A compiler that never ends, once it compiles, and tells its process."""


@pytest.fixture(scope="module")
def gnu_product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a build, whose profile asks for another one."""
    need_toolchain("host", "gnu")
    folder = tmp_path_factory.mktemp("signals") / "w"
    write_product(folder, case="add_mul", toolchain="gnu")
    _build(folder)
    _choose(folder, "speed")
    return folder


def _alive(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def _uses(folder: Path) -> list[str]:
    """Processes that are at work in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").resolve().is_relative_to(folder):
                state = (process / "stat").read_text().split()
                found += [" ".join(state[:3])] if state[2] != "Z" else []
    return found


def _within(seconds: float, happens: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not happens():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
def test_a_signal_ends_everything_a_build_started(
    number: str, gnu_product: Path, tmp_path: Path
) -> None:
    """Outputs stay, and nobody works in the folder any more."""
    folder = gnu_product
    before = _result(folder)
    notes, programs = tmp_path / "notes", tmp_path / "bin"
    for made in (notes, programs):
        made.mkdir()
    wrapper = programs / "g++"
    wrapper.write_text(COMPILER.format(notes=notes, compiler=need_tool("g++")))
    wrapper.chmod(0o755)

    process = subprocess.Popen(
        [sys.executable, "-m", "orchestrator", "build", "product.toml", "--out", "out"],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        },
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_signals,  # noqa: PLW1509  # there are no threads
    )
    assert _within(60, lambda: bool(list(notes.iterdir())))
    process.send_signal(signal.Signals[number])
    _, said = process.communicate(timeout=60)
    if number == "SIGKILL":
        assert process.returncode == -signal.SIGKILL
        # The system tells ninja, and ninja its compilers.
        assert _within(10, lambda: not _uses(folder))
    else:
        assert process.returncode == 128 + signal.Signals[number]
        expected = "interrupted" if number == "SIGINT" else f"ended by {number}"
        assert said.endswith(f"{expected}\n")
        assert _uses(folder) == []
    assert not any(_alive(int(path.name)) for path in notes.iterdir())
    assert _result(folder) == before
    if number == "SIGKILL":
        _build(folder)
        assert _result(folder).lock != before.lock
