"""The counting plugin is compiled once, by any compiler."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

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
