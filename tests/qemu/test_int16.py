"""The int16 kernels on the boards: the results of whole numbers, bit by bit.

One firmware per target makes all calls, so that plain C++, DSP instructions and vectors
give the same bits, and write nothing besides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.qemu.int16_calls import int16_calls
from tests.qemu.kernel_firmware import KernelFirmware
from tests.targets import EVERY_PAIR
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

TARGETS: Final = (
    *(("cortex-m0plus", "zig"), ("cortex-m4", "gnu"), ("cortex-m55", "zig")),
    *(
        (("cortex-m4", "zig"), ("cortex-m33", "gnu"), ("cortex-m55", "gnu"))
        if EVERY_PAIR
        else ()
    ),
    *((("rv32imac", "gnu"), ("rv64gc", "zig")) if EVERY_PAIR else ()),
)
COUNT: Final = 6000 if EVERY_PAIR else 450


@pytest.mark.parametrize(
    ("cpu", "toolchain"), TARGETS, ids=[f"{c}-{t}" for c, t in TARGETS]
)
def test_calls_have_their_results(cpu: str, toolchain: str, tmp_path: Path) -> None:
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    firmware = KernelFirmware(
        tmp_path / "firmware", target=(cpu, toolchain), libraries=("cortex_m_int16",)
    )
    calls = int16_calls(COUNT, seed=16)
    wrong = [
        f"call {number}, {call.operator}: error {answer.error},"
        f" {answer.changed} bytes outside changed"
        for number, (call, answer) in enumerate(
            zip(calls, firmware.answers(calls), strict=True)
        )
        if answer.error
        or answer.changed
        or answer.outs != tuple(out.data for out in call.outs)
    ]
    assert not wrong, f"{len(wrong)} of {len(calls)}: " + "; ".join(wrong[:9])
