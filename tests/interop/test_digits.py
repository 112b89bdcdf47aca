"""examples/digits: its programs are what it exports, and its code can be evaluated."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from orchestrator.cli.main import run
from orchestrator.shell.toolchain import InstalledToolchains
from tests.tools import need_toolchain

PYTHON = os.environ.get("EXECUTORCH_PYTHON", "")
DIGITS = Path(__file__).parents[2] / "examples" / "digits"

pytestmark = [
    pytest.mark.executorch,
    pytest.mark.skipif(not PYTHON, reason="EXECUTORCH_PYTHON is not set; see `nox -s interop`"),
]


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example."""
    monkeypatch.setenv("ORCHESTRATOR_EXPORT_PYTHON", PYTHON)
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "cache"))
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(DIGITS, tmp_path / "digits", ignore=ignored))


@pytest.mark.parametrize("kind", ["float", "int8"])
def test_the_programs_are_what_the_profiles_export(kind: str, digits: Path, tmp_path: Path) -> None:
    profile, out = digits / f"export-{kind}.toml", tmp_path / "out"
    assert run(["export", str(profile), "--out", str(out)]) == 0
    made = (out / "exported" / "digits" / "model.pte").read_bytes()
    assert made == (DIGITS / f"digits_{kind}.pte").read_bytes()


@pytest.mark.toolchain
def test_python_code_is_evaluated_as_exported_for_the_board(
    digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", InstalledToolchains().name_for_host())
    locks = {path: path.read_bytes() for path in digits.glob("*.lock")}
    found = []
    for name in ("export-int8", "digits-m55"):
        capsys.readouterr()
        arguments = ("--data", str(digits / "digits.npz"), "--samples", "898:998")
        profile, out = str(digits / f"{name}.toml"), str(tmp_path / name)
        words = ["evaluate", profile, "--json", "--out", out, *arguments]
        assert run(words) == 0
        found.append(json.loads(capsys.readouterr().out))
    for key in ("on", "samples", "metric", "confusion", "worst"):
        assert found[0][key] == found[1][key]
    assert {path: path.read_bytes() for path in digits.glob("*.lock")} == locks
