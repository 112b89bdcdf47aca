"""A program gives the same outputs if the build computes its constants."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from tests.list_program import call, plan, tensor, value
from tests.product import Product
from tests.tools import need_emulator, need_toolchain
from tests.unit.program.program_writer import write_program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

X: Final = np.array([0.25, -3.5, 1e-3, 7], "f4")
C: Final = np.array([0.1, 3, -0.7, 11], "f4")
WEIGHTS: Final = np.array([3, -7, 100, -128], "i1")
SCALE: Final = 0.013


def _constant(sizes: list[int], buffer: int, dtype: int = 6) -> dict[str, Any]:
    made = tensor(sizes, 0, dtype=dtype)
    made["val"] |= {"allocation_info": None, "data_buffer_idx": buffer}
    return made


def _program() -> bytes:
    """x * ((0.3 + 3 c) / c) + the dequantized weights; two calls are unused."""
    number = {n: 40 + i for i, n in enumerate((0, 1, 3, 4, -128, 127, -1))}
    values = [value("Null") for _ in range(50)]
    for n, index in number.items():
        values[index] = value("Int", int_val=n)
    places = {
        0: tensor([4], 0),  # x
        1: _constant([4], 1),  # c
        2: _constant([4], 2, dtype=1),  # weights
        3: tensor([4], 16),  # 0.3
        4: tensor([4], 32),  # 0.3 + 3 c
        5: tensor([4], 48),  # ... / c
        6: tensor([4], 64),  # weights as floats
        8: tensor([4], 112),  # x * 5
        9: tensor([4], 128),  # the result
        10: tensor([4], 144),  # unused
        11: tensor([4], 160),  # unused
        20: value("IntList", items=[number[4]]),
        22: value("Double", double_val=0.3),
        23: value("Double", double_val=SCALE),
    }
    for index, made in places.items():
        values[index] = made
    none, one = 30, number[1]
    operators = [
        *("aten::full.out", "aten::add.out", "aten::div.out"),
        "quantized_decomposed::dequantize_per_tensor.out",
        *("aten::mul.out", "aten::relu.out"),
    ]
    code = [
        call(0, 20, 22, 3, 3),
        call(1, 3, 1, number[3], 4, 4),
        call(5, 0, 10, 10),
        call(2, 4, 1, 5, 5),
        call(3, 2, 23, number[-1], number[-128], number[127], one, none, 6, 6),
        call(4, 10, 10, 11, 11),
        call(4, 0, 5, 8, 8),
        call(1, 8, 6, one, 9, 9),
    ]
    return write_program(
        {
            "version": 0,
            "execution_plan": [plan("forward", values, ([0], [9]), code, operators)],
            "constant_buffer": [
                {"data": []},
                {"data": [*C.tobytes()]},
                {"data": [*WEIGHTS.tobytes()]},
            ],
            "backend_delegate_data": [],
            "segments": [],
            "mutable_data_segments": [],
            "named_data": [],
        }
    )


def _expected() -> np.ndarray[Any, Any]:
    f4 = np.float32
    factor = (np.full(4, 0.3, "f4") + f4(3) * C) / C
    floats = (WEIGHTS.astype("f4") + f4(1)) * f4(SCALE)
    return np.asarray(X * factor + floats)


def _product(folder: Path, *, cpu: str, skip: list[str]) -> Product:
    folder.mkdir()
    (folder / "m.pte").write_bytes(_program())
    profile = folder / "constants.toml"
    profile.write_text(
        f'schema = 1\nname = "constants"\n[target]\ncpu = "{cpu}"\ntoolchain = "zig"\n'
        f"[passes]\nskip = {json.dumps(skip)}\n"
        '[kernels]\nlibraries = ["quantized", "portable"]\n'
        '[[models]]\nname = "m"\npath = "m.pte"\nload = "prelinked"\n'
    )
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", _expected())
    one = [{"kind": "tensor", "file": f"{name}.npy"} for name in "xy"]
    runs = [{"method": "forward", "inputs": one[:1], "outputs": one[1:]}]
    scenario = {"tolerance": {"atol": 0, "rtol": 0}, "runs": runs}
    (folder / "scenario.json").write_text(json.dumps(scenario))
    return Product(profile=profile, out=folder / "out")


@pytest.mark.parametrize(
    "cpu",
    [
        "host",
        pytest.param("cortex-m4", marks=pytest.mark.qemu),
        pytest.param("cortex-m55", marks=pytest.mark.qemu),
    ],
)
def test_outputs_are_the_same_with_and_without_the_pass(
    cpu: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """To the bit, and what NumPy computes."""
    need_toolchain(cpu, "zig")
    need_emulator(cpu)
    operators = {}
    for name, skip in (("all", []), ("kept", ["evaluate_constants", "drop_unused_calls"])):
        product = _product(tmp_path / name, cpu=cpu, skip=skip)
        assert product.run("build") == 0, capsys.readouterr().err
        scenario = str(tmp_path / name / "scenario.json")
        assert product.run("run", "--scenario", scenario) == 0, capsys.readouterr()
        report: Any = product.report()
        (ledger,) = report["prelink"]
        operators[name] = ledger["passes"][-1]["after"]["calls"]
        capsys.readouterr()
    assert operators == {"all": 2, "kept": 8}
