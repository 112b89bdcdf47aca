"""Averages of int8 windows: every sum there is, and items in no order.

Expected are exact quotients, rounded as CMSIS-NN does, and what PyTorch's quantized graphs
give: NumPy's floats, added tap after tap.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from orchestrator.emit.compile import CompileUnit
from tests.qemu.bare_firmware import Flags, run_firmware
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = npt.NDArray[Any]

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

HERE: Final = Path(__file__).parent
KERNEL: Final = HERE.parents[1] / "kernels" / "cortex_m" / "op_quantized_avg_pool2d.cpp"
SELECTED: Final = """\
#include "orch/scalar_type.h"
namespace orch::selected {
constexpr DtypeSet cortex_m_quantized_avg_pool2d_out = dtype_set(ScalarType::Char);
constexpr DtypeSet cortex_m_quantized_avg_pool2d_nhwc_out = dtype_set(ScalarType::Char);
}
"""
TAPS: Final = (*range(1, 41), 48, 49, 63, 64, 96, 125, 128, 200, 255, 256, 257)
"""From 257 on sums have more than 16 bits."""
UNORDERED: Final = 500


def exact(sums: Array, taps: int) -> Array:
    """Nearest integers, ties away from zero."""
    sizes: Array = (2 * np.abs(sums) + taps) // (2 * taps)
    return np.where(sums < 0, -sizes, sizes)


def floats(items: Array, taps: int, count: int, zero_point: int, scale: np.float32) -> Array:
    """What a graph of dequantize, avg_pool2d and quantize gives."""
    values = (items - zero_point).astype("f4") * scale
    total = np.zeros(count, "f4")
    for tap in range(taps):
        total += values[tap : tap + count]
    steps = total / np.float32(taps) * (np.float32(1) / scale)
    return np.rint(steps).astype("i8") + zero_point


@pytest.mark.parametrize("toolchain", ["gnu", "zig"])
@pytest.mark.parametrize(("cpu", "isa"), [("cortex-m4", "dsp"), ("cortex-m55", "mve")])
@pytest.mark.parametrize(
    ("zero_point", "scale"), [(-128, 0.0235), (5, 0.1), (127, 1e-30)], ids=["low", "mid", "tiny"]
)
@pytest.mark.parametrize(
    "taps_of_windows",
    [TAPS, pytest.param(range(1, 261), marks=pytest.mark.nightly)],
    ids=["", "all"],
)
def test_every_sum_is_rounded(  # noqa: PLR0917  # parameters
    taps_of_windows: Sequence[int],
    zero_point: int,
    scale: float,
    cpu: str,
    isa: str,
    toolchain: str,
    tmp_path: Path,
) -> None:
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    header = tmp_path / "orch_selected" / "op_quantized_avg_pool2d.h"
    header.parent.mkdir()
    header.write_text(SELECTED)

    def units(flags: Flags) -> list[CompileUnit]:
        sources = {"main": HERE / "average_sums.cpp", "kernel": KERNEL}
        more = (*flags, f"-I{tmp_path}")
        return [CompileUnit(str(s), f"obj/{name}.o", more) for name, s in sources.items()]

    bits = struct.unpack("<i", struct.pack("<f", scale))[0]
    found = run_firmware(
        tmp_path,
        target=(cpu, isa, toolchain),
        sources=("src/tensor.cpp",),
        units=units,
        request=(zero_point & 0xFFFFFFFF, bits, *taps_of_windows),
    )
    answers, at = np.array(found, "<i4").view("i1"), 0
    for taps in taps_of_windows:
        index = np.arange(256 * taps, dtype="u4")
        hashed = index * np.uint32(2654435761)
        hashed = (hashed ^ hashed >> np.uint32(15)) * np.uint32(2246822519)
        unordered = (hashed >> np.uint32(24)).astype("i1").astype("i8")
        every = len(index) - taps + 1
        for items, count in (
            (index.astype("i8") // taps - 128, every),
            (unordered, min(every, UNORDERED)),
        ):
            ends = np.cumsum(np.concatenate([[0], items]))
            sums = ends[taps:][:count] - ends[:count]
            assert items is unordered or (np.diff(sums) == 1).all()
            nearest = exact(sums, taps)
            graph = floats(items, taps, count, zero_point, np.float32(scale))
            assert (np.abs(graph - nearest) <= (2 * sums % (2 * taps) == taps)).all()
            for expected in (nearest, graph):
                made = answers[at : at + count]
                at += count
                wrong = np.flatnonzero(made != expected)
                assert not wrong.size, f"{sums[wrong[0]]} / {taps}: {made[wrong[0]]}"
    assert at + 3 >= len(answers)
