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
from orchestrator.lowering import Mechanism

if TYPE_CHECKING:
    from collections.abc import Sequence

_NETWORKS: Final = {
    "nine convolutions, Ethos-U55": 5.0,
    "MobileNetV1 0.25, Cortex-M": 2.5,
    "25 inverted residuals, Cortex-M": 2.5,
}
"""How many times faster each should be; tests/interop/lowering_nets.py has them."""
_BLOCKS: Final = {n: f"{n} inverted residuals, Cortex-M" for n in (5, 25, 75)}
"""Inverted residuals: some 200, 1,000 and 3,000 nodes."""
_MOST_REPETITIONS: Final = 3
"""All variants of the largest network take several minutes."""
_NONE: Final = "none"
_ALL: Final = ",".join(Mechanism)

Runs = dict[str, list[dict[str, Any]]]


def measure(repetitions: int) -> Findings:
    """CPU seconds of lowering, in turns, medians; programs must be the same bytes."""
    findings = Findings()
    repetitions = min(repetitions, _MOST_REPETITIONS)
    runs = {name: _run(name, [_NONE, _ALL, *Mechanism] * repetitions) for name in _NETWORKS}
    by_size = {
        blocks: runs.get(name) or _run(name, [_NONE, _ALL] * repetitions)
        for blocks, name in _BLOCKS.items()
    }
    findings.goals += [
        Goal(
            name=f"lowering {network}: times faster",
            found=_ratio(found, _ALL),
            limit=_NETWORKS[network],
            at_most=False,
        )
        for network, found in runs.items()
    ]
    findings.tables += [_in_all(runs), _each_alone(runs), _by_size(by_size)]
    return findings


def _in_all(runs: dict[str, Runs]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for network, found in runs.items():
        seconds, decompositions, passes, walk = (
            median(run[part] for run in found[_ALL])
            for part in ("seconds", "decompositions_s", "passes_s", "walk_s")
        )
        plain = _seconds(found, _NONE)
        rest = seconds - decompositions - passes
        row = (plain, seconds, plain / seconds, decompositions, passes, rest, walk)
        rows.append((network, *row))
    return Table(
        title="Lowering, CPU seconds",
        columns=(
            *("", "as it is", "accelerated", "times faster"),
            *("decompositions", "passes", "rest", "a walk for each pass"),
        ),
        rows=tuple(rows),
        notes=(
            "lower() alone: export and to_executorch are not in it; same bytes",
            "decompositions, passes and the rest are those of accelerated lowering",
        ),
    )


def _each_alone(runs: dict[str, Runs]) -> Table:
    return Table(
        title="Lowering, times faster with one mechanism alone",
        columns=("", *runs),
        rows=tuple(
            (mechanism, *(_ratio(found, mechanism) for found in runs.values()))
            for mechanism in Mechanism
        ),
    )


def _by_size(runs: dict[int, Runs]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for blocks, found in runs.items():
        nodes = found[_NONE][0]["nodes"]
        plain, fast = _seconds(found, _NONE), _seconds(found, _ALL)
        per_node = (plain / nodes * 1000, fast / nodes * 1000)
        rows.append((f"{blocks} blocks", nodes, plain, fast, plain / fast, *per_node))
    return Table(
        title="Lowering inverted residuals for Cortex-M by size, CPU seconds",
        columns=(
            *("", "nodes", "as it is", "accelerated", "times faster"),
            *("ms a node", "ms a node, accelerated"),
        ),
        rows=tuple(rows),
    )


def _ratio(runs: Runs, variant: str) -> float:
    return _seconds(runs, _NONE) / _seconds(runs, variant)


def _seconds(runs: Runs, variant: str) -> float:
    taken: float = median(run["seconds"] for run in runs[variant])
    return taken


def _run(network: str, variants: Sequence[str]) -> Runs:
    """What each variant took, by variant, in the order of the runs."""
    script = str(ROOT / "benchmarks" / "executorch_lowering.py")
    done = subprocess.run(
        [executorch_python(), script, network, *variants],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotMeasuredError(short(done.stderr))
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    if len({run["digest"] for run in found}) != 1:
        message = f"{network}: the programs differ"
        raise NotMeasuredError(message)
    runs: Runs = {}
    for variant, run in zip(variants, found, strict=True):
        runs.setdefault(variant, []).append(run)
    return runs
