"""Files that a build reads are noted with their states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.shell.input_files import InputFiles
from orchestrator.shell.stamp import state_of

if TYPE_CHECKING:
    from pathlib import Path


def test_files_are_noted_as_they_were_before_they_were_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"first")
    before = state_of(str(path))
    files = InputFiles()
    assert files.read(path) == b"first"
    path.write_bytes(b"another")
    assert files.read(path) == b"another"
    assert files.states == {str(path): before}


def test_other_files_are_noted_by_name(tmp_path: Path) -> None:
    files = InputFiles()
    files.note([str(tmp_path / "missing")])
    assert files.states == {str(tmp_path / "missing"): []}


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"12345")
    with pytest.raises(OSError, match="more than 4"):
        InputFiles().read(tmp_path / "a.txt", most_bytes=4)
