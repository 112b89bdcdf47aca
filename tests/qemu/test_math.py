"""Math functions give the same bits on cores and on the host.

Cores without an FPU, with one for float, and with one for double, which have a square
root of their own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from orchestrator.emit.compile import CompileUnit
from tests.qemu.bare_firmware import Flags, run_command, run_firmware
from tests.targets import EVERY_PAIR, with_toolchains
from tests.tools import need_emulator, need_tool, need_toolchain

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

ROOT: Final = Path(__file__).parents[2]
MAIN: Final = Path(__file__).with_name("math_digests.cpp")
SEED: Final = 20261123
COUNT: Final = 1500
"""Arguments of each function."""
MATH: Final = ("src/math.cpp", "src/math_double.cpp")
SOFT: Final = ("freestanding/soft_double.cpp", "freestanding/soft_float.cpp")
TARGETS: Final = [
    *with_toolchains("cortex-m0plus", "cortex-m4", "cortex-m55", "rv32imac"),
    *(with_toolchains("rv32imafc", "rv64gc") if EVERY_PAIR else ()),
]


def _units(flags: Flags) -> list[CompileUnit]:
    return [CompileUnit(str(MAIN), "obj/main.o", flags)]


def _on_the_host(folder: Path) -> list[int]:
    compiler = need_tool("g++", "clang++")
    sources = [str(MAIN), *(str(ROOT / "runtime" / source) for source in MATH)]
    flags = ("-std=c++17", "-O2", "-ffp-contract=off", "-DORCH_HOST")
    include = f"-I{ROOT / 'runtime' / 'include'}"
    run_command((compiler, *flags, include, *sources, "-o", "host"), folder)
    text = run_command((folder / "host", str(SEED), str(COUNT)), folder)
    return [int(line) for line in text.split()]


@pytest.mark.parametrize(("cpu", "toolchain"), TARGETS)
def test_same_bits(cpu: str, toolchain: str, tmp_path: Path) -> None:
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    expected = _on_the_host(tmp_path)
    isa = {"cortex-m4": "dsp", "cortex-m55": "mve"}.get(cpu, "scalar")
    found = run_firmware(
        tmp_path,
        target=(cpu, isa, toolchain),
        sources=(*MATH, *SOFT),
        units=_units,
        request=(SEED, COUNT),
    )
    # A word per function, in the order of math_digests.cpp.
    assert [word % (1 << 32) for word in found] == expected
