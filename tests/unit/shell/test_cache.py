"""Digests of programs, remembered by path, size and time."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from orchestrator.shell import cache
from orchestrator.shell.cache import cache_folder, file_digest, program_digest


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


def test_a_program_is_read_once(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "cc"
    program.write_bytes(b"one")
    (tmp_path / "link").symlink_to("cc")
    assert program_digest(program) == _sha256(b"one")
    assert list(json.loads(store.read_text()).values()) == [_sha256(b"one")]
    monkeypatch.setattr(cache, "file_digest", lambda _: pytest.fail("read again"))
    assert program_digest(program) == _sha256(b"one")
    assert program_digest(tmp_path / "link") == _sha256(b"one")


@pytest.mark.usefixtures("store")
def test_a_program_that_changed_is_read_again(tmp_path: Path) -> None:
    program = tmp_path / "cc"
    program.write_bytes(b"one")
    program_digest(program)
    program.write_bytes(b"two")
    os.utime(program, ns=(5, 5))
    assert program_digest(program) == _sha256(b"two")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\0"])
def test_a_damaged_store_is_no_obstacle(store: Path, tmp_path: Path, text: str) -> None:
    program = tmp_path / "cc"
    program.write_bytes(b"one")
    store.parent.mkdir()
    store.write_text(text)
    assert program_digest(program) == _sha256(b"one")
    assert _sha256(b"one") in store.read_text()


def test_only_texts_of_the_store_are_believed(store: Path, tmp_path: Path) -> None:
    program = tmp_path / "cc"
    program.write_bytes(b"one")
    program_digest(program)
    store.write_text(json.dumps(dict.fromkeys(json.loads(store.read_text()), 5)))
    assert program_digest(program) == _sha256(b"one")


def test_a_store_that_cannot_be_written_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"one")
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "file"))
    assert program_digest(tmp_path / "file") == _sha256(b"one")
