"""Halves to floats and back with the instructions of an FPU, to the bits of NumPy.

All halves, and floats at, between and next to them. Of NaN any bits are right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.core.operator import OperatorName
from tests.qemu.kernel_firmware import KernelFirmware
from tests.tools import need_emulator, need_toolchain
from tests.unit.method.recorded_calls import Call, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

OPERATOR: Final = "aten::_to_copy.out"
ITEMS: Final = 4096
_FORMS: Final = {ScalarType.Half: "<f2", ScalarType.Float: "<f4"}


def _calls(items: Any, out: ScalarType) -> Iterator[Call]:
    dtype = next(d for d, form in _FORMS.items() if items.dtype == np.dtype(form))
    for part in np.split(items, range(ITEMS, items.size, ITEMS)):
        sizes = (part.size,)
        x = Tensor(dtype, sizes, (0,), part.tobytes())
        size = part.size * np.dtype(_FORMS[out]).itemsize
        y = Tensor(out, sizes, (0,), bytes(size), is_out=True)
        yield Call(OPERATOR, (x, False, None, y))


@pytest.mark.parametrize(
    ("cpu", "toolchain"),
    [("cortex-m4", "gnu"), ("cortex-m33", "zig"), ("cortex-m55", "gnu")],
)
def test_conversions_have_the_bits_of_numpy(
    cpu: str, toolchain: str, tmp_path: Path
) -> None:
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    halves = np.arange(1 << 16, dtype="<u2").view("<f2")
    exact = halves.astype("<f4").view("<u4")
    # A half has 13 bits less: those of a tie, of its neighbours, and of the next half.
    steps = np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF], "<u4")
    floats = np.unique(exact[:, None] + steps)
    small = np.arange(0x32000000, 0x39000000, 0x7FF, dtype="<u4")
    floats = np.concatenate([floats, small, small | 1 << 31]).view("<f4")
    with np.errstate(over="ignore"):
        rounded = floats.astype("<f2").view("<u2")
    firmware = KernelFirmware(
        tmp_path / "firmware",
        target=(cpu, toolchain),
        libraries=("portable",),
        operators=[OperatorName.parse(OPERATOR)],
    )
    for items, out, want in (
        (halves, ScalarType.Float, exact),
        (floats, ScalarType.Half, rounded),
    ):
        answers = firmware.answers([*_calls(items, out)])
        assert not any(answer.error or answer.changed for answer in answers)
        data = b"".join(answer.outs[0] for answer in answers)
        is_nan = np.isnan(np.frombuffer(data, _FORMS[out]))
        same = (np.frombuffer(data, want.dtype) == want) & ~is_nan
        wrong = ~same & ~(is_nan & np.isnan(items))
        assert not wrong.any(), f"{items.view(f'u{items.itemsize}')[wrong][:9]}"
