"""How good memory plans of public hard instances are, and what finding them takes."""

from __future__ import annotations

from time import process_time

from benchmarks.clock import ROOT
from benchmarks.table import Cell, Findings, Goal, Table
from orchestrator.planner import plan_blocks
from orchestrator.planner.greedy import Conflicts, greedy_plans
from orchestrator.planner.plan_files import read_blocks

_DATA = ROOT / "tests" / "data" / "memory-plans"
_SECONDS = 60.0
_COLUMNS = (
    *("instance", "blocks", "capacity", "by size", "/ capacity"),
    *("ours", "/ capacity", "/ by size", "CPU s"),
)


def measure(_repetitions: int) -> Findings:
    """Plan each instance once: plans are the same in every run."""
    rows: list[tuple[Cell, ...]] = []
    findings = Findings()
    for path in sorted(_DATA.glob("?.*.csv")):
        name, capacity = path.name[0], int(path.name.split(".")[1])
        blocks = read_blocks(path.read_text(encoding="utf-8"), file=path.name)
        _, offsets = next(greedy_plans(Conflicts(blocks)))
        by_size = max(o + b.size_bytes for o, b in zip(offsets, blocks, strict=True))
        begin = process_time()
        plan = plan_blocks(blocks, capacity_bytes=capacity)
        seconds = process_time() - begin
        size = plan.size_bytes
        rows.append(
            (
                *(name, len(blocks), capacity, by_size, by_size / capacity),
                *(size, size / capacity, size / by_size, seconds),
            )
        )
        findings.goals += [
            Goal(
                name=f"instance {name}: bytes over capacity",
                found=size / capacity,
                limit=1.0,
                at_most=True,
            ),
            Goal(name=f"instance {name}: CPU seconds", found=seconds, limit=_SECONDS, at_most=True),
        ]
    note = "by size: greedy, largest block first; blocks and plans as in docs/planner.md"
    findings.tables.append(
        Table(title="Memory plans", columns=_COLUMNS, rows=tuple(rows), notes=(note,))
    )
    return findings
