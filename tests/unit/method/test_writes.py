"""Programs that write into constants are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.core.operator import parse_schema
from orchestrator.errors import ModelError, SourceSpan
from orchestrator.method.checks import check_writes
from orchestrator.program.program import KernelCall, MoveCall, Program
from orchestrator.program.reader import read_program
from orchestrator.program.values import IntListValue, IntValue, TensorListValue, TensorValue
from orchestrator.selection.resolution import Resolution, ResolvedOperator
from tests.conftest import model_bytes

RELU = parse_schema("aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
RESOLUTION = Resolution(operators=(ResolvedOperator(name=RELU.name, schema=RELU, bindings=()),))
SPANS = {"kws": SourceSpan(file="p.toml", line=9)}


def _kws(*extra: MoveCall, out_is_constant: bool = False) -> Program:
    """DS-CNN, with the out argument of its first relu changed to a constant."""
    program = read_program(model_bytes("kws_dscnn_fp32"), file="model.pte")
    method = program.methods[0]
    instructions = list(method.instructions)
    relu = method.operators.index(RELU.name)
    number, call = next(
        (n, i)
        for n, i in enumerate(instructions)
        if isinstance(i, KernelCall) and i.operator == relu
    )
    if out_is_constant:
        instructions[number] = replace(call, args=(call.args[0], 0, 0))
    else:
        extra = tuple(replace(m, target=call.args[1]) for m in extra)
    changed = replace(method, instructions=(*instructions, *extra))
    return replace(program, methods=(changed,))


def test_real_programs_write_only_planned_tensors() -> None:
    check_writes({"kws": _kws()}, RESOLUTION, SPANS)


def test_a_constant_is_refused() -> None:
    with pytest.raises(ModelError) as caught:
        check_writes({"kws": _kws(out_is_constant=True)}, RESOLUTION, SPANS)
    (problem,) = caught.value.diagnostics
    assert problem.code == "write-to-constant"
    assert problem.where == SPANS["kws"]
    assert problem.notes == (("found", 'method forward, instruction 1, argument "out" (value 0)'),)


def test_a_constant_in_a_list_is_refused() -> None:
    split = parse_schema(
        "aten::split_copy.Tensor_out(Tensor self, int size, *, Tensor(a!)[] out) -> ()"
    )
    program = _kws()
    method = program.methods[0]
    planned = next(
        index
        for index, value in enumerate(method.values)
        if isinstance(value, TensorValue) and value.is_planned
    )
    values = (*method.values, IntValue(1), TensorListValue((planned, 0)))
    count = len(method.values)
    args = (planned, count, count + 1, count + 1)
    changed = replace(
        method,
        values=values,
        operators=(split.name,),
        instructions=(KernelCall(operator=0, args=args),),
    )
    resolution = Resolution(
        operators=(ResolvedOperator(name=split.name, schema=split, bindings=()),)
    )
    with pytest.raises(ModelError) as caught:
        check_writes({"kws": replace(program, methods=(changed,))}, resolution, SPANS)
    (problem,) = caught.value.diagnostics
    assert problem.notes == (("found", 'method forward, instruction 0, argument "out" (value 0)'),)


def test_a_value_that_a_move_replaces_is_refused() -> None:
    program = _kws(MoveCall(source=0, target=0))
    with pytest.raises(ModelError) as caught:
        check_writes({"kws": program}, RESOLUTION, SPANS)
    assert caught.value.diagnostics[0].code == "write-to-constant"


@pytest.mark.parametrize("constant", [False, True])
def test_a_result_that_is_no_argument_is_written(*, constant: bool) -> None:
    view = parse_schema("executorch_prim::et_view.default(Tensor a, int[] s) -> Tensor")
    program = _kws()
    method = program.methods[0]
    planned = next(
        index
        for index, value in enumerate(method.values)
        if isinstance(value, TensorValue) and value.is_planned
    )
    out = 0 if constant else planned
    changed = replace(
        method,
        values=(*method.values, IntListValue(())),
        operators=(view.name,),
        # The base may be a constant.
        instructions=(KernelCall(operator=0, args=(0, len(method.values), out)),),
    )
    resolution = Resolution(operators=(ResolvedOperator(name=view.name, schema=view, bindings=()),))
    programs = {"kws": replace(program, methods=(changed,))}
    if not constant:
        check_writes(programs, resolution, SPANS)
        return
    with pytest.raises(ModelError) as caught:
        check_writes(programs, resolution, SPANS)
    (problem,) = caught.value.diagnostics
    assert problem.notes == (("found", "method forward, instruction 0, the result (value 0)"),)
