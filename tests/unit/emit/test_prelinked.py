"""Comments in the tables of prelinked methods."""

from __future__ import annotations

import re

import pytest

from orchestrator.core.operator import parse_schema
from orchestrator.emit.generate.prelinked import prelinked_block
from orchestrator.method.compact import WIDE, TableLayout
from orchestrator.program.program import JumpFalseCall, MoveCall
from orchestrator.program.values import OptionalTensorListValue
from tests.unit.method.methods import Builder

ADD = parse_schema("aten::add.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)")
VIEW = parse_schema("executorch_prim::et_view.default(Tensor x, int[] s) -> Tensor")


@pytest.mark.parametrize("index_bytes", [1, WIDE])
def test_rows_name_operators_and_arguments(index_bytes: int) -> None:
    builder = Builder()
    a, b = builder.tensor((2,), 0), builder.tensor((2,), 8)
    builder.call("aten::add.out", a, a, b)
    builder.call("aten::add.out", b, a, b)
    builder.call("executorch_prim::et_view.default", b, a, b)
    builder.call("aten::mystery", a)
    builder.code += [MoveCall(source=a, target=b), JumpFalseCall(condition=a, destination=0)]
    builder.value(OptionalTensorListValue((-1, b)))
    method = builder.method(inputs=(a,), outputs=(b,))
    schemas = {schema.name: schema for schema in (ADD, VIEW)}
    text = prelinked_block(
        method, "b", {}, layout=TableLayout(index_bytes=index_bytes), schemas=schemas
    ).text
    comments = [
        line.removeprefix("    // ")
        for line in re.sub(r"\n    //   ", " ", text).splitlines()
        if line.startswith("    // ")
    ]
    assert comments == [
        "0: input 0, self of aten::add.out [0], other of aten::add.out [0], 5 more",
        "1: out of aten::add.out [0], self of aten::add.out [1], out of aten::add.out [1], 5 more",
        "2: not used",
        "0: aten::add.out(self=0, other=0, out=1)",
        "1: aten::add.out(self=1, other=0, out=1)",
        "2: executorch_prim::et_view.default(x=1, s=0, result=1)",
        "3: aten::mystery(argument=0)",
        "4: move(source=0, target=1)",
        "5: jump to 0 unless 0",
    ]
    assert all(len(line) <= 80 for line in text.splitlines() if "//" in line)
