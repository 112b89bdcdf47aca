"""Publishing: whoever looks finds one whole set, at every moment."""

from __future__ import annotations

import errno
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.errors import UsageError
from orchestrator.shell import publish
from orchestrator.shell.build_folder import CURRENT, EXPORTED, MARKER, STORE, claim, recorded_names
from orchestrator.shell.files import Files
from orchestrator.shell.publish import identity_of, published_files
from tests.unit.shell.test_build_folder import tree

if TYPE_CHECKING:
    from pathlib import Path

ONE = {"firmware.elf": b"\x7fELF one", "gen/a.h": b"one", "gen/old.h": b"old"}
TWO = {"firmware.elf": b"\x7fELF two", "gen/a.h": b"two", "lib.a": b"two"}


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here takes the power away."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A build folder, as builds find it when they publish."""
    claim(tmp_path / "out")
    return tmp_path / "out"


def _visible(folder: Path) -> dict[str, bytes]:
    """Files that can be reached through the links of the build folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for link in folder.iterdir()
        if link.is_symlink() and link.name not in (CURRENT, EXPORTED)
        for path in ([link] if link.is_file() else link.rglob("*"))
        if path.is_file()
    }


def test_a_set_is_published_and_replaced(out: Path) -> None:
    for files_ in (ONE, TWO, ONE):
        publish.publish(out, files_)
        assert published_files(out) == files_
        assert _visible(out) == files_
        # One set in the store, and no link to what is not published any more.
        assert len(list((out / STORE).iterdir())) == 1
        own = {STORE, CURRENT, MARKER}
        names = {p.name for p in out.iterdir()} - own
        assert names == {name.partition("/")[0] for name in files_}


def test_an_equal_set_is_not_written_again(out: Path) -> None:
    publish.publish(out, ONE)
    inode = (out / "firmware.elf").stat().st_ino
    publish.publish(out, dict(reversed(ONE.items())))
    assert (out / "firmware.elf").stat().st_ino == inode


def test_programs_can_be_run(out: Path) -> None:
    publish.publish(out, ONE)
    assert os.access(out / "firmware.elf", os.X_OK)
    assert (out / "gen/a.h").stat().st_mode & 0o111 == 0


@pytest.mark.parametrize("damage", ["delete", "tamper", "unlink"])
def test_damaged_outputs_are_whole_again(out: Path, damage: str) -> None:
    publish.publish(out, ONE)
    firmware = out / "firmware.elf"
    match damage:
        case "delete":
            firmware.resolve().unlink()
        case "tamper":
            firmware.write_bytes(b"\x7fELF xyz")
        case "unlink":
            firmware.unlink()
    publish.publish(out, ONE)
    assert published_files(out) == ONE
    assert _visible(out) == ONE


def test_a_set_that_was_left_half_written_is_not_taken(out: Path) -> None:
    staging = out / STORE / f"{identity_of(ONE)[:16]}.tmp"
    (staging / "gen").mkdir(parents=True)
    (staging / "gen/a.h").write_bytes(b"o")
    (staging / "other").write_bytes(b"left over")
    publish.publish(out, ONE)
    assert published_files(out) == ONE


def test_the_identity_of_a_set_is_names_and_bytes() -> None:
    assert identity_of(ONE) == identity_of(dict(reversed(ONE.items())))
    others = [
        {**ONE, "gen/a.h": b"other"},
        {**ONE, "more": b""},
        {**ONE, "gen/a.h": ONE["gen/old.h"], "gen/old.h": ONE["gen/a.h"]},
        {},
    ]
    assert len({identity_of(found) for found in (ONE, *others)}) == 5


def test_nothing_is_published_in_a_new_folder(out: Path) -> None:
    assert published_files(out) == {}


def test_a_file_that_keeps_its_bytes_keeps_its_time(out: Path) -> None:
    publish.publish(out, {"a": b"1", "b/c": b"2"})
    for name in ("a", "b/c"):
        os.utime(out / name, ns=(10, 20))
    publish.publish(out, {"a": b"1", "b/c": b"3", "d": b"1"})
    assert (out / "a").stat().st_mtime_ns == 20
    assert (out / "b/c").stat().st_mtime_ns > 20
    assert (out / "d").stat().st_mtime_ns > 20


def test_empty_folders_in_the_place_of_links_are_replaced(out: Path) -> None:
    (out / "b" / "c" / "d").mkdir(parents=True)
    publish.publish(out, {"b/c/d": b"1"})
    assert (out / "b").is_symlink()
    assert (out / "b/c/d").read_bytes() == b"1"


class _Killed(BaseException):
    """Stands for the end of the process."""


OPERATIONS = (*("make_folder", "write", "link", "rename", "unlink"), *("remove_folder", "remove"))
GROWING = {"make_folder", "write", "link"}
"""What a full disk refuses; the rest needs no space."""


class _Faulty(Files):
    """A file system on which the operation of a number fails, or the process ends.

    Args:
        step: 0-based number of that operation.
        fault: `kill`: nothing happens from then on. `kill in a write`: the same, and
            half of a file is written. `once`: that operation fails. `full`: every one
            fails from then on that needs space.
    """

    def __init__(self, step: int, fault: str) -> None:
        self.step = step
        self.fault = fault
        self.count = 0
        self.failed = False

    def __getattribute__(self, name: str) -> Any:
        operation = super().__getattribute__(name)
        if name not in OPERATIONS:
            return operation

        def faulty(*args: Any, **kwargs: Any) -> None:
            self.count += 1
            if self.count <= self.step:
                operation(*args, **kwargs)
                return
            first, self.failed = not self.failed, True
            if name == "write" and first and self.fault != "kill":
                path, data = args[:2]
                path.write_bytes(data[: len(data) // 2])
            if self.fault.startswith("kill"):
                raise _Killed
            if (first and self.fault == "once") or (self.fault == "full" and name in GROWING):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            operation(*args, **kwargs)

        return faulty


OLD, NEW = b"old lock\n", b"new lock\n"


def _product(folder: Path, *, first: bool) -> Path:
    """The build folder of a profile, after a build unless this is the first."""
    out = folder / "out"
    claim(out)
    if not first:
        publish.publish(out, ONE, lock=folder / "p.lock", lock_data=OLD)
    return out


def _lock_of(folder: Path) -> bytes | None:
    path = folder / "p.lock"
    return path.read_bytes() if path.exists() else None


def _left(folder: Path) -> set[str]:
    """Names of what a build must not leave."""
    out = folder / "out"
    names = {p.name for p in folder.iterdir()} - {"out", "p.lock"}
    names |= {f"{STORE}/{p.name}" for p in (out / STORE).iterdir()}
    names -= {os.readlink(out / CURRENT)}  # noqa: PTH115
    known = {MARKER, STORE, CURRENT, *recorded_names(out)}
    return names | {p.name for p in out.iterdir()} - known


@pytest.mark.parametrize("first", [False, True], ids=["second", "first"])
@pytest.mark.parametrize("fault", ["kill", "kill in a write", "once", "full"])
def test_a_fault_at_any_step_leaves_outputs_and_lock_whole(
    tmp_path: Path,
    fault: str,
    first: bool,  # noqa: FBT001
) -> None:
    before = ({}, None) if first else (ONE, OLD)
    between = 0
    seen = []
    for step in range(1_000):
        folder = tmp_path / str(step)
        out = _product(folder, first=first)
        files = _Faulty(step, fault)
        try:
            publish.publish(out, TWO, lock=folder / "p.lock", lock_data=NEW, files=files)
            failed = False
        except (_Killed, OSError):
            failed = True
        state = (published_files(out), _lock_of(folder))
        seen.append(state)
        assert state[0] in (before[0], TWO)
        assert state[1] in (before[1], NEW)
        if fault.startswith("kill") and state == (TWO, before[1]):
            between += 1  # two names cannot change in one step
        else:
            assert state in (before, (TWO, NEW))
        if not fault.startswith("kill"):
            assert state == (before if failed else (TWO, NEW))
            if failed:
                _nothing_is_left(folder, before[0])
        for name in state[0]:
            link = out / name.partition("/")[0]
            # A name that is new may still be missing; none leads to another set.
            assert not link.is_symlink() or (out / name).read_bytes() == state[0][name]
        publish.publish(out, TWO, lock=folder / "p.lock", lock_data=NEW)
        assert (published_files(out), _lock_of(folder)) == (TWO, NEW)
        assert _visible(out) == TWO
        assert _left(folder) == set()
        assert recorded_names(out) == {"firmware.elf", "gen", "lib.a"}
        if not files.failed:
            break
    assert step > 10
    assert between <= 1
    assert seen[0] == before
    assert seen[-1] == (TWO, NEW)


def _nothing_is_left(folder: Path, outputs: dict[str, bytes]) -> None:
    out = folder / "out"
    assert _visible(out) == outputs
    if outputs:
        assert _left(folder) == set()
    else:
        assert [p.name for p in folder.iterdir()] == ["out"]
        store = out / STORE
        assert not store.exists() or list(store.iterdir()) == []
        assert {p.name for p in out.iterdir()} <= {MARKER, STORE}


def test_what_a_kill_left_beside_the_lock_goes_with_a_lock_that_stays(tmp_path: Path) -> None:
    out = _product(tmp_path, first=False)
    step = 0
    while not [p for p in tmp_path.iterdir() if p.name.endswith(".tmp")]:
        with suppress(_Killed):
            publish.publish(
                out,
                TWO,
                lock=tmp_path / "p.lock",
                lock_data=NEW,
                files=_Faulty(step, "kill in a write"),
            )
        step += 1
    publish.publish(out, ONE, lock=tmp_path / "p.lock")
    assert {p.name for p in tmp_path.iterdir()} == {"out", "p.lock"}
    assert _lock_of(tmp_path) == OLD


@pytest.mark.parametrize("name", ["firmware.elf", "gen", "lib.a"])
@pytest.mark.parametrize("kind", ["file", "folder", "link", "dangling"])
def test_what_no_build_made_is_not_replaced(tmp_path: Path, name: str, kind: str) -> None:
    out = _product(tmp_path, first=False)
    if (out / name).is_symlink():
        (out / name).unlink()
    match kind:
        case "file":
            (out / name).write_text("mine")
        case "folder":
            (out / name / "deep").mkdir(parents=True)
            (out / name / "deep" / "mine").write_text("mine")
        case "link":
            (out / name).symlink_to("current/gen/a.h")
        case "dangling":
            (out / name).symlink_to("nowhere")
    before = tree(tmp_path)
    with pytest.raises(UsageError) as caught:
        publish.publish(out, TWO, lock=tmp_path / "p.lock", lock_data=NEW)
    (problem,) = caught.value.diagnostics
    assert problem.code == "name-taken"
    assert str(out / name) in problem.message
    assert tree(tmp_path) == before


@pytest.mark.parametrize("kind", ["folder", "pipe", "link to a pipe"])
def test_a_lock_that_is_no_file_leaves_all_as_it_was(tmp_path: Path, kind: str) -> None:
    """Such as a link to /dev/null."""
    out = _product(tmp_path, first=False)
    lock = tmp_path / "p.lock"
    lock.unlink()
    if kind == "folder":
        lock.mkdir()
    elif kind == "pipe":
        os.mkfifo(lock)
    else:
        os.mkfifo(out / STORE / "pipe")
        lock.symlink_to(out / STORE / "pipe")
    with pytest.raises(UsageError) as caught:
        publish.publish(out, TWO, lock=lock, lock_data=NEW)
    (problem,) = caught.value.diagnostics
    assert problem.code == "name-taken"
    assert "cannot write the lock" in problem.message
    assert os.path.lexists(lock)
    assert published_files(out) == ONE


@pytest.mark.parametrize("there", [True, False])
def test_a_lock_that_is_a_link_stays_one(tmp_path: Path, there: bool) -> None:  # noqa: FBT001
    out = tmp_path / "out"
    claim(out)
    (tmp_path / "locks").mkdir()
    (tmp_path / "p.lock").symlink_to("locks/real.lock")
    if there:
        (tmp_path / "locks" / "real.lock").write_bytes(OLD)
    publish.publish(out, ONE, lock=tmp_path / "p.lock", lock_data=NEW)
    assert (tmp_path / "p.lock").is_symlink()
    assert (tmp_path / "locks" / "real.lock").read_bytes() == NEW
    assert [p.name for p in (tmp_path / "locks").iterdir()] == ["real.lock"]


@pytest.mark.parametrize("name", ["{set}", "{set}.tmp", "new", "old", "record"])
def test_links_in_the_store_are_not_followed(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    for path in ("mine", "firmware.elf"):
        (victim / path).write_text("mine")
    out = _product(tmp_path, first=False)
    link = out / STORE / name.format(set=identity_of(TWO)[:16])
    link.symlink_to(victim)
    before = tree(victim)
    publish.publish(out, TWO)
    assert published_files(out) == TWO
    assert tree(victim) == before
    assert not link.is_symlink()


def test_a_signal_between_outputs_and_lock_waits(tmp_path: Path) -> None:
    out = _product(tmp_path, first=False)

    class Signalled(Files):
        def rename(self, old: Path, new: Path) -> None:
            super().rename(old, new)
            if new.name == CURRENT:
                signal.raise_signal(signal.SIGINT)

    # What runs the tests may ignore it (`nohup`, `&`).
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            publish.publish(out, TWO, lock=tmp_path / "p.lock", lock_data=NEW, files=Signalled())
    finally:
        signal.signal(signal.SIGINT, before)
    assert (published_files(out), _lock_of(tmp_path)) == (TWO, NEW)
    assert _left(tmp_path) == set()


# Exported models


def test_exported_models_are_replaced_in_one_step(tmp_path: Path) -> None:
    out = _product(tmp_path, first=False)
    for models in ({"a/model.pte": b"1", "a/in.npy": b"2"}, {"b/model.pte": b"3"}):
        publish.publish_exported(out, models)
        found = out / EXPORTED
        assert {
            p.relative_to(found).as_posix(): p.read_bytes() for p in (*found.glob("*/*"),)
        } == models
        # Both sets stay whole, whichever is published.
        publish.publish(out, TWO)
        publish.publish(out, ONE)
        assert published_files(out) == ONE
    assert len(list((out / STORE).iterdir())) == 2


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_a_folder_of_the_users_is_not_replaced_by_exported_models(
    tmp_path: Path, kind: str
) -> None:
    out = _product(tmp_path, first=False)
    path = out / EXPORTED
    match kind:
        case "file":
            path.write_text("mine")
        case "folder":
            (path / "a").mkdir(parents=True)
            (path / "a" / "mine").write_text("mine")
        case "link":
            path.symlink_to(tmp_path)
    before = tree(tmp_path)
    with pytest.raises(UsageError) as caught:
        publish.publish_exported(out, {"a/model.pte": b"1"})
    assert caught.value.diagnostics[0].code == "name-taken"
    assert tree(tmp_path) == before


@pytest.mark.parametrize("fault", ["kill in a write", "once", "full"])
def test_a_fault_while_models_are_published_leaves_all_whole(tmp_path: Path, fault: str) -> None:
    one, two = {"a/model.pte": b"1234"}, {"a/model.pte": b"5678", "b/x": b"9"}
    for step in range(100):
        out = _product(tmp_path / str(step), first=False)
        publish.publish_exported(out, one)
        files = _Faulty(step, fault)
        with suppress(_Killed, OSError):
            publish.publish_exported(out, two, files=files)
        found = (out / EXPORTED / "a/model.pte").read_bytes()
        assert found in (b"1234", b"5678")
        assert published_files(out) == ONE
        publish.publish_exported(out, two)
        assert (out / EXPORTED / "a/model.pte").read_bytes() == b"5678"
        assert len(list((out / STORE).iterdir())) == 2
        if not files.failed:
            break
    assert step > 5
