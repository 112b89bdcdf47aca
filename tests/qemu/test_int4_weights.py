"""Weights of 4 bits give the bits of NumPy's integers, for windows of every kind.

A product of methods with one random call each runs on cores with and without DSP or
vector instructions. Their int8 weights are numbers of 4 bits times a
step, of each output or of groups of its taps; the build stores most of them in 4 bits.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.core.rounding import WeightRounding
from orchestrator.method.passes import run_passes, unlink_program
from tests.conftest import CORPUS
from tests.data.cortex_m import semantics
from tests.product import Product
from tests.qemu.call_products import GUARD, run_calls, write_calls
from tests.qemu.linked_names import packed_names
from tests.tools import need_emulator, need_toolchain
from tests.unit.method.random_convolutions import NHWC, tensor
from tests.unit.method.recorded_calls import Call, Tensor
from tests.unit.method.test_prelink_unlink import _linked as linked_methods
from tests.unit.products import program_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

COUNT: Final = 60
_S: Final = ScalarType
CORES: Final = (
    *(("cortex-m0plus", "gnu", "size"), ("cortex-m4", "gnu", "size")),
    *(("cortex-m7", "zig", "speed"), ("cortex-m55", "zig", "size"), ("cortex-m55", "gnu", "speed")),
)


class _Random:
    """Random calls, each with what it gives."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(4)

    def one(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def weights(self, outputs: int, taps: int, *, grouped: bool) -> Any:
        """Numbers of 4 bits times steps; a few taps more would not be."""
        group = 32 if grouped else taps
        steps = self.rng.integers(1, 17, (outputs, -(-taps // group)))
        steps[self.one(0, outputs - 1)] = 16
        each = steps.repeat(group, axis=1)[:, :taps]
        return self.rng.integers(-8, 8, (outputs, taps)) * each

    def scales(self, outputs: int, taps: int) -> tuple[Any, Any, Any]:
        """Biases, multipliers and shifts: sums become all of int8."""
        bias = self.rng.integers(-20000, 20000, outputs)
        multipliers = self.rng.integers(1 << 30, 1 << 31, outputs)
        most = 5 + int(taps).bit_length() // 2
        return bias, multipliers, -self.rng.integers(max(most - 2, 2), most, outputs)

    def limits(self, offset: int) -> tuple[int, int]:
        """Of some outputs, as after a ReLU."""
        return (-128, 127) if self.one(0, 3) else (offset, max(offset, 100))

    def image(self, *, window: bool) -> tuple[Call, Any]:
        channels, outputs = self.one(1, 48), self.one(1, 33)
        kernel, stride, padding, dilation = (1, 1), (1, 1), (0, 0), (1, 1)
        if window:
            channels = self.one(1, 20)
            kernel = (self.one(1, 4), self.one(1, 4))
            stride, dilation = (self.one(1, 2), self.one(1, 3)), (self.one(1, 2), 1)
            padding = (self.one(0, 2), self.one(0, 1))
            if self.one(0, 3) == 0:
                dilation = (1, 2)
        size = [
            max((k - 1) * d + 1 - 2 * p, 1) + self.one(0, 6)
            for k, d, p in zip(kernel, dilation, padding, strict=True)
        ]
        taps = channels * kernel[0] * kernel[1]
        grouped = not window and taps > 32
        bias, multipliers, shifts = self.scales(outputs, taps)
        offset = int(self.rng.choice([-128, 0, self.one(-128, 127)]))
        x_offset = self.one(-127, 128)
        x = self.rng.integers(-128, 128, (self.one(1, 2), *size, channels))
        w = self.weights(outputs, taps, grouped=grouped)
        w = w.reshape(outputs, *kernel, channels)
        sums = semantics.conv2d(x, w, bias, stride, padding, dilation, x_offset)
        low, high = self.limits(offset)
        y = semantics.to_int8(sums, multipliers, shifts, offset, low, high)
        call = Call(
            "cortex_m::quantized_conv2d.out",
            (
                tensor(x, _S.Char, NHWC),
                tensor(w, _S.Char),
                tensor(bias, _S.Int),
                *(stride, padding, dilation),
                *(x_offset, offset),
                tensor(multipliers, _S.Int),
                tensor(shifts, _S.Int),
                *(low, high),
                Tensor(_S.Byte, (0,), (0,), b""),
                replace(tensor(np.zeros(y.shape), _S.Char, NHWC), is_out=True),
            ),
        )
        return call, y.transpose(0, 3, 1, 2)

    def matrix(self) -> tuple[Call, Any]:
        rows = self.one(2, 4) if self.one(0, 2) == 0 else 1
        depth = self.one(1, 600) if self.one(0, 2) == 0 else self.one(1, 150)
        outputs = self.one(1, 33)
        bias, multipliers, shifts = self.scales(1, depth)
        bias = self.rng.integers(-20000, 20000, outputs)
        offset = int(self.rng.choice([-128, 0, self.one(-128, 127)]))
        x_offset, has_sums = self.one(-127, 128), self.one(0, 1) == 1
        x = self.rng.integers(-128, 128, (rows, depth))
        w = self.weights(outputs, depth, grouped=self.one(0, 1) == 1)
        of_x = 0 if has_sums else x_offset
        sums = semantics.linear(x, w, bias, of_x, 0)
        low, high = self.limits(offset)
        y = semantics.to_int8(sums, multipliers[0], shifts[0], offset, low, high)
        added = tensor(bias, _S.Int)
        call = Call(
            "cortex_m::quantized_linear.out",
            (
                *(tensor(x, _S.Char), tensor(w, _S.Char)),
                *((None, added) if has_sums else (added, None)),
                *(x_offset, 0, offset),
                *((int(multipliers[0]),), (int(shifts[0]),)),
                *(high, low),
                replace(tensor(np.zeros(y.shape), _S.Char), is_out=True),
            ),
        )
        return call, y


def _calls() -> Iterator[tuple[Call, Any]]:
    random = _Random()
    for number in range(COUNT):
        if number % 3 == 2:
            yield random.matrix()
        else:
            yield random.image(window=number % 3 == 1)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """The folder of a program, with a scenario of all methods, and what they give."""
    folder = tmp_path_factory.mktemp("int4")
    calls = list(_calls())
    write_calls(folder, [(call, frozenset({0})) for call, _ in calls])
    return folder, [y for _, y in calls]


@pytest.mark.parametrize("core", CORES, ids="-".join)
def test_weights_of_4_bits_change_no_bit(
    core: tuple[str, str, str], expected: tuple[Path, list[Any]]
) -> None:
    cpu, toolchain, optimize = core
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    folder, results = expected
    product, outputs = run_calls(folder, cpu, toolchain, optimize=optimize)
    assert len(outputs) == len(results)
    different = []
    for number, (result, files) in enumerate(zip(results, outputs, strict=True)):
        found, *guards = (np.load(io.BytesIO(file)) for file in files)
        same = np.array_equal(found, result)
        if not same or not all(np.array_equal(g, GUARD) for g in guards):
            different.append(number)
    assert different == []
    symbols: Any = product.report()["symbols"]
    names = {symbol["name"] for symbol in symbols}
    is_int4 = packed_names(cpu, optimize, lambda row: row.weights == "int4", limits=False)
    assert is_int4 <= names
    assert any("int4_limited_packed_" in name for name in names)


MODELS: Final = {"kws_dscnn_int8_m4": "", "ad_autoencoder_int8_m55": "group = 32\n"}
"""Cases of the corpus, and keys of their weights."""


@pytest.fixture(scope="module")
def rounded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """Programs with rounded weights, and what int8 kernels that load them give."""
    need_toolchain("host", "zig")
    folder = tmp_path_factory.mktemp("rounded")
    runs = []
    for case, keys in MODELS.items():
        program = program_of(case)
        rounding = WeightRounding(group=32 if keys else None)
        method = replace(linked_methods(case)[0], rounding=rounding)
        after = run_passes(method, ["round_weights", "drop_values"], replans=True)
        (folder / f"{case}.pte").write_bytes(bytes(unlink_program(program, [after]).data))
        value = {"kind": "tensor", "file": str(CORPUS / case / "in0.npy")}
        runs.append({"model": case, "method": "forward", "inputs": [value]})
    scenario = {"runs": runs, "tolerance": {"atol": 0, "rtol": 0}}
    (folder / "scenario.json").write_text(json.dumps(scenario))
    loaded = "".join(f'[[models]]\nname = "{case}"\npath = "{case}.pte"\n' for case in MODELS)
    return folder, _outputs(folder, "host", "zig", loaded)[1]


def _outputs(
    folder: Path, cpu: str, toolchain: str, models: str
) -> tuple[Product, dict[str, bytes]]:
    profile = folder / f"{cpu}.toml"
    profile.write_text(
        f'schema = 1\nname = "{cpu}"\n'
        f'[target]\ncpu = "{cpu}"\ntoolchain = "{toolchain}"\n'
        f'[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n{models}'
    )
    product = Product(profile=profile, out=folder / cpu)
    found = folder / f"{cpu}.outputs"
    scenario = ("--scenario", str(folder / "scenario.json"))
    assert product.run("run", *scenario, "--output-dir", str(found)) == 0
    return product, {path.name: path.read_bytes() for path in found.iterdir()}


@pytest.mark.parametrize(("cpu", "toolchain"), [("cortex-m4", "gnu"), ("cortex-m55", "zig")])
def test_rounded_models_give_what_int8_kernels_give(
    cpu: str, toolchain: str, rounded: tuple[Path, dict[str, bytes]]
) -> None:
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    folder, expected = rounded
    models = "".join(
        f'[[models]]\nname = "{case}"\npath = "{CORPUS / case / "model.pte"}"\n'
        f'load = "prelinked"\n[models.weights]\nbits = 4\n{keys}'
        for case, keys in MODELS.items()
    )
    product, found = _outputs(folder, cpu, toolchain, models)
    assert found == expected
    report: Any = product.report()
    for method in report["prelink"]:
        (record,) = [p for p in method["passes"] if p["name"] == "round_weights"]
        assert sum(": 4 bits, SQNR of the weights 2" in n for n in record["notes"]) > 4
    # DS-CNN has some 22,000 weights, 2,300 of them depthwise; the autoencoder 264,000.
    assert report["totals"]["model_bytes"] < 180_000
