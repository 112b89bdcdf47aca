"""The launcher of the compiler: which one, and what it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.errors import ToolchainError
from orchestrator.shell.launcher import Launcher, compiler_launcher
from orchestrator.shell.settings import LAUNCHER as VARIABLE

if TYPE_CHECKING:
    from pathlib import Path

NINJA = "x = -O2\ncxx = zig clang\nar = zig ar\nrule cxx\n  command = $cxx -c $in\n"


def _program(folder: Path, name: str) -> str:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("value", [None, ""])
def test_there_is_none_unless_it_is_named(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(VARIABLE, value)
    assert compiler_launcher() is None


@pytest.mark.parametrize("by_path", [True, False])
def test_ccache_is_found_by_name_and_by_path(
    by_path: bool,  # noqa: FBT001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = _program(tmp_path, "ccache")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(VARIABLE, program if by_path else "ccache")
    assert compiler_launcher() == Launcher(program)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("sccache", "changes what some compilers write"),
        ("/usr/bin/distcc", "debug information names other files"),
        ("ccache", "not installed"),
    ],
)
def test_others_are_refused(
    name: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path, "sccache")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(VARIABLE, name)
    with pytest.raises(ToolchainError) as caught:
        compiler_launcher()
    (problem,) = caught.value.diagnostics
    assert problem.code == "launcher-unusable"
    assert reason in problem.notes[0][1]


def test_only_the_compiler_is_launched() -> None:
    text = Launcher("/opt/my tools/ccache").ninja_text(NINJA)
    assert text == NINJA.replace("zig clang", "'/opt/my tools/ccache' zig clang")


def test_another_toolchain_is_another_compiler() -> None:
    launcher = Launcher("ccache")
    one, other = (launcher.environment(t)["CCACHE_COMPILERCHECK"] for t in (b"1", b"2"))
    assert one.startswith("string:")
    assert one != other
