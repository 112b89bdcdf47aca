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
