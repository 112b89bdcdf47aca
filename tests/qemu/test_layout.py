"""Images in PyTorch's default layout: what exporting them for Cortex-M makes, runs.

tests/data/layout has the programs and what quantized PyTorch gives; a program that
mixes up the items of an image runs as well, and gives something else.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from tests.product import run_nets
from tests.tools import need_emulator, need_toolchain

DATA = Path(__file__).parents[1] / "data" / "layout"
NAMES = sorted(path.stem for path in DATA.glob("*.pte"))
MOST_ERROR = 0.02
"""Of the range of an output: five steps of int8. Items mixed up are far more."""
KEPT = "changes_view"
"""Its images stay in the default layout, for portable kernels."""


@pytest.mark.toolchain
@pytest.mark.parametrize(
    ("cpu", "toolchain"),
    [
        ("host", "gnu"),
        pytest.param("cortex-m4", "gnu", marks=pytest.mark.qemu),
        pytest.param("cortex-m55", "zig", marks=pytest.mark.qemu),
    ],
)
def test_outputs_are_those_of_quantized_pytorch(
    cpu: str, toolchain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain(cpu, toolchain)
    if cpu != "host":
        need_emulator(cpu)
    calls = run_nets(
        tmp_path, DATA, cpu=cpu, toolchain=toolchain, read=lambda: capsys.readouterr().out
    )
    assert sorted(call["model"] for call in calls) == NAMES
    for call in calls:
        assert call["error"] == "Ok"
        for at, output in enumerate(call["outputs"]):
            expected = np.load(DATA / f"{call['model']}.out{at}.npy")
            error = float(output["comparison"]["max_abs_error"])
            assert error <= MOST_ERROR * float(np.ptp(expected)), call["model"]


@pytest.mark.parametrize("name", NAMES)
def test_callers_keep_their_layout_and_kernels_get_theirs(name: str) -> None:
    program = read_program((DATA / f"{name}.pte").read_bytes(), file=name)
    (method,) = program.methods
    for at in (*method.inputs, *method.outputs):
        value = method.values[at]
        assert isinstance(value, TensorValue)
        # Of one channel or one pixel the bytes are the same anyhow.
        is_image = len(value.sizes) == 4
        if not is_image or (value.sizes[1] != 1 and value.sizes[2:] != (1, 1)):
            assert value.dim_order == tuple(range(len(value.sizes)))
    convolutions = [
        str(method.operators[call.operator])
        for call in method.instructions
        if isinstance(call, KernelCall) and "conv" in str(method.operators[call.operator])
    ]
    assert convolutions
    library = "aten::" if name == KEPT else "cortex_m::"
    assert all(operator.startswith(library) for operator in convolutions)
