"""Whole commands: `check` against ExecuTorch's tools, start-up, a build without work.

Every command is a process of its own, as people and CMake start them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.clock import Command, cost_of, orchestrator
from benchmarks.product import CORPUS, build, write_profile
from benchmarks.stages import MODELS, driver
from benchmarks.table import Cell, Findings, Goal, NotMeasuredError, Table

if TYPE_CHECKING:
    from benchmarks.clock import Cost

_CHECK_TIMES = 4
_NOTHING_TIMES = 6
_MIB = 1 << 20
_PASS = [sys.executable, "-c", "pass"]


def measure(repetitions: int) -> Findings:
    """Costs of commands, as medians and as multiples."""
    findings = Findings()
    with tempfile.TemporaryDirectory() as name:
        for case in MODELS:
            try:
                _compare_check(findings, case, Path(name) / case, repetitions)
            except NotMeasuredError as missing:
                findings.missing.append(f"`check` of {case} against tools: {missing}")
        try:
            _start_up(findings, Path(name) / "start", repetitions)
        except NotMeasuredError as missing:
            findings.missing.append(f"start-up and build without work: {missing}")
    return findings


def _compare_check(findings: Findings, case: str, folder: Path, repetitions: int) -> None:
    profile = write_profile(folder, case, cpu="cortex-m55", toolchain="zig")
    tools: dict[str, list[str]] = {}
    try:
        answer = driver("commands", CORPUS / case / "model.pte", folder / "executorch")
        tools = answer["commands"]  # type: ignore[assignment]  # its own shape
    except NotMeasuredError as missing:
        findings.missing.append(f"ExecuTorch's tools as commands: {missing}")
    check, *costs = cost_of(
        [
            Command(words=orchestrator("check", str(profile), "--out", str(folder / "none"))),
            *(Command(words=words) for words in tools.values()),
        ],
        folder=folder,
        repetitions=repetitions,
    )
    rows = [_row("orchestrator check", check)]
    rows += [_row(name, cost) for name, cost in zip(tools, costs, strict=True)]
    if costs:
        cpu_s = sum(cost.cpu_s for cost in costs)
        wall_s = sum(cost.wall_s for cost in costs)
        peak = max(cost.peak_bytes for cost in costs)
        rows += [
            ("the tools together", 1e3 * cpu_s, 1e3 * wall_s, peak / _MIB),
            (
                "ratio, tools : check",
                cpu_s / check.cpu_s,
                wall_s / check.wall_s,
                peak / check.peak_bytes,
            ),
        ]
        findings.goals.append(
            Goal(
                name=f"check, times faster than the tools, {case}",
                found=cpu_s / check.cpu_s,
                limit=_CHECK_TIMES,
                at_most=False,
            )
        )
    findings.tables.append(
        Table(
            title=f"Commands, {case}",
            columns=("command", "CPU ms", "wall ms", "peak MiB"),
            rows=tuple(rows),
            notes=(
                "no build went before: `check` has no results to reuse",
                "peak: of the largest tool, as they run one after the other",
            ),
        )
    )


def _row(name: str, cost: Cost) -> tuple[Cell, ...]:
    return (name, 1e3 * cost.cpu_s, 1e3 * cost.wall_s, cost.peak_bytes / _MIB)


def _start_up(findings: Findings, folder: Path, repetitions: int) -> None:
    build(folder, "kws_dscnn_fp32", cpu="cortex-m55", toolchain="zig")
    nothing = ("build", str(folder / "product.toml"), "--out", str(folder / "out"))
    module = [sys.executable, "-m", "orchestrator"]
    commands = {
        "python -c pass": _PASS,
        "orchestrator --version": orchestrator("--version"),
        "orchestrator build, no work": orchestrator(*nothing),
        "python -m orchestrator build, no work": [*module, *nothing],
        "orchestrator build --explain, no work": orchestrator(*nothing, "--explain"),
    }
    costs = cost_of(
        [Command(words=words) for words in commands.values()],
        folder=folder,
        repetitions=3 * repetitions,
    )
    floor = costs[0]
    rows: list[tuple[Cell, ...]] = [
        (*_row(name, cost), cost.cpu_s / floor.cpu_s, cost.wall_s / floor.wall_s)
        for name, cost in zip(commands, costs, strict=True)
    ]
    findings.tables.append(
        Table(
            title="Start-up",
            columns=("command", "CPU ms", "wall ms", "peak MiB", "x CPU", "x wall"),
            rows=tuple(rows),
            notes=(
                "x: multiples of `python -c pass` with the same interpreter",
                "--explain goes through the whole pipeline, ninja included",
            ),
        )
    )
    findings.goals.append(
        Goal(
            name="build without work, times `python -c pass`",
            found=costs[2].wall_s / floor.wall_s,
            limit=_NOTHING_TIMES,
            at_most=True,
        )
    )
