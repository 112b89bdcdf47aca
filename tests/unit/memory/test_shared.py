"""Methods that share state: how they are recognised, and what the stages make of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.emit.generate.api_header import api_header
from orchestrator.emit.generate.api_source import api_source
from orchestrator.emit.generate.product import Product
from orchestrator.measure.owner import Owners
from orchestrator.memory.plan import memory_plan_json
from orchestrator.memory.product import plan_memory
from orchestrator.method.state import StateError, with_state
from orchestrator.planner.policy import SharedState
from orchestrator.program.reader import read_program
from orchestrator.program.shared import SHARED_ID, shared_bytes
from orchestrator.program.values import Allocation, Dynamism, TensorValue
from tests.conftest import CASES
from tests.unit.products import program_of, target_of

if TYPE_CHECKING:
    from orchestrator.memory.plan import MemoryPlan
    from orchestrator.program.program import Method, Program

DATA = Path(__file__).parents[2] / "data" / "memory"


def _read(name: str) -> Program:
    return read_program((DATA / name / "model.pte").read_bytes(), file=name)


CACHE = with_state(_read("shared_cache"), {})


def _changed(change: dict[str, object], method: int = 1, program: Program = CACHE) -> Program:
    """The program with something else about the first shared buffer of a method."""
    found = program.methods[method]
    index, value = next(
        (i, v)
        for i, v in enumerate(found.values)
        if isinstance(v, TensorValue) and v.allocation and v.allocation.memory_id == 2
    )
    values = list(found.values)
    values[index] = replace(value, **change)  # type: ignore[arg-type]  # any field
    return _with(program, method, replace(found, values=tuple(values)))


def _with(program: Program, index: int, method: Method) -> Program:
    methods = list(program.methods)
    methods[index] = method
    return replace(program, methods=tuple(methods))


@pytest.mark.parametrize("name", ["shared_cache", "shared_nameless", "shared_zeros"])
def test_what_the_exporter_shares_is_recognised(name: str) -> None:
    program = with_state(_read(name), {})
    assert program.sharers == ("decode", "peek", "prefill")
    assert shared_bytes(program) == 6 * 4 * 4 + 4


def test_no_other_program_is_taken_for_one() -> None:
    assert [case for case in CASES if with_state(program_of(case), {}).sharers] == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (
            {"sizes": (1, 2, 4)},
            "value 0 of decode and value 0 of peek lie at byte 0 of arena 2, and differ"
            " in size or dtype",
        ),
        (
            {"dtype": ScalarType.Int},
            "value 0 of decode and value 0 of peek lie at byte 0 of arena 2, and differ"
            " in size or dtype",
        ),
        (
            {"allocation": Allocation(memory_id=SHARED_ID, offset_bytes=16)},
            "value 0 of decode and value 0 of peek overlap in arena 2",
        ),
        ({"dynamism": Dynamism.BOUNDED}, "value 0 of peek changes its size in arena 2"),
    ],
)
def test_another_layout_is_an_error(change: dict[str, object], found: str) -> None:
    with pytest.raises(StateError) as caught:
        with_state(_changed(change), {})
    assert str(caught.value) == found
    # The profile may say that each method has its own state.
    assert with_state(_changed(change), {}, SharedState.NO).sharers == ()


def test_views_outputs_and_methods_without_state_are_no_obstacle() -> None:
    names = ("decode", "peek", "prefill")
    first, _, third = CACHE.methods
    for program in (
        _changed({"sizes": (24,), "dim_order": (0,)}),
        _changed({"data_buffer_index": 0}),
        _with(CACHE, 2, replace(third, outputs=(0,))),
        _with(CACHE, 1, replace(CACHE.methods[1], arena_bytes=(0, 192, 128))),
    ):
        found = with_state(program, {})
        assert found.sharers == names
        assert len({m.arena_bytes[SHARED_ID] for m in found.methods}) == 1
    constant = replace(first, name="size", values=(), inputs=(), outputs=(), instructions=())
    program = replace(CACHE, methods=(replace(constant, arena_bytes=(0,)), first, third))
    assert with_state(program, {}).sharers == ("decode", "prefill")


def test_one_method_shares_with_nobody() -> None:
    alone = replace(CACHE, methods=CACHE.methods[:1])
    assert with_state(alone, {}).sharers == ()
    with pytest.raises(StateError, match="no two methods have tensors in arena 2"):
        with_state(alone, {}, SharedState.YES)


def test_a_buffer_that_methods_keep_apart_is_an_error() -> None:
    apart = _changed({"allocation": Allocation(memory_id=1, offset_bytes=0)})
    with pytest.raises(StateError) as caught:
        with_state(apart, {})
    assert "lies in arena 2 of decode, and in arena 1 of peek" in str(caught.value)


def _plan(pointer_bytes: int = 4) -> MemoryPlan:
    board = target_of("cortex-m4", "gnu").board
    return plan_memory({"m": CACHE}, pointer_bytes=pointer_bytes, board=board, spans={})


def test_the_arena_is_planned_once() -> None:
    plan = _plan()
    arenas = [a for m in plan.models[0].methods for a in m.arenas]
    names = ("decode", "peek", "prefill")
    assert [a.shared for a in arenas] == [(), names] * 3
    own = sum(a.size_bytes for a in arenas if not a.shared)
    assert plan.arena_bytes == own + 112
    sections = [p.section for p in plan.placements if p.section.endswith("_2")]
    assert sections == [".bss.orch_arena_m_decode_2"]
    document = json.loads(memory_plan_json(plan))
    shared = document["models"][0]["methods"][1]["arenas"][1]
    assert (shared["shared"], shared["lower_bound_bytes"]) == ([*names], 100)
    owners = Owners("p", [], plan)
    owner = owners.of_piece(sections[0], "obj/gen/src/api.cpp.o")
    assert owner.name == "m.decode arena 2, shared"


def test_the_api_has_one_arena_and_one_start() -> None:
    plan = _plan()
    source = api_source(Product("p", "head", {"m": CACHE}, plan)).text
    assert source.count("uint8_t p_m_decode_arena2[112]") == 1
    # Passes may leave nothing of a method in it: compilers warn of unused names.
    alias = "constexpr uint8_t* p_m_peek_arena2 = p_m_decode_arena2;"
    assert f"[[maybe_unused]] {alias}" in source
    assert "Span<uint8_t>(p_m_peek_arena2, 112)" in source
    assert source.count("nullptr, start_model_m}") == 3
    assert "start_together(method, start_model_m_methods, load_linked)" in source
    assert '#include "orch/together.h"' in source
    header = api_header(Product("p", "head", {"m": CACHE}, plan)).text
    assert header.count("state that these methods share: decode, peek, prefill") == 3
    total = header.partition("ORCH_ASSERT(P_RAM_BYTES")[2].partition(";")[0]
    assert total.count("+ P_M_DECODE_ARENA2_BYTES") == 1
    assert "+ P_M_PEEK_ARENA2_BYTES" not in total
