"""The estimate of a firmware's code and tables, held against what was linked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from orchestrator.build import BuildOptions, Project, inputs, load, open_build, table

if TYPE_CHECKING:
    from pathlib import Path

SLACK = 1.25, 4096
"""An estimate is above the truth by no more than a part of it, and some bytes."""


def check_estimate(profile: Path, out: Path, *, slack: tuple[float, int] = SLACK) -> None:
    """An upper bound, and close: of flash besides models, and of variables."""
    build = open_build(Project(load(profile), BuildOptions(out=out)))
    memory, board = build[table.MEMORY], build[inputs.TARGET].board
    if board is None:
        return
    assert memory.needs is not None
    report = json.loads((out / "report.json").read_text())
    models = sum(p["flash_bytes"] for p in report["parts"] if p["kind"] == "model")
    flash = report["totals"]["flash_bytes"] - models
    estimate = memory.needs.code_bytes + memory.needs.table_bytes
    planned = memory.arena_bytes + memory.state_bytes + memory.caller_bytes
    ram = report["totals"]["ram_bytes"] - planned - board.stack_bytes
    found = f"{profile.stem}: flash {flash} of {estimate}, {memory.needs}, RAM {ram}"
    assert flash <= estimate <= slack[0] * flash + slack[1], found
    assert ram <= memory.needs.variable_bytes <= ram + 1024, found
