"""How much faster accelerated lowering is: all mechanisms, and each alone."""

from __future__ import annotations

import json
import os
import subprocess
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from benchmarks.clock import ROOT
from benchmarks.stages import executorch_python
from benchmarks.table import Cell, Findings, Goal, NotMeasuredError, Table, short

if TYPE_CHECKING:
    from collections.abc import Sequence

_NETWORKS: Final = {
    "nine convolutions, Ethos-U55": 5.0,
    "MobileNetV1 0.25, Cortex-M": 2.5,
    "25 inverted residuals, Cortex-M": 2.5,
}
"""How many times faster each should be; tests/interop/lowering_nets.py has them."""
_MECHANISMS: Final = ("provenance", "recompile", "memo", "texts", "collector")
_VARIANTS: Final[dict[str, tuple[str, ...]]] = {
    "as it is": (),
    "all": _MECHANISMS,
    **{mechanism: (mechanism,) for mechanism in _MECHANISMS},
}
_MOST_REPETITIONS: Final = 3
"""A process of its own for each; one takes up to half a minute."""


def measure(repetitions: int) -> Findings:
    """CPU seconds of lowering, in turns, medians; programs must be the same bytes."""
    findings = Findings()
    rows: list[tuple[Cell, ...]] = []
    for network, goal in _NETWORKS.items():
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in _VARIANTS}
        for _ in range(min(repetitions, _MOST_REPETITIONS)):
            for name, mechanisms in _VARIANTS.items():
                runs[name].append(_run(network, mechanisms))
        digests = {run["digest"] for found in runs.values() for run in found}
        if len(digests) != 1:
            message = f"{network}: the programs differ"
            raise NotMeasuredError(message)
        times = {n: median(r["seconds"] for r in found) for n, found in runs.items()}
        plain = times["as it is"]
        ratios = {name: plain / seconds for name, seconds in times.items()}
        rows.append(
            (network, plain, *(ratios[n] for n in _VARIANTS if n != "as it is"))
        )
        findings.goals.append(
            Goal(
                name=f"lowering {network}: times faster",
                found=ratios["all"],
                limit=goal,
                at_most=False,
            )
        )
    findings.tables.append(
        Table(
            title="Lowering, CPU seconds as it is, and times faster",
            columns=("", "as it is", "all", *_MECHANISMS),
            rows=tuple(rows),
            notes=(
                "lower() alone: export and to_executorch are not in it; same bytes",
            ),
        )
    )
    return findings


def _run(network: str, mechanisms: Sequence[str]) -> dict[str, Any]:
    script = str(ROOT / "benchmarks" / "executorch_lowering.py")
    done = subprocess.run(
        [executorch_python(), script, network, *mechanisms],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotMeasuredError(short(done.stderr))
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
