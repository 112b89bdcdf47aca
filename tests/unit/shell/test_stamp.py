"""The stamp of a finished build: any change of a file it names is seen."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.shell import stamp

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def stamped(tmp_path: Path) -> Path:
    """A stamp in a folder with the profile and one more file."""
    profile, other = tmp_path / "a.toml", tmp_path / "other"
    profile.write_text("a")
    other.write_text("b")
    _write(tmp_path / "stamp", _stamp(profile, other))
    return tmp_path / "stamp"


def _stamp(profile: Path, *files: Path) -> dict[str, Any]:
    return {
        "profile": str(profile),
        "environment": stamp.environment(),
        "files": {str(f): stamp.state_of(str(f)) for f in (profile, *files)},
    }


def _write(path: Path, document: object) -> None:
    path.write_text(json.dumps(document))


def _is_current(path: Path) -> bool:
    profile = str(path.parent / "a.toml")
    return stamp.is_current(str(path), profile=profile) is not None


def test_nothing_changed(stamped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _is_current(stamped)
    monkeypatch.chdir(stamped.parent)
    for name in ("a.toml", "./a.toml", "../" + stamped.parent.name + "/a.toml"):
        assert stamp.is_current("stamp", profile=name)


def test_the_facts_come_back(stamped: Path) -> None:
    found = stamp.is_current(str(stamped), profile=str(stamped.parent / "a.toml"))
    assert found == json.loads(stamped.read_text())


@pytest.mark.parametrize("change", ["edit", "touch", "replace", "delete", "retarget"])
def test_a_change_of_a_file_is_seen(stamped: Path, change: str) -> None:
    other = stamped.parent / "other"
    state = other.stat()
    match change:
        case "edit":
            other.write_text("more")
            os.utime(other, ns=(state.st_atime_ns, state.st_mtime_ns))
        case "touch":
            os.utime(other, ns=(1, 1))
        case "replace":  # of the same size and time
            (stamped.parent / "new").write_text("c")
            os.utime(stamped.parent / "new", ns=(state.st_atime_ns, state.st_mtime_ns))
            (stamped.parent / "new").replace(other)
        case "delete":
            other.unlink()
        case "retarget":
            other.rename(stamped.parent / "b")
            other.symlink_to("stamp")
    assert not _is_current(stamped)


def test_a_missing_file_that_appears_is_seen(stamped: Path) -> None:
    profile, lock = stamped.parent / "a.toml", stamped.parent / "a.lock"
    _write(stamped, _stamp(profile, lock))
    assert _is_current(stamped)
    lock.write_text("")
    assert not _is_current(stamped)


def test_another_profile_is_not_this_one(stamped: Path) -> None:
    other = stamped.parent / "other"
    assert stamp.is_current(str(stamped), profile=str(other)) is None


@pytest.mark.parametrize("name", ["PATH", "export", "python", "stamp"])
def test_another_environment_is_seen(stamped: Path, name: str) -> None:
    document = json.loads(stamped.read_text())
    assert set(document["environment"]) == {"PATH", "export", "python", "stamp"}
    document["environment"][name] += "x"
    _write(stamped, document)
    assert not _is_current(stamped)


def test_the_environment_is_that_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert stamp.environment()["PATH"] == "/nowhere"
    monkeypatch.delenv("PATH")
    assert stamp.environment()["PATH"] == ""


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", "null", "{}", '"profile"', "\0", "[" * 100_000, b"\xff"],
    ids=repr,
)
def test_a_damaged_stamp_is_none(stamped: Path, text: str | bytes) -> None:
    stamped.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert not _is_current(stamped)


@pytest.mark.parametrize("files", [None, [], 7, {"a": 1}, {"/": []}, {"\0": [1]}])
def test_damaged_states_are_no_stamp(stamped: Path, files: object) -> None:
    document = json.loads(stamped.read_text())
    _write(stamped, {**document, "files": files})
    assert not _is_current(stamped)


def test_no_stamp_is_none(tmp_path: Path) -> None:
    assert not _is_current(tmp_path / "stamp")


def test_folders_of_files() -> None:
    assert stamp.folders_of(["/a/b/c", "/a/b/d", "/a/e", "f"]) == [".", "/a", "/a/b"]
