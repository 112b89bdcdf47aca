"""The device loader on the host, under sanitizers, against the Python reader.

What the build accepts the device loads, in exactly the memory the build computed; what
the build refuses the device refuses as well.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from orchestrator.errors import KernelError
from orchestrator.memory.product import method_state_bytes, plan_memory
from orchestrator.program.program import DelegateCall, KernelCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from orchestrator.selection.extract import aggregate, extract
from orchestrator.selection.resolve import resolve
from tests.conftest import CASES, CORPUS, model_bytes
from tests.cpp.support.device import Answer, MethodAnswer, ask
from tests.cpp.support.native import build, linked_catalog
from tests.cpp.support.running import decoded, run_method

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.program.program import Method, Program

pytestmark = pytest.mark.toolchain

_NOT_LOADED: Final = {
    "external_constants": "UnsupportedProgram",  # constants outside of the program
    "xnnpack_partial": "DelegateMissing",
}
"""Cases that the device refuses whatever kernels there are."""


@pytest.fixture(scope="module")
def load_file() -> Path:
    return build("load_file")


def _path(case: str) -> Path:
    return CORPUS / case / "model.pte"


def _program(case: str) -> Program:
    return read_program(model_bytes(case), file=case)


def _check_memory(answer: Answer, program: Program) -> None:
    """The loaded methods got exactly what the build computed, and need all of it."""
    for found, method in zip(answer.methods, program.methods, strict=True):
        if found.error != "Ok":
            continue
        assert found.state_bytes == method_state_bytes(method, pointer_bytes=8)
        assert found.less_state == "StateTooSmall"
        assert found.less_arena == tuple(
            "ArenaTooSmall" if size else "-" for size in method.arena_bytes[1:]
        )
        _check_interface(found, program, method)
        assert (found.run, found.instruction) == ("Ok", len(method.instructions))


def _check_interface(found: MethodAnswer, program: Program, method: Method) -> None:
    """Inputs and outputs are as large as the build says, and take nothing larger."""
    alone = {"m": replace(program, methods=(method,))}
    (model,) = plan_memory(alone, pointer_bytes=8, board=None, spans={}).models
    assert tuple(size for size, _ in found.inputs) == model.methods[0].input_bytes
    assert tuple(size for size, _ in found.outputs) == model.methods[0].output_bytes
    for index, (_, error) in zip(method.inputs, found.inputs, strict=True):
        value = method.values[index]
        expected = "-"
        if isinstance(value, TensorValue) and value.sizes:
            expected = "ShapeTooLarge" if value.is_dynamic else "InvalidArgument"
        assert error == expected
    for index, (size, error) in zip(method.outputs, found.outputs, strict=True):
        is_data = isinstance(method.values[index], TensorValue) and size > 0
        assert error == ("ShapeTooLarge" if is_data else "-")


def test_every_good_program_is_loaded_and_runs(load_file: Path) -> None:
    """Stand-ins for kernels: loader, control flow and memory of all programs."""
    answers = ask(load_file, map(_path, CASES), stand_ins=True)
    for case, answer in zip(CASES, answers, strict=True):
        assert answer.error == _NOT_LOADED.get(case, "Ok"), case
        _check_memory(answer, _program(case))


def _expected(case: str, program: Program) -> list[str]:
    """Error of each method with the portable kernels; "refused" if it depends."""
    catalog = linked_catalog()
    try:
        resolve(
            aggregate([extract(program, model=case)]),
            catalog,
            every_dtype=True,
            span_of=lambda _: None,
        )
    except KernelError:
        otherwise = "refused"
    else:
        otherwise = "Ok"
    return [
        _NOT_LOADED.get(case)
        or ("OperatorMissing" if _lacks(method, catalog.operators) else otherwise)
        for method in program.methods
    ]


def _lacks(method: Method, known: tuple[object, ...]) -> bool:
    called = {i.operator for i in method.instructions if isinstance(i, KernelCall)}
    return any(method.operators[index] not in known for index in called)


def test_programs_run_if_their_kernels_are_there(load_file: Path) -> None:
    answers = ask(load_file, map(_path, CASES))
    loaded = set()
    for case, answer in zip(CASES, answers, strict=True):
        program = _program(case)
        expected = _expected(case, program)
        for method, want in zip(answer.methods, expected, strict=True):
            # Some methods of a program can be loaded though others lack a kernel.
            assert method.error == want or (
                want == "refused" and (len(expected) > 1 or method.error != "Ok")
            ), case
            loaded |= {case} if method.error == "Ok" else set()
        _check_memory(answer, program)
    assert {"kws_dscnn_fp32", "small_cnn", "dynamic_batch", "two_arenas"} <= loaded


# Outputs.


def _first_runs() -> list[Any]:
    """(case, call) of the first call of each method that keeps no state."""
    found = []
    known = linked_catalog().operators
    for case in CASES:
        program = _program(case)
        seen = set()
        for run in json.loads((CORPUS / case / "case.json").read_text())["runs"]:
            method = program.method(run["method"])
            first = method.name not in seen
            seen.add(method.name)
            if first and case not in _NOT_LOADED and not _lacks(method, known):
                assert not any(isinstance(i, DelegateCall) for i in method.instructions)
                found.append(pytest.param(case, run, id=f"{case}-{method.name}"))
    return found


def _floats(array: np.ndarray[Any, Any], *, bfloat16: bool) -> np.ndarray[Any, Any]:
    if bfloat16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)


@pytest.mark.parametrize(("case", "run"), _first_runs())
def test_outputs_are_those_of_executorch(
    case: str, run: dict[str, Any], load_file: Path, tmp_path: Path
) -> None:
    facts = json.loads((CORPUS / case / "case.json").read_text())
    tolerance = facts["tolerance"]
    wanted = run["outputs"]
    if "differs-from-eager" in facts["tags"]:  # our kernels follow PyTorch
        wanted = [
            own if eager == "same as output" else eager
            for own, eager in zip(wanted, run["eager"], strict=True)
        ]
    method = _program(case).method(run["method"])
    data = run_method(load_file, _path(case), method, run, case=case, folder=tmp_path)
    found = decoded(data, method)
    for got, want in zip(found, wanted, strict=True):
        if want["kind"] != "tensor":
            assert got == want["value"]
            continue
        expected = np.load(CORPUS / case / want["file"])
        assert got.shape == expected.shape
        bfloat16 = want.get("stored_as") is not None
        np.testing.assert_allclose(
            _floats(got, bfloat16=bfloat16), _floats(expected, bfloat16=bfloat16), **tolerance
        )
