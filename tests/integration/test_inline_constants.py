"""Constants inside the flatbuffer, the layout of before ExecuTorch 0.7."""

from __future__ import annotations

import shutil
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.errors import ModelError
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from tests.conftest import CORPUS, model_bytes
from tests.cpp.support.device import ask
from tests.cpp.support.native import build
from tests.product import make_product
from tests.tools import need_emulator, need_toolchain
from tests.unit.program.program_writer import program_json, write_program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

CASE = "dynamic_batch"
OLD = CORPUS / "bad" / "old_constant_buffer.pte"


@pytest.mark.qemu
@pytest.mark.parametrize("cpu", ["host", "cortex-m55"])
@pytest.mark.parametrize("load", ["pte", "prelinked"])
def test_they_are_used_where_they_lie(cpu: str, load: str, tmp_path: Path) -> None:
    need_toolchain(cpu, "zig")
    need_emulator(cpu)
    product = make_product(tmp_path, CASE, cpu=cpu, toolchain="zig")
    shutil.copyfile(OLD, tmp_path / "model.pte")
    product.profile.write_text(f'{product.profile.read_text()}load = "{load}"\n')
    assert product.run("build") == 0
    scenario = str(CORPUS / CASE / "case.json")
    assert product.run("run", "--scenario", scenario) == 0


def test_they_are_those_of_a_segment() -> None:
    old = read_program(OLD.read_bytes(), file=OLD.name)
    new = read_program(model_bytes(CASE), file=CASE)
    assert old.has_inline_constants
    assert not new.has_inline_constants
    found = [
        [
            bytes(program.data_bytes(value))
            for value in program.methods[0].values
            if isinstance(value, TensorValue) and value.is_constant
        ]
        for program in (old, new)
    ]
    assert found[0] == found[1]
    assert found[0]


def _changed(**changes: Any) -> bytes:
    """A program with two floats in the flatbuffer, as its first constant has."""
    program = deepcopy(program_json("add_mul"))
    (method,) = program["execution_plan"]
    tensor = method["values"][0]["val"]
    tensor |= {"allocation_info": None, "data_buffer_idx": 1, **changes}
    tensor |= {"sizes": [2], "dim_order": [0]}
    method["inputs"] = method["inputs"][1:]
    method["chains"][0]["instructions"] = []
    program["constant_segment"] = None
    program["segments"] = []
    program["constant_buffer"] = [{"data": []}, {"data": [0] * 8}, {"data": [0] * 7}]
    return write_program(program)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (1, ""),
        (2, "a tensor has less data than it is large"),
        (3, "a tensor has data that is not in the program"),
    ],
)
def test_reader_and_device_agree_on_what_is_damaged(
    index: int, message: str, tmp_path: Path
) -> None:
    data = _changed(data_buffer_idx=index)
    path = tmp_path / "m.pte"
    path.write_bytes(data)
    (answer,) = ask(build("load_file"), [path], stand_ins=True)
    if not message:
        read_program(data, file="m.pte")
        assert answer.error == "Ok"
        return
    with pytest.raises(ModelError) as caught:
        read_program(data, file="m.pte")
    assert [d.message for d in caught.value.diagnostics] == [message]
    assert answer.error == "InvalidProgram"
