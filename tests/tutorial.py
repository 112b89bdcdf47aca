"""docs/getting-started.md, followed from an empty folder in a bare environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from orchestrator.shell.distribution import DISTRIBUTION
from tests.doc_blocks import ROOT, Command, steps
from tests.doc_session import Session
from tests.tools import need_tool

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = "docs/getting-started.md"
EXAMPLE = ROOT / "examples" / "gestures"
EXPORTED = ("gestures.csv", "gestures.pte", "in0.npy", "out0.npy")
"""What the steps that need PyTorch write; the example has them."""
WEIGHTS = "weights.npz"
"""What training writes; the example has it, too."""
NEEDS_PYTORCH = (
    f'pip install "{DISTRIBUTION}[zig,export]"',
    "python train.py",
    "orchestrator export export.toml",
    "cp build/export/",
)


def make_distributions(folder: Path) -> Path:
    """Write the sdist of this checkout, and the wheel made from it; that wheel."""
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", folder)
    done = subprocess.run([*command, ROOT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def _declared(wheel: Path, extra: str) -> Iterator[str]:
    """Names of all distributions that an installation with an extra brings."""
    with ZipFile(wheel) as archive:
        (path,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(path)
    waiting = list(Metadata.from_email(text).requires_dist or ())
    known: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        if requirement.name in known:
            continue
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        known.add(requirement.name)
        yield requirement.name
        needed = distribution(requirement.name).requires or ()
        waiting += [Requirement(text) for text in needed]


def _prepare(environment: Path, wheel: Path, executorch_python: str | None) -> None:
    """Put what the project declares to need into an environment, without an index.

    Packages of an interpreter that has ExecuTorch come first: versions agree there.
    """
    (packages,) = environment.glob("lib/python*/site-packages")
    there: set[str] = set()
    if executorch_python:
        script = "import sysconfig; print(sysconfig.get_path('purelib'))"
        done = subprocess.run(
            [executorch_python, "-c", script], capture_output=True, text=True, check=True
        )
        (packages / "executorch.pth").write_text(done.stdout)
        found = distributions(path=[done.stdout.strip()])
        there = {canonicalize_name(own.name) for own in found}
        # That of `venv` is too old for PyTorch; pip would replace it.
        for old in packages.glob("setuptools*"):
            shutil.rmtree(old)
    for name in _declared(wheel, extra="zig"):
        own = distribution(name)
        if canonicalize_name(name) in there:
            continue
        for top in {file.parts[0] for file in own.files or ()} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(own.locate_file(top))))


def _environment(home: Path, wheel: Path) -> dict[str, str]:
    """Variables of a new user: system programs, this Python, and no network for pip."""
    bin_folder = home / "bin"
    bin_folder.mkdir(parents=True)
    python = bin_folder / "python3"
    base = Path(sys.base_prefix) / "bin" / Path(sys.executable).name
    python.write_text(f'#!/bin/sh\nexec "{base}" "$@"\n')
    python.chmod(0o755)
    tools = ("qemu-system-arm", "arm-none-eabi-gcc")
    folders = (str(Path(need_tool(tool)).parent) for tool in tools)
    return {
        "HOME": str(home),
        "PATH": os.pathsep.join((str(bin_folder), *folders, os.defpath)),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheel.parent),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def follow(
    folder: Path,
    wheel: Path,
    executorch_python: str | None = None,
    *,
    corrected: Path | None = None,
) -> Path:
    """Follow the page in an empty folder; where the reader ends up.

    Without an interpreter that has ExecuTorch, checked-in files stand for what the
    steps that need PyTorch write, and for nothing else.
    """
    reader = folder / "reader"
    reader.mkdir()
    session = Session(reader, _environment(folder / "home", wheel), corrected=corrected)
    skipped = set()
    for step in steps(PAGE):
        line = step.line if isinstance(step, Command) else ""
        needs = next((start for start in NEEDS_PYTORCH if line.startswith(start)), None)
        if needs and executorch_python is None:
            skipped.add(needs)
            for name in EXPORTED:
                shutil.copy(EXAMPLE / name, reader)
            continue
        if isinstance(step, Command) and line == "python train.py":
            # Training rounds as the processor does: the figures are of one set of weights.
            session.follow(replace(step, shown=("...",)))
            shutil.copy(EXAMPLE / WEIGHTS, reader)
            continue
        session.follow(step)
        if " -m venv " in line:
            _prepare(reader / ".venv", wheel, executorch_python)
    assert executorch_python or skipped == set(NEEDS_PYTORCH)
    return reader
