"""`inspect` lists operators and says every problem at once, whatever is in the file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.cli.main import run
from tests.unit.program.program_writer import program_json, write_program

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Change = Callable[[dict[str, Any]], object]


def _tensor(program: dict[str, Any], index: int) -> dict[str, Any]:
    found: dict[str, Any] = program["execution_plan"][0]["values"][index]["val"]
    return found


def _instructions(program: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = program["execution_plan"][0]["chains"][0]["instructions"]
    return found


def _dtypes(program: dict[str, Any]) -> None:
    _tensor(program, 0)["scalar_type"] = 77
    _tensor(program, 1)["scalar_type"] = 78
    _tensor(program, 2)["scalar_type"] = 12


def _layouts(program: dict[str, Any]) -> None:
    _tensor(program, 0)["layout"] = 1
    _tensor(program, 3)["storage_offset"] = 4


def _delegates(program: dict[str, Any]) -> None:
    program["execution_plan"][0]["delegates"] = [
        {"id": "Npu", "processed": {"location": 1, "index": 9}, "compile_specs": []}
    ]


def _constants(program: dict[str, Any]) -> None:
    """A segment that the file does not have, and a constant in it."""
    program["constant_segment"] = {"segment_index": 7, "offsets": [0, 0]}
    program["segments"] = [{"offset": 0, "size": 1 << 20}]


def _operators(program: dict[str, Any]) -> None:
    program["execution_plan"][0]["operators"][1] = {"name": "mine::add", "overload": ""}


def _instruction(program: dict[str, Any]) -> None:
    calls = _instructions(program)
    calls.insert(0, {"instr_args_type": "KernelCall", "instr_args": None})


def _everything(program: dict[str, Any]) -> None:
    for change in (_delegates, _constants, _operators, _instruction, _dtypes):
        change(program)


@pytest.mark.parametrize(
    ("change", "code", "problems"),
    [
        (
            _dtypes,
            4,
            [
                "a tensor has an unknown dtype",
                "a tensor has an unknown dtype",
                "a tensor has a dtype that the runtime does not have",
            ],
        ),
        (_layouts, 0, ["a tensor is not stored densely from the start of its buffer"] * 2),
        (_delegates, 4, ["a delegate has no backend or no data"]),
        (
            _constants,
            4,
            [
                "a segment ends after the segment data of the file",
                "a table of data offsets leads to a segment that is not there",
            ],
        ),
        (_operators, 0, ["no library of Orchestrator has a kernel for mine::add"]),
        (_instruction, 4, ["the content of an instruction is missing"]),
        (
            _everything,
            4,
            [
                "a tensor has an unknown dtype",
                "a tensor has an unknown dtype",
                "the content of an instruction is missing",
                "a segment ends after the segment data of the file",
                "a table of data offsets leads to a segment that is not there",
                "a tensor has a dtype that the runtime does not have",
                "a delegate has no backend or no data",
                "no library of Orchestrator has a kernel for mine::add",
            ],
        ),
    ],
)
def test_operators_and_all_problems_are_shown(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Change,
    code: int,
    problems: list[str],
) -> None:
    program = program_json("add_mul")
    change(program)
    path = tmp_path / "m.pte"
    path.write_bytes(write_program(program, b""))
    assert run(["inspect", str(path)]) == code
    said = capsys.readouterr()
    second = program["execution_plan"][0]["operators"][1]["name"]
    assert "  aten::mm.out, 1 calls" in said.out
    assert f"  {second}" in said.out
    found = [line for line in said.err.splitlines() if line.startswith("error[")]
    assert [line.partition("]: ")[2] for line in found] == problems
    if change not in (_everything, _operators):
        return
    assert run(["inspect", "--json", str(path)]) == code
    document = json.loads(capsys.readouterr().out)
    assert [p["message"] for p in document["problems"]] == problems
    assert document["complete"] == (change is _operators)
    (method,) = document["methods"]
    assert {o["name"]: o["calls"] for o in method["operators"]}["aten::mm.out"] == 1


def test_counts_are_left_out_where_numbers_say_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An operator that cannot be read moves the others up."""
    program = program_json("add_mul")
    program["execution_plan"][0]["operators"][0] = {"name": "", "overload": "x"}
    path = tmp_path / "m.pte"
    path.write_bytes(write_program(program, b""))
    assert run(["inspect", str(path)]) == 4
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "  aten::add.out"
    assert "cannot be read in full" in out.splitlines()[0]
