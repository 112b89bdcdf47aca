"""int16 activations on the boards: kernels, and whole networks.

One firmware per target makes all calls of kernels, so that plain C++, DSP instructions
and vectors give the same bits, and write nothing besides. tests/data/int16 has networks
and what quantized PyTorch gives.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import pytest

from orchestrator.catalog import read_library
from orchestrator.core.dtype import ScalarType
from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from tests.data.int16.make_programs import step_of
from tests.integration.argument_facts import variants
from tests.integration.test_conditions import size_of, verdict
from tests.product import run_nets
from tests.qemu.int16_calls import int16_calls
from tests.qemu.kernel_firmware import KernelFirmware
from tests.targets import EVERY_PAIR
from tests.tools import need_emulator, need_toolchain
from tests.unit.method.recorded_calls import KERNELS, Call, Tensor

DATA: Final = Path(__file__).parents[1] / "data" / "int16"
NAMES: Final = sorted(path.stem for path in DATA.glob("*.pte"))

TARGETS: Final = (
    *(("cortex-m0plus", "zig"), ("cortex-m4", "gnu"), ("cortex-m55", "zig")),
    *((("cortex-m4", "zig"), ("cortex-m33", "gnu"), ("cortex-m55", "gnu")) if EVERY_PAIR else ()),
    *((("rv32imac", "gnu"), ("rv64gc", "zig")) if EVERY_PAIR else ()),
)
COUNT: Final = 6000 if EVERY_PAIR else 450


@pytest.mark.toolchain
@pytest.mark.qemu
@pytest.mark.parametrize(("cpu", "toolchain"), TARGETS, ids=[f"{c}-{t}" for c, t in TARGETS])
def test_calls_have_their_results(cpu: str, toolchain: str, tmp_path: Path) -> None:
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    firmware = KernelFirmware(
        tmp_path / "firmware", target=(cpu, toolchain), libraries=("cortex_m_int16",)
    )
    calls = int16_calls(COUNT, seed=16)
    wrong = [
        f"call {number}, {call.operator}: error {answer.error},"
        f" {answer.changed} bytes outside changed"
        for number, (call, answer) in enumerate(zip(calls, firmware.answers(calls), strict=True))
        if answer.error or answer.changed or answer.outs != tuple(out.data for out in call.outs)
    ]
    assert not wrong, f"{len(wrong)} of {len(calls)}: " + "; ".join(wrong[:9])


@pytest.mark.toolchain
@pytest.mark.qemu
def test_the_build_refuses_what_kernels_refuse(tmp_path: Path) -> None:
    need_toolchain("cortex-m4", "gnu")
    need_emulator("cortex-m4")
    library = "cortex_m_int16"
    file = KERNELS / library / "functions.yaml"
    text = file.read_text(encoding="utf-8")
    kernels = {
        str(kernel.operator): kernel
        for kernel in read_library(text, library=library, file=str(file))
    }
    rng = random.Random(5)  # noqa: S311  # a test
    calls = int16_calls(90, seed=7)
    for operator, kernel in kernels.items():
        given = [call for call in calls if call.operator == operator]
        others = [v for call in given for v in variants(call, kernel.schema)]
        calls += rng.sample(others, min(len(others), EACH))
    said = [(call, verdict(call, kernels[call.operator])) for call in calls]
    asked = [
        (call, reason)
        for call, reason in said
        if reason is not None
        and size_of(call) < FIRMWARE_BYTES
        and ScalarType.ComplexDouble not in dtypes_of(call)
    ]
    firmware = KernelFirmware(
        tmp_path / "firmware", target=("cortex-m4", "gnu"), libraries=(library,)
    )
    answers = firmware.answers([call for call, _ in asked])
    wrong = [
        (answer.error, reason, call.operator)
        for (call, reason), answer in zip(asked, answers, strict=True)
        if (answer.error == 0) != (reason == "")
    ]
    assert wrong == []
    assert {reason == "" for _, reason in asked} == {True, False}


def dtypes_of(call: Call) -> set[ScalarType]:
    """Of its tensors. The firmware has no ComplexDouble."""
    return {a.dtype for a in call.args if isinstance(a, Tensor)}


FIRMWARE_BYTES: Final = 16_000
"""Of the tensors of a call."""
EACH: Final = 400 if EVERY_PAIR else 60
"""Variants of the calls of each operator."""


@pytest.mark.toolchain
@pytest.mark.parametrize(
    ("cpu", "toolchain", "load"),
    [
        ("host", "gnu", "prelinked"),
        pytest.param("cortex-m0plus", "zig", "prelinked", marks=pytest.mark.qemu),
        pytest.param("cortex-m4", "gnu", "pte", marks=pytest.mark.qemu),
        pytest.param("cortex-m55", "zig", "prelinked", marks=pytest.mark.qemu),
    ],
)
def test_networks_give_what_quantized_pytorch_gives(
    cpu: str, toolchain: str, load: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain(cpu, toolchain)
    if cpu != "host":
        need_emulator(cpu)
    calls = run_nets(
        tmp_path,
        DATA,
        cpu=cpu,
        toolchain=toolchain,
        read=lambda: capsys.readouterr().out,
        load=load,
    )
    found = {
        call["model"]: float(call["outputs"][0]["comparison"]["max_abs_error"])
        for call in calls
        if call["error"] == "Ok"
    }
    assert found.keys() == {*NAMES}
    for name, error in found.items():
        assert error <= STEPS * step_of(DATA / f"{name}.pte"), name


STEPS: Final = 4
"""Of int16: each layer may be one off."""


@pytest.mark.parametrize("name", NAMES)
def test_floats_are_at_the_borders_only(name: str) -> None:
    program = read_program((DATA / f"{name}.pte").read_bytes(), file=name)
    (method,) = program.methods
    called = set()
    for call in method.instructions:
        assert isinstance(call, KernelCall)
        values = [method.values[at] for at in call.args if at >= 0]
        dtypes = {v.dtype for v in values if isinstance(v, TensorValue)}
        called.add(str(method.operators[call.operator]))
        is_border = "quantize_per_tensor" in str(method.operators[call.operator])
        assert ScalarType.Float not in dtypes or is_border, call
    assert len(called) > 3
