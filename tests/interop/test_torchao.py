"""Models that torchao has quantized to 4 bits, in the stage that exports."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from orchestrator.program.reader import read_program

PYTHON = os.environ.get("EXECUTORCH_PYTHON", "")
ROOT = Path(__file__).parents[2]
STORED = ROOT / "tests" / "data" / "torchao"

OPERATORS = {
    "groups": "quantized_decomposed::mixed_linear.out",
    "rows": "quantized_decomposed::mixed_linear.out",
    "image": "cortex_m::quantized_conv2d.out",
}
"""By model: what takes its weights."""

pytestmark = [
    pytest.mark.executorch,
    pytest.mark.skipif(not PYTHON, reason="EXECUTORCH_PYTHON is not set; see `nox -s interop`"),
]


def test_torchao_gives_the_programs_that_tests_have(tmp_path: Path) -> None:
    done = subprocess.run(
        (PYTHON, "-m", "tests.data.torchao.make_programs", str(tmp_path)),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name, operator in OPERATORS.items():
        made, stored = (np.load(folder / f"{name}.out0.npy") for folder in (tmp_path, STORED))
        assert np.allclose(made, stored, rtol=0, atol=1e-5 if name != "image" else 0.1)
        program = (tmp_path / f"{name}.model.pte").read_bytes()
        (method,) = read_program(program, file=name).methods
        names = [str(operator) for operator in method.operators]
        assert operator in names
        assert not any("dequantize_affine" in name for name in names)


def test_weights_elsewhere_than_in_linear_layers_export() -> None:
    done = subprocess.run(
        (PYTHON, "-W", "ignore", "-m", "tests.interop.int_weight_checks"),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    byte, four, two = (
        f"quantized_decomposed.embedding_{kind}.default" for kind in ("byte", "4bit", "2bit")
    )
    # The other use of tied weights takes floats.
    assert found == {
        "8 bits": [byte, 0.0],
        "zero points": [byte, 0.0],
        "groups": [four, 0.0],
        "3 bits": [four, 0.0],
        "2 bits": [two, 0.0],
        "tied": [byte, 0.0],
    }
