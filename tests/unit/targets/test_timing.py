"""Cycles of cores: plausible, and as the documentation lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from orchestrator.targets.cores import CPUS
from orchestrator.targets.timing import TIMINGS, Event

PAGE: Final = (Path(__file__).parents[3] / "docs" / "targets.md").read_text()
ROWS: Final = {
    "data": (Event.DATA,),
    "load, store": (Event.LOAD, Event.STORE),
    "multiply, multiply-add": (Event.MULTIPLY, Event.MULTIPLY_ADD),
    "into 64 bits": (Event.LONG_MULTIPLY, Event.LONG_MULTIPLY_ADD),
    "divide": (Event.DIVIDE,),
    "branch, and if taken": (Event.BRANCH, Event.TAKEN),
    "float, multiply-add": (Event.FLOAT, Event.FLOAT_MULTIPLY_ADD),
    "float divide, root": (Event.FLOAT_DIVIDE,),
    "double": (Event.DOUBLE,),
    "vector": (Event.VECTOR_INTEGER,),
    "each more register": (Event.MORE_REGISTERS,),
    "load after an access": (Event.NEIGHBOUR,),
    "vector after another unit's": (Event.OVERLAP,),
}
SIGNED: Final = (Event.NEIGHBOUR, Event.OVERLAP, Event.TAKEN)


def _cell(cpu: str, events: tuple[Event, ...]) -> str:
    cycles = ((e, TIMINGS[cpu].cycles.get(e)) for e in events)
    return ", ".join(
        "-" if c is None else f"{c:+g}" if e in SIGNED else f"{c:g}" for e, c in cycles
    )


@pytest.mark.parametrize("title", ROWS)
def test_the_page_has_the_numbers(title: str) -> None:
    cells = " | ".join(_cell(cpu, ROWS[title]) for cpu in TIMINGS)
    assert f"\n| {title} | {cells} |\n" in PAGE


@pytest.mark.parametrize("cpu", TIMINGS)
def test_a_core_has_cycles_for_what_it_executes(cpu: str) -> None:
    timing, core = TIMINGS[cpu], CPUS[cpu]
    assert f"\n| {cpu} | {timing.source} |\n" in PAGE
    kinds = set(timing.cycles)
    assert {Event.DATA, Event.LOAD, Event.STORE, Event.BRANCH, Event.TAKEN} <= kinds
    assert (Event.FLOAT in kinds) == (core.float_abi == "hard")
    assert (Event.VECTOR_INTEGER in kinds) == ("mve" in core.isas)
    assert (Event.DIVIDE in kinds) == (cpu != "cortex-m0plus")


def test_wait_states_count_for_taken_branches() -> None:
    events = [0] * len(Event)
    events[Event.LOAD], events[Event.NEIGHBOUR], events[Event.TAKEN] = 10, 4, 3
    timing = TIMINGS["cortex-m4"]
    assert timing.estimated(events) == 10 * 2 - 4 + 3 * 2
    assert timing.estimated(events, wait_states=5) == 22 + 15


def test_wait_states_of_data_count_for_loads_and_stores() -> None:
    """One of several registers, as LDM, VLDM and PUSH, is one more access."""
    events = [0] * len(Event)
    events[Event.LOAD], events[Event.STORE], events[Event.MORE_REGISTERS] = 10, 4, 3
    events[Event.VECTOR_MEMORY], events[Event.VECTOR_GATHER], events[Event.DATA] = 20, 6, 50
    timing = TIMINGS["cortex-m55"]
    without = 10 + 4 + 3 + 2 * 20 + 2 * 6 + 50
    assert timing.estimated(events) == without
    assert timing.estimated(events, data_wait_states=2) == without + 2 * (10 + 4 + 3 + 20 + 6)
