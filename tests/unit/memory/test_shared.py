"""Methods that share state: how they are recognised, and what the stages make of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.emit.generate.api_header import api_header
from orchestrator.emit.generate.api_source import api_source
from orchestrator.measure.owner import Owners
from orchestrator.memory.memory_json import memory_plan_json
from orchestrator.memory.product import plan_memory
from orchestrator.program.reader import read_program
from orchestrator.program.shared import SHARED_ID, shared_bytes, shares_state
from orchestrator.program.values import Allocation, Dynamism, TensorValue
from tests.conftest import CASES
from tests.unit.products import program_of, target_of

if TYPE_CHECKING:
    from orchestrator.memory.plan import MemoryPlan
    from orchestrator.program.program import Method, Program

DATA = Path(__file__).parents[2] / "data" / "memory"


def _read(name: str) -> Program:
    return read_program((DATA / name / "model.pte").read_bytes(), file=name)


CACHE = _read("shared_cache")


def _changed(
    change: dict[str, object], method: int = 1, program: Program = CACHE
) -> Program:
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
    program = _read(name)
    assert shares_state(program)
    assert shared_bytes(program) == 6 * 4 * 4 + 4


def test_no_other_program_is_taken_for_one() -> None:
    assert [case for case in CASES if shares_state(program_of(case))] == []


def test_one_thing_different_and_it_is_not_shared() -> None:
    assert shares_state(_changed({}))
    place = Allocation(memory_id=SHARED_ID, offset_bytes=16)
    changes: tuple[dict[str, object], ...] = (
        {"sizes": (4, 6)},
        {"allocation": place},  # overlaps
        {"data_buffer_index": 0},
        {"dynamism": Dynamism.BOUNDED},
    )
    for change in changes:
        assert not shares_state(_changed(change)), change
    first, second, third = CACHE.methods
    assert not shares_state(replace(CACHE, methods=(first,)))
    assert not shares_state(_with(CACHE, 1, replace(second, arena_bytes=(0, 192))))
    larger = replace(second, arena_bytes=(0, 192, 128))
    assert not shares_state(_with(CACHE, 1, larger))
    assert not shares_state(_with(CACHE, 2, replace(third, outputs=(0,))))
    assert not shares_state(_with(CACHE, 2, replace(third, inputs=(0,))))
    for sizes in ((0, 192), (0, 192, 0), (0, 192, 112, 16)):
        methods = tuple(replace(m, arena_bytes=sizes) for m in CACHE.methods)
        assert not shares_state(replace(CACHE, methods=methods))
    alone = tuple(replace(m, values=()) for m in CACHE.methods)
    empty = tuple(replace(m, inputs=(), outputs=()) for m in alone)
    assert not shares_state(replace(CACHE, methods=empty))


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
    source = api_source("p", "head", {"m": CACHE}, plan).text
    assert source.count("uint8_t p_m_decode_arena2[112]") == 1
    # Passes may leave nothing of a method in it: compilers warn of unused names.
    alias = "constexpr uint8_t* p_m_peek_arena2 = p_m_decode_arena2;"
    assert f"[[maybe_unused]] {alias}" in source
    assert "Span<uint8_t>(p_m_peek_arena2, 112)" in source
    assert source.count("nullptr, start_model_m}") == 3
    assert "start_together(method, start_model_m_methods, load_linked)" in source
    assert '#include "orch/together.h"' in source
    header = api_header("p", "head", {"m": CACHE}, plan).text
    assert header.count("state that these methods share: decode, peek, prefill") == 3
    total = header.partition("ORCH_ASSERT(P_RAM_BYTES")[2].partition(";")[0]
    assert total.count("+ P_M_DECODE_ARENA2_BYTES") == 1
    assert "+ P_M_PEEK_ARENA2_BYTES" not in total
