"""Instructions of kernels are those of docs/kernel-speeds.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.speeds.calls import timed_calls
from tests.speeds.cores import COMPILER, CORES, PAGE, TOOLCHAIN, count, read_page
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
    said = read_page(PAGE.read_text(encoding="utf-8"))
    assert said.keys() == {t.call.operator for t in calls}, "run nox -s speeds"
    changed = []
    for timed in calls:
        name = timed.call.operator
        found = counts[name] / timed.units
        expected = said[name][CORES.index(cpu)]
        if abs(found - expected) > max(TOLERANCE * expected, 0.02):
            changed.append(f"{name}: {found:.2f} instead of {expected:.2f}")
    assert not changed, "; ".join([*changed, REMEDY])
