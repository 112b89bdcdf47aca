"""The C++ tests: kernels, float math and tensors, under sanitizers."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from orchestrator.catalog import read_library
from tests.cpp.support.suite import build
from tests.unit.method.recorded_calls import reference_file

KERNELS = Path(__file__).parents[2] / "kernels"
DATA = Path(__file__).parents[1] / "data" / "kernels"
CORTEX_M = DATA.parent / "cortex_m"


@pytest.fixture(scope="module")
def programs() -> dict[str, Path]:
    return build()


def _in_place() -> str:
    """What kernels may have in the place of their output: operator, positions."""
    lines = []
    for library in ("cortex_m", "portable"):
        file = KERNELS / library / "functions.yaml"
        text = file.read_text(encoding="utf-8")
        for kernel in read_library(text, library=library, file=str(file)):
            names = [a.name for a in kernel.schema.arguments]
            at = [str(names.index(name)) for name in kernel.in_place]
            if at:
                lines.append(" ".join([str(kernel.operator), *at]))
    return "\n".join(lines)


@pytest.mark.toolchain
@pytest.mark.parametrize("name", ["all_dtypes", "float_only", "compact_1", "compact_2", "proved"])
def test_all_cases_pass(programs: dict[str, Path], name: str) -> None:
    done = subprocess.run(
        [programs[name], "--no-version"],
        env={
            "ORCH_REFERENCE": str(reference_file()),
            "ORCH_CORTEX_M": str(CORTEX_M / "calls.bin"),
            "ORCH_IN_PLACE": _in_place(),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout
    assert " 0 passed" not in done.stdout


@pytest.mark.parametrize(
    ("folder", "name", "maker"),
    [(DATA, "reference", "make_reference.py"), (CORTEX_M, "calls", "make_calls.py")],
)
def test_recorded_calls_are_those_that_were_made(folder: Path, name: str, maker: str) -> None:
    index = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    data = (folder / f"{name}.bin").read_bytes()
    assert hashlib.sha256(data).hexdigest() == index["sha256"]
    assert {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.py")
    } == index["made_by"], f"run {maker} again"
