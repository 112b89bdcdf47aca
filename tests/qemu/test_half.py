"""Halves with the instructions of an FPU and with vectors, to the bit.

Conversions against NumPy: all halves, and floats at, between and next to them. Kernels
with vectors against a core without. Of NaN any bits are right.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.core.operator import OperatorName
from tests.qemu.kernel_firmware import KernelFirmware
from tests.qemu.test_float_rows import CPU, FUNCTIONS, ONE, PLAIN, TWO, firmware_answers
from tests.tools import need_emulator, need_toolchain
from tests.unit.method.recorded_calls import Call, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

OPERATOR: Final = "aten::_to_copy.out"
ITEMS: Final = 4096
EDGES: Final = np.array(
    [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00], "<u2"
).view("<f2")
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
    ("cpu", "toolchain"), [("cortex-m4", "gnu"), ("cortex-m33", "zig"), ("cortex-m55", "gnu")]
)
def test_conversions_have_the_bits_of_numpy(cpu: str, toolchain: str, tmp_path: Path) -> None:
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
    for items, out, want in ((halves, ScalarType.Float, exact), (floats, ScalarType.Half, rounded)):
        answers = firmware.answers([*_calls(items, out)])
        assert not any(answer.error or answer.changed for answer in answers)
        data = b"".join(answer.outs[0] for answer in answers)
        is_nan = np.isnan(np.frombuffer(data, _FORMS[out]))
        same = (np.frombuffer(data, want.dtype) == want) & ~is_nan
        wrong = ~same & ~(is_nan & np.isnan(items))
        assert not wrong.any(), f"{items.view(f'u{items.itemsize}')[wrong][:9]}"


def _halves(rng: np.random.Generator, count: int, share: float) -> Any:
    """Numbers of any size; a share of them are edges."""
    items = rng.normal(0, 4, count).astype("<f2")
    few = rng.random(count) < share
    return np.where(few, rng.choice(EDGES, count), items)


def _tensor(items: Any, sizes: tuple[int, ...]) -> Tensor:
    order = tuple(range(len(sizes)))
    return Tensor(ScalarType.Half, sizes, order, items.astype("<f2").tobytes())


def _elementwise_calls(rng: np.random.Generator) -> Iterator[Call]:
    cases = {name: (1, args) for name, (args, _) in ONE.items()}
    cases |= {name: (2, args) for name, (args, _) in TWO.items()}
    cases |= {name: (1, args) for name, args in FUNCTIONS.items()}
    cases |= {f"aten::{name}.Tensor_out": (2, ()) for name in ("lt", "ge", "eq")}
    for operator, (count, args) in cases.items():
        for size in (1, 3, 4, 15, 16, 33, 100):
            for share in (0.0, 0.05):
                given = [_tensor(_halves(rng, size, share), (size,)) for _ in range(count)]
                dtype, form = ScalarType.Half, "<f2"
                if "Tensor_out" in operator and count == 2:
                    dtype, form = ScalarType.Bool, "?"
                out = Tensor(dtype, (size,), (0,), np.zeros(size, form).tobytes(), is_out=True)
                before = operator == "aten::pow.Scalar_out"
                yield Call(operator, (*args, *given, out) if before else (*given, *args, out))


def _product_calls(rng: np.random.Generator) -> Iterator[Call]:
    for _ in range(60):
        rows, inner, columns = (int(n) for n in rng.integers(1, 20, 3))
        share = float(rng.choice([0.0, 0.02]))
        bias = _tensor(_halves(rng, columns, 0), (columns,))
        a = _tensor(_halves(rng, rows * inner, share), (rows, inner))
        b = _tensor(_halves(rng, inner * columns, share), (inner, columns))
        zeros = np.zeros(rows * columns, "<f2")
        out = replace(_tensor(zeros, (rows, columns)), is_out=True)
        yield Call("aten::addmm.out", (bias, a, b, 1, 1, out))
        yield Call("aten::mm.out", (a, b, out))
    for _ in range(60):
        groups = int(rng.choice([1, 1, 2, 5]))
        ins, outs = (int(n) for n in rng.integers(1, 10, 2))
        if groups == 5:
            ins, outs = 1, 1
        side, window, stride, padding = (
            int(rng.integers(*ends)) for ends in ((4, 9), (1, 4), (1, 3), (0, 2))
        )
        wide = (side + 2 * padding - window) // stride + 1
        x = (1, ins * groups, side, side)
        w = (outs * groups, ins, window, window)
        y = (1, outs * groups, wide, wide)
        conv = (
            _tensor(_halves(rng, int(np.prod(x)), 0.01), x),
            _tensor(_halves(rng, int(np.prod(w)), 0.0), w),
            _tensor(_halves(rng, y[1], 0.0), (y[1],)),
            *((stride, stride), (padding, padding), (1, 1), False, (0, 0), groups),
            replace(_tensor(np.zeros(int(np.prod(y))), y), is_out=True),
        )
        yield Call("aten::convolution.out", conv)


@pytest.mark.parametrize("toolchain", ["gnu", "zig"])
def test_vectors_of_halves_have_the_bits_of_plain_code(toolchain: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(26)
    calls = (*_elementwise_calls(rng), *_product_calls(rng))
    plain = firmware_answers(tmp_path / "plain", PLAIN, "gnu", calls)
    vectors = firmware_answers(tmp_path / "vectors", CPU, toolchain, calls)
    wrong = [
        f"{call.operator} of {call.outs[0].sizes}: error {found.error}"
        for call, found, wanted in zip(calls, vectors, plain, strict=True)
        if found.error or found.changed or not _same(call.outs[0].dtype, *found.outs, *wanted.outs)
    ]
    assert not wrong, f"{len(wrong)} of {len(calls)}: " + "; ".join(wrong[:9])
    assert not any(answer.error for answer in plain)
    assert len(calls) > 800


def _same(dtype: ScalarType, found: bytes, wanted: bytes) -> bool:
    """Whether bits are equal, but for those of NaN."""
    if dtype is ScalarType.Bool:
        return found == wanted
    a, b = np.frombuffer(found, "<f2"), np.frombuffer(wanted, "<f2")
    same = a.view("<u2") == b.view("<u2")
    return bool((same | (np.isnan(a) & np.isnan(b))).all())
