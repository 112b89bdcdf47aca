"""int8 layers whose dim orders are ambiguous give the bits of NumPy's integers.

ExecuTorch names the memory of a tensor after its strides. Where sizes are 1, as in
weights of depthwise layers, images of one line or one channel, several dim orders fit,
and it takes any of them.
"""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from tests.data.cortex_m import semantics
from tests.qemu.call_products import GUARD, run_calls, write_calls
from tests.tools import need_emulator, need_toolchain
from tests.unit.method.random_convolutions import NHWC, tensor
from tests.unit.method.recorded_calls import Call, Tensor
from tests.unit.method.test_dim_orders import alike

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

_S: Final = ScalarType
TARGETS: Final = (
    *(("host", "zig"), ("cortex-m4", "gnu"), ("cortex-m55", "zig")),
    ("cortex-m55", "gnu"),
)
SHAPES: Final = (
    # Channels, groups, outputs, window, image.
    (8, 8, 8, (3, 3), (7, 6)),
    (8, 8, 8, (1, 3), (1, 16)),
    (8, 8, 16, (3, 1), (9, 1)),
    (1, 1, 8, (3, 3), (7, 6)),
    (1, 1, 1, (3, 3), (6, 7)),
    (1, 1, 8, (1, 1), (4, 5)),
    (4, 1, 8, (1, 1), (1, 5)),
    (16, 1, 1, (1, 1), (3, 3)),
    (4, 1, 5, (1, 3), (1, 9)),
    (4, 2, 6, (3, 1), (9, 1)),
    (3, 3, 3, (1, 1), (1, 1)),
)


class _Random:
    """Random calls, each with what it gives."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(38)

    def int8(self, *sizes: int) -> Any:
        return self.rng.integers(-128, 128, sizes)

    def some(self, given: Tensor) -> Tensor:
        """The tensor in any dim order of the same memory."""
        found = alike(given)
        return found[self.rng.integers(len(found))]

    def scales(self, outputs: int) -> tuple[Any, Any, Any]:
        """Biases, multipliers and shifts."""
        bias = self.rng.integers(-20000, 20000, outputs)
        multipliers = self.rng.integers(1 << 30, 1 << 31, outputs)
        return bias, multipliers, -self.rng.integers(6, 9, outputs)

    def result(self, y: Any, order: tuple[int, ...] = ()) -> Tensor:
        return self.some(replace(tensor(y * 0, _S.Char, order), is_out=True))

    def image(self, batch: int, shape: tuple[Any, ...], *, depthwise: bool) -> tuple[Call, Any]:
        channels, groups, outputs, kernel, size = shape
        bias, multipliers, shifts = self.scales(outputs)
        x, w = (self.int8(batch, *size, channels), self.int8(outputs, *kernel, channels // groups))
        padding = tuple(k // 2 for k in kernel)
        windows = ((1, 1), padding, (1, 1))
        sums = semantics.conv2d(x, w, bias, *windows, 3)
        y = semantics.to_int8(sums, multipliers, shifts, -4, -128, 127)
        lying = w.transpose(3, 1, 2, 0) if depthwise else w
        call = Call(
            f"cortex_m::quantized_{'depthwise_' * depthwise}conv2d.out",
            (
                self.some(tensor(x, _S.Char, NHWC)),
                self.some(tensor(lying, _S.Char)),
                tensor(bias, _S.Int),
                *windows,
                *((outputs // channels,) if depthwise else ()),
                *(3, -4),
                *(tensor(multipliers, _S.Int), tensor(shifts, _S.Int)),
                *(-128, 127),
                Tensor(_S.Byte, (0,), (0,), b""),
                self.result(y, NHWC),
            ),
        )
        return call, y.transpose(0, 3, 1, 2)

    def transposed(self, batch: int, channels: int, outputs: int) -> tuple[Call, Any]:
        bias, multipliers, shifts = self.scales(outputs)
        x, w = self.int8(batch, 1, 5, channels), self.int8(outputs, 1, 3, channels)
        windows = ((1, 2), (0, 1), (0, 0), (1, 1))
        sums = semantics.transpose_conv2d(x, w, bias, *windows, 3)
        y = semantics.to_int8(sums, multipliers, shifts, -4, -128, 127)
        call = Call(
            "cortex_m::quantized_transpose_conv2d.out",
            (
                self.some(tensor(x, _S.Char, NHWC)),
                self.some(tensor(w, _S.Char)),
                tensor(bias, _S.Int),
                *windows,
                *(3, -4),
                *(tensor(multipliers, _S.Int), tensor(shifts, _S.Int)),
                *(-128, 127),
                *(Tensor(_S.Byte, (0,), (0,), b""),) * 2,
                self.result(y, NHWC),
            ),
        )
        return call, y.transpose(0, 3, 1, 2)

    def matrix(self, rows: int, depth: int, outputs: int) -> tuple[Call, Any]:
        bias, multipliers, shifts = self.scales(outputs)
        x, w = self.int8(rows, depth), self.int8(outputs, depth)
        sums = semantics.linear(x, w, bias, 3, 0)
        y = semantics.to_int8(sums, multipliers[0], shifts[0], -4, -128, 127)
        # Kernels take these in order only.
        call = Call(
            "cortex_m::quantized_linear.out",
            (
                *(tensor(x, _S.Char), tensor(w, _S.Char)),
                *(tensor(bias, _S.Int), None, 3, 0, -4),
                *((int(multipliers[0]),), (int(shifts[0]),), 127, -128),
                replace(tensor(y * 0, _S.Char), is_out=True),
            ),
        )
        return call, y


def _calls() -> Iterator[tuple[Call, Any]]:
    random = _Random()
    for batch in (1, 2, 3):
        for shape in SHAPES:
            channels, groups, *_ = shape
            yield random.image(batch, shape, depthwise=False)
            if channels == groups:
                yield random.image(batch, shape, depthwise=True)
        for channels, outputs in ((1, 4), (4, 1), (1, 1)):
            yield random.transposed(batch, channels, outputs)
        for depth, outputs in ((1, 4), (16, 1), (1, 1)):
            yield random.matrix(batch, depth, outputs)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """The folder of a program, with a scenario of all methods, and what they give."""
    folder = tmp_path_factory.mktemp("orders")
    calls = list(_calls())
    inputs = frozenset({0})
    write_calls(folder, [(call, inputs) for call, _ in calls], together=11)
    return folder, [y for _, y in calls]


@pytest.mark.parametrize(("cpu", "toolchain"), TARGETS)
def test_layers_give_the_same_bits(
    cpu: str, toolchain: str, expected: tuple[Path, list[Any]]
) -> None:
    need_toolchain(cpu, toolchain)
    if cpu != "host":
        need_emulator(cpu)
    folder, results = expected
    _, outputs = run_calls(folder, cpu, toolchain)
    different = []
    for number, (result, files) in enumerate(zip(results, outputs, strict=True)):
        found, *guards = (np.load(io.BytesIO(file)) for file in files)
        same = np.array_equal(found, result)
        if not same or not all(np.array_equal(g, GUARD) for g in guards):
            different.append(number)
    assert different == []
