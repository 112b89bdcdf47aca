"""Recorded calls of float kernels on the boards, with the bits of this machine.

`reference_test.cpp` holds the results on this machine against PyTorch's. Here every
recorded call runs on a core without an FPU and on one with vectors; with
`ORCHESTRATOR_EVERY_TARGET=1` also with an FPU for float alone, and on RISC-V. The
operators are split among several images, which share no sources.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from orchestrator.core.operator import OperatorName
from tests.integration.host_kernels import recorded
from tests.integration.test_conditions import kernels
from tests.opinfo.programs import difference
from tests.qemu.kernel_firmware import KernelFirmware
from tests.targets import EVERY_PAIR
from tests.tools import need_emulator, need_toolchain
from tests.unit.method.recorded_calls import Call, Tensor, reference_calls

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

CPUS: Final = (
    *("cortex-m0plus", "cortex-m55"),
    *(("cortex-m4", "rv32imac", "rv32imafc", "rv64gc") if EVERY_PAIR else ()),
)
TOOLCHAINS: Final = ("gnu", "zig")
PARTS: Final = 2
"""Images per core; what the M55's fast memory holds."""
LIBRARIES: Final = ("portable", "quantized")


@cache
def parts() -> dict[str, int]:
    """By operator: the image that has it."""
    known = kernels()
    operators = {c.operator for c in reference_calls()}
    sources = sorted({known[operator].sources for operator in operators})
    return {o: sources.index(known[o].sources) % PARTS for o in sorted(operators)}


def with_results(call: Call, results: tuple[bytes, ...]) -> Call:
    """The call, whose outputs are to be these."""
    left = iter(results)

    def filled(argument: object) -> object:
        if isinstance(argument, Tensor) and argument.is_out:
            return replace(argument, data=next(left))
        if isinstance(argument, tuple):
            return tuple(filled(item) for item in argument)
        return argument

    args = tuple(filled(argument) for argument in call.args)
    return replace(call, args=args, atol=0, rtol=0)


def fault(call: Call, outs: tuple[bytes, ...]) -> str:
    """What differs from the bits of this machine, but for NaN; "" if nothing."""
    got = [(o.dtype, o.sizes, d) for o, d in zip(call.outs, outs, strict=True)]
    found, is_equal = difference(call, got)
    return found or ("" if is_equal else "the sign of a 0")


@pytest.mark.parametrize(
    ("cpu", "part"),
    [
        pytest.param(cpu, part, marks=[pytest.mark.nightly] * (cpu == "cortex-m0plus"))
        for cpu in CPUS
        for part in range(PARTS)
        # Floats in software are the same functions, whichever kernel calls them.
        if EVERY_PAIR or cpu != "cortex-m0plus" or part == 0
    ],
)
def test_same_bits_as_here(cpu: str, part: int, tmp_path: Path) -> None:
    toolchain = TOOLCHAINS[(CPUS.index(cpu) + part) % len(TOOLCHAINS)]
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    calls = [c for c in reference_calls() if parts()[c.operator] == part]
    operators = [OperatorName.parse(name) for name in parts() if parts()[name] == part]
    firmware = KernelFirmware(
        tmp_path / "firmware", target=(cpu, toolchain), libraries=LIBRARIES, operators=operators
    )
    here = recorded(calls, tmp_path)
    wrong = []
    for call, results, answer in zip(calls, here, firmware.answers(calls), strict=True):
        assert results is not None
        if answer.error or answer.changed:
            found = f"error {answer.error}, {answer.changed} bytes outside changed"
        else:
            found = fault(with_results(call, results), answer.outs)
        if found:
            dtypes = "/".join(t.dtype.name for t in call.outs)
            wrong.append(f"{call.operator} {dtypes}: {found}")
    assert not wrong, f"{len(wrong)} of {len(calls)}: " + "; ".join(wrong[:12])
