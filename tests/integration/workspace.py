"""Builds in folders of their own: sources to edit, steps to count."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.cli.main import run
from orchestrator.shell import sources
from orchestrator.shell.publish import published_files
from tests.conftest import CORPUS

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
CASE = CORPUS / "kws_dscnn_fp32"
"""Keyword spotting: its model is what products here have."""
SCENARIO = ("--scenario", str(CASE / "case.json"))
NATIVE = ("runtime", "kernels")
MACHINE_FILES = frozenset({"compile_commands.json", "build.ninja"})
"""Published files that name folders of the machine."""

_STEP = re.compile(r"^\[\d+/\d+\] (\w+) (\S+)$", re.MULTILINE)
_STAGE = re.compile(r"^(\w+(?: \w+)?): runs \((.*)\)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What one build said and did."""

    code: int
    out: str
    err: str

    @property
    def steps(self) -> set[str]:
        """Steps of ninja: `compile src/runtime/src/error.cpp`."""
        return {" ".join(step) for step in _STEP.findall(self.err)}

    @property
    def compiled(self) -> set[str]:
        """Sources that were compiled or assembled."""
        kinds = ("compile", "assemble")
        return {s for kind, s in _STEP.findall(self.err) if kind in kinds}

    @property
    def stages(self) -> dict[str, str]:
        """Stages that ran by label, with their reasons; needs --explain."""
        return dict(_STAGE.findall(self.err))

    @property
    def problems(self) -> list[dict[str, Any]]:
        """Diagnostics; needs --json."""
        document = json.loads(self.out)
        assert document["exit_code"] == self.code
        found: list[dict[str, Any]] = document["diagnostics"]
        return found


def notes_of(problem: dict[str, Any]) -> list[tuple[str, str]]:
    """(label, text) pairs of a diagnostic in JSON."""
    return [(note["label"], note["text"]) for note in problem["notes"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A profile with its model, sources and outputs, all below one folder."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    @property
    def profile(self) -> Path:
        """The profile."""
        return self.folder / "product.toml"

    @property
    def lock(self) -> Path:
        """The lock beside it."""
        return self.folder / "product.lock"

    @property
    def model(self) -> Path:
        """Its model."""
        return self.folder / "model.pte"

    @property
    def native(self) -> Path:
        """Folder of runtime/ and kernels/."""
        return self.folder / "native"

    @property
    def out(self) -> Path:
        """Build folder."""
        return self.folder / "out"

    def run(self, command: str, *arguments: str) -> Build:
        """Carry out a command on the profile."""
        self.capsys.readouterr()
        # Every step is shown: tests count them.
        words = [command, str(self.profile), "--out", str(self.out), "-v", *arguments]
        code = run(words)
        said = self.capsys.readouterr()
        return Build(code=code, out=said.out, err=said.err)

    def build(self, *arguments: str) -> Build:
        """Build with reasons; it must succeed."""
        done = self.run("build", "--explain", *arguments)
        assert done.code == 0, done.err
        return done

    def outputs(self) -> dict[str, bytes]:
        """Published files that do not name folders of the machine."""
        found = published_files(self.out)
        return {k: v for k, v in found.items() if k not in MACHINE_FILES}

    def state(self) -> tuple[dict[str, bytes], bytes | None]:
        """All published files, and the lock."""
        lock = self.lock.read_bytes() if self.lock.exists() else None
        return published_files(self.out), lock

    def edit(self, name: str, text: str) -> Path:
        """Add text to a file below the folder."""
        path = self.folder / name
        path.write_text(path.read_text() + text)
        return path


def write_product(
    folder: Path,
    *,
    case: str = "kws_dscnn_fp32",
    cpu: str = "host",
    toolchain: str = "zig",
    extra: str = "",
) -> None:
    """A profile `product.toml` with the model of a case, and nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(CORPUS / case / "model.pte", folder / "model.pte")
    (folder / "product.toml").write_text(
        f'schema = 1\nname = "product"\n\n[target]\ncpu = "{cpu}"\n'
        f'toolchain = "{toolchain}"\n\n'
        f'[[models]]\nname = "model"\npath = "model.pte"\n{extra}'
    )


_SIGMOID = """
- func: aten::sigmoid.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  kernels:
    - arg_meta: null
      kernel_name: other::sigmoid_out
  sources: [op_sigmoid.cpp]
  dtypes: [Half]
"""


def without_sigmoid(folder: Path) -> str:
    """A piece of profile with which `aten::sigmoid.out` of Float has no kernel."""
    library = folder / "other"
    library.mkdir(parents=True)
    (library / "functions.yaml").write_text(_SIGMOID)
    (library / "op_sigmoid.cpp").write_text("")
    return (
        '[[kernels.custom]]\nname = "other"\nfunctions = "other/functions.yaml"\n'
        '[kernels.operators]\n"aten::sigmoid.out" = ["other"]\n'
    )


def copy_native(folder: Path) -> None:
    """A copy of runtime/ and kernels/."""
    for name in NATIVE:
        shutil.copytree(ROOT / name, folder / name)


def use_native(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have builds of this process take runtime/ and kernels/ from a folder."""
    monkeypatch.setattr(sources, "native_root", lambda: folder)


def copy_checkout(folder: Path, *more: str) -> None:
    """A copy of all that a build needs: program, sources, and what else is named."""
    skipped = shutil.ignore_patterns("__pycache__", "*.lock")
    for name in ("orchestrator", *NATIVE, *more):
        shutil.copytree(ROOT / name, folder / name, ignore=skipped)


def orchestrator(
    *arguments: str, cwd: Path, env: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run `python -m orchestrator` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", *arguments],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
