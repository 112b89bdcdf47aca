"""Killed builds and workers, full disks: nothing is lost, and the same bytes.

    pytest tests/integration/test_workspace_kills.py --kills 1200

kills 300 builds of a workspace and fills 100 disks.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from orchestrator.shell.object_store import ObjectStore
from orchestrator.shell.publish import published_files
from orchestrator.shell.settings import OBJECTS as VARIABLE
from tests.conftest import CORPUS
from tests.integration.workspace import ROOT
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

SEED = 20261126
NAMES = ("one", "two", "six")
_Result = tuple["Mapping[str, bytes]", bytes]


def _write(folder: Path) -> None:
    folder.mkdir()
    (folder / "orchestrator.toml").write_text(
        'schema = 1\n[workspace]\nprofiles = ["p-*.toml"]\n'
        '[defaults.target]\ncpu = "cortex-m4"\ntoolchain = "gnu"\n'
    )
    shutil.copy(CORPUS / "add_mul" / "model.pte", folder / "model.pte")
    for name in NAMES:
        (folder / f"p-{name}.toml").write_text(
            f'schema = 1\nname = "{name}"\n[[models]]\nname = "model"\npath = "model.pte"\n'
        )


def _start(
    folder: Path, *options: str, module: str = "orchestrator", **variables: str
) -> subprocess.Popen[str]:
    words = (*options,) if options else ("build", "-j2")
    return subprocess.Popen(
        [sys.executable, "-m", module, *words],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "ORCHESTRATOR_CACHE": str(folder / "cache"),
            **variables,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _build(folder: Path, **variables: str) -> None:
    process = _start(folder, **variables)
    said, _ = process.communicate()
    assert process.returncode == 0, said


def _results(folder: Path) -> dict[str, _Result]:
    """Published files and lock of each product; nothing for what is not there."""
    found = {}
    for name in NAMES:
        files: Mapping[str, bytes] = {}
        lock = b""
        with suppress(OSError):
            # But for the one that has the folder's path in it.
            every = published_files(folder / "build" / name)
            files = {n: d for n, d in every.items() if n != "compile_commands.json"}
        with suppress(OSError):
            lock = (folder / f"p-{name}.lock").read_bytes()
        found[name] = files, lock
    return found


def _check_whole(folder: Path, expected: dict[str, _Result]) -> None:
    """Check that a product is as it is to be, or is not there."""
    for name, (files, lock) in _results(folder).items():
        assert files in ({}, expected[name][0]), name
        assert lock in (b"", expected[name][1]), name


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, _Result]:
    """What builds give that share nothing."""
    need_toolchain("cortex-m4", "gnu")
    folder = tmp_path_factory.mktemp("kills") / "w"
    _write(folder)
    _build(folder, **{VARIABLE: "off"})
    results = _results(folder)
    assert all(files and lock for files, lock in results.values())
    return results


def test_whatever_is_killed_the_next_build_is_right(
    expected: dict[str, _Result], tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    folder = tmp_path / "w"
    _write(folder)
    store = ObjectStore(folder / "cache" / "objects")
    begin = time.perf_counter()
    _build(folder)
    seconds = time.perf_counter() - begin
    moments = random.Random(SEED)  # noqa: S311  # to be repeated, not to be secret
    killed = number = 0
    while killed < pytestconfig.getoption("--kills") // 4:
        shutil.rmtree(folder / "build", ignore_errors=True)
        if number % 2:
            shutil.rmtree(store.folder, ignore_errors=True)
        process = _start(folder)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=moments.uniform(0.05, seconds))
        if process.poll() is None:
            killed += 1
            # All of it at once, or the one process that the others belong to.
            if number % 3:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.communicate()
        _check_whole(folder, expected)
        assert store.damaged() == []
        if number % 4 == 3:
            _build(folder)
            assert _results(folder) == expected
        number += 1
    _build(folder)
    assert _results(folder) == expected
    assert store.damaged() == []


def test_whatever_disk_is_full_the_next_build_is_right(
    expected: dict[str, _Result], tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Stores of some sizes, and build folders, locks and all of some others."""
    sizes = random.Random(SEED)  # noqa: S311
    for number in range(max(2, pytestconfig.getoption("--kills") // 12)):
        place = tmp_path / str(number)
        place.mkdir()
        folder = place / "w"
        is_store = bool(number % 2)
        if is_store:
            _write(folder)
            (folder / "cache").mkdir()
        small = folder / "cache" if is_store else place
        with _disk(small, sizes.randrange(50, 300 if is_store else 5000)):
            if not is_store:
                _write(folder)
            process = _start(folder)
            said, _ = process.communicate()
            assert "Traceback" not in said
            # A store that is full is no reason to fail.
            assert process.returncode == 0 or not is_store, said
            _check_whole(folder, expected)
            if not is_store:
                _resize(small)
            _build(folder)
            assert _results(folder) == expected


def test_a_scheduler_gives_what_a_killed_worker_had_to_another(
    expected: dict[str, _Result], tmp_path: Path
) -> None:
    folder = tmp_path / "w"
    _write(folder)
    with _dask(folder, "scheduler", "--port", "0") as scheduler:
        address = _said(scheduler, r"Scheduler at: +(\S+)")
        worker = ("worker", address, "--no-nanny", "--nthreads", "1")
        with _dask(folder, *worker) as first, _dask(folder, *worker) as second:
            for one in (first, second):
                _said(one, r"Registered to:")
            build = _start(folder, "build", "--scheduler", address)
            _said(build, ": built")
            first.kill()
            rest, _ = build.communicate()
    assert build.returncode == 0, rest
    assert _results(folder) == expected
    assert ObjectStore(folder / "cache" / "objects").damaged() == []


@contextmanager
def _dask(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Start a process of Dask on this machine; kill it afterwards."""
    options = ("--host", "127.0.0.1", "--no-dashboard")
    process = _start(folder, *words, *options, module="dask")
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _said(process: subprocess.Popen[str], pattern: str) -> str:
    """What a process says that matches, or the group in it; reads lines up to it."""
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if match := re.search(pattern, line):
            return match[match.re.groups]
    raise AssertionError("".join(said))


def _mount(*arguments: str) -> bool:
    """Whether it could be done."""
    program = shutil.which("mount")
    return (
        program is not None
        and (subprocess.run([program, *arguments], capture_output=True, check=False)).returncode
        == 0
    )


@contextmanager
def _disk(folder: Path, kib: int) -> Iterator[None]:
    """Mount a disk of so many KiB on a folder; skip where mounting is not allowed."""
    if not _mount("-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)):
        pytest.skip("mounting a small disk takes root")
    try:
        yield
    finally:
        subprocess.run([str(shutil.which("umount")), "-l", folder], check=True)


def _resize(folder: Path) -> None:
    assert _mount("-o", "remount,size=100m", str(folder))
