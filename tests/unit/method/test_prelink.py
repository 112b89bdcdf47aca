"""Passes over prelinked methods: smaller, and still the same computation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator.errors import ModelError
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes import PASSES, link_program, run_passes
from orchestrator.profile.choices import PASSES as PASS_NAMES
from orchestrator.program.program import JumpFalseCall, MoveCall
from orchestrator.program.values import (
    BoolValue,
    DoubleValue,
    IntListValue,
    IntValue,
    NoneValue,
    TensorValue,
)
from orchestrator.selection.extract import extract
from tests.unit.products import SUPPORTED, program_of, resolution_of

if TYPE_CHECKING:
    from orchestrator.program.values import Value

FLOAT_CASES = ("add_mul", "kws_dscnn_fp32", "mlp", "dynamic_batch", "small_cnn")


def _linked(case: str) -> LinkedMethod:
    program = program_of(case)
    info = extract(program, model=case)
    return link_program(program, info, resolution_of(case), where=None)[0]


def _meaning(method: LinkedMethod, index: int) -> object:
    """What a value is, whatever its slot."""
    value = method.values[index]
    if isinstance(value, TensorValue):
        place = dict(method.data).get(index) or value.allocation
        return (value.dtype, value.sizes, value.dim_order, value.dynamism, place)
    if isinstance(value, IntListValue):
        return [_meaning(method, item) for item in value.items]
    return repr(value)


def _steps(method: LinkedMethod) -> list[object]:
    return [
        (i.function, [_meaning(method, a) for a in i.args])
        for i in method.instructions
        if isinstance(i, LinkedCall)
    ]


def test_the_profile_knows_every_pass() -> None:
    assert [*PASSES] == [*PASS_NAMES]


@pytest.mark.parametrize("case", FLOAT_CASES)
@pytest.mark.parametrize("name", ["share_values", "drop_values"])
def test_calls_get_the_same_arguments(case: str, name: str) -> None:
    before = _linked(case)
    after = run_passes(before, [name])
    assert _steps(after) == _steps(before)
    for ports in ("inputs", "outputs"):
        assert [_meaning(after, i) for i in getattr(after, ports)] == [
            _meaning(before, i) for i in getattr(before, ports)
        ]


@pytest.mark.parametrize("case", FLOAT_CASES)
def test_passes_run_twice_change_nothing_more(case: str) -> None:
    once = run_passes(_linked(case), PASSES)
    assert run_passes(once, PASSES) == once
    assert len(once.values) < len(_linked(case).values)


def _method(*values: Value, calls: list[tuple[int, ...]]) -> LinkedMethod:
    relu = _linked("mlp").instructions[-1]
    assert isinstance(relu, LinkedCall)
    return LinkedMethod(
        model="m",
        name="forward",
        values=values,
        instructions=tuple(replace(relu, args=args, outs=args[-1:]) for args in calls),
        inputs=(),
        outputs=(),
        data=(),
        origins=tuple(range(len(calls))),
    )


def test_numbers_that_look_alike_are_told_apart() -> None:
    values = (DoubleValue(0.0), DoubleValue(-0.0), BoolValue(True), IntValue(1))  # noqa: FBT003
    method = _method(*values, NoneValue(), NoneValue(), calls=[(0, 1, 2, 3, 4, 5, 6)])
    method = replace(method, values=(*method.values, IntValue(5)))
    shared = run_passes(method, ["share_values"])
    (call,) = shared.instructions
    assert isinstance(call, LinkedCall)
    assert call.args == (0, 1, 2, 3, 4, 4, 5)


def test_what_is_written_keeps_its_slot() -> None:
    one, other = IntValue(1), IntValue(1)
    method = _method(one, other, one, calls=[(0, 1)])
    assert method.written == {1}
    assert not method.has_constant_slots
    shared = run_passes(method, ["share_values"])
    assert shared.instructions == method.instructions
    moved = replace(method, instructions=(MoveCall(source=0, target=2),))
    kept = run_passes(moved, ["share_values"])
    assert kept.instructions == (MoveCall(source=0, target=1),)


def test_values_of_jumps_and_moves_are_kept() -> None:
    method = replace(
        _method(IntValue(9), BoolValue(False), IntValue(1), IntValue(2), calls=[]),  # noqa: FBT003
        instructions=(JumpFalseCall(condition=1, destination=2), MoveCall(source=2, target=3)),
        origins=(0, 1),
    )
    dropped = run_passes(method, ["drop_values"])
    assert dropped.values == method.values[1:]
    assert dropped.instructions == (
        JumpFalseCall(condition=0, destination=2),
        MoveCall(source=1, target=2),
    )


@pytest.mark.parametrize("case", ["kws_dscnn_fp32", "mlp", "ad_autoencoder_fp32"])
def test_a_permuted_constant_holds_the_permuted_items(case: str) -> None:
    before = _linked(case)
    after = run_passes(before, ["fold_permutes"])
    folded = len(before.instructions) - len(after.instructions)
    assert folded > 0
    gone = [
        i for i in before.instructions if isinstance(i, LinkedCall) and i not in after.instructions
    ]
    for call in gone:
        source, _, out = call.args
        tensor = before.values[source]
        assert isinstance(tensor, TensorValue)
        data, permuted = dict(before.data)[source], dict(after.data)[out]
        items = np.frombuffer(bytes(data), f"V{tensor.dtype.item_bytes}")
        assert bytes(permuted) == items.reshape(tensor.sizes).T.tobytes()
        result = after.values[out]
        assert isinstance(result, TensorValue)
        assert result.allocation is None


def test_instructions_remember_where_they_come_from() -> None:
    method = _linked("cond_branch")
    (loaded,) = program_of("cond_branch").methods
    assert len(method.origins) == len(method.instructions)
    for instruction, origin in zip(method.instructions, method.origins, strict=True):
        if isinstance(instruction, MoveCall):
            assert loaded.instructions[origin] == instruction
        if isinstance(instruction, JumpFalseCall):
            assert isinstance(loaded.instructions[origin], JumpFalseCall)


def test_scratch_memory_counts_as_written() -> None:
    program = program_of("add_mul")
    resolution = resolution_of("add_mul")
    operators = []
    for operator in resolution.operators:
        first, *rest = operator.schema.arguments
        arguments = (replace(first, name="scratch"), *rest)
        schema = replace(operator.schema, arguments=arguments)
        operators.append(replace(operator, schema=schema))
    resolution = replace(resolution, operators=tuple(operators))
    info = extract(program, model="add_mul")
    (method,) = link_program(program, info, resolution, where=None)
    for call in method.instructions:
        assert isinstance(call, LinkedCall)
        assert call.outs == (call.args[-1], call.args[0])


def test_moves_to_another_kind_and_delegates_cannot_be_prelinked() -> None:
    problems = []
    for case in ("xnnpack_partial", "cond_branch", "cond_computed"):
        program = program_of(case)
        (method,) = program.methods
        values = tuple(
            IntValue(0) if index in method.outputs and case == "cond_branch" else value
            for index, value in enumerate(method.values)
        )
        numbers = tuple(DoubleValue(0.0) if isinstance(v, IntValue) else v for v in method.values)
        values = numbers if case == "cond_computed" else values
        changed = replace(program, methods=(replace(method, values=values),))
        info = extract(program, model=case)
        try:
            link_program(changed, info, resolution_of("add_mul"), where=None)
        except ModelError as error:
            problems += [d.message for d in error.diagnostics]
    assert any("calls a delegate" in problem for problem in problems)
    assert any("moves a value to another kind" in problem for problem in problems)


def test_what_has_no_kernel_cannot_be_prelinked() -> None:
    case = "multi_method"
    assert case in SUPPORTED
    program = program_of(case)
    info = extract(program, model=case)
    with pytest.raises(ModelError) as caught:
        link_program(program, info, resolution_of("add_mul"), where=None)
    messages = [d.message for d in caught.value.diagnostics]
    assert all('model "multi_method" cannot be prelinked' in m for m in messages)
    assert {d.code for d in caught.value.diagnostics} == {"cannot-prelink"}
