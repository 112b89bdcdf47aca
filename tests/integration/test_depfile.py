"""`--depfile`: what a build or an operator list was made from, for other builds."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import orchestrator
from orchestrator.cli.fastpath import unchanged_build
from orchestrator.cli.main import run
from tests.conftest import CORPUS
from tests.integration.workspace import ROOT
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.workspace import Workspace

PACKAGE = Path(orchestrator.__file__).parent
PROGRAM = {
    *(str(path) for path in PACKAGE.rglob("*.py")),
    *(str(path) for path in (PACKAGE / "emit").rglob("*.jinja")),
    *(str(path) for path in (PACKAGE / "report" / "page").rglob("*.*")),
    *(str(path) for path in PACKAGE.glob("targets/board_files/*.toml")),
    str(PACKAGE / "memory" / "code_sizes.json"),
    str(PACKAGE / "build" / "speeds.json"),
    str(PACKAGE / "method" / "passes" / "inventory.csv"),
    str(PACKAGE / "targets" / "uart_drivers.toml"),
}


def rule(path: Path) -> tuple[str, set[str]]:
    """Target and inputs of a depfile whose paths have no odd characters."""
    target, *inputs = path.read_text().replace("\\\n", "").split()
    assert target.endswith(":")
    assert len(inputs) == len(set(inputs))
    return target[:-1], set(inputs)


def problems(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)["diagnostics"]
    return found


@pytest.mark.toolchain
def test_a_build_lists_what_it_was_made_from(w: Workspace) -> None:
    (w.folder / "base.toml").write_text('schema = 1\n[target]\ncpu = "host"\n')
    w.profile.write_text(
        w.profile.read_text()
        .replace("[target]", 'extends = "base.toml"\n[target]')
        .replace('cpu = "host"\n', "")
        + '\n[operators]\ninclude_yaml = ["more.yaml"]\n'
    )
    (w.folder / "more.yaml").write_text("- op: mm.out\n")
    depfile = w.folder / "made.d"
    w.build("--depfile", str(depfile))
    target, inputs = rule(depfile)
    assert target == str(w.out / "libproduct.a")
    assert inputs >= PROGRAM
    own = {p for p in inputs - PROGRAM if p.startswith(f"{w.folder}/")}
    names = {"product.toml", "base.toml", "more.yaml", "model.pte"}
    libraries = ("cortex_m", "cortex_m_int16", "quantized")
    unused = {w.native / "kernels" / name for name in libraries}
    sources = {
        str(p)
        for p in w.native.rglob("*")
        if p.suffix in (".cpp", ".h", ".yaml") and unused.isdisjoint(p.parents)
    }
    assert own == {str(w.folder / name) for name in names} | sources
    # What is left is the compiler; nothing that was made is there.
    rest = inputs - PROGRAM - own
    assert rest
    assert all(os.access(path, os.X_OK) for path in rest)
    assert not any(Path(path).is_dir() for path in inputs)

    # With nothing to do, seen by the whole program and before it is imported.
    text = depfile.read_bytes()
    for build in (w.build, _fast(w)):
        depfile.unlink()
        build("--depfile", str(depfile))
        assert depfile.read_bytes() == text


def _fast(w: Workspace) -> Callable[..., object]:
    def build(*arguments: str) -> None:
        words = [str(w.profile), "--out", str(w.out), *arguments]
        assert unchanged_build(words)

    return build


@pytest.mark.toolchain
def test_the_target_may_be_named(w: Workspace) -> None:
    depfile = w.folder / "made.d"
    options = ("--depfile", str(depfile), "--depfile-target", "my stamp")
    w.build(*options)
    assert depfile.read_text().startswith("my\\ stamp: \\\n")


@pytest.mark.toolchain
def test_a_lock_that_must_not_change_is_an_input(w: Workspace) -> None:
    depfile = w.folder / "made.d"
    w.build("--depfile", str(depfile))
    assert str(w.lock) not in rule(depfile)[1]
    w.build("--depfile", str(depfile), "--locked")
    assert str(w.lock) in rule(depfile)[1]


@pytest.mark.toolchain
def test_a_build_that_fails_leaves_the_depfile(w: Workspace) -> None:
    depfile = w.folder / "made.d"
    w.build("--depfile", str(depfile))
    text = depfile.read_bytes()
    w.profile.write_text("schema = 1\n")
    assert w.run("build", "--depfile", str(depfile)).code == 3
    assert depfile.read_bytes() == text


@pytest.mark.toolchain
def test_a_path_that_a_depfile_cannot_hold(w: Workspace) -> None:
    w.capsys.readouterr()
    words = ["--depfile", str(w.folder / "x.d"), "--depfile-target", "a\tb", "--json"]
    assert run(["build", str(w.profile), "--out", str(w.out), *words]) == 2
    assert problems(w.capsys) == [
        {
            "code": "bad-depfile",
            "message": "a depfile cannot hold the path of a file",
            "where": None,
            "notes": [
                {"label": "found", "text": "'a\\tb'"},
                {"label": "expected", "text": "a path without tabs and line ends"},
            ],
            "hint": "rename the file or its folder, or build without --depfile",
        }
    ]


@pytest.mark.toolchain
def test_a_library_of_ones_own_is_an_input(tmp_path: Path) -> None:
    need_toolchain("host", "zig")
    folder = tmp_path / "ops"
    shutil.copytree(ROOT / "examples" / "custom_ops", folder)
    depfile = tmp_path / "x.d"
    words = ["--out", str(tmp_path / "out"), "--depfile", str(depfile)]
    assert run(["build", str(folder / "host.toml"), *words]) == 0
    own = {Path(p).name for p in rule(depfile)[1] if Path(p).parent == folder}
    sources = {"op_scaled_add.cpp", "op_squared_relu.cpp", "squared_relu.h"}
    assert own == {"host.toml", "model.pte", "functions.yaml"} | sources


def test_a_depfile_is_about_one_profile(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["a.toml", "b.toml", "--depfile", "x.d", "--out", "x", "--json"]
    assert run(["build", *words]) == 2
    assert [p["message"] for p in problems(capsys)] == [
        "--out takes one profile",
        "--depfile takes one profile",
    ]


@pytest.mark.parametrize("words", [["build", "a.toml"], ["plumbing", "oplist", "--output", "x"]])
def test_a_target_needs_a_depfile(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words, "--depfile-target", "x.a", "--json"]) == 2
    (problem,) = problems(capsys)
    assert problem["message"] == "--depfile-target requires --depfile"


def test_an_operator_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = CORPUS / "add_mul" / "model.pte"
    Path("more.yaml").write_text("- op: relu.out\n")
    words = ["--model", str(model), "--yaml", "more.yaml", "--depfile", "x.d"]
    assert run(["plumbing", "oplist", *words, "--output", "ops.yaml"]) == 0
    target, inputs = rule(Path("x.d"))
    assert target == str(tmp_path / "ops.yaml")
    assert inputs == {str(model), str(tmp_path / "more.yaml")} | PROGRAM
