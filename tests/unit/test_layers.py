"""The package's floors, and what may not be imported to start."""

from __future__ import annotations

import subprocess
import sys

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.integration.workspace import ROOT


def test_imports_keep_the_contracts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_imports(".importlinter", no_cache=True) == EXIT_STATUS_SUCCESS


def _loaded_by(statement: str) -> set[str]:
    """Top-level modules that a statement adds to a bare interpreter's."""
    code = (
        "import sys; before = set(sys.modules)\n"
        f"{statement}\n"
        "print(*{m.partition('.')[0] for m in set(sys.modules) - before})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


THIRD_PARTY = {"pydantic", "pydantic_core", "yaml", "rich", "pycxxfilt", "ninja"}
THIRD_PARTY |= {"tomli", "numpy", "flatbuffers"}


@pytest.mark.parametrize(
    "module",
    ["cli.main", "core.dtype", "core.operator", "errors", "program.reader", "selection.extract"],
)
def test_what_every_command_imports_needs_no_other_package(module: str) -> None:
    assert not _loaded_by(f"import orchestrator.{module}") & THIRD_PARTY


def test_a_build_with_nothing_to_do_imports_next_to_nothing() -> None:
    loaded = _loaded_by("import orchestrator.cli.fastpath, orchestrator.__main__")
    assert not loaded & (THIRD_PARTY | {"argparse", "dataclasses", "pathlib", "typing"})
