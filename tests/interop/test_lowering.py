"""Accelerated lowering changes no graph on the way, and no byte at the end."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

PYTHON = os.environ.get("EXECUTORCH_PYTHON", "")
ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.executorch,
    pytest.mark.skipif(
        not PYTHON, reason="EXECUTORCH_PYTHON is not set; see `nox -s interop`"
    ),
]


def _run(script: str, *words: str) -> Any:
    done = subprocess.run(
        [PYTHON, str(ROOT / "tests" / "interop" / script), *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@cache
def _compared() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = _run(
        "compare_lowering.py", "provenance", "recompile", "memo", "texts", "collector"
    )
    return found


def test_every_graph_and_every_byte_is_the_same() -> None:
    for name, net in _compared().items():
        assert net["difference"] is None, name
        assert net["same_bytes"], name
        assert net["stages"] > 20, name


def test_the_mechanisms_have_done_something() -> None:
    for name in ("cortex-m", "ethos-u", "random 1"):
        ledger = _compared()[name]["ledger"]
        assert ledger["remembered"] > 2 * ledger["dispatched"], name
        assert ledger["generated"] < ledger["deferred"] / 10, name


@pytest.mark.parametrize(
    "law",
    [
        "restores",
        "restores after an error",
        "nests",
        "describes on demand",
        "refuses other versions",
        "generates code on demand",
        "notices another operator",
        "notices other metadata",
    ],
)
def test_law(law: str) -> None:
    assert _laws()[law] is True


@cache
def _laws() -> dict[str, bool]:
    found: dict[str, bool] = _run("lowering_laws.py")
    return found
