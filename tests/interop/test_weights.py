"""Weights that a model computes, in the stage that exports."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

PYTHON = os.environ.get("EXECUTORCH_PYTHON", "")
ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.executorch,
    pytest.mark.skipif(not PYTHON, reason="EXECUTORCH_PYTHON is not set; see `nox -s interop`"),
]


def test_weights_of_constants_become_constants() -> None:
    done = subprocess.run(
        (PYTHON, "-m", "tests.interop.weight_checks"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name: (m["constant"], m["layers"]) for name, m in found.items()} == {
        "normalized": (3, 3),
        "standardized": (1, 1),
        "split": (2, 2),
        "counted": (0, 1),
        "given": (0, 1),
        "random": (0, 1),
    }
    assert all(m["same"] for m in found.values())
