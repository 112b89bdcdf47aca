"""The stamp of a finished build: any change of a file it names is seen."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from orchestrator.shell import stamp


@pytest.fixture
def stamped(tmp_path: Path) -> Path:
    """A stamp in a folder with the profile and one more file."""
    profile, other = tmp_path / "a.toml", tmp_path / "other"
    profile.write_text("a")
    other.write_text("b")
    _write(tmp_path / "stamp", _stamp(profile, other))
    _write_shared(tmp_path / "stamp", other)
    return tmp_path / "stamp"


def _stamp(profile: Path, *files: Path) -> dict[str, Any]:
    return {
        "profile": str(profile),
        "environment": stamp.environment(),
        "shared": "one",
        "files": {str(f): stamp.state_of(str(f)) for f in (profile, *files)},
    }


def _write_shared(path: Path, *files: Path, identity: str = "one") -> None:
    states = {str(f): stamp.state_of(str(f)) for f in files}
    shared = {"identity": identity, "input_count": len(states), "files": states}
    _write(Path(stamp.shared_file(str(path))), shared)


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


def test_the_environment_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert stamp.environment()["PATH"] == "/nowhere"
    monkeypatch.delenv("PATH")
    assert stamp.environment()["PATH"] == ""


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", "null", "{}", '"profile"', "\0", "[" * 100_000, b"\xff"], ids=repr
)
def test_a_damaged_stamp_is_none(stamped: Path, text: str | bytes) -> None:
    stamped.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert not _is_current(stamped)


@pytest.mark.parametrize("files", [None, [], 7, {"a": 1}, {"/": []}, {"\0": [1]}])
def test_damaged_states_are_no_stamp(stamped: Path, files: object) -> None:
    document = json.loads(stamped.read_text())
    _write(stamped, {**document, "files": files})
    assert not _is_current(stamped)


def test_a_shared_file_that_changed_is_seen(stamped: Path) -> None:
    compiler = stamped.parent / "compiler"
    compiler.write_text("a")
    _write_shared(stamped, compiler)
    assert _is_current(stamped)
    compiler.write_text("ab")
    assert not _is_current(stamped)


def test_shared_files_of_another_build_are_no_stamp(stamped: Path) -> None:
    """A build was killed between the two files."""
    _write_shared(stamped, identity="other")
    assert not _is_current(stamped)


@pytest.mark.parametrize("text", ["", "{", "7", "{}", '{"identity": "one"}'])
def test_damaged_shared_states_are_no_stamp(stamped: Path, text: str) -> None:
    Path(stamp.shared_file(str(stamped))).write_text(text)
    assert not _is_current(stamped)


def test_what_several_stamps_share_is_looked_at_once(
    stamped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler, second = stamped.parent / "compiler", stamped.parent / "second"
    compiler.write_text("a")
    _write_shared(stamped, compiler)
    document = json.loads(stamped.read_text())
    _write(second, {**document, "files": {}})
    seen: list[str] = []

    def state_of(path: str, real: Any = stamp.state_of) -> stamp.State:
        seen.append(path)
        found: stamp.State = real(path)
        return found

    monkeypatch.setattr(stamp, "state_of", state_of)
    looked, profile = stamp.Looked(), str(stamped.parent / "a.toml")
    # The second has no shared file of its own: it is that of the first.
    for path in (stamped, second, stamped):
        assert stamp.is_current(str(path), profile=profile, looked=looked)
    assert sorted(seen) == sorted({*document["files"], str(compiler)})


def test_inputs_come_from_both_files(stamped: Path) -> None:
    _write_shared(stamped, stamped.parent / "compiler")
    document = json.loads(stamped.read_text()) | {"input_count": 1}
    names = [str(stamped.parent / name) for name in ("a.toml", "compiler")]
    assert stamp.inputs_of(str(stamped), document) == names


def test_no_stamp_is_none(tmp_path: Path) -> None:
    assert not _is_current(tmp_path / "stamp")


def test_folders_of_files() -> None:
    assert stamp.folders_of(["/a/b/c", "/a/b/d", "/a/e", "f"]) == [".", "/a", "/a/b"]
