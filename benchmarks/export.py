"""What exporting a model given as Python costs: at first, and when nothing changed."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.clock import ROOT
from benchmarks.stages import executorch_python
from benchmarks.table import Cell, Findings, Goal, NotMeasuredError, Table
from orchestrator.build import BuildOptions, Project, inputs, load, open_build
from orchestrator.shell.process import PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterator

_EXAMPLE: Final = ROOT / "examples" / "python_model"
_GOAL_TIMES: Final = 50
_MOST_EXPORTS: Final = 3
"""Each takes some ten seconds."""


def measure(repetitions: int) -> Findings:
    """Seconds of the stage, medians; the interpreter's start is in the first ones."""
    findings = Findings()
    rows: list[tuple[Cell, ...]] = []
    before = {name: os.environ.get(name) for name in (PYTHON, "ORCHESTRATOR_CACHE")}
    os.environ[PYTHON] = executorch_python()
    try:
        for core in ("m55", "m4"):
            first, known = _times(core, repetitions)
            ratio = first / known
            rows.append((f"keywords-{core}", first, 1000 * known, ratio))
            findings.goals.append(
                Goal(
                    name=f"export keywords-{core}: times faster unchanged",
                    found=ratio,
                    limit=_GOAL_TIMES,
                    at_most=False,
                )
            )
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
    findings.tables.append(
        Table(
            title="Exporting a model given as Python",
            columns=("", "first, s", "unchanged, ms", "times faster"),
            rows=tuple(rows),
            notes=("stage `export` alone: quantize, export, lower; wall time",),
        )
    )
    return findings


def _times(core: str, repetitions: int) -> tuple[float, float]:
    """Median seconds of exporting, and of finding what was exported."""
    first: list[float] = []
    known: list[float] = []
    for profile in _copies(core, min(repetitions, _MOST_EXPORTS)):
        os.environ["ORCHESTRATOR_CACHE"] = str(profile.parent / "cache")
        first.append(_stage(profile, is_known=False))
        known += [_stage(profile, is_known=True) for _ in range(repetitions)]
    return median(first), median(known)


def _stage(profile: Path, *, is_known: bool) -> float:
    project = Project(load(profile), BuildOptions(out=profile.parent / "out"))
    build = open_build(project)
    start = time.perf_counter()
    found = build[inputs.EXPORTED]
    seconds = time.perf_counter() - start
    if any((exported.reason == "") is not is_known for exported in found.values()):
        raise NotMeasuredError(f"{profile.name} was not exported as expected")
    return seconds


def _copies(core: str, count: int) -> Iterator[Path]:
    """Profiles in new folders, with nothing exported."""
    for _ in range(count):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "example"
            shutil.copytree(_EXAMPLE, folder)
            yield folder / f"keywords-{core}.toml"
