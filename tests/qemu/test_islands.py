"""Layers that ExecuTorch's quantizer leaves to floats, lowered for Cortex-M: all int8.

tests/data/islands has the programs and what quantized PyTorch gives.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from tests.product import run_nets
from tests.tools import need_emulator, need_toolchain

DATA = Path(__file__).parents[1] / "data" / "islands"
NAMES = sorted(path.stem for path in DATA.glob("*.pte"))
BORDERS = ("quantize_per_tensor", "dequantize_per_tensor")


@pytest.mark.toolchain
@pytest.mark.parametrize(
    ("cpu", "toolchain"),
    [
        ("host", "gnu"),
        pytest.param("cortex-m0plus", "zig", marks=pytest.mark.qemu),
        pytest.param("cortex-m4", "gnu", marks=pytest.mark.qemu),
        pytest.param("cortex-m55", "zig", marks=pytest.mark.qemu),
    ],
)
def test_outputs_are_those_of_quantized_pytorch_to_the_bit(
    cpu: str, toolchain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain(cpu, toolchain)
    if cpu != "host":
        need_emulator(cpu)
    calls = run_nets(
        tmp_path, DATA, cpu=cpu, toolchain=toolchain, read=lambda: capsys.readouterr().out
    )
    found = {
        call["model"]: [float(o["comparison"]["max_abs_error"]) for o in call["outputs"]]
        for call in calls
        if call["error"] == "Ok"
    }
    assert found == {name: [0.0] for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_floats_are_at_the_borders_only(name: str) -> None:
    program = read_program((DATA / f"{name}.pte").read_bytes(), file=name)
    (method,) = program.methods
    for call in method.instructions:
        assert isinstance(call, KernelCall)
        values = [method.values[at] for at in call.args if at >= 0]
        dtypes = {v.dtype for v in values if isinstance(v, TensorValue)}
        operator = method.operators[call.operator]
        assert ScalarType.Float not in dtypes or operator.base in BORDERS, operator
