"""Stage export with a process that exports nothing: what it runs, keeps and reports."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from orchestrator.build import build_product, inputs, open_build
from orchestrator.errors import ModelError
from tests.conftest import CORPUS
from tests.unit.build.fake_project import project_in
from tests.unit.build.fakes import FakeExporter, FakeShell

if TYPE_CHECKING:
    from pathlib import Path

PROFILE = """schema = 1
name = "demo"

[target]
cpu = "host"
toolchain = "zig"

[[models]]
name = "net"
source = "net.py:make"
"""
PROGRAM = (CORPUS / "mlp" / "model.pte").read_bytes()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "cache"))
    (tmp_path / "demo.toml").write_text(PROFILE)
    _write_code(tmp_path, "def make(): ...\n")
    return tmp_path


def _write_code(folder: Path, text: str) -> None:
    """Write the code of the model, as if that was some time ago."""
    (folder / "net.py").write_text(text)
    before = time.time() - 10
    os.utime(folder / "net.py", (before, before))


def _fakes(*warnings: tuple[str, str]) -> FakeShell:
    return FakeShell(exporter=FakeExporter(program=PROGRAM, warnings=[*warnings]))


def test_a_model_is_exported_and_built(folder: Path) -> None:
    fakes = _fakes(("default-layout", "save the copy"))
    report = build_product(project_in(folder), fakes.shell)
    (request,) = fakes.exporter.requests
    assert request["function"] == "make"
    assert request["file"] == str(folder / "net.py")
    assert report.exports == (("export net", "first export"),)
    assert fakes.reporter.stages["export net"] == "first export"
    assert "warning[default-layout]: model net: save the copy" in fakes.reporter.notes
    exports = dict(report.lock.exports)
    assert exports["net source"] == "net.py:make"
    assert dict(report.lock.python)["torch"] == "2.9"
    assert str(folder / "net.py") in report.inputs


def test_the_same_program_is_the_same_to_later_stages(folder: Path) -> None:
    build_product(project_in(folder), _fakes().shell)
    _write_code(folder, "def make(): ...  # more\n")
    fakes = _fakes()
    report = build_product(project_in(folder), fakes.shell)
    assert len(fakes.exporter.requests) == 1
    assert report.exports[0][1]
    assert report.plan.is_current
    assert report.lock_changed


LIBRARY = """
[kernels]
libraries = ["portable"]
[[kernels.custom]]
functions = "ops/functions.yaml"
sources = ["ops/ops.cpp"]
"""


def _offer(folder: Path, *bases: str) -> None:
    """A library of the user that offers these operators."""
    (folder / "ops").mkdir(exist_ok=True)
    (folder / "ops" / "ops.cpp").write_text("")
    (folder / "ops" / "functions.yaml").write_text(
        "".join(
            f"- func: my::{base}.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)\n"
            f"  kernels: [{{arg_meta: null, kernel_name: mine::{base}}}]\n"
            for base in bases
        )
    )
    (folder / "demo.toml").write_text(PROFILE + LIBRARY)


def _reason(folder: Path, asked: tuple[str, ...]) -> str:
    """Why a model whose export asks for operators is exported now."""
    fakes = _fakes()
    fakes.exporter.asked = asked
    _ = open_build(project_in(folder), fakes.shell)[inputs.EXPORTED]
    return fakes.reporter.stages["export net"]


def test_an_export_holds_while_the_kernels_that_it_asked_for_do(folder: Path) -> None:
    asked = ("my::one.out", "my::two.out", "aten::add.out")
    _offer(folder, "one")
    assert _reason(folder, asked) == "first export"
    assert not _reason(folder, asked)
    _offer(folder, "one", "three")
    assert not _reason(folder, asked)
    _offer(folder, "one", "two")
    assert _reason(folder, asked) == "my::two.out now has a kernel"
    _offer(folder, "two")
    assert _reason(folder, asked) == "my::one.out lost its kernel"


def test_what_was_decomposed_is_said(folder: Path) -> None:
    fakes = _fakes()
    fakes.exporter.decomposed = {"aten::linear": 2, "aten::celu": 1}
    _ = open_build(project_in(folder), fakes.shell)[inputs.EXPORTED]
    assert (
        "net: decomposed for want of a kernel: aten::celu (1), aten::linear (2)"
    ) in fakes.reporter.notes


def test_a_process_that_dies_is_reported_with_its_output(folder: Path) -> None:
    with pytest.raises(ModelError) as caught:
        _ = open_build(project_in(folder), FakeShell().shell)[inputs.EXPORTED]
    (problem,) = caught.value.diagnostics
    assert problem.code == "export-crashed"
    log = folder / "out" / ".work" / "exports" / "net.log"
    assert problem.notes == (
        ("found", "status -11"),
        ("its end", "Segmentation fault"),
        ("log", str(log)),
    )
    assert log.read_text() == "Segmentation fault\n"
