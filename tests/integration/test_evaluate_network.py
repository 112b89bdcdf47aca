"""A network of constants, and numbers: with the pass a firmware gives the same bits."""

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

RNG: Final = np.random.default_rng(3)
IMAGE: Final = RNG.standard_normal((1, 2, 4, 4)).astype("f4")
WEIGHTS: Final = RNG.standard_normal((2, 2, 3, 3)).astype("f4")
ITEMS: Final = RNG.integers(-128, 128, (1, 2, 2, 2)).astype("i1")
X: Final = RNG.standard_normal((1, 2, 2, 2)).astype("f4")
OPERATORS: Final = (
    *("aten::convolution.out", "aten::tanh.out", "aten::gelu.out"),
    *("aten::_softmax.out", "aten::native_layer_norm.out"),
    *("cortex_m::quantized_add.out", "cortex_m::dequantize_per_tensor.out"),
    *("aten::sym_size.int", "executorch_prim::add.Scalar"),
    *("aten::mul.out", "aten::add.out"),
)
HALF: Final = 1 << 30


def _constant(sizes: list[int], buffer: int, dtype: int = 6) -> dict[str, Any]:
    made = tensor(sizes, 0, dtype=dtype)
    made["val"] |= {"allocation_info": None, "data_buffer_idx": buffer}
    return made


def _program() -> bytes:
    """x * network(constants) + (2 + 1) * (the sum of quantized constants)."""
    sizes = [1, 2, 2, 2]
    values = [
        tensor(sizes, 0),  # x
        _constant([1, 2, 4, 4], 1),
        _constant([2, 2, 3, 3], 2),
        _constant(sizes, 3, dtype=1),
        *(tensor(sizes, 32 * i) for i in range(1, 6)),  # 4 to 8
        *(tensor([1, 2, 2, 1], 192 + 16 * i) for i in range(2)),
        tensor(sizes, 224, dtype=1),  # 11
        *(tensor(sizes, 32 * i) for i in range(8, 11)),  # 12 to 14
        *(value("Int", int_val=0) for _ in range(2)),  # 15, 16
        value("TensorList", items=[8, 9, 10]),
    ]

    def number(n: int) -> int:
        values.append(value("Int", int_val=n))
        return len(values) - 1

    def numbers(*items: int) -> int:
        values.append(value("IntList", items=[*map(number, items)]))
        return len(values) - 1

    def other(kind: str, **content: Any) -> int:
        values.append(value(kind, **content))
        return len(values) - 1

    no, none = other("Bool", bool_val=False), other("Null")
    one, three, byte = number(1), number(3), number(1)
    ones, zeros = numbers(1, 1), numbers(0, 0)
    factor = (number(5), number(HALF), number(1))
    exact = other("String", string_val="none")
    tiny, scale = other("Double", double_val=1e-5), other("Double", double_val=0.013)
    low, high = number(-128), number(127)
    code = [
        call(0, 1, 2, none, ones, zeros, ones, no, zeros, one, 4, 4),
        call(1, 4, 5, 5),
        call(2, 5, exact, 6, 6),
        call(3, 6, three, no, 7, 7),
        call(4, 7, numbers(2), none, none, tiny, 8, 9, 10, 17),
        call(5, 3, *factor, 3, *factor, *factor, low, high, 11, 11),
        call(6, 11, scale, one, low, high, byte, 12, 12),
        call(7, 0, three, 15),
        call(8, 15, one, 16),
        call(9, 0, 8, 13, 13),
        call(10, 13, 12, 16, 14, 14),
    ]
    buffers = [{"data": [*d.tobytes()]} for d in (IMAGE, WEIGHTS, ITEMS)]
    return write_program(
        {
            "version": 0,
            "execution_plan": [plan("forward", values, ([0], [14]), code, OPERATORS)],
            "constant_buffer": [{"data": []}, *buffers],
            "backend_delegate_data": [],
            "segments": [],
            "mutable_data_segments": [],
            "named_data": [],
        }
    )


def _product(folder: Path, *, cpu: str, skip: list[str]) -> Product:
    folder.mkdir()
    (folder / "m.pte").write_bytes(_program())
    profile = folder / "network.toml"
    profile.write_text(
        f'schema = 1\nname = "network"\n[target]\ncpu = "{cpu}"\ntoolchain = "zig"\n'
        f"[prelink]\nskip = {json.dumps(skip)}\n"
        '[kernels]\nlibraries = ["cortex_m", "portable", "prim_ops"]\n'
        '[[models]]\nname = "m"\npath = "m.pte"\nload = "prelinked"\n'
    )
    np.save(folder / "x.npy", X)
    return Product(profile=profile, out=folder / "out")


@pytest.mark.qemu
def test_outputs_are_the_same_with_and_without_the_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kernels of floats and of int8 take vectors there."""
    cpu = "cortex-m55"
    need_toolchain(cpu, "zig")
    need_emulator(cpu)
    calls, outputs = {}, {}
    for name, skip in (("all", []), ("kept", ["evaluate_constants"])):
        product = _product(tmp_path / name, cpu=cpu, skip=skip)
        assert product.run("build") == 0, capsys.readouterr().err
        given, written = tmp_path / name / "x.npy", tmp_path / name / "run"
        run = ("run", "--input", str(given), "--output-dir", str(written))
        assert product.run(*run) == 0, capsys.readouterr().err
        outputs[name] = np.load(written / "out0.npy")
        report: Any = product.report()
        (ledger,) = report["prelink"]
        calls[name] = ledger["passes"][-1]["after"]["calls"]
        capsys.readouterr()
    assert outputs["all"].tobytes() == outputs["kept"].tobytes()
    assert np.isfinite(outputs["all"]).all()
    assert calls == {"all": 2, "kept": 11}
