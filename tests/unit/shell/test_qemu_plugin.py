"""The counting plugin: compiled once, and errors that say what is missing."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from orchestrator.errors import ToolchainError
from orchestrator.shell import qemu_plugin
from orchestrator.shell.toolchain import zig_program
from tests.tools import need_tool

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(folder))
    return folder


@pytest.mark.toolchain
def test_it_is_compiled_once(cache: Path) -> None:
    need_tool("gcc", "cc", "clang")
    plugin = qemu_plugin.counting_plugin()
    assert plugin.parent == cache / "qemu"
    assert plugin.read_bytes().startswith(b"\x7fELF")
    plugin.write_bytes(b"known")
    assert qemu_plugin.counting_plugin() == plugin
    assert plugin.read_bytes() == b"known"
    assert list((cache / "qemu").iterdir()) == [plugin]


@pytest.mark.toolchain
def test_zig_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    if zig_program() is None:
        need_tool("zig of the package ziglang")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert qemu_plugin.counting_plugin().read_bytes().startswith(b"\x7fELF")


def test_no_compiler_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(qemu_plugin, "zig_program", lambda: None)
    with pytest.raises(ToolchainError) as caught:
        qemu_plugin.counting_plugin()
    (problem,) = caught.value.diagnostics
    assert problem.code == "no-c-compiler"
    assert (
        problem.message == "no C compiler for the QEMU plugin that counts instructions"
    )
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
