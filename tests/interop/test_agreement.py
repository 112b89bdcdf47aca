"""Comparing lowered programs with PyTorch, in the stage that exports."""

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


def _differs(method: str) -> list[str | None]:
    what = "output 0 of the lowered program differs from PyTorch's"
    return ["export-differs", what, method]


def test_wrong_items_are_found_and_uncompared_methods_are_named() -> None:
    """Items may only be wrong behind a step; a warning names methods not compared."""
    done = subprocess.run(
        (PYTHON, "-W", "ignore", "-m", "tests.interop.agreement_checks"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    start = "values are not compared with PyTorch's ("
    state = f"{start}keep_random: random numbers; read: it reads state of such a method)"
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "right": [],
        "one": _differs("add"),
        "few": _differs("add"),
        "few, of a step": [],
        "more, of a step": _differs("floor"),
        "few, of a quotient": [],
        "few, of a comparison": [],
        "few, of the largest": _differs("largest"),
        "few, beside places": [],
        "few, of a step in state": [],
        "random": [f"{start}random: random numbers)"],
        "random, then wrong": _differs("add"),
        "random state": [state],
        "random state, then wrong": _differs("add"),
    }
