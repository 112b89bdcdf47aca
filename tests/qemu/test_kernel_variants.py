"""Int8 kernels with the instructions of a core against those in plain C++.

One firmware has both, the plain ones under another name. It makes random calls of the
inner functions: sums and scales at the edges of 32 bits, any address, memory guarded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from orchestrator.emit.compile import CompileUnit
from tests.qemu.bare_firmware import Flags, run_firmware
from tests.tools import need_emulator, need_toolchain

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

HERE: Final = Path(__file__).parent
FIELDS: Final = (
    *("kind", "batch", "height", "width", "channels", "groups", "outputs"),
    *("kernel_h", "kernel_w", "stride_h", "stride_w", "padding_h", "padding_w"),
    *("dilation_h", "dilation_w", "x_offset", "w_offset", "step", "offset"),
    *("low", "high"),
)
"""Numbers of kernel_variant.h's `Problem`."""
TARGETS: Final = tuple(
    (cpu, isa, optimize, toolchain)
    for cpu, isa, optimize in (
        ("cortex-m4", "dsp", "size"),
        ("cortex-m4", "dsp", "speed"),
        ("cortex-m55", "mve", "size"),
        ("cortex-m55", "dsp", "size"),
    )
    for toolchain in ("gnu", "zig")
)
"""Tiles of several pixels are for speed, on cores with DSP."""


def _units(flags: Flags) -> list[CompileUnit]:
    plain = tuple(f for f in flags if not f.startswith("-DORCH_ISA"))
    scalar = ("-DORCH_ISA=0", "-Dcortex_m=cortex_m_scalar", "-DRUN=run_scalar")
    variant = str(HERE / "kernel_variant.cpp")
    return [
        CompileUnit(str(HERE / "kernel_variants.cpp"), "obj/main.o", flags),
        CompileUnit(variant, "obj/scalar.o", (*plain, *scalar)),
        CompileUnit(variant, "obj/vectors.o", (*flags, "-DRUN=run_vectors")),
    ]


@pytest.mark.parametrize(("cpu", "isa", "optimize", "name"), TARGETS)
def test_variants_agree(cpu: str, isa: str, optimize: str, name: str, tmp_path: Path) -> None:
    need_toolchain(cpu, name)
    need_emulator(cpu)
    found = run_firmware(
        tmp_path,
        target=(cpu, isa, name),
        optimize=optimize,
        sources=(),
        units=_units,
        request=(20261122, 3000),
    )
    *made, different = found[:4]
    first = dict(zip(FIELDS, found[4:], strict=False))
    assert different == 0, f"{different} of {sum(made)} differ, the first: {first}"
    assert min(made) > 300
