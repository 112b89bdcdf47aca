"""Ninja's folder: what is laid out, and what is left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.shell import ninja
from orchestrator.shell.compile_folder import NinjaFolder
from orchestrator.shell.reporter import Reporter

if TYPE_CHECKING:
    from pathlib import Path


FILES = {"build.ninja": b"", "src/a.cpp": b"a"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NinjaFolder:
    monkeypatch.setattr(ninja, "run_ninja", lambda path, **_: f"in {path.name}")
    return NinjaFolder(path=tmp_path / "w", jobs=2, reporter=Reporter(), folder_lock=0)


def test_files_are_laid_out_and_others_removed(folder: NinjaFolder) -> None:
    first = {"build.ninja": b"1", "src/a.cpp": b"a", "src/b/old.h": b"o"}
    assert folder.compile(first, whole=("src", "gen"), keys={}) == "in w"
    (folder.path / "obj").mkdir()
    (folder.path / "obj" / "a.o").write_bytes(b"object")
    folder.compile({"build.ninja": b"2", "src/a.cpp": b"a"}, whole=("src", "gen"), keys={})
    assert folder.read("build.ninja") == b"2"
    assert not (folder.path / "src" / "b" / "old.h").exists()
    assert folder.read("obj/a.o") == b"object"


def test_a_file_that_keeps_its_bytes_keeps_its_time(folder: NinjaFolder) -> None:
    folder.compile({**FILES, "src/b.cpp": b"b"}, whole=("src",), keys={})
    before = [(folder.path / "src" / n).stat().st_ino for n in ("a.cpp", "b.cpp")]
    folder.compile({**FILES, "src/b.cpp": b"new"}, whole=("src",), keys={})
    after = [(folder.path / "src" / n).stat().st_ino for n in ("a.cpp", "b.cpp")]
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_a_file_that_is_missing_is_an_error(folder: NinjaFolder) -> None:
    with pytest.raises(FileNotFoundError):
        folder.read("firmware.elf")
