"""The int8 kernels on the boards: the calls that the C++ tests make on the host.

One firmware per target runs all of them, so that the variants for DSP and MVE give the
same bits as plain C++, and write nothing besides. Others of their kind, with edges, and
random ones must give what plain C++ gives on this machine.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.integration.host_kernels import recorded
from tests.integration.random_int8 import (
    elementwise_calls,
    in_place,
    int8_calls,
    pool_calls,
    transposed_calls,
)
from tests.qemu.kernel_firmware import KernelFirmware
from tests.targets import EVERY_PAIR
from tests.tools import need_emulator, need_toolchain
from tests.unit.method.recorded_calls import read_calls

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.unit.method.recorded_calls import Call

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

CALLS: Final = Path(__file__).parents[1] / "data" / "cortex_m" / "calls.bin"
TARGETS: Final = (
    # Minutes of floats without an FPU.
    pytest.param("cortex-m0plus", "zig", marks=pytest.mark.nightly),
    # GCC compiles all int8 kernels for this alone.
    pytest.param("cortex-m4", "gnu", marks=pytest.mark.nightly),
    *(("cortex-m4", "zig"), ("cortex-m7", "zig")),
    *(("cortex-m33", "gnu"), ("cortex-m55", "gnu"), ("cortex-m55", "zig")),
    *((("rv32imac", "gnu"), ("rv64gc", "zig")) if EVERY_PAIR else ()),
)


def _with_results(calls: Sequence[Call], folder: Path) -> Iterator[Call]:
    """The calls that plain C++ takes, with their results on this machine."""
    for call, results in zip(calls, recorded(calls, folder), strict=True):
        if results is not None:
            (data,) = results
            *inputs, out = call.args
            yield replace(call, args=(*inputs, replace(out, data=data)))


@pytest.mark.parametrize(("cpu", "toolchain"), TARGETS)
def test_calls_have_their_results(cpu: str, toolchain: str, tmp_path: Path) -> None:
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    firmware = KernelFirmware(
        tmp_path / "firmware", target=(cpu, toolchain), libraries=("cortex_m",)
    )
    random = [*int8_calls(), *pool_calls(seed=7, count=300), *transposed_calls(seed=8, count=150)]
    # Plain C++ on a slow core: what runs here as well.
    some = slice(None, None, 1 if cpu != "cortex-m0plus" or EVERY_PAIR else 4)
    calls = [*read_calls(CALLS), *_with_results(random[some], tmp_path)]
    for call in _with_results([*elementwise_calls()][some], tmp_path):
        calls += [call, *in_place(call)]
    wrong = [
        f"call {number}, {call.operator}: error {answer.error},"
        f" {answer.changed} bytes outside changed"
        for number, (call, answer) in enumerate(zip(calls, firmware.answers(calls), strict=True))
        if answer.error or answer.changed or answer.outs != tuple(out.data for out in call.outs)
    ]
    assert not wrong, f"{len(wrong)} of {len(calls)}: " + "; ".join(wrong[:9])
