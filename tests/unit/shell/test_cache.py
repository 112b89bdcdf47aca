"""Digests of programs, remembered by path and state of the file."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from orchestrator.shell import cache
from orchestrator.shell.cache import cache_folder, file_digest, program_digest
from orchestrator.shell.stamp import state_of


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "programs.json"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"ORCHESTRATOR_CACHE": "/o", "XDG_CACHE_HOME": "/x"}, "/o"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/orchestrator"),
        ({"HOME": "/h", "ORCHESTRATOR_CACHE": ""}, "/h/.cache/orchestrator"),
    ],
)
def test_where_the_cache_is(
    environment: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ORCHESTRATOR_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == Path(folder)


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1])
def test_a_digest_is_that_of_the_whole_file(tmp_path: Path, size: int) -> None:
    data = bytes(i % 251 for i in range(size))
    (tmp_path / "file").write_bytes(data)
    assert file_digest(tmp_path / "file") == _sha256(data)


@pytest.mark.parametrize("by", ["rename", "write"])
@pytest.mark.usefixtures("store")
def test_a_program_of_the_same_size_and_time_is_read_again(tmp_path: Path, by: str) -> None:
    program = tmp_path / "cc"
    program.write_bytes(b"one")
    before = program.stat()
    assert program_digest(program) == _sha256(b"one")
    written = program if by == "write" else tmp_path / "new"
    written.write_bytes(b"two")
    os.utime(written, ns=(before.st_atime_ns, before.st_mtime_ns))
    written.replace(program)
    assert program_digest(program) == _sha256(b"two")


def test_a_digest_that_somebody_wrote_into_the_cache(store: Path, tmp_path: Path) -> None:
    program = tmp_path / "cc"
    program.write_bytes(b"one")
    program_digest(program)
    wrong = _sha256(b"wrong")
    store.write_text(store.read_text().replace(_sha256(b"one"), wrong))
    assert program_digest(program) == wrong
    assert program_digest(program, trust_cache=False) == _sha256(b"one")
    # What was read takes the place of what was written there.
    assert program_digest(program) == _sha256(b"one")


def test_a_program_is_read_once(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "cc"
    program.write_bytes(b"one")
    (tmp_path / "link").symlink_to("cc")
    assert program_digest(program) == _sha256(b"one")
    state = state_of(str(program))
    assert json.loads(store.read_text()) == {str(program): [state, _sha256(b"one")]}
    monkeypatch.setattr(cache, "file_digest", lambda _: pytest.fail("read again"))
    assert program_digest(program) == _sha256(b"one")
    assert program_digest(tmp_path / "link") == _sha256(b"one")


@pytest.mark.usefixtures("store")
def test_a_process_reads_a_program_once_without_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "cc"
    program.write_bytes(b"one")
    assert program_digest(program, trust_cache=False) == _sha256(b"one")
    monkeypatch.setattr(cache, "file_digest", lambda _: "read again")
    assert program_digest(program, trust_cache=False) == _sha256(b"one")
    program.write_bytes(b"other")
    assert program_digest(program, trust_cache=False) == "read again"


@pytest.mark.usefixtures("store")
def test_a_program_that_changed_is_read_again(tmp_path: Path) -> None:
    program = tmp_path / "cc"
    program.write_bytes(b"one")
    program_digest(program)
    program.write_bytes(b"two")
    os.utime(program, ns=(5, 5))
    assert program_digest(program) == _sha256(b"two")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\0", "[" * 100_000])
def test_a_damaged_store_is_no_obstacle(store: Path, tmp_path: Path, text: str) -> None:
    program = tmp_path / "cc"
    program.write_bytes(b"one")
    store.parent.mkdir()
    store.write_text(text)
    assert program_digest(program) == _sha256(b"one")
    assert _sha256(b"one") in store.read_text()


@pytest.mark.parametrize("entry", [5, [], "text", ["state", 5], [[], "no digest"]])
def test_only_digests_of_the_store_are_believed(store: Path, tmp_path: Path, entry: object) -> None:
    program = tmp_path / "cc"
    program.write_bytes(b"one")
    program_digest(program)
    store.write_text(json.dumps(dict.fromkeys(json.loads(store.read_text()), entry)))
    assert program_digest(program) == _sha256(b"one")


def test_a_store_that_cannot_be_written_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"one")
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "file"))
    assert program_digest(tmp_path / "file") == _sha256(b"one")
