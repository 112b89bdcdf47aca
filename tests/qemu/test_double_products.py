"""A program in double gives the same bits on every target with every toolchain.

Cores without a double unit compute in software. The inputs are such that the compilers'
own libraries would give something else than a double unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pytest

from tests.product import make_product
from tests.qemu.double_operands import doubles
from tests.targets import chosen_pairs, with_toolchains
from tests.tools import need_emulator, need_toolchain
from tests.unit.program.program_writer import program_json, write_program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

TARGETS: Final = [*with_toolchains("host"), *chosen_pairs()]
SHAPE: Final = (256, 16)
Doubles = npt.NDArray[np.float64]

_first: dict[str, tuple[bytes, str]] = {}
"""By output: its bytes on the first target that ran, and that target."""


def _tensor(offset_bytes: int) -> dict[str, Any]:
    place = {"memory_id": 1, "memory_offset_low": offset_bytes, "memory_offset_high": 0}
    fields = {
        "scalar_type": 7,  # Double
        "storage_offset": 0,
        "sizes": list(SHAPE),
        "dim_order": [0, 1],
        "requires_grad": False,
        "data_buffer_idx": 0,
        "allocation_info": place,
        "layout": 0,
        "shape_dynamism": 0,
    }
    return {"val": fields, "val_type": "Tensor"}


def _call(operator: int, *args: int) -> dict[str, Any]:
    fields = {"op_index": operator, "args": list(args)}
    return {"instr_args": fields, "instr_args_type": "KernelCall"}


def _program() -> bytes:
    """(a, b, c) -> (a + b, tanh(c), softmax(c) of each row)."""
    size_bytes = 8 * SHAPE[0] * SHAPE[1]
    program = program_json("linear_softmax")
    program |= {"segments": [], "constant_segment": None}
    program["execution_plan"][0] |= {
        "container_meta_type": None,
        "values": [
            *(_tensor(i * size_bytes) for i in range(6)),
            {"val": {"int_val": 1}, "val_type": "Int"},
            {"val": {"int_val": -1}, "val_type": "Int"},
            {"val": {"bool_val": False}, "val_type": "Bool"},
        ],
        "inputs": [0, 1, 2],
        "outputs": [3, 4, 5],
        "operators": [
            {"name": "aten::add", "overload": "out"},
            {"name": "aten::tanh", "overload": "out"},
            {"name": "aten::_softmax", "overload": "out"},
        ],
        "chains": [
            {"instructions": [_call(0, 0, 1, 6, 3, 3), _call(1, 2, 4, 4), _call(2, 2, 7, 8, 5, 5)]}
        ],
        "non_const_buffer_sizes": [0, 6 * size_bytes],
    }
    return write_program(program)


def _inputs() -> tuple[Doubles, Doubles, Doubles]:
    """Sums that are hard to round; rows of logits with subnormal probabilities."""
    count = SHAPE[0] * SHAPE[1]
    a, b = doubles()
    exponents = [(x >> np.uint64(52) & np.uint64(2047)).astype(int) for x in (a, b)]
    apart = np.abs(exponents[0] - exponents[1])
    hard = (np.maximum(*exponents) < 2000) & ((apart == 32) | (apart == 33))
    chosen = np.flatnonzero(hard)[-count:]
    random = np.random.Generator(np.random.PCG64(1))
    logits = random.uniform(-2, 2, SHAPE)
    logits[:, 4:] = random.uniform(-744, -700, (SHAPE[0], SHAPE[1] - 4))
    return (
        a[chosen].view(np.float64).reshape(SHAPE),
        b[chosen].view(np.float64).reshape(SHAPE),
        logits,
    )


@pytest.mark.parametrize(("cpu", "toolchain"), TARGETS)
def test_same_bits(
    cpu: str, toolchain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    product = make_product(tmp_path, "linear_softmax", cpu=cpu, toolchain=toolchain)
    (tmp_path / "model.pte").write_bytes(_program())
    arguments = []
    inputs = _inputs()
    for name, values in zip("abc", inputs, strict=True):
        np.save(tmp_path / f"{name}.npy", values)
        arguments += ["--input", str(tmp_path / f"{name}.npy")]
    assert product.run("build") == 0, capsys.readouterr().err
    outputs = tmp_path / "outputs"
    code = product.run("run", *arguments, "--output-dir", str(outputs))
    assert code == 0, capsys.readouterr().err
    found = [np.load(path) for path in sorted(outputs.glob("*.npy"))]
    a, b, c = inputs
    e = np.exp(c - c.max(axis=1, keepdims=True))
    probabilities = e / e.sum(axis=1, keepdims=True)
    assert len(found) == 3
    assert (found[0] == a + b).all()
    np.testing.assert_allclose(found[1], np.tanh(c), rtol=1e-15)
    np.testing.assert_allclose(found[2], probabilities, rtol=1e-14, atol=5e-324)
    assert ((found[2] > 0) & (found[2] < np.finfo(np.float64).tiny)).sum() > 1000
    for name, values in zip(("sum", "tanh", "softmax"), found, strict=True):
        here = f"{cpu} {toolchain}"
        expected, first = _first.setdefault(name, (values.tobytes(), here))
        assert values.tobytes() == expected, f"{name}: {here} and {first} differ"
