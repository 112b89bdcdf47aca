"""Prepared calls give the bits of the kernels that read arguments, and no others.

A product of methods with a few calls each, recorded and random, is built with the pass
and without it. Methods also return what lies around each output.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.method.passes.inventory import OTHERS
from tests.integration.random_floats import float_calls
from tests.integration.random_int8 import elementwise_calls, int8_calls, pool_calls
from tests.integration.test_conditions import kernels, verdict
from tests.qemu.call_products import linked_calls, run_calls, write_calls
from tests.qemu.linked_names import isa_of
from tests.targets import EVERY_PAIR
from tests.tools import need_emulator, need_toolchain
from tests.unit.method.recorded_calls import Call, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

TARGETS: Final = (
    # Plain C++, as the host has it: most of the time goes into the emulator.
    pytest.param("cortex-m0plus", "gnu", marks=pytest.mark.nightly),
    *(("cortex-m4", "zig"), ("cortex-m55", "gnu")),
    *((("host", "zig"), ("cortex-m7", "gnu"), ("cortex-m33", "zig")) if EVERY_PAIR else ()),
)
PAIRS: Final = (
    *("add", "mul", "sub", "div", "maximum", "minimum", "batch_matmul"),
    *("aten::mm", "aten::bmm"),
)
"""In the names of operators that take two tensors; of others the rest is constant."""
_MOST: Final = 10
"""Calls of an operator."""
_ROUNDS: Final = 1
_KEYS: Final = '[memory]\nplanner = "keep"\n'
_SKIP: Final = '[passes]\nskip = ["prepare_calls"]\n'


def _affine_calls(seed: int, count: int) -> Iterator[Call]:
    """Random calls that quantize and dequantize."""
    rng = np.random.default_rng(seed)
    dtypes = {
        "cortex_m": (ScalarType.Char, ScalarType.Short),
        "quantized_decomposed": (ScalarType.Byte, ScalarType.Char, ScalarType.Short),
    }
    ranges = {
        ScalarType.Byte: (0, 255),
        ScalarType.Char: (-128, 127),
        ScalarType.Short: (-32768, 32767),
    }
    for number in range(count):
        library = (*dtypes,)[number % 2]
        dtype = rng.choice(dtypes[library])
        dtype = ScalarType(int(dtype))
        low, high = ranges[dtype]
        zero = int(rng.integers(low, high + 1))
        scale = float(np.float32(10 ** rng.uniform(-4, 1)))
        if number % 3 == 0:
            # Vectors take no such scale, and prepared calls half of these zero points.
            most = 1 << int(rng.choice([21, 23]))
            scale, zero = (float(np.float32(1e-22)), int(rng.integers(-most, most)))
        sizes = tuple(int(n) for n in rng.integers(1, 7, rng.integers(1, 5)))
        order = tuple(int(n) for n in rng.permutation(len(sizes)))
        size = int(np.prod(sizes))
        floats = (rng.normal(0, 60, size) * scale).astype("<f4")
        floats[rng.random(size) < 0.1] = rng.choice([np.nan, np.inf, -np.inf, 0, 3e38])
        form = {ScalarType.Byte: "u1", ScalarType.Char: "i1", ScalarType.Short: "<i2"}
        items = rng.integers(low, high + 1, size).astype(form[dtype])
        reals = Tensor(ScalarType.Float, sizes, order, floats.tobytes())
        whole = Tensor(dtype, sizes, order, items.tobytes())
        x, y = (reals, whole) if number % 4 < 2 else (whole, reals)
        name = "quantize" if x is reals else "dequantize"
        out = Tensor(y.dtype, sizes, order, bytes(len(y.data)), is_out=True)
        limits = (low, high) if number % 3 else (low + 3, high - 5)
        more = (None,) if library != "cortex_m" and x is whole else ()
        args = (x, scale, zero, *limits, int(dtype), *more, out)
        yield Call(f"{library}::{name}_per_tensor.out", args)


def _has_items(call: Call) -> bool:
    return all(len(a.data) for a in call.args if isinstance(a, Tensor) and a.is_out)


def _inputs(call: Call) -> frozenset[int]:
    tensors = [
        place
        for place, argument in enumerate(call.args)
        if isinstance(argument, Tensor) and not argument.is_out and argument.data
    ]
    is_pair = any(part in call.operator for part in PAIRS)
    return frozenset(tensors if is_pair else tensors[:1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, and a scenario that calls all of its methods."""
    folder = tmp_path_factory.mktemp("prepared")
    calls = [
        *pool_calls(seed=6, count=_MOST),
        *elementwise_calls(count=_MOST),
        *int8_calls(),
        *_affine_calls(seed=7, count=48),
        *float_calls(seed=7, rounds=_ROUNDS),
    ]
    known = kernels()
    of_operator: Counter[str] = Counter()
    chosen = []
    for call in calls:
        # Some have arguments that no kernel takes.
        if _has_items(call) and verdict(call, known[call.operator]) == "":
            of_operator[call.operator] += 1
            if of_operator[call.operator] <= _MOST + 8:
                chosen.append((call, _inputs(call)))
    write_calls(folder, chosen, together=8)
    return folder


@pytest.mark.parametrize(("cpu", "toolchain"), TARGETS)
def test_prepared_calls_change_no_bit(cpu: str, toolchain: str, folder: Path) -> None:
    need_toolchain(cpu, toolchain)
    if cpu != "host":
        need_emulator(cpu)
    _, plain = run_calls(folder, cpu, toolchain, name="plain-", keys=_KEYS + _SKIP)
    guard = (folder / "guard.npy").read_bytes()
    # With vectors some loops are for speed alone.
    for optimize in ("size", "speed") if cpu == "cortex-m55" else ("size",):
        product, outputs = run_calls(folder, cpu, toolchain, optimize=optimize, keys=_KEYS)
        pairs = enumerate(zip(outputs, plain, strict=True))
        assert [n for n, (found, expected) in pairs if found != expected] == []
        around = ((n, guards) for n, (_, *guards) in enumerate(outputs))
        assert [n for n, guards in around if guards != 2 * [guard]] == []
    prepared = [call.function for call in linked_calls(product) if call.prepared is not None]
    assert len(prepared) > len(outputs) / 2
    # All that a call alone may become: rows of an image are summed up where it comes by rows.
    rows = (row for row in OTHERS.values() if isa_of(cpu) in row.isa.split())
    names = {row.function() for row in rows if row.of not in {"SumRowsCall", "AverageSumsCall"}}
    assert names <= {*prepared}
