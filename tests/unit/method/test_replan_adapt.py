"""Programs made right for a target: sizes of scratch memory, places, and the bytes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import orchestrator.method.replan.adapt as adapt_module
from orchestrator.errors import SourceSpan
from orchestrator.memory.plan import memory_plan_json
from orchestrator.memory.product import plan_memory
from orchestrator.method.effects import effects_of_method
from orchestrator.method.linked import LinkedMethod
from orchestrator.method.replan import (
    Adapted,
    PlanProofError,
    adapt_linked,
    adapt_program,
    with_scratch,
)
from orchestrator.method.replan.proof import problems_of
from orchestrator.method.state import with_state
from orchestrator.planner import plan_blocks
from orchestrator.planner.blocks import Block, BlockPlan
from orchestrator.program.edit import EditError
from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import TensorValue
from orchestrator.scratch.needs import ScratchNeed
from tests.conftest import CASES, CORPUS
from tests.unit.products import program_of
from tests.unit.schemas import schemas

if TYPE_CHECKING:
    from orchestrator.program.program import Program

WHERE = SourceSpan(file="a.toml", line=7)
INT8 = tuple(case for case in CASES if "_int8_" in case)
M55 = "kws_dscnn_int8_m55"


def adapted(case: str, needs: tuple[ScratchNeed, ...] = ()) -> Adapted:
    """A program of the corpus, planned."""
    program = program_of(case)
    sized = with_scratch(program, needs)
    return adapt_program(program, sized, schemas(), plan=plan_blocks)


def needs_of(case: str, size_bytes: int) -> tuple[ScratchNeed, ...]:
    """All scratch tensors of a program need so many bytes: those of dtype Byte."""
    (method,) = program_of(case).methods
    return tuple(
        ScratchNeed(
            method="forward",
            instruction=number,
            operator=str(method.operators[call.operator]),
            library="cortex_m",
            argument="scratch",
            value=value,
            reserved_bytes=tensor.size_bytes,
            needed_bytes=size_bytes,
            is_private=True,
        )
        for number, call in enumerate(method.instructions)
        if isinstance(call, KernelCall)
        for value in call.args
        if isinstance(tensor := method.values[value], TensorValue)
        and tensor.dtype.name == "Byte"
        and tensor.is_planned
    )


@pytest.mark.parametrize("case", CASES)
def test_no_program_of_the_corpus_gets_worse(case: str) -> None:
    program = program_of(case)
    found = adapted(case)
    assert read_program(found.program.data, file=case).methods == found.program.methods
    for before, after, arenas in zip(
        program.methods, found.program.methods, found.arenas, strict=True
    ):
        assert replace(after, values=before.values, arena_bytes=before.arena_bytes) == before
        assert all(
            now <= was for now, was in zip(after.arena_bytes, before.arena_bytes, strict=True)
        )
        for arena in arenas:
            assert arena.size_bytes == after.arena_bytes[arena.memory_id]
            assert arena.file_bytes == before.arena_bytes[arena.memory_id]
            assert arena.lower_bound_bytes <= arena.size_bytes
            if case in INT8:
                assert arena.size_bytes == arena.lower_bound_bytes
        effects = effects_of_method(before, schemas())
        assert problems_of(effects, after.values, after.arena_bytes) == ()


def test_scratch_memory_that_is_not_needed_is_not_there() -> None:
    found = adapted(M55, needs_of(M55, 0))
    assert [m.arena_bytes for m in program_of(M55).methods] == [(0, 20464)]
    assert [m.arena_bytes for m in found.program.methods] == [(0, 16000)]
    assert found.arenas[0][0].file_bytes == 20464
    assert found.arenas[0][0].lower_bound_bytes == 16000


def test_scratch_memory_grows() -> None:
    case = "kws_dscnn_int8_m0plus"
    needs = needs_of(case, 3000)
    sized = with_scratch(program_of(case), needs)
    found = adapted(case, needs)
    (method,) = found.program.methods
    for need in needs:
        value = method.values[need.value]
        assert isinstance(value, TensorValue)
        assert value.size_bytes == 3000
    assert found.arenas[0][0].size_bytes == 16000 + 3008 - 8
    assert found.arenas[0][0].size_bytes == method.arena_bytes[1]
    # Without planning it is right as well, and larger.
    kept = adapt_program(program_of(case), sized, schemas(), plan=None)
    assert kept.arenas == ((),)
    assert kept.program.methods[0].arena_bytes[1] >= 16000 + 3000 * len(needs)
    effects = effects_of_method(sized.methods[0], schemas())
    assert problems_of(effects, method.values, method.arena_bytes) == ()


def test_a_tensor_of_several_dimensions_has_all_items_in_the_first() -> None:
    program = program_of(M55)
    (method,) = program.methods
    (need, *_) = needs_of(M55, 7)
    tensor = method.values[need.value]
    assert isinstance(tensor, TensorValue)
    flat = replace(tensor, sizes=(43, 64), dim_order=(0, 1))
    values = tuple(flat if v is tensor else v for v in method.values)
    changed = replace(program, methods=(replace(method, values=values),))
    (found,) = with_scratch(changed, [need]).methods
    value = found.values[need.value]
    assert isinstance(value, TensorValue)
    assert value.sizes == (7, 1)
    assert value.allocation == tensor.allocation
    homeless = replace(tensor, allocation=None)
    values = tuple(homeless if v is tensor else v for v in method.values)
    changed = replace(program, methods=(replace(method, values=values),))
    assert with_scratch(changed, [need]).methods == changed.methods


def test_state_that_methods_share_stays() -> None:
    path = CORPUS.parent / "memory" / "shared_cache" / "model.pte"
    original = read_program(path.read_bytes(), file="shared_cache")
    program = with_state(original, schemas())
    found = adapt_program(original, program, schemas(), plan=plan_blocks)
    assert found.program.sharers == ("decode", "peek", "prefill")
    for before, after, arenas in zip(
        program.methods, found.program.methods, found.arenas, strict=True
    ):
        assert [arena.memory_id for arena in arenas] == [1]
        assert after.arena_bytes[SHARED_ID] == before.arena_bytes[SHARED_ID]


def _linked(program: Program) -> tuple[LinkedMethod, ...]:
    """Methods without instructions: nothing of the program is touched."""
    return tuple(
        LinkedMethod(
            model="m",
            name=method.name,
            values=method.values,
            instructions=(),
            inputs=method.inputs,
            outputs=method.outputs,
            data=(),
            origins=(),
        )
        for method in program.methods
    )


def test_linked_methods_are_planned_after_the_passes() -> None:
    program = program_of("add_mul")
    linked = _linked(program)
    kept = adapt_linked(program, program, linked, plan=None)
    assert kept == Adapted(program=program, linked=linked, arenas=((),))
    found = adapt_linked(program, program, linked, plan=plan_blocks)
    assert found.linked is not None
    # Of four tensors of 16 bytes, one is not needed: no instruction is left.
    assert program.methods[0].arena_bytes == (0, 64)
    assert found.program.methods[0].arena_bytes == (0, 48)
    assert found.arenas[0][0].file_bytes == 64
    assert found.program.data == program.data


def test_a_wrong_plan_builds_nothing() -> None:
    def plan(blocks: object) -> BlockPlan:
        assert isinstance(blocks, tuple)
        assert all(isinstance(block, Block) for block in blocks)
        zeros = (0,) * len(blocks)
        return BlockPlan(offsets=zeros, size_bytes=1, peak_live_bytes=1, planner="no")

    program = program_of("add_mul")
    with pytest.raises(PlanProofError, match=r"ends at byte 16 of 1.*value 1 ends"):
        adapt_program(program, program, schemas(), plan=plan)


def test_a_file_that_cannot_be_edited_keeps_its_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_of("dynamic_batch")

    def refuse(original: Program, methods: object) -> Program:
        if methods != original.methods:
            raise EditError("no")
        return original

    monkeypatch.setattr(adapt_module, "with_methods", refuse)
    found = adapt_program(program, program, schemas(), plan=plan_blocks)
    assert found == Adapted(program=program, arenas=((),))
    sized = with_scratch(program_of(M55), needs_of(M55, 0))
    with pytest.raises(EditError):
        adapt_program(program_of(M55), sized, schemas(), plan=plan_blocks)


def test_memory_plan_json_has_plans_and_scratch_memory() -> None:
    needs = needs_of(M55, 0)
    found = adapted(M55, needs)
    plan = plan_memory(
        {M55: found.program},
        pointer_bytes=4,
        board=None,
        spans={},
        planned={M55: found.arenas},
        scratch={M55: needs},
    )
    (model,) = json.loads(memory_plan_json(plan))["models"]
    (method,) = model["methods"]
    assert method["arenas"] == [
        {
            "memory_id": 1,
            "size_bytes": 16000,
            "lower_bound_bytes": 16000,
            "gap_percent": 0.0,
            "file_bytes": 20464,
            "planner": found.arenas[0][0].planner,
        }
    ]
    assert method["scratch"][0] == {
        "instruction": 1,
        "operator": "cortex_m::quantized_depthwise_conv2d.out",
        "library": "cortex_m",
        "argument": "scratch",
        "file_bytes": 2752,
        "size_bytes": 0,
    }
    assert len(method["scratch"]) == len(needs)
