"""Files: replaced in one step, kept if equal, links changed in one step."""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.core.lazy_bytes import LARGE, chunks_of, joined, sha256_of
from orchestrator.errors import ModelError
from orchestrator.shell.files import (
    FileBytes,
    WriteError,
    check_writable,
    has_bytes,
    lazy_file,
    remedy_for,
    write_atomic,
    write_if_changed,
)
from tests.permissions import permissions_hold

if TYPE_CHECKING:
    from collections.abc import Callable


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_write_makes_folders_and_leaves_nothing_else(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a" / "b" / "file", b"new")
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"new"
    assert _names(tmp_path / "a" / "b") == {"file"}


def test_a_write_replaces_the_file_and_keeps_readers_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old text")
    with path.open("rb") as reader:
        write_atomic(path, b"new")
        assert reader.read() == b"old text"
    assert path.read_bytes() == b"new"


def test_a_failed_write_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match="file: no space left"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert _names(tmp_path) == {"file"}


def test_what_cannot_be_written_has_the_name_that_users_know(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    below = tmp_path / "file" / "a.lock"
    with permissions_hold():
        (tmp_path / "folder").chmod(0o555)
        path = tmp_path / "folder" / "a.lock"
        attempts: list[Callable[[], None]] = [
            lambda: write_atomic(path, b""),
            lambda: check_writable(path),
        ]
        for attempt in attempts:
            with pytest.raises(WriteError) as caught:
                attempt()
            assert str(caught.value) == f"cannot write {path}: permission denied"
    attempts = [lambda: write_atomic(below, b""), lambda: check_writable(below)]
    for attempt in attempts:
        with pytest.raises(WriteError) as caught:
            attempt()
        assert str(caught.value).startswith(f"cannot write {below}: ")


def test_whether_a_file_can_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "folder" / "a.lock")
    (tmp_path / "a.lock").write_bytes(b"old")
    check_writable(tmp_path / "a.lock")
    assert (tmp_path / "a.lock").read_bytes() == b"old"
    assert _names(tmp_path) == {"a.lock"}
    with pytest.raises(WriteError, match=r"cannot write .*: is a directory"):
        check_writable(tmp_path)


def test_only_what_cannot_be_made_again_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []
    monkeypatch.setattr(os, "fsync", waits.append)
    write_if_changed(tmp_path / "work", b"new")
    assert waits == []
    write_atomic(tmp_path / "lock", b"new")
    assert len(waits) == 1


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o755), (0o077, 0o700)])
def test_a_program_may_be_run_by_whoever_may_read_it(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        write_atomic(tmp_path / "program", b"x", executable=True)
        write_atomic(tmp_path / "file", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "program").stat().st_mode & 0o777 == mode
    assert (tmp_path / "file").stat().st_mode & 0o111 == 0


def test_equal_bytes_keep_the_time_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert write_if_changed(path, b"text")
    os.utime(path, ns=(1, 1))
    assert not write_if_changed(path, b"text")
    assert path.stat().st_mtime_ns == 1
    assert write_if_changed(path, b"tex1")  # of the same length
    assert path.read_bytes() == b"tex1"
    assert path.stat().st_mtime_ns != 1


def test_what_a_killed_process_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / f".file.{os.getpid()}.tmp").write_bytes(b"a long half-written text")
    write_atomic(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert _names(tmp_path) == {"file"}


def test_links_are_replaced_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    (tmp_path / "file").symlink_to(victim)
    (tmp_path / f".file.{os.getpid()}.tmp").symlink_to(victim)
    write_atomic(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert not (tmp_path / "file").is_symlink()
    assert victim.read_bytes() == b"mine"


def test_an_error_names_the_file_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(WriteError) as caught:
        write_atomic(tmp_path / "file", b"new")
    assert caught.value.filename == str(tmp_path / "file")
    assert _names(tmp_path) == {"file"}


def _large(path: Path) -> bytes:
    data = bytes(range(256)) * (LARGE // 256) * 40
    path.write_bytes(data)
    return data


def test_a_large_file_is_read_when_it_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "m.pte"
    data = _large(path)
    found = lazy_file(path)
    assert isinstance(found, FileBytes)
    assert bytes(found) == b"".join(found.chunks()) == data
    assert sha256_of(found) == hashlib.sha256(data).hexdigest()
    assert bytes(found[10 : 10 + LARGE]) == data[10 : 10 + LARGE]
    assert found[10:20] == data[10:20]
    again = pickle.loads(pickle.dumps(found))  # noqa: S301  # ours
    assert again == found
    path.write_bytes(data[:100])
    assert lazy_file(path) == data[:100]


@pytest.mark.parametrize("change", ["shorter", "other", "gone", "replaced"])
def test_a_file_that_changes_is_an_error(tmp_path: Path, change: str) -> None:
    path = tmp_path / "m.pte"
    data = _large(path)
    found = lazy_file(path)
    noted = pickle.dumps(found)
    pieces = iter(chunks_of(found))
    next(pieces)
    if change == "shorter":
        os.truncate(path, LARGE)
    elif change == "other":
        os.utime(path, ns=(1, 1))
    elif change == "gone":
        path.unlink()
    else:
        (tmp_path / "new").write_bytes(data)
        (tmp_path / "new").replace(path)
    for read in (lambda: next(pieces), lambda: bytes(found), lambda: sha256_of(found)):
        with pytest.raises(ModelError) as raised:
            read()
        (problem,) = raised.value.diagnostics
        assert problem.code == "changed-file"
        assert problem.message == f"{path} changed while it was read"
    with pytest.raises(OSError):  # noqa: PT011  # the note is no longer true
        pickle.loads(noted)  # noqa: S301  # ours


def test_lazy_bytes_are_written_and_compared(tmp_path: Path) -> None:
    data = _large(tmp_path / "m.pte")
    found = joined([b"head", lazy_file(tmp_path / "m.pte")])
    copy = tmp_path / "copy"
    assert write_if_changed(copy, found)
    assert not write_if_changed(copy, found)
    assert copy.read_bytes() == b"head" + data
    copy.write_bytes(b"h3ad" + data)
    assert not has_bytes(copy, found)


def test_a_device_is_no_large_file() -> None:
    with pytest.raises(OSError, match="it is a device"):
        lazy_file(Path("/dev/zero"))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_on_a_full_disk_the_remedy_speaks_of_the_disk(number: int) -> None:
    hint = remedy_for(OSError(number, os.strerror(number)))
    assert "disk" in hint
    assert "permission" not in hint
    assert "permissions" in remedy_for(PermissionError(errno.EACCES, "denied"))
