"""Tensors that the profile puts in a memory of their own choice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import orchestrator.method.replan.layout as pins_module
from orchestrator.method.effects import effects_of_method
from orchestrator.method.passes import PASSES, link_program, run_passes
from orchestrator.method.replan import (
    PlanProofError,
    adapt_linked,
    adapt_program,
    free_memory_id,
    with_pinned,
)
from orchestrator.method.replan.proof import problems_of
from orchestrator.planner import plan_blocks
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from orchestrator.selection.extract import extract
from orchestrator.targets.boards import Pins, TensorKind, TensorPin
from tests.conftest import CASES
from tests.unit.products import SUPPORTED, program_of, resolution_of
from tests.unit.schemas import schemas

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.program.program import Method, Program
    from orchestrator.program.values import Value


def pin(text: str, region: str = "dtcm", method: str | None = None) -> TensorPin:
    kind, index = text.split()
    return TensorPin(kind=TensorKind(kind), index=int(index), method=method, region=region)


def pinned(program: Program, *tensors: TensorPin) -> Program:
    found, problems = with_pinned(program, Pins(tensors=tensors), schemas())
    assert problems == ()
    return found


def _place(value: Value) -> tuple[int, int]:
    assert isinstance(value, TensorValue)
    assert value.allocation is not None
    return value.allocation.memory_id, value.allocation.offset_bytes


def _in(values: Iterable[Value], memory_id: int) -> set[int]:
    return {
        index
        for index, value in enumerate(values)
        if isinstance(value, TensorValue)
        and value.allocation is not None
        and value.allocation.memory_id == memory_id
    }


def _is_right(before: Method, after: Method) -> bool:
    effects = effects_of_method(before, schemas())
    return problems_of(effects, after.values, after.arena_bytes) == ()


def test_an_input_and_an_output_leave_their_arena() -> None:
    program = program_of("kws_dscnn_int8_m55")
    (before,) = program.methods
    (given,), (got,) = before.inputs, before.outputs
    found = pinned(program, pin("input 0"), pin("output 0"))
    (after,) = found.methods
    assert _in(after.values, 3) == {given, got}
    assert _in(after.values, 1) == _in(before.values, 1) - {given, got}
    # One behind the other until they are planned.
    assert after.arena_bytes == (0, before.arena_bytes[1], 0, 1968 + 48)
    assert _is_right(before, after)
    built = adapt_program(program, found, schemas(), plan=plan_blocks).program
    assert built.methods[0].arena_bytes == (0, 20464, 0, 1960)
    assert read_program(built.data, file="") == built
    assert _is_right(before, built.methods[0])


def test_each_memory_has_an_arena_in_order_of_their_names() -> None:
    program = program_of("add_mul")
    tensors = (pin("input 1", "sram"), pin("input 0"), pin("output 0", "sram"))
    (method,) = pinned(program, *tensors).methods
    first, second, _ = method.inputs
    assert free_memory_id(program) == 3
    assert Pins(tensors=tensors).with_tensor_arenas(3).by_id == ((3, "dtcm"), (4, "sram"))
    assert _place(method.values[first]) == (3, 0)
    assert _place(method.values[second]) == (4, 0)
    assert method.arena_bytes[3:] == (16, 32)


def test_tensors_that_share_bytes_go_together() -> None:
    program = program_of("views")
    (before,) = program.methods
    for index in sorted(_in(before.values, 1)):
        (after,) = pinned(program, pin(f"value {index}")).methods
        moved = _in(after.values, 3)
        assert index in moved
        assert _is_right(before, after)
        for other in moved:
            distance = _place(before.values[other])[1] - _place(before.values[index])[1]
            now = _place(after.values[other])[1] - _place(after.values[index])[1]
            assert now == distance


@pytest.mark.parametrize("case", CASES)
def test_any_tensor_of_the_corpus_is_moved_rightly_or_refused(case: str) -> None:
    program = program_of(case)
    for number, before in enumerate(program.methods):
        planned = sorted(
            i for m in range(1, len(before.arena_bytes)) for i in _in(before.values, m)
        )
        for index in planned[:: max(1, len(planned) // 5)]:
            wanted = pin(f"value {index}", method=before.name)
            found, problems = with_pinned(program, Pins(tensors=(wanted,)), schemas())
            after = found.methods[number]
            if problems:
                assert found == program
                continue
            (memory_id,) = Pins(tensors=(wanted,)).tensor_arenas(free_memory_id(program)).values()
            assert _place(after.values[index])[0] == memory_id
            assert _is_right(before, after)
            built = adapt_program(program, found, schemas(), plan=plan_blocks).program
            assert _place(built.methods[number].values[index])[0] == memory_id
            assert _is_right(before, built.methods[number])


@pytest.mark.parametrize("case", ["views", "add_mul", "kws_dscnn_fp32", "two_arenas"])
def test_passes_leave_pinned_tensors_where_they_are(case: str) -> None:
    assert case in SUPPORTED
    program = program_of(case)
    found = pinned(program, pin("input 0"), pin("output 0"))
    info = extract(program, model=case)
    (method,) = link_program(found, info, resolution_of(case), where=None)
    method = run_passes(method, PASSES, planned=False)
    done = adapt_linked(program, found, (method,), plan=plan_blocks)
    assert done.linked is not None
    (method,) = done.linked
    for index in (method.inputs[0], method.outputs[0]):
        assert _place(method.values[index])[0] == 3


def test_the_file_may_keep_all_other_places() -> None:
    program = program_of("add_mul")
    found = pinned(program, pin("input 0"))
    built = adapt_program(program, found, schemas(), plan=None).program
    (before,), (after,) = program.methods, built.methods
    moved = {before.inputs[0]}
    for index in _in(before.values, 1) - moved:
        assert after.values[index] == before.values[index]
    assert _in(after.values, 3) == moved


def _refusal(case: str, *tensors: TensorPin) -> tuple[int, str, str]:
    program = program_of(case)
    found, problems = with_pinned(program, Pins(tensors=tensors), schemas())
    (problem,) = problems
    if len(tensors) == 1:
        assert found == program
    return problem.pin, problem.method, problem.found


def test_what_cannot_be_moved_is_refused() -> None:
    (method,) = program_of("linear_softmax").methods
    constant = next(
        index
        for index, value in enumerate(method.values)
        if isinstance(value, TensorValue) and value.is_constant
    )
    number = next(
        index for index, value in enumerate(method.values) if not isinstance(value, TensorValue)
    )
    no_place = "it is a constant, or lies in memory of the caller"
    case = "linear_softmax"
    assert _refusal(case, pin(f"value {constant}")) == (0, "forward", no_place)
    assert _refusal(case, pin(f"value {number}"))[2] == f"value {number} is no tensor"
    assert _refusal(case, pin("input 1"))[2] == "there is no input 1"
    assert _refusal(case, pin("output 7"))[2] == "there is no output 7"
    assert _refusal(case, pin("value 999999"))[2] == "there is no value 999999"
    assert _refusal(case, pin("input 0", method="forwards")) == (
        *(0, "forwards"),
        "the model has the methods forward",
    )
    assert _refusal("io_not_planned", pin("input 0"))[2] == no_place


def test_one_tensor_for_two_memories_is_refused() -> None:
    assert _refusal("add_mul", pin("input 0"), pin("input 0", "sram")) == (
        *(1, "forward"),
        "it shares bytes with a tensor for another memory",
    )


def test_wrong_places_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pins_module, "aligned", lambda _, like: 0 * like)
    with pytest.raises(PlanProofError):
        pinned(program_of("add_mul"), pin("input 0"), pin("input 1"))


def test_a_tensor_outside_of_its_new_arena_is_noticed() -> None:
    program = program_of("add_mul")
    (before,) = program.methods
    (after,) = pinned(program, pin("input 0")).methods
    short = (*after.arena_bytes[:3], after.arena_bytes[3] - 1)
    effects = effects_of_method(before, schemas())
    (problem,) = problems_of(effects, after.values, short)
    assert problem.endswith("ends at byte 16 of 15")
    assert problems_of(effects, after.values, short[:3])


def test_nothing_pinned_changes_nothing() -> None:
    program = program_of("add_mul")
    assert with_pinned(program, Pins(every="dtcm"), schemas()) == (program, ())
    assert replace(Pins(), every="dtcm").with_tensor_arenas(3).by_id == ()
