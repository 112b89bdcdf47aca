"""Faults that random programs found, or must find: put back, they are found again.

A fault is a patch in tests/data/faults. Beside it lies the smallest program that random
programs found it with (`python -m tests.differential --keep`).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.method.separate import plan_faults
from orchestrator.method.state import with_state
from orchestrator.program.reader import read_program
from tests.differential.judge import PLACES
from tests.differential.kept import read_kept, wrong_calls
from tests.integration.test_differential import COUNT, SEED
from tests.tools import need_emulator, need_tool, need_toolchain
from tests.unit.schemas import schemas

if TYPE_CHECKING:
    from tests.differential.judge import Place

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "faults"
FAULTS = sorted(path.stem for path in DATA.glob("*.patch"))
KEPT = sorted(path.stem for path in DATA.glob("*.pte"))
"""One in thousands of programs shows those without a patch."""
COPIED = ("orchestrator", "kernels", "runtime", "tests/differential", "tests/unit")


@pytest.mark.toolchain
@pytest.mark.qemu
@pytest.mark.parametrize("place", PLACES[:4], ids=lambda place: place.name)
def test_the_smallest_programs_are_right(place: Place, tmp_path: Path) -> None:
    need_toolchain("cortex-m4", "zig")
    need_emulator("cortex-m55")
    kept = [read_kept(DATA / name) for name in KEPT]
    assert len(kept) > len(FAULTS) >= 6
    assert wrong_calls(kept, place, tmp_path) == [[]] * len(kept)


def test_a_call_over_its_own_input_is_said() -> None:
    data = read_kept(DATA / "over_its_input").program
    program = with_state(read_program(data, file="m.pte"), schemas())
    texts = [f.text(m) for m in program.methods for f in plan_faults(m, schemas())]
    assert any(text.endswith(", which it reads") for text in texts), texts


@pytest.mark.parametrize("name", FAULTS)
def test_patches_apply(name: str) -> None:
    """Who moves the code moves the fault as well."""
    text = (DATA / f"{name}.patch").read_text()
    command = [need_tool("patch"), "--dry-run", "-p1", "--fuzz=0", "--batch"]
    done = subprocess.run(
        command, cwd=ROOT, input=text, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.nightly
@pytest.mark.toolchain
@pytest.mark.qemu
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_again(name: str, tmp_path: Path) -> None:
    patch = need_tool("patch")
    for folder in COPIED:
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "tests" / "tools.py", tmp_path / "tests")
    text = (DATA / f"{name}.patch").read_text()
    subprocess.run([patch, "-p1"], cwd=tmp_path, input=text, text=True, check=True)
    command = [sys.executable, "-m", "tests.differential", "--no-reduce"]
    command += ["--count", str(COUNT), "--seed", str(SEED)]
    command += ["--keep", str(tmp_path / "found")]
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("seed ")
    assert "cannot be built" not in done.stdout
