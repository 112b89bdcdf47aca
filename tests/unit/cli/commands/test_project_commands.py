"""Commands that build, with a compiler that compiles nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.cli.main import run
from tests.unit.build.fake_project import PROFILE, write_project
from tests.unit.build.fakes import FakeShell, FakeToolchains

if TYPE_CHECKING:
    from pathlib import Path


class Commands:
    """Runs commands on a project, in its folder."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.fakes = FakeShell()
        self.err = ""

    def run(self, *arguments: str, code: int = 0) -> str:
        """What a command writes to stdout."""
        assert run(arguments, shell=self.fakes.shell) == code
        out, self.err = self._capsys.readouterr()
        return out

    def document(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run(*arguments, "--json", code=code))
        return found


@pytest.fixture
def c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Commands:
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return Commands(capsys)


def test_build(c: Commands, tmp_path: Path) -> None:
    c.run("build", "demo.toml")
    assert c.err.startswith("demo: built, 22,837 bytes of flash")
    assert c.err.endswith("outputs in build/demo, lock demo.lock written\n")
    c.run("build", "demo.toml")
    assert "demo: up to date" in c.err
    (build,) = c.document("build", "demo.toml", "--out", "other", "--no-lock")["builds"]
    assert [stage["ran"] for stage in build["stages"]] == [True] * 10
    assert build["lock"] == "demo.lock"  # it holds
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == [
        *(".lock", ".orchestrator.json", ".out", ".work", "build.ninja"),
        *("cmake", "compile_commands.json", "current", "firmware.elf"),
        *("firmware.json", "gen", "include", "libdemo.a", "memory_plan.json"),
        *("models", "product.json", "provenance.intoto.json", "report.html"),
        *("report.json", "resolution.json", "sbom.cdx.json"),
        "selected_operators.yaml",
    ]


def test_build_explains(c: Commands) -> None:
    c.run("build", "demo.toml", "--explain")
    assert "extract net: runs (first build)\n" in c.err
    assert "net.forward" in c.err
    c.run("build", "demo.toml", "--explain")
    assert "lock: known\n" in c.err
    assert len(c.fakes.folder.runs) == 1


def test_build_without_a_compiler(c: Commands) -> None:
    c.fakes = FakeShell(toolchains=FakeToolchains(toolchain=None))
    assert c.run("build", "demo.toml", code=7) == ""
    assert c.err == "error[toolchain-missing]: zig is not installed\n"


def test_plan_tells_which_stages_run(c: Commands) -> None:
    first = c.document("plan", "demo.toml")
    assert {s["reason"] for s in first["stages"]} == {"first build"}
    c.run("build", "demo.toml")
    assert not any(s["runs"] for s in c.document("plan", "demo.toml")["stages"])
    assert "  lock                     known\n" in c.run("plan", "demo.toml")


def test_plan_without_a_compiler(c: Commands) -> None:
    c.run("build", "demo.toml")
    c.fakes = FakeShell(toolchains=FakeToolchains(toolchain=None))
    text = c.run("plan", "demo.toml")
    assert "toolchain  zig (not installed)\n" in text
    assert "  compile                  runs: toolchain was not looked at\n" in text
    assert "  generate                 known\n" in text


def test_check(c: Commands, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    c.fakes = FakeShell(toolchains=FakeToolchains(toolchain=None))
    assert c.run("check", "demo.toml").startswith("demo: everything fits: 3 kernels")
    assert sorted(tmp_path.rglob("*")) == before
    (tmp_path / "demo.toml").write_text(
        PROFILE + '[kernels]\nlibraries = ["quantized"]\n'
    )
    found = c.document("check", "demo.toml", code=5)
    assert {d["code"] for d in found["diagnostics"]} == {"no-kernel"}


def test_size(c: Commands) -> None:
    problem = c.document("size", "demo.toml", code=2)
    assert [d["code"] for d in problem["diagnostics"]] == ["no-report"]
    c.run("build", "demo.toml")
    assert c.document("size", "demo.toml")["totals"]["flash_bytes"] == 22837
    found = c.document("size", "demo.toml", "--without-model", "net")
    assert found["what_if"] == "--without-model net"
    assert len(c.fakes.folder.runs) == 2


def test_size_tells_that_a_build_is_stale(c: Commands, tmp_path: Path) -> None:
    c.run("build", "demo.toml")
    write_project(tmp_path, more='[budget]\nram = "4 MiB"\n')
    c.run("size", "demo.toml")
    assert "something changed since the last build" in c.err
    found = c.document("size", "demo.toml", "--without-model", "net", code=2)
    assert [d["code"] for d in found["diagnostics"]] == ["stale-build"]


def test_clean(c: Commands, tmp_path: Path) -> None:
    assert c.run("clean", "demo.toml") == "build/demo: nothing to remove\n"
    c.run("build", "demo.toml")
    (tmp_path / "build" / "demo" / "mine.txt").write_text("keep me")
    assert c.run("clean", "demo.toml") == (
        "build/demo: removed build outputs; kept mine.txt\n"
    )
    assert (tmp_path / "demo.lock").exists()


def test_lock_check(c: Commands, tmp_path: Path) -> None:
    found = c.document("lock", "demo.toml", "--check", code=8)
    assert [d["code"] for d in found["diagnostics"]] == ["stale-lock"]
    assert c.run("lock", "demo.toml") == "demo.lock: written\n"
    assert c.run("lock", "demo.toml", "--check") == "demo.lock: current\n"
    assert len(c.fakes.folder.runs) == 1
    outputs = c.document("lock", "demo.toml", "--check", "--outputs")["outputs"]
    assert outputs > 10
    # Elsewhere, on a copy of the objects, if the outputs are not whole.
    (tmp_path / "build" / "demo" / "firmware.elf").resolve().write_bytes(b"damaged")
    c.run("lock", "demo.toml", "--check")
    assert len(c.fakes.folder.runs) == 2
    c.run("lock", "demo.toml", "--check", "--outputs", code=8)
    assert "an output is not what the lock names" in c.err
    (tmp_path / "demo.toml").write_text(f"# new\n{PROFILE}")
    c.run("lock", "demo.toml", "--check", code=8)
    assert "profile: file demo.toml changed" in c.err
