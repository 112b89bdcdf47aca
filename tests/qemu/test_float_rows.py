"""Elementwise kernels of floats with vectors, against NumPy, to the bit.

Rows of all lengths, at addresses that vectors are not aligned to, with subnormal
numbers, which vectors treat as 0, infinities, NaN and both zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.program.reader import read_program
from orchestrator.selection.aggregate import aggregate
from orchestrator.selection.extract import extract
from tests.opinfo.programs import program_of
from tests.qemu.kernel_firmware import KernelFirmware
from tests.tools import need_emulator, need_toolchain
from tests.unit.method.recorded_calls import Call, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Array = np.ndarray[Any, Any]

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

CPU: Final = "cortex-m55"
SIZES: Final = (*range(1, 20), 31, 32, 33, 48, 63, 64, 100, 257)
EDGES: Final = np.array(
    [
        *(0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF),
        *(0x00800000, 0x80800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000),
        *(0x7FC00000, 0x3F800000, 0xBF800000),
    ],
    "<u4",
).view("<f4")


def _clamp(x: Array, low: float, high: float) -> Array:
    raised = np.where(x < np.float32(low), np.float32(low), x)
    return np.where(raised > np.float32(high), np.float32(high), raised)


def _first_if(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


_HALF: Final = np.float32(0.5)
_Case = tuple[tuple[Any, ...], "Callable[..., Array]"]
ONE: Final[dict[str, _Case]] = {
    "aten::relu.out": ((), lambda x: np.where(x < 0, np.float32(0), x)),
    "aten::neg.out": ((), lambda x: -x),
    "aten::abs.out": ((), np.abs),
    "aten::hardtanh.out": ((-1, 1), lambda x: _clamp(x, -1, 1)),
    "aten::clamp.out": ((None, 0.25), lambda x: _clamp(x, -np.inf, 0.25)),
    "aten::leaky_relu.out": ((0.5,), lambda x: np.where(x > 0, x, x * _HALF)),
    "aten::add.Scalar_out": ((0.25, 2), lambda x: x + _HALF),
    "aten::sub.Scalar_out": ((0.25, 2), lambda x: x - _HALF),
    "aten::mul.Scalar_out": ((0.5,), lambda x: x * _HALF),
}
TWO: Final[dict[str, _Case]] = {
    "aten::add.out": ((0.5,), lambda x, y: x + _HALF * y),
    "aten::sub.out": ((1,), lambda x, y: x - y),
    "aten::mul.out": ((), lambda x, y: x * y),
    "aten::maximum.out": ((), lambda x, y: _first_if((x > y) | np.isnan(x), x, y)),
    "aten::minimum.out": ((), lambda x, y: _first_if((x < y) | np.isnan(x), x, y)),
}
"""Arguments behind the tensors, and what comes out."""


def some_items(rng: np.random.Generator, count: int, share: float) -> Array:
    """Numbers of any size; a share of them are edges."""
    anything = rng.integers(0, 2**32, count, dtype=np.uint32)
    ordinary = (anything & 0x83FFFFFF) | 0x3C000000
    items = np.where(rng.random(count) < 0.7, ordinary, anything).view(np.float32)
    return np.where(rng.random(count) < share, rng.choice(EDGES, count), items)


def _tensor(items: Array, *, is_out: bool = False) -> Tensor:
    data = items.astype("<f4").tobytes()
    return Tensor(ScalarType.Float, items.shape, (0,), data, is_out=is_out)


def _calls() -> Iterator[Call]:
    rng = np.random.default_rng(5)
    for cases, count in ((ONE, 1), (TWO, 2)):
        for operator, (args, compute) in cases.items():
            for size in SIZES:
                for share in (0.0, 0.02, 0.5):
                    given = [some_items(rng, size, share) for _ in range(count)]
                    with np.errstate(all="ignore"):
                        wanted = compute(*given)
                    out = _tensor(wanted, is_out=True)
                    yield Call(operator, (*map(_tensor, given), *args, out))


def _same(outs: tuple[bytes, ...], call: Call) -> bool:
    """Whether bits are equal, but for those of NaN, which processors choose."""
    (found,), (wanted,) = outs, (out.data for out in call.outs)
    a, b = np.frombuffer(found, "<f4"), np.frombuffer(wanted, "<f4")
    same = a.view("<u4") == b.view("<u4")
    return bool((same | (np.isnan(a) & np.isnan(b))).all())


@pytest.mark.parametrize("toolchain", ["gnu", "zig"])
def test_rows_are_those_of_plain_arithmetic(toolchain: str, tmp_path: Path) -> None:
    need_toolchain(CPU, toolchain)
    need_emulator(CPU)
    calls = tuple(_calls())
    programs = (program_of(call, dynamic=False)[0] for call in calls)
    infos = (extract(read_program(p, file="call.pte"), model="call") for p in programs)
    firmware = KernelFirmware(
        tmp_path / "firmware",
        target=(CPU, toolchain),
        libraries=("portable",),
        selection=aggregate(infos),
    )
    wrong = [
        f"{call.operator} of {call.outs[0].sizes}: error {answer.error}"
        for call, answer in zip(calls, firmware.answers(calls), strict=True)
        if answer.error or answer.changed or not _same(answer.outs, call)
    ]
    assert not wrong, f"{len(wrong)} of {len(calls)}: " + "; ".join(wrong[:9])
    assert len(calls) > 1000
