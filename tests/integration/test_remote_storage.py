"""ccache's remote storage: a Redis that others can write to, and the same bytes."""

from __future__ import annotations

import hashlib
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from orchestrator.shell.compile_folder import NinjaFolder
from orchestrator.shell.launcher import Launcher, compiler_launcher
from orchestrator.shell.object_store import ObjectStore
from orchestrator.shell.reporter import Reporter
from orchestrator.shell.settings import LAUNCHER as VARIABLE
from orchestrator.shell.settings import STORAGE
from orchestrator.targets.cores import TOOLCHAIN_FILE
from tests.tools import need_tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.toolchain

NINJA = b"""# as of a product
cxx = g++ -fstack-usage -O1
rule cxx
  command = $cxx -MD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
  description = compile $in
build obj/src/a.cpp.o: cxx src/a.cpp
build obj/src/b.cpp.o: cxx src/b.cpp
build obj/src/c.cpp.o: cxx src/c.cpp
"""
FILES = {
    "build.ninja": NINJA,
    TOOLCHAIN_FILE: b"gcc",
    **{f"src/{n}.cpp": b"int %b() { return '%b'; }" % (2 * (n.encode(),)) for n in "abc"},
}
KEYS = {f"obj/src/{name}.cpp.o": hashlib.sha256(name.encode()).hexdigest() for name in "abc"}


@dataclass(frozen=True)
class Listed:
    """A signed list whose objects are somewhere else."""

    digests: Mapping[str, Mapping[str, str]]

    def listed(self) -> Mapping[str, Mapping[str, str]]:
        return self.digests

    def fetch(self, keys: Iterable[str]) -> Mapping[str, dict[str, bytes]]:
        del keys
        return {}


class Redis:
    """A server on this machine, in memory only."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        words = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        self._process = subprocess.Popen(
            [need_tool("redis-server"), *words, "--dir", str(folder)], stdout=subprocess.DEVNULL
        )
        self.url = f"redis://127.0.0.1:{self.port}"
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.02)
        raise AssertionError("the server does not start")

    def ask(self, *words: str) -> bytes:
        return subprocess.run(
            [need_tool("redis-cli"), "-p", str(self.port), *words], capture_output=True, check=True
        ).stdout

    def results(self) -> list[str]:
        """Keys of compiled objects; others are of lists of headers.

        Source: `cache_entry.hpp` of ccache 4.7: magic number, version, type.
        """
        keys = self.ask("keys", "*").decode().split()
        return [key for key in sorted(keys) if self.ask("getrange", key, "3", "3") == b"\0\n"]

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    need_tool("ccache")
    need_tool("g++")
    found = Redis(tmp_path)
    try:
        yield found
    finally:
        found.stop()


@dataclass(frozen=True)
class Machine:
    """Folders of a machine: of a product, of its objects, of its ccache."""

    folder: Path

    def compile(self, storage: str, listed: Mapping[str, Mapping[str, str]]) -> str:
        """Compile everything; the result is what the compilers say."""
        store = ObjectStore(self.folder / "objects", published=Listed(listed))
        return NinjaFolder(
            path=self.folder / "w",
            jobs=1,
            reporter=Reporter(),
            folder_lock=0,
            launcher=Launcher(need_tool("ccache"), storage),
            store=store,
        ).compile(FILES, whole=("src",), keys=KEYS)

    def objects(self) -> dict[str, bytes]:
        return {name: (self.folder / "w" / name).read_bytes() for name in KEYS}


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """New machines, without end."""

    def start() -> Iterator[Machine]:
        for number in range(99):
            folder = tmp_path / str(number) / "deeper"
            folder.mkdir(parents=True)
            monkeypatch.setenv("CCACHE_DIR", str(folder / "ccache"))
            yield Machine(folder)

    return start()


def _counted(name: str) -> int:
    """One of the counters of this machine's ccache."""
    done = subprocess.run(
        [need_tool("ccache"), "--print-stats"], capture_output=True, text=True, check=True
    )
    return int(dict(line.split() for line in done.stdout.splitlines())[name])


@dataclass(frozen=True)
class Filled:
    """What a machine compiled that filled the storage, and its list."""

    objects: Mapping[str, bytes]
    listed: Mapping[str, Mapping[str, str]]


@pytest.fixture
def filled(redis: Redis, machines: Iterator[Machine]) -> Filled:
    first = next(machines)
    first.compile(redis.url, {})
    assert _counted("remote_storage_hit") == 0
    assert len(redis.results()) == len(KEYS)
    store = ObjectStore(first.folder / "objects")
    listed = {}
    for key in KEYS.values():
        outputs = store.get(key)
        assert outputs is not None
        listed[key] = {s: hashlib.sha256(d).hexdigest() for s, d in outputs.items()}
        assert {*outputs} == {".o", ".su"}
    return Filled(first.objects(), listed)


def test_what_is_listed_is_taken(filled: Filled, redis: Redis, machines: Iterator[Machine]) -> None:
    second = next(machines)
    second.compile(redis.url, filled.listed)
    assert second.objects() == filled.objects
    # A result, and the list of headers that leads to it.
    assert _counted("remote_storage_hit") >= len(KEYS)
    assert _counted("cache_miss") == 0
    # What others made does not get into the cache of the machine.
    assert _counted("local_storage_write") == 0
    assert ObjectStore(second.folder / "objects").contents().entries == len(KEYS)


def test_what_is_not_listed_is_compiled(
    filled: Filled, redis: Redis, machines: Iterator[Machine]
) -> None:
    second = next(machines)
    second.compile(f"{redis.url}|read-only", {})
    assert second.objects() == filled.objects
    assert _counted("remote_storage_hit") == 0
    assert _counted("cache_miss") == len(KEYS)


@contextmanager
def _poisoned(redis: Redis) -> Iterator[None]:
    """Each object in the place of another, all of them valid to ccache."""
    keys = redis.results()
    for key in keys:
        redis.ask("rename", key, f"old:{key}")
    for key, other in zip(keys, keys[1:] + keys[:1], strict=True):
        redis.ask("rename", f"old:{other}", key)
    yield


@pytest.mark.parametrize("more", ["", "|read-only"])
def test_swapped_objects_are_compiled(
    more: str, filled: Filled, redis: Redis, machines: Iterator[Machine]
) -> None:
    with _poisoned(redis):
        second = next(machines)
        second.compile(redis.url + more, filled.listed)
        assert _counted("remote_storage_hit") >= len(KEYS)  # ccache believed it
        assert second.objects() == filled.objects
    third = next(machines)
    third.compile(f"{redis.url}|read-only", filled.listed)
    assert third.objects() == filled.objects
    # They are mended, unless that is not allowed.
    assert (_counted("cache_miss") == 0) is (not more)


def test_a_killed_build_leaves_no_object_that_was_not_compared(
    filled: Filled, redis: Redis, machines: Iterator[Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    second = next(machines)

    def killed(*_: object) -> dict[str, bytes]:
        raise KeyboardInterrupt

    with _poisoned(redis), monkeypatch.context() as patch:
        patch.setattr(NinjaFolder, "_outputs", killed)
        with pytest.raises(KeyboardInterrupt):
            second.compile(redis.url, filled.listed)
        assert second.objects() != filled.objects
    # Now without the storage.
    second.compile("", {})
    assert second.objects() == filled.objects


def test_damaged_entries_and_a_server_that_is_gone(
    filled: Filled, redis: Redis, machines: Iterator[Machine]
) -> None:
    for key in redis.ask("keys", "*").decode().split():
        redis.ask("setrange", key, "30", "damaged")
    second = next(machines)
    second.compile(redis.url, filled.listed)
    assert second.objects() == filled.objects
    redis.stop()
    third = next(machines)
    third.compile(redis.url, filled.listed)
    assert third.objects() == filled.objects


def test_settings_of_the_user_name_no_storage(redis: Redis, machines: Iterator[Machine]) -> None:
    first = next(machines)
    (first.folder / "ccache").mkdir()
    (first.folder / "ccache" / "ccache.conf").write_text(f"remote_storage = {redis.url}\n")
    first.compile("", {})
    assert redis.results() == []


def test_the_storage_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    ccache = need_tool("ccache")
    monkeypatch.setenv(VARIABLE, "ccache")
    monkeypatch.delenv(STORAGE, raising=False)
    assert compiler_launcher() == Launcher(str(shutil.which(ccache)))
    monkeypatch.setenv(STORAGE, "redis://cache|read-only")
    launcher = compiler_launcher()
    assert launcher is not None
    assert launcher.storage == "redis://cache|read-only"
