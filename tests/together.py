"""What the workers of a test session share: a folder, and locks.

`pytest -n 2` runs tests in two processes, each with its own fixtures and modules. What
is compared or built across files goes through here.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp, mkstemp
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import pytest

_LONG_FIRST: Final = ("qemu", "fuzz", "integration")
"""Folders whose files take minutes: a worker that begins one last keeps all waiting."""

_LIKE_OTHERS: Final = re.compile(r"\b(cortex-m(3|7|23|33|35p|85)|rv32imafc|armv7a)\b")
"""Cores that run what the M4 or the M55 runs; rv32imac and aarch64 have tests, too."""

_TOOLCHAINS: Final = ("gnu", "zig")

_NIGHTLY: Final = Path(__file__).with_name("nightly.txt")
"""Parts of names of tests that say little more than others, with what these are."""

_FOLDER: Final = "ORCHESTRATOR_TEST_SESSION"
"""Environment variable that workers inherit: where the session's files are."""


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder of the session, before there are workers."""
    # Builds wait for the disk 30 times, for a sixth of the time of these tests. Whether they do is
    # said by tests that put their own function here.
    os.fsync = lambda fd: None  # noqa: ARG005  # its name
    if not hasattr(config, "workerinput"):
        os.environ[_FOLDER] = mkdtemp(prefix="orchestrator-tests-")
        # Products of different tests have objects in common.
        if ccache := shutil.which("ccache"):
            os.environ.setdefault("ORCHESTRATOR_COMPILER_LAUNCHER", ccache)
            cache = Path(__file__).parents[1] / "build" / "ccache"
            os.environ.setdefault("CCACHE_DIR", str(cache))


def said_by_others(tests: Collection[str]) -> set[str]:
    """Ids of tests that show little more than the same ones on other targets."""
    known, found = set(tests), set()
    lines = _NIGHTLY.read_text(encoding="utf-8").splitlines()
    parts = [f"/{line}" for line in lines if line and not line.startswith("#")]
    for name in tests:
        others = {re.sub(r"\bgnu\b", "zig", name)}
        if _LIKE_OTHERS.search(name):
            for core in ("cortex-m4", "cortex-m55"):
                here = _LIKE_OTHERS.sub(core, name)
                others |= {re.sub(r"\b(gnu|zig)\b", t, here) for t in _TOOLCHAINS}
        if not known.isdisjoint(others - {name}) or any(part in name for part in parts):
            found.add(name)
    return found


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order files by how long they take; within a folder they stay as they were.

    Tests of the night are left out, unless `-m` speaks of them or they are named. So
    is one with GCC, where the same test is there with Zig, and one on a core that has
    the instructions of another one.
    """
    tests = Path(__file__).parent
    left = said_by_others([item.nodeid for item in items])
    for item in items:
        if item.nodeid in left:
            item.add_marker("nightly")
    wanted = "nightly" in config.option.markexpr or bool(
        os.environ.get("ORCHESTRATOR_EVERY_TARGET")
    )
    if not wanted and not any("::" in argument for argument in config.args):
        items[:] = [item for item in items if "nightly" not in item.keywords]

    def rank(item: pytest.Item) -> int:
        folder = item.path.relative_to(tests).parts[0]
        return _LONG_FIRST.index(folder) if folder in _LONG_FIRST else len(_LONG_FIRST)

    items.sort(key=rank)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove it, once the workers have ended."""
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop(_FOLDER), ignore_errors=True)


def published_once(name: str, text: str) -> str:
    """What the first caller of the session published under a name.

    Args:
        name: Of a file.
        text: What is published if there is nothing yet.
    """
    folder = Path(os.environ[_FOLDER])
    handle, new = mkstemp(dir=folder)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    try:
        # Whole or not at all: another worker may read it at once.
        Path(folder / name).hardlink_to(new)
    except FileExistsError:
        return (folder / name).read_text(encoding="utf-8")
    finally:
        Path(new).unlink()
    return text


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder that all sessions of a checkout build in."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
