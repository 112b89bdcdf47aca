"""Pooling of floats with vectors, to the bits of a core without them.

Windows with padding, dilation and strides, any number of channels, both dim orders,
with subnormal numbers, which vectors treat as 0, infinities, NaN and both zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from tests.qemu.test_float_rows import CPU, PLAIN, firmware_answers, some_items
from tests.unit.method.recorded_calls import Call, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

COUNT: Final = 240


def _calls() -> Iterator[Call]:
    rng = np.random.default_rng(11)
    for number in range(COUNT):
        dims = 2 + number % 2
        adaptive, largest = bool(number & 2), bool(number & 4)
        channels = int(rng.choice([1, 3, 4, 5, 7, 8, 9, 13]))
        batch = int(rng.integers(1, 3))
        size = [int(s) for s in rng.integers(4, 8, dims)]
        order = tuple(range(dims + 2))
        if rng.random() < 0.5:
            order = (0, *range(2, dims + 2), 1)
        sizes = (batch, channels, *size)
        share = float(rng.choice([0, 0.01, 0.3]))
        items = some_items(rng, int(np.prod(sizes)), share).astype("<f4")
        x = Tensor(ScalarType.Float, sizes, order, items.tobytes())
        if adaptive:
            out = [int(rng.integers(1, s + 2)) for s in size]
            args: tuple[object, ...] = (tuple(out),)
            name = f"adaptive_max_pool{dims}d" if largest else f"_adaptive_avg_pool{dims}d"
        else:
            kernel = [int(k) for k in rng.integers(1, 4, dims)]
            stride = [int(s) for s in rng.integers(1, 4, dims)]
            padding = [int(rng.integers(0, k // 2 + 1)) for k in kernel]
            dilation = [1] * dims
            if largest:
                dilation = [int(d) for d in rng.integers(1, 3, dims)]
            window = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
            out = [
                (s + 2 * p - w) // step + 1
                for s, p, w, step in zip(size, padding, window, stride, strict=True)
            ]
            if min(out) < 1:
                continue
            args = tuple(kernel), tuple(stride), tuple(padding)
            if largest:
                name = f"max_pool{dims}d_with_indices"
                args = (*args, tuple(dilation), False)
            else:
                name = f"avg_pool{dims}d"
                args = (*args, False, bool(rng.random() < 0.5), None)
        sizes = (batch, channels, *out)
        count = int(np.prod(sizes))
        outs = [Tensor(ScalarType.Float, sizes, order, bytes(4 * count), is_out=True)]
        if largest:
            outs.append(Tensor(ScalarType.Long, sizes, order, bytes(8 * count), is_out=True))
        yield Call(f"aten::{name}.out", (x, *args, *outs))


@pytest.mark.parametrize("toolchain", ["gnu", "zig"])
def test_pools_are_those_of_a_core_without_vectors(toolchain: str, tmp_path: Path) -> None:
    calls = tuple(_calls())
    found, plain = (firmware_answers(tmp_path / cpu, cpu, toolchain, calls) for cpu in (CPU, PLAIN))
    wrong = []
    for call, one, other in zip(calls, found, plain, strict=True):
        a, b = (np.frombuffer(answer.outs[0], "<f4") for answer in (one, other))
        same = (a.view("<u4") == b.view("<u4")) | (np.isnan(a) & np.isnan(b))
        failed = one.error or other.error or one.changed
        if failed or not same.all() or one.outs[1:] != other.outs[1:]:
            x = call.args[0]
            wrong.append(f"{call.operator} of {x.sizes}, {x.order}: {one.error}")
    assert not wrong, f"{len(wrong)} of {len(calls)}: " + "; ".join(wrong[:9])
    assert len(calls) > COUNT // 2
    floats = [np.frombuffer(answer.outs[0], "<f4") for answer in found]
    assert np.isnan(np.concatenate(floats)).any()
