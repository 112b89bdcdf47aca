"""Inputs and outputs in memory of the caller, through all stages."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.compat.check import check_compat, firmware_of
from orchestrator.emit.compile import plan_compile
from orchestrator.emit.generate.api_header import api_header
from orchestrator.emit.generate.api_source import api_source
from orchestrator.emit.generate.product import Product
from orchestrator.errors import MemoryPlanError, ModelError
from orchestrator.memory.plan import CALLER_SECTION, memory_plan_json
from orchestrator.memory.product import method_state_bytes, plan_memory
from orchestrator.method.checks import check_writes
from orchestrator.method.passes.passes import share_values
from orchestrator.program.caller import caller_bytes, caller_problems, caller_values, own_outputs
from orchestrator.program.reader import read_program
from orchestrator.selection.extract import extract
from orchestrator.selection.resolution import Resolution
from orchestrator.targets.cores import Board, Region
from tests.unit.method.test_prelink import _linked as linked_of
from tests.unit.products import GNU, program_of, resolution_of, target_of

DATA = Path(__file__).parents[2] / "data" / "memory"
RETURNED = read_program((DATA / "given_returned/model.pte").read_bytes(), file="r")
ROWS = read_program((DATA / "given_rows/model.pte").read_bytes(), file="r")


def test_values_of_the_caller() -> None:
    (method,) = RETURNED.methods
    assert method.inputs[0] == method.outputs[0]
    assert method.outputs[1] == method.outputs[2]
    assert caller_values(method) == {*method.inputs, *method.outputs}
    assert own_outputs(method) == (False, True, False)
    assert caller_bytes(method) == 3 * 32
    (planned,) = program_of("add_mul").methods
    assert caller_values(planned) == frozenset()
    assert own_outputs(planned) == (False,) * len(planned.outputs)
    assert caller_bytes(planned) == 0
    twice = replace(method, inputs=(method.inputs[0],) * 2)
    (found,) = [p for p in caller_problems(twice) if "two inputs" in p[0]]
    assert found[2] == [method.inputs[0]]


def test_the_application_has_a_block_for_them() -> None:
    programs = {"a": program_of("add_mul"), "r": RETURNED, "w": ROWS}
    regions = [("f", "flash", 1 << 20), ("r", "ram", 1 << 16)]
    board = Board(
        name="b",
        cpu="cortex-m4",
        stack_bytes=64,
        regions=tuple(
            Region(name=n, kind=k, origin=0x20000000 if k == "ram" else 0, size_bytes=s)
            for n, k, s in regions
        ),
        emulator=(),
    )
    plan = plan_memory(programs, pointer_bytes=4, board=board, spans={})
    assert plan.caller_bytes == 8 * 4 * 4 + 8 * 3 * 4
    assert plan.caller_model == "w"
    assert plan.placements[0].section == CALLER_SECTION
    models = json.loads(memory_plan_json(plan))["models"]
    methods = [m for model in models for m in model["methods"]]
    assert [m.get("caller_bytes") for m in methods] == [None, 96, 224]
    none = plan_memory({"a": programs["a"]}, pointer_bytes=4, board=None, spans={})
    assert (none.caller_bytes, none.caller_model) == (0, "")
    small = replace(board, regions=(board.regions[0], replace(board.regions[1], size_bytes=1300)))
    with pytest.raises(MemoryPlanError) as caught:
        plan_memory({"w": ROWS}, pointer_bytes=4, board=small, spans={})
    assert caught.value.diagnostics[0].message == (
        "memory of the application for inputs and outputs that are not planned does not fit b"
    )


def test_the_api_names_memory_of_the_caller() -> None:
    programs = {"r": RETURNED, "w": ROWS}
    memory = plan_memory(programs, pointer_bytes=4, board=None, spans={})
    header = api_header(Product("p", "head", programs, memory)).text
    header = header.replace(" ORCH_NOEXCEPT", "")
    assert "/** output1: Float [2, 3], in your memory */" in header
    assert "orch_status p_r_forward_set_input1(const float* memory);" in header
    assert "orch_status p_r_forward_set_output1(float* memory);" in header
    # What is there already is only asked for.
    assert "const float* p_r_forward_output2(void);" in header
    assert "p_r_forward_set_output0" not in header
    assert "forward_set_input0(const float (&memory)[32])" in header
    source = api_source(Product("p", "head", programs, memory)).text
    assert '#include "orch/caller.h"' in source
    assert source.count("orch::check_memory(method)") == 8
    assert "orch::get_sizes(method, 0, output0_sizes);" in source
    assert "orch::Tensor::kDynamic | orch::Tensor::kCaller" in source


@pytest.mark.parametrize("caller_bytes", [0, 64])
def test_only_products_that_need_it_have_the_code(caller_bytes: int) -> None:
    plan = plan_compile(
        profile="test",
        target=target_of("cortex-m4", "gnu"),
        toolchain=GNU,
        resolution=Resolution(),
        runtime_sources=("src/load_values.cpp", "src/caller.cpp", "app/runner.cpp"),
        models=(),
        caller_bytes=caller_bytes,
    )
    flags = {u.source.rpartition("/")[2]: u.flags for u in plan.units}
    assert ("-DORCH_CALLER_IO=0" in flags["load_values.cpp"]) is not bool(caller_bytes)
    assert ("-DORCH_CALLER_BYTES=64" in flags["runner.cpp"]) is bool(caller_bytes)


def test_inputs_of_the_caller_are_not_written() -> None:
    program = program_of("io_not_planned")
    resolution = resolution_of("io_not_planned")
    check_writes({"m": program}, resolution, {})
    (method,) = program.methods
    as_input = replace(method, inputs=(*method.inputs, *method.outputs))
    with pytest.raises(ModelError) as caught:
        check_writes({"m": replace(program, methods=(as_input,))}, resolution, {})
    assert caught.value.diagnostics[0].code == "write-to-constant"


def test_other_programs_need_the_same_of_the_caller() -> None:
    given, planned = program_of("io_not_planned"), program_of("mlp")
    memory = plan_memory({"m": given}, pointer_bytes=4, board=None, spans={})
    firmware = firmware_of(
        resolution=resolution_of("io_not_planned"),
        memory=memory,
        programs={"m": given},
        pointer_bytes=4,
    )
    states = {"forward": method_state_bytes(given.methods[0], pointer_bytes=4)}
    info = extract(given, model="m")
    assert firmware.has_caller_memory
    assert check_compat(firmware, given, info, states, model="m", file="f") == ()
    (method,) = given.methods
    (place,) = firmware.methods
    texts = tuple(t.removesuffix(" in memory of the caller") for t in place.inputs)
    other = replace(firmware, methods=(replace(place, inputs=texts),))
    (found,) = check_compat(other, given, info, states, model="m", file="f")
    assert found.code == "other-interface"
    lost = replace(given, methods=(replace(method, outputs=()),))
    found, *_ = check_compat(firmware, lost, info, states, model="m", file="f")
    assert found.code == "unsupported-program"
    assert planned.methods[0].name == "forward"


def test_their_slots_are_not_shared() -> None:
    method = linked_of("io_not_planned")
    assert method.given
    assert not method.has_constant_slots
    shared = share_values(method)
    # It has fewer slots: each place has another number.
    assert len(shared.given) == len(method.given)
    assert {shared.values[i] for i in shared.given} == {method.values[i] for i in method.given}


def test_what_the_caller_cannot_give_is_refused() -> None:
    view = read_program((DATA / "given_view/model.pte").read_bytes(), file="v")
    with pytest.raises(ModelError) as caught:
        plan_memory({"v": view}, pointer_bytes=4, board=None, spans={})
    (found,) = caught.value.diagnostics
    assert found.code == "unsupported-program"
    assert found.notes == (("found", "values 4"),)
    assert "views of them" in found.hint
