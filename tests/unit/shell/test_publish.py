"""Publishing: whoever looks finds one whole set, at every moment."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestrator.shell import publish
from orchestrator.shell.publish import identity_of, published_files

ONE = {"firmware.elf": b"\x7fELF one", "gen/a.h": b"one", "gen/old.h": b"old"}
TWO = {"firmware.elf": b"\x7fELF two", "gen/a.h": b"two", "lib.a": b"two"}


def _visible(folder: Path) -> dict[str, bytes]:
    """Files that can be reached through the links of the build folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for link in folder.iterdir()
        if link.is_symlink() and link.name != publish.CURRENT
        for path in ([link] if link.is_file() else link.rglob("*"))
        if path.is_file()
    }


def test_a_set_is_published_and_replaced(tmp_path: Path) -> None:
    for files_ in (ONE, TWO, ONE):
        publish.publish(tmp_path, files_)
        assert published_files(tmp_path) == files_
        assert _visible(tmp_path) == files_
        # One set in the store, and no link to what is not published any more.
        assert len(list((tmp_path / publish.STORE).iterdir())) == 1
        names = {p.name for p in tmp_path.iterdir()} - {publish.STORE, publish.CURRENT}
        assert names == {name.partition("/")[0] for name in files_}


def test_an_equal_set_is_not_written_again(tmp_path: Path) -> None:
    publish.publish(tmp_path, ONE)
    inode = (tmp_path / "firmware.elf").stat().st_ino
    publish.publish(tmp_path, dict(reversed(ONE.items())))
    assert (tmp_path / "firmware.elf").stat().st_ino == inode


def test_programs_can_be_run(tmp_path: Path) -> None:
    publish.publish(tmp_path, ONE)
    assert os.access(tmp_path / "firmware.elf", os.X_OK)
    assert (tmp_path / "gen/a.h").stat().st_mode & 0o111 == 0


@pytest.mark.parametrize("damage", ["delete", "tamper", "unlink", "retarget", "file"])
def test_damaged_outputs_are_whole_again(tmp_path: Path, damage: str) -> None:
    publish.publish(tmp_path, ONE)
    firmware = tmp_path / "firmware.elf"
    match damage:
        case "delete":
            firmware.resolve().unlink()
        case "tamper":
            firmware.write_bytes(b"\x7fELF xyz")
        case "unlink":
            firmware.unlink()
        case "retarget":
            firmware.unlink()
            firmware.symlink_to("gen")
        case "file":
            firmware.unlink()
            firmware.write_bytes(b"mine")
    publish.publish(tmp_path, ONE)
    assert published_files(tmp_path) == ONE
    assert _visible(tmp_path) == ONE


def test_a_set_that_was_left_half_written_is_not_taken(tmp_path: Path) -> None:
    staging = tmp_path / publish.STORE / f"{identity_of(ONE)[:16]}.tmp"
    (staging / "gen").mkdir(parents=True)
    (staging / "gen/a.h").write_bytes(b"o")
    (staging / "other").write_bytes(b"left over")
    publish.publish(tmp_path, ONE)
    assert published_files(tmp_path) == ONE


class _Killed(BaseException):
    """Stands for the end of the process."""


STEPS = (
    (Path, "replace"),
    (Path, "symlink_to"),
    (Path, "unlink"),
    (Path, "mkdir"),
    (shutil, "rmtree"),
)


def _kill_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """End the process before the file-system operation of this number."""
    count = iter(range(1_000_000))

    def killing(operation: Any) -> Any:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if next(count) >= step:
                raise _Killed
            return operation(*args, **kwargs)

        return wrapped

    for owner, name in STEPS:
        monkeypatch.setattr(owner, name, killing(getattr(owner, name)))


def test_a_kill_at_any_step_leaves_one_of_the_sets_whole(tmp_path: Path) -> None:
    finished, step, seen = False, 0, set()
    while not finished:
        folder = tmp_path / str(step)
        publish.publish(folder, ONE)
        with pytest.MonkeyPatch.context() as monkeypatch:
            _kill_at(monkeypatch, step)
            try:
                publish.publish(folder, TWO)
                finished = True
            except _Killed:
                step += 1
        found = published_files(folder)
        assert found in (ONE, TWO)
        seen.add(identity_of(found))
        for name in found:
            link = folder / name.partition("/")[0]
            # A new name may still be missing, but no name leads to another set.
            assert not link.is_symlink() or (folder / name).read_bytes() == found[name]
        publish.publish(folder, TWO)
        assert published_files(folder) == TWO
        assert _visible(folder) == TWO
    assert step > 10
    assert seen == {identity_of(ONE), identity_of(TWO)}


def test_the_identity_of_a_set_is_names_and_bytes() -> None:
    assert identity_of(ONE) == identity_of(dict(reversed(ONE.items())))
    others = [
        {**ONE, "gen/a.h": b"other"},
        {**ONE, "more": b""},
        {**ONE, "gen/a.h": ONE["gen/old.h"], "gen/old.h": ONE["gen/a.h"]},
        {},
    ]
    assert len({identity_of(found) for found in (ONE, *others)}) == 5


def test_nothing_is_published_in_a_new_folder(tmp_path: Path) -> None:
    assert published_files(tmp_path) == {}


def test_a_file_that_keeps_its_bytes_keeps_its_time(tmp_path: Path) -> None:
    publish.publish(tmp_path, {"a": b"1", "b/c": b"2"})
    for name in ("a", "b/c"):
        os.utime(tmp_path / name, ns=(10, 20))
    publish.publish(tmp_path, {"a": b"1", "b/c": b"3", "d": b"1"})
    assert (tmp_path / "a").stat().st_mtime_ns == 20
    assert (tmp_path / "b/c").stat().st_mtime_ns > 20
    assert (tmp_path / "d").stat().st_mtime_ns > 20


def test_empty_folders_in_the_place_of_links_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "b" / "c" / "d").mkdir(parents=True)
    publish.publish(tmp_path, {"b/c/d": b"1"})
    assert (tmp_path / "b").is_symlink()
    assert (tmp_path / "b/c/d").read_bytes() == b"1"


def test_a_folder_with_files_is_left(tmp_path: Path) -> None:
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "b" / "mine").write_text("mine")
    with pytest.raises(OSError, match=r"(?i)is a directory"):
        publish.publish(tmp_path, {"b/c": b"1"})
    assert (tmp_path / "b" / "mine").read_text() == "mine"
