"""Instructions of kernels are those of docs/kernel-speeds.md."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Final

import pytest

from orchestrator.method.passes.inventory import PACKED
from tests.qemu.linked_names import isa_of
from tests.speeds.calls import timed_calls
from tests.speeds.cores import COMPILER, CORES, PAGE, TOOLCHAIN, count, read_page
from tests.speeds.packed import count_packed
from tests.tools import need_emulator, need_tool, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

TOLERANCE: Final = 0.1
REMEDY: Final = "make the kernel faster, or run nox -s speeds and explain it"


@pytest.mark.nightly
@pytest.mark.parametrize("cpu", CORES)
def test_kernels_are_as_fast_as_the_page_says(cpu: str, tmp_path: Path) -> None:
    need_tool("gcc", "cc", "clang")
    need_toolchain(cpu, TOOLCHAIN)
    need_emulator(cpu)
    calls = timed_calls()
    compiler, counts = count(cpu, calls, tmp_path)
    if not compiler.startswith(COMPILER):
        pytest.skip(f"the page has counts of {COMPILER}, this is {compiler}")
    said, _ = read_page(PAGE.read_text(encoding="utf-8"))
    assert said.keys() == {t.call.operator for t in calls}, "run nox -s speeds"
    changed = []
    for timed in calls:
        name = timed.call.operator
        found = counts[name] / timed.units
        changed += _changed(name, found, said[name][CORES.index(cpu)])
    assert not changed, "; ".join([*changed, REMEDY])


@pytest.mark.parametrize("cpu", CORES)
def test_packed_kernels_are_as_fast_as_the_page_says(cpu: str, tmp_path: Path) -> None:
    """Of all that calls for whole tensors have where products favour size."""
    need_tool("gcc", "cc", "clang")
    need_toolchain(cpu, TOOLCHAIN)
    need_emulator(cpu)
    isa = isa_of(cpu)
    rows = (row for row in PACKED if row.isa == isa and row.is_whole and not row.when)
    compiler, found = count_packed(cpu, TOOLCHAIN, tmp_path)
    if not compiler.startswith(COMPILER):
        pytest.skip(f"the page has counts of {COMPILER}, this is {compiler}")
    assert found.keys() == {row.name for row in rows}
    _, said = read_page(PAGE.read_text(encoding="utf-8"))
    at = CORES.index(cpu)
    assert found.keys() == {name for name, costs in said.items() if not isnan(costs[at])}
    changed = [
        line for name, cost in found.items() for line in _changed(name, cost, said[name][at])
    ]
    assert not changed, "; ".join([*changed, REMEDY])


def _changed(name: str, found: float, expected: float) -> list[str]:
    if abs(found - expected) <= max(TOLERANCE * expected, 0.02):
        return []
    return [f"{name}: {found:.2f} instead of {expected:.2f}"]
