"""Accelerated lowering changes no graph on the way, and no byte at the end."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from orchestrator.lowering import Mechanism

PYTHON = os.environ.get("EXECUTORCH_PYTHON", "")
ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.executorch,
    pytest.mark.skipif(not PYTHON, reason="EXECUTORCH_PYTHON is not set; see `nox -s interop`"),
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
    found: dict[str, dict[str, Any]] = _run("compare_lowering.py")
    return found


def test_every_graph_and_every_byte_is_the_same() -> None:
    for name, net in _compared().items():
        assert net["difference"] is None, name
        assert net["same_bytes"], name
        assert net["stages"] > 20, name


def test_the_mechanisms_have_done_something() -> None:
    for name in ("cortex-m", "ethos-u", "random 1"):
        ledger = _compared()[name]["ledger"]
        assert ledger["copied"] > 2 * ledger["dispatched"], name
        assert ledger["generated"] < ledger["deferred"] / 10, name


def test_the_ledger_has_every_pass() -> None:
    ledger = _compared()["cortex-m"]["ledger"]
    runs = ledger["passes"]
    assert {run["manager"] for run in runs} >= {"to_edge", "CortexMPassManager"}
    assert "AtenToCortexMPass" in {run["name"] for run in runs}
    for count in ("copied", "remembered", "dispatched"):
        assert sum(run[count] for run in runs) == ledger[count]
    assert {run["skipped"] for run in runs} == {"", "found nothing to change"}
    assert all(run["cpu_s"] >= 0 for run in runs)


def test_each_mechanism_was_compared_alone() -> None:
    assert {f"random 1, {mechanism}" for mechanism in Mechanism} < set(_compared())


def test_passes_hand_on_what_is_not_targeted() -> None:
    found = _laws()["targets"]
    assert found["wrong"] == []
    assert found["never left"] == []
    assert found["never shown"] == []
    assert found["guarded"] > 60


@pytest.mark.parametrize(
    "law",
    [
        "restores",
        "restores after an error",
        "nests",
        "reads guards",
        "leaves no stamps",
        "refuses other versions",
        "generates code on demand",
        "notices another operator",
        "notices other metadata",
    ],
)
def test_law(law: str) -> None:
    assert _laws()[law] is True


@cache
def _laws() -> dict[str, Any]:
    found: dict[str, Any] = _run("lowering_laws.py")
    return found
