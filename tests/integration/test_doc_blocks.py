"""The commands of README, docs and examples are run, in the order of their pages.

`tests/unit/test_doc_blocks.py` holds that every command is understood; here, what can
run without PyTorch and the code of others runs. `PARSED` says of all other blocks why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.doc_blocks import ROOT, blocks, inline_commands
from tests.tools import need_cmake, need_tool, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

GETTING_STARTED = "docs/getting-started.md"
EXPORTED = ROOT / "tests" / "data" / "getting_started"

RUN = {
    # In these folders of a checkout, or in an empty one.
    "README.md 1": ".",
    "docs/executorch-compatibility.md 1": "examples/models",
    **{f"{GETTING_STARTED} {number}": "empty" for number in range(1, 6)},
    "docs/report.md 1": ".",
    "docs/report.md 2": ".",
    "examples/cmake/README.md 1": "examples/cmake",
    "examples/custom_ops/README.md 1": ".",
    "examples/delegate/README.md 1": ".",
    "examples/digits/README.md 1": ".",
    "examples/hello/README.md 1": ".",
    "examples/own_board/README.md 1": ".",
}
PARSED = {
    "README.md 2": "these tests",
    "docs/cmake.md 1": "runs in examples/cmake/README.md 1",
    "docs/export.md 1": "needs PyTorch; tests/interop exports this example",
    "docs/runtime.md 1": "stands for a line of the user's own build",
    "docs/testing.md 1": "these tests",
    "docs/testing.md 2": "these tests, many times",
    "docs/testing.md 3": "a run of days",
    "docs/testing.md 4": "needs PyTorch",
    "docs/testing.md 5": "needs a finding of the fuzzer",
    "examples/cmsis_nn/README.md 1": "needs CMSIS-NN, see test_cmsis_nn.py",
    "examples/digits/README.md 2": "needs PyTorch and scikit-learn",
    "examples/python_model/README.md 1": "needs PyTorch; tests/interop exports it",
}
NOT_HERE = (
    # Already here: this Python, with the project and its compiler.
    *("python3 -m venv ", ". .venv/", "pip install ", ".venv/bin/pip install "),
    # Needs PyTorch: what it writes is in tests/data, see EXPORTED.
    "python export.py",
    # ExecuTorch's own tools: see tests/interop.
    "python -m executorch.",
)
OUTPUT = {
    "examples/cmake/README.md 1": "12\n21\n34\n43\n",
    "examples/hello/README.md 1": "keyword ",
    f"{GETTING_STARTED} 4": " ok\n",
}
PROFILE = blocks("toml")[f"{GETTING_STARTED} 1"].text
"""What `init` writes there, without its comments."""


def test_every_block_is_run_or_there_is_a_reason() -> None:
    assert set(RUN) | set(PARSED) == set(blocks("sh"))
    assert not set(RUN) & set(PARSED)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of what the pages work with, with an empty folder beside it."""
    for cpu in ("host", "cortex-m55"):
        need_toolchain(cpu, "zig")
    folder = tmp_path_factory.mktemp("documented")
    for name in ("profiles", "examples"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("person", "wake"):
        shutil.copyfile(EXPORTED / "model.pte", folder / f"examples/models/{name}.pte")
    (folder / "empty").mkdir()
    program = folder / "bin" / "orchestrator"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m orchestrator "$@"\n')
    program.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _run(script: str, checkout: Path, folder: str) -> str:
    """What a script prints, which must succeed."""
    path = (checkout / "bin", Path(need_cmake()).parent, os.environ["PATH"])
    done = subprocess.run(
        ["/bin/bash", "-e", "-o", "pipefail", "-c", script],
        cwd=checkout / folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PATH": os.pathsep.join(map(str, path)),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("name", RUN)
def test_a_block_runs(name: str, checkout: Path) -> None:
    need_tool("qemu-system-arm")
    need_tool("cc")
    if name.startswith(GETTING_STARTED):
        for file in EXPORTED.glob("*.[pn]*"):
            shutil.copy(file, checkout / "empty")
        profile = checkout / "empty" / "doorbell.toml"
        if "orchestrator init" in blocks("sh")[name].text:
            profile.unlink(missing_ok=True)
        else:
            profile.write_text(PROFILE)
    commands = [
        command.removeprefix(".venv/bin/")
        for command in blocks("sh")[name].commands
        if not command.startswith(NOT_HERE)
    ]
    assert OUTPUT.get(name, "") in _run("\n".join(commands), checkout, RUN[name])
    if "orchestrator init" in blocks("sh")[name].text:
        assert tomllib.loads(profile.read_text()) == tomllib.loads(PROFILE)


def test_the_commands_in_the_readme_run(checkout: Path) -> None:
    """Of the tour, those that have all their arguments; `verify` runs elsewhere."""
    need_tool("qemu-system-arm")
    commands = [c for c in inline_commands("README.md") if c[1] != "verify"]
    said = _run("\n".join(map(" ".join, commands)), checkout, ".")
    assert " kws.forward  0 " in said
    assert said.count(" ok\n") >= 1
