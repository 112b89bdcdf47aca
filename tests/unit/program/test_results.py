"""Kinds of the numbers that calls return."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.core.operator import OperatorName
from orchestrator.errors import ModelError
from orchestrator.program.prim_ops import settle_results
from orchestrator.program.program import JumpFalseCall, KernelCall, Method
from orchestrator.program.reader import read_program
from orchestrator.program.values import BoolValue, DoubleValue, IntValue, Value
from tests.conftest import CASES, model_bytes
from tests.unit.program.program_writer import program_json, write_program

PROGRAM = Path(__file__).parents[2] / "data" / "prim_ops" / "model.pte"


def test_a_real_program() -> None:
    program = read_program(PROGRAM.read_bytes(), file="model.pte")
    real, branch = program.method("real"), program.method("branch")
    assert [type(real.values[i]).__name__ for i in real.outputs] == ["TensorValue", "DoubleValue"]
    conditions = [
        branch.values[i.condition] for i in branch.instructions if isinstance(i, JumpFalseCall)
    ]
    assert [type(value) for value in conditions] == [BoolValue, BoolValue]


@pytest.mark.parametrize("case", CASES)
def test_programs_of_ints_stay_as_they_are(case: str) -> None:
    declared = [m["values"] for m in program_json(case)["execution_plan"]]
    program = read_program(model_bytes(case), file=case)
    for values, method in zip(declared, program.methods, strict=True):
        for value, found in zip(values, method.values, strict=True):
            assert (value["val_type"] == "Int") == isinstance(found, IntValue)


def _method(*values: Value, calls: list[tuple[str, tuple[int, ...]]]) -> Method:
    """A method with these values that calls operators by name."""
    method = read_program(model_bytes("add_mul"), file="m.pte").methods[0]
    return replace(
        method,
        values=values,
        operators=tuple(OperatorName.parse(name) for name, _ in calls),
        instructions=tuple(
            KernelCall(operator=index, args=args) for index, (_, args) in enumerate(calls)
        ),
    )


ADD, EQ = "executorch_prim::add.Scalar", "executorch_prim::eq.Scalar"


def test_results_are_followed_in_order() -> None:
    zero = IntValue(0)
    method = _method(
        *(DoubleValue(1.5), IntValue(2), zero, zero, zero, zero),
        calls=[(ADD, (0, 1, 2)), (ADD, (1, 2, 3)), (EQ, (3, 1, 4)), (ADD, (1, 1, 5))],
    )
    assert settle_results(method).values[2:] == (
        DoubleValue(0.0),
        DoubleValue(0.0),
        BoolValue(value=False),
        zero,
    )


@pytest.mark.parametrize(
    ("name", "args"),
    [
        (EQ, (0, 1)),  # no result
        (EQ, (0, 1, 9)),
        (EQ, (-1, 1, 2)),
        (EQ, (0, 1, 2, 2)),  # more than there can be
        (EQ, (0, 1, 3)),  # declared as something else
        ("p::eq.Scalar", (0, 1, 2)),  # nothing is known of it
        ("executorch_prim::et_copy_index.tensor", (0, 1, 2)),  # returns nothing
    ],
)
def test_what_cannot_be_is_left_as_it_is(name: str, args: tuple[int, ...]) -> None:
    values = (IntValue(1), IntValue(2), IntValue(3), DoubleValue(4.0))
    method = _method(*values, calls=[(name, args)])
    assert settle_results(method).values == values
    # An operator that is not listed.
    instructions = (KernelCall(operator=5, args=(0, 1, 2)),)
    assert settle_results(replace(method, instructions=instructions)).values == values


def test_lists_are_checked_against_the_settled_kinds() -> None:
    program = program_json("scalar_sizes")
    (method,) = program["execution_plan"]
    (index,) = (i for i, o in enumerate(method["operators"]) if o["name"] == "aten::sym_size")
    method["operators"][index] = {"name": "executorch_prim::sym_float", "overload": "Scalar"}
    call = next(
        i["instr_args"]
        for i in method["chains"][0]["instructions"]
        if i["instr_args"].get("op_index") == index
    )
    result = call["args"][2]
    call["args"] = [call["args"][1], result]
    method["values"].append({"val_type": "IntList", "val": {"items": [result]}})
    with pytest.raises(ModelError) as caught:
        read_program(write_program(program), file="m.pte")
    assert any(
        d.message.endswith("a list has an item that it cannot have")
        for d in caught.value.diagnostics
    ), caught.value.diagnostics
