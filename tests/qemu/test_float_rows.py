"""Elementwise kernels of floats with vectors, to the bit.

Arithmetic against NumPy, math functions against the same kernels on a core without
vectors. Rows of all lengths, at addresses that vectors are not aligned to, with
subnormal numbers, which vectors treat as 0, infinities, NaN and both zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.program.reader import read_program
from orchestrator.selection.extract import aggregate, extract
from tests.opinfo.programs import program_of
from tests.qemu.kernel_firmware import KernelFirmware
from tests.tools import need_emulator, need_toolchain
from tests.unit.method.recorded_calls import Call, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.qemu.kernel_firmware import Answer

    Array = np.ndarray[Any, Any]

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

CPU: Final = "cortex-m55"
PLAIN: Final = "cortex-m4"
"""A core without vectors."""
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


_ZERO: Final = np.float32(0)
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
    "aten::sqrt.out": ((), np.sqrt),
    "aten::rsqrt.out": ((), lambda x: 1 / np.sqrt(x)),
    "aten::reciprocal.out": ((), lambda x: 1 / x),
    "aten::floor.out": ((), np.floor),
    "aten::ceil.out": ((), np.ceil),
    "aten::round.out": ((), np.rint),
    "aten::trunc.out": ((), np.trunc),
    "aten::sign.out": ((), lambda x: np.where(np.isnan(x), 0, np.sign(x) + _ZERO)),
}
TWO: Final[dict[str, _Case]] = {
    "aten::add.out": ((0.5,), lambda x, y: x + _HALF * y),
    "aten::sub.out": ((1,), lambda x, y: x - y),
    "aten::mul.out": ((), lambda x, y: x * y),
    "aten::maximum.out": ((), lambda x, y: _first_if((x > y) | np.isnan(x), x, y)),
    "aten::minimum.out": ((), lambda x, y: _first_if((x < y) | np.isnan(x), x, y)),
}
"""Arguments behind the tensors, and what comes out."""


FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {
    "aten::exp.out": (),
    "aten::sigmoid.out": (),
    "aten::tanh.out": (),
    "aten::erf.out": (),
    "aten::gelu.out": ("none",),
    "aten::elu.out": (0.7, 1.1, 0.9),
    "aten::expm1.out": (),
    "aten::log.out": (),
    "aten::log1p.out": (),
    "aten::log2.out": (),
    "aten::log10.out": (),
    "aten::sin.out": (),
    "aten::cos.out": (),
    "aten::tan.out": (),
    "aten::asin.out": (),
    "aten::acos.out": (),
    "aten::atan.out": (),
    "aten::sinh.out": (),
    "aten::cosh.out": (),
    "aten::asinh.out": (),
    "aten::acosh.out": (),
    "aten::atanh.out": (),
    "aten::logit.out": (None,),
    "aten::pow.Scalar_out": (1.7,),
    "aten::pow.Tensor_Scalar_out": (-1.7,),
    "aten::_softmax.out": (0, False),
    "aten::_log_softmax.out": (0, False),
}
"""Arguments beside the tensor."""


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


def _function_calls() -> Iterator[Call]:
    rng = np.random.default_rng(6)
    for operator, args in FUNCTIONS.items():
        for size in (*SIZES, *[4093] * 3):
            for share in (0.0, 0.02):
                usual = rng.normal(0, 20, size).astype(np.float32)
                few = rng.random(size) < 0.5
                items = np.where(few, usual, some_items(rng, size, share))
                # One NaN, and all results of these are.
                if "softmax" in operator:
                    items = np.nan_to_num(np.clip(items, -200, 80))
                    items[rng.random(size) < share] = -np.inf
                    items[0] = 1
                out = _tensor(np.zeros(size), is_out=True)
                given = _tensor(items)
                before = operator == "aten::pow.Scalar_out"
                both = (*args, given) if before else (given, *args)
                yield Call(operator, (*both, out))


def _same(outs: tuple[bytes, ...], wanted: bytes) -> bool:
    """Whether bits are equal, but for those of NaN, which processors choose."""
    (found,) = outs
    a, b = np.frombuffer(found, "<f4"), np.frombuffer(wanted, "<f4")
    same = a.view("<u4") == b.view("<u4")
    return bool((same | (np.isnan(a) & np.isnan(b))).all())


def firmware_answers(
    folder: Path, cpu: str, toolchain: str, calls: Sequence[Call]
) -> Sequence[Answer]:
    """What calls give on a core."""
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    programs = (program_of(call, dynamic=False)[0] for call in calls)
    infos = (extract(read_program(p, file="call.pte"), model="call") for p in programs)
    firmware = KernelFirmware(
        folder, target=(cpu, toolchain), libraries=("portable",), selection=aggregate(infos)
    )
    return firmware.answers(calls)


@pytest.mark.parametrize("toolchain", ["gnu", "zig"])
def test_rows_are_those_of_plain_arithmetic(toolchain: str, tmp_path: Path) -> None:
    calls = tuple(_calls())
    answers = firmware_answers(tmp_path / "firmware", CPU, toolchain, calls)
    wrong = [
        f"{call.operator} of {call.outs[0].sizes}: error {answer.error}"
        for call, answer in zip(calls, answers, strict=True)
        if answer.error or answer.changed or not _same(answer.outs, call.outs[0].data)
    ]
    assert not wrong, f"{len(wrong)} of {len(calls)}: " + "; ".join(wrong[:9])
    assert len(calls) > 1000


@pytest.mark.parametrize("toolchain", ["gnu", "zig"])
def test_functions_are_those_of_plain_items(toolchain: str, tmp_path: Path) -> None:
    calls = tuple(_function_calls())
    plain = firmware_answers(tmp_path / "plain", PLAIN, "gnu", calls)
    vectors = firmware_answers(tmp_path / "vectors", CPU, toolchain, calls)
    wrong = [
        f"{call.operator} of {call.outs[0].sizes}: error {found.error}"
        for call, found, wanted in zip(calls, vectors, plain, strict=True)
        if found.error or found.changed or not _same(found.outs, *wanted.outs)
    ]
    assert not wrong, f"{len(wrong)} of {len(calls)}: " + "; ".join(wrong[:9])
