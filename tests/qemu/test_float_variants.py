"""Float kernels with vectors against those in plain C++, to the bit.

One firmware has both. It makes random calls: any shape, stride, padding, dilation and
dim order; numbers whose products are subnormal, infinities and NaN; memory guarded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from orchestrator.emit.compile import CompileUnit
from tests.qemu.bare_firmware import Flags, run_firmware
from tests.tools import need_emulator, need_toolchain

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

MAIN: Final = Path(__file__).with_name("float_variants.cpp")
CPU: Final = "cortex-m55"
FIELDS: Final = (
    *("is_product", "x_values", "w_values"),
    *(f"{tensor}{d}" for tensor in "xyw" for d in range(5)),
    *("x_order", "w_order", "y_order"),
    *(f"{name}_{d}" for name in ("stride", "padding", "dilation") for d in "dhw"),
    *("groups", "transposed", "has_bias", "limits", "low", "high", "added_row"),
)
"""Numbers of float_variants.cpp's `Problem`."""


def _units(flags: Flags) -> list[CompileUnit]:
    sums = ("-DORCH_SUMS_ADDED=1", "-DORCH_SUMS_LIMITED=1")
    return [CompileUnit(str(MAIN), "obj/main.o", (*flags, *sums))]


@pytest.mark.parametrize("toolchain", ["gnu", "zig"])
@pytest.mark.parametrize("optimize", ["size", "speed"])
def test_variants_agree(optimize: str, toolchain: str, tmp_path: Path) -> None:
    need_toolchain(CPU, toolchain)
    need_emulator(CPU)
    found = run_firmware(
        tmp_path,
        target=(CPU, "mve", toolchain),
        optimize=optimize,
        sources=("src/tensor.cpp",),
        units=_units,
        request=(20261122, 4000),
    )
    convolutions, products, subnormal, nan, different = found[:5]
    first = dict(zip(FIELDS, found[5:], strict=True))
    assert different == 0, f"{different} differ, the first: {first}"
    assert convolutions > 1200
    assert products > 1200
    assert subnormal > 3000
    assert nan > 10000
