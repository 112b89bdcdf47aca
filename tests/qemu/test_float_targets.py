"""Kernels of floats with vectors, against those without, to the bit.

Rows of all lengths, with subnormal numbers, which vectors treat as 0, infinities, NaN
and both zeros. The Cortex-M4 has the same kernels without vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.program.reader import read_program
from orchestrator.selection.extract import aggregate, extract
from tests.opinfo.programs import program_of, tensors
from tests.qemu.kernel_firmware import KernelFirmware
from tests.qemu.test_float_rows import some_items
from tests.tools import need_emulator, need_toolchain
from tests.unit.method.recorded_calls import Call, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Array = np.ndarray[Any, Any]

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

VECTORS: Final = "cortex-m55"
PLAIN: Final = "cortex-m4"
SHARES: Final = (0.0, 0.004, 0.3)
"""Of items that are edges."""
LENGTHS: Final = (1, 2, 3, 5, 7, 8, 11, 16, 18, 33, 64, 67)
_FLOATS: Final = (ScalarType.Float, ScalarType.Double)


def _given(array: Array, order: tuple[int, ...] | None = None) -> Tensor:
    dtype = {"f": ScalarType.Float, "b": ScalarType.Bool}[array.dtype.kind]
    data = np.ascontiguousarray(array.transpose(order or range(array.ndim)))
    return Tensor(dtype, array.shape, order or tuple(range(array.ndim)), data.tobytes())


def _out(dtype: ScalarType, *sizes: int) -> Tensor:
    items = int(np.prod(sizes))
    width = {ScalarType.Long: 8, ScalarType.Bool: 1}.get(dtype, 4)
    return Tensor(dtype, sizes, tuple(range(len(sizes))), bytes(items * width), is_out=True)


class _Maker:
    """Inputs of one share of edges."""

    def __init__(self, rng: np.random.Generator, share: float) -> None:
        self.rng = rng
        self.share = share

    def floats(self, *sizes: int) -> Tensor:
        count = int(np.prod(sizes))
        items = some_items(self.rng, count, self.share).astype("<f4")
        order = tuple(range(len(sizes)))
        if self.rng.random() < 0.3:
            order = tuple(int(d) for d in self.rng.permutation(len(sizes)))
        return _given(items.reshape(sizes), order)

    def equal(self, *sizes: int) -> Tensor:
        """Few different numbers: the first of several counts."""
        items = self.rng.choice(np.array([0.0, -0.0, 1.0, -1.0], "<f4"), sizes)
        return _given(items)

    def tiny(self, *sizes: int) -> Tensor:
        """Subnormal numbers, and their sums."""
        items = self.rng.integers(-9, 10, sizes).astype("<f4")
        return _given(items * np.float32(3e-39))

    def reductions(self, size: int) -> Iterator[Call]:
        rows, one = _out(ScalarType.Float, 3), _out(ScalarType.Float)
        indices = _out(ScalarType.Long, 3)
        for x in (self.floats(3, size), self.equal(3, size), self.tiny(3, size)):
            for name in ("sum.IntList", "mean"):
                yield Call(
                    f"aten::{name}_out".replace("mean_", "mean."), (x, (1,), False, None, rows)
                )
            columns = _out(ScalarType.Float, size)
            yield Call("aten::sum.IntList_out", (x, (0,), False, None, columns))
            yield Call("aten::amax.out", (x, (0,), False, columns))
            yield Call("aten::sum.IntList_out", (x, (0, 1), False, None, one))
            for name in ("amax", "amin"):
                yield Call(f"aten::{name}.out", (x, (1,), False, rows))
                yield Call(f"aten::{name}.out", (x, (), False, one))
            for name in ("argmax", "argmin"):
                yield Call(f"aten::{name}.out", (x, 1, False, indices))
            for name in ("max", "min"):
                yield Call(f"aten::{name}.unary_out", (x, one))
                yield Call(f"aten::{name}.dim_{name}", (x, 1, False, rows, indices))
            yield Call("aten::prod.int_out", (x, 1, False, None, rows))
            yield Call("aten::var_mean.correction_out", (x, (1,), 0, False, rows, rows))

    def norms(self, size: int) -> Iterator[Call]:
        x, out = self.floats(3, size), _out(ScalarType.Float, 3, size)
        w, b = self.line(size), self.line(size)
        stats = _out(ScalarType.Float, 3, 1)
        for weight, bias in ((w, b), (w, None), (None, None)):
            yield Call(
                "aten::native_layer_norm.out", (x, (size,), weight, bias, 1e-5, out, stats, stats)
            )
        y, image = self.floats(2, 4, size), _out(ScalarType.Float, 2, 4, size)
        w, b = self.floats(4), self.floats(4)
        groups = _out(ScalarType.Float, 2, 2)
        yield Call(
            "aten::native_group_norm.out", (y, w, b, 2, 4, size, 2, 1e-5, image, groups, groups)
        )
        channels = _out(ScalarType.Float, 4)
        yield Call(
            "aten::_native_batch_norm_legit.no_stats_out",
            (y, w, b, True, 0.1, 1e-5, image, channels, channels),
        )

    def elementwise(self, size: int) -> Iterator[Call]:
        """Operators that give truth values or take three tensors."""
        yield from self.of_three(size, *(self.line(size) for _ in range(3)))
        yield from self.of_three(size, *(self.tiny(size) for _ in range(3)))

    def of_three(self, size: int, x: Tensor, y: Tensor, z: Tensor) -> Iterator[Call]:
        mask, out = _out(ScalarType.Bool, size), _out(ScalarType.Float, size)
        for name in ("eq", "ne", "ge", "gt", "le", "lt"):
            yield Call(f"aten::{name}.Tensor_out", (x, y, mask))
            yield Call(f"aten::{name}.Tensor_out", (x, x, mask))
            for number in (0.0, 1.0, float("inf"), float("nan")):
                yield Call(f"aten::{name}.Scalar_out", (x, number, mask))
        yield Call("aten::isnan.out", (x, mask))
        yield Call("aten::isinf.out", (x, mask))
        condition = _given(self.rng.random(size) < 0.5)
        yield Call("aten::where.self_out", (condition, x, y, out))
        for low, high in ((y, z), (y, None), (None, z)):
            yield Call("aten::clamp.Tensor_out", (x, low, high, out))

    def images(self, size: int) -> Iterator[Call]:
        """Resized and pooled images of `size` columns."""
        x = self.floats(2, 3, 3, size)
        for height, width in ((6, 2 * size), (2, size + 1), (3, size)):
            out = _out(ScalarType.Float, 2, 3, height, width)
            for corners in (False, True):
                yield Call(
                    "aten::upsample_bilinear2d.vec_out", (x, (height, width), corners, None, out)
                )
            yield Call("aten::upsample_nearest2d.vec_out", (x, (height, width), None, out))
        pooled = (2, 3, 2, size // 2 + 1)
        out, indices = _out(ScalarType.Float, *pooled), _out(ScalarType.Long, *pooled)
        two, one = (2, 2), (1, 1)
        yield Call("aten::avg_pool2d.out", (x, two, two, one, False, False, None, out))
        yield Call(
            "aten::max_pool2d_with_indices.out", (x, two, two, one, one, False, out, indices)
        )
        yield Call("aten::_adaptive_avg_pool2d.out", (x, pooled[2:], out))
        yield Call("aten::adaptive_max_pool2d.out", (x, pooled[2:], out, indices))

    def orders(self, size: int) -> Iterator[Call]:
        for x in (self.floats(3, size), self.equal(3, size)):
            values, indices = (_out(ScalarType.Float, 3, size), _out(ScalarType.Long, 3, size))
            one, at = _out(ScalarType.Float, 3), _out(ScalarType.Long, 3)
            for down in (False, True):
                yield Call("aten::sort.values", (x, 1, down, values, indices))
            yield Call("aten::median.dim_values", (x, 1, False, one, at))

    def line(self, size: int) -> Tensor:
        return _given(some_items(self.rng, size, self.share).astype("<f4"))


def _calls() -> Iterator[Call]:
    rng = np.random.default_rng(7)
    for size in LENGTHS:
        for share in SHARES:
            maker = _Maker(rng, share)
            yield from maker.reductions(size)
            yield from maker.norms(size)
            yield from maker.elementwise(size)
            yield from maker.images(size)
            yield from maker.orders(size)


def _same(a: bytes, b: bytes, dtype: ScalarType) -> bool:
    """Whether bits are equal, but for those of NaN, which processors choose."""
    if a == b or dtype not in _FLOATS:
        return a == b
    x, y = np.frombuffer(a, "<f4"), np.frombuffer(b, "<f4")
    return bool(((x.view("<u4") == y.view("<u4")) | (np.isnan(x) & np.isnan(y))).all())


@pytest.mark.parametrize("toolchain", ["gnu", "zig"])
def test_vectors_give_the_bits_of_plain_code(toolchain: str, tmp_path: Path) -> None:
    calls = tuple(_calls())
    programs = (program_of(call, dynamic=False)[0] for call in calls)
    infos = [extract(read_program(p, file="call.pte"), model="call") for p in programs]
    answers = []
    for cpu in (VECTORS, PLAIN):
        need_toolchain(cpu, toolchain)
        need_emulator(cpu)
        firmware = KernelFirmware(
            tmp_path / cpu,
            target=(cpu, toolchain),
            libraries=("portable",),
            selection=aggregate(infos),
        )
        answers.append(firmware.answers(calls))
    wrong = []
    for call, vectors, plain in zip(calls, *answers, strict=True):
        same = all(
            _same(a, b, out.dtype)
            for a, b, out in zip(vectors.outs, plain.outs, call.outs, strict=True)
        )
        if vectors.error or vectors.changed or plain.error or not same:
            sizes = [t.sizes for t in tensors(call)]
            wrong.append(f"{call.operator} of {sizes}: error {vectors.error}")
    assert not wrong, f"{len(wrong)} of {len(calls)}: " + "; ".join(wrong[:9])
    assert len(calls) > 1000
