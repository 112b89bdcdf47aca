"""The counting plugin: errors that say what is missing."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from orchestrator.errors import ToolchainError
from orchestrator.shell import qemu_plugin

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(folder))
    return folder


def test_no_compiler_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(qemu_plugin, "zig_program", lambda: None)
    with pytest.raises(ToolchainError) as caught:
        qemu_plugin.counting_plugin()
    (problem,) = caught.value.diagnostics
    assert problem.code == "no-c-compiler"
    assert problem.message == "no C compiler for the QEMU plugin that counts instructions"
    assert problem.hint == 'apt-get install gcc, or pip install -e ".[zig]"'


def test_a_compiler_that_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    broken = tmp_path / "gcc"
    broken.write_text("#!/bin/sh\necho no assembler >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda _: str(broken))
    with pytest.raises(ToolchainError) as caught:
        qemu_plugin.counting_plugin()
    (problem,) = caught.value.diagnostics
    assert problem.code == "plugin-failed"
    assert problem.notes[1] == ("found", "no assembler")
    assert list((cache / "qemu").iterdir()) == []
