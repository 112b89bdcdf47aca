"""Estimates beside what devices took, as others measured and published it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from orchestrator.targets.timing import TIMINGS, Event

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs" / "cycles.md").read_text()
# Events were counted once by `run --profile`; the file says of what.
ROWS: Final[list[dict[str, Any]]] = json.loads(
    (ROOT / "tests" / "data" / "cycles" / "published.json").read_text()
)["rows"]


def _measured(row: dict[str, Any]) -> float:
    """Cycles of a run; MLPerf Tiny publishes how long many of them take."""
    found = row["measured"]
    if "cycles" in found:
        return float(found["cycles"])
    return float(found["seconds"] * found["megahertz"] * 1e6 / found["runs"])


def _estimated(row: dict[str, Any], data_wait_states: int = 0) -> int:
    assert set(row["events"]) <= {event.name.lower() for event in Event}
    return TIMINGS[row["cpu"]].estimated(
        [row["events"].get(event.name.lower(), 0) for event in Event],
        wait_states=row["flash_wait_states"],
        data_wait_states=data_wait_states,
    )


def _ratios(cpu: str, layers: str, data_wait_states: int = 0) -> list[float]:
    rows = [row for row in ROWS if (row["cpu"], row["layers"]) == (cpu, layers)]
    return [_measured(row) / _estimated(row, data_wait_states) for row in rows]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['cpu']}-{row['of']}")
def test_the_page_has_each_measurement(row: dict[str, Any]) -> None:
    measured, estimated = _measured(row), _estimated(row)
    core = row["cpu"].removeprefix("cortex-").upper()
    cells = (core, row["of"], f"{estimated:,}", f"{measured:,.0f}", f"{measured / estimated:.2f}")
    assert f"| {' | '.join(cells)} |\n" in PAGE


@pytest.mark.parametrize("cpu", TIMINGS)
def test_what_is_said_of_a_core_is_what_was_compared(cpu: str) -> None:
    """Not more, not less, and no wider than it was."""
    said = {c.layers: (c.least, c.most) for c in TIMINGS[cpu].compared}
    kinds = {row["layers"] for row in ROWS if row["cpu"] == cpu}
    assert said == {
        kind: (round(min(found), 2), round(max(found), 2))
        for kind in kinds
        for found in [_ratios(cpu, kind)]
    }
    for c in TIMINGS[cpu].compared:
        text = f"{c.least:.2f} to {c.most:.2f}" if c.most > c.least else f"{c.least:.2f}"
        assert f"| Cortex-{cpu[7:].upper()} | {c.layers} | {text} |\n" in PAGE


def test_wait_states_of_data_do_not_explain_depthwise_convolutions() -> None:
    """docs/cycles.md: with one at each access, convolutions are far off."""
    assert max(_ratios("cortex-m55", "convolutions", 1)) < 0.77
    depthwise = _ratios("cortex-m55", "depthwise convolutions", 1)
    assert (round(min(depthwise), 2), round(max(depthwise), 2)) == (0.88, 1.09)
