"""Arenas of methods that never run together: which may overlap, and where they lie."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.emit.compile import plan_compile
from orchestrator.emit.generate.api_header import api_header
from orchestrator.emit.generate.api_source import api_source
from orchestrator.emit.generate.linker import linker_script
from orchestrator.emit.generate.product import Product
from orchestrator.errors import MemoryPlanError
from orchestrator.measure.owner import Owners
from orchestrator.memory.plan import Arena, CommonArena, MemoryPlan, memory_plan_json
from orchestrator.memory.product import plan_memory
from orchestrator.method.state import kept_arenas, with_state
from orchestrator.program.program import DelegateCall, Instruction, KernelCall, MoveCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import Allocation, TensorValue
from orchestrator.selection.resolution import Resolution
from orchestrator.targets.boards import Concurrency, Pins
from orchestrator.targets.cores import BOARDS, Board, Toolchain
from tests.unit.products import program_of, target_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.program.program import Method, Program

DATA = Path(__file__).parents[2] / "data" / "memory"
CASES = ("mlp", "two_arenas", "counter", "multi_method", "add_mul")
M4 = BOARDS["mps2-an386"]
GNU = Toolchain(
    name="gnu", version="1", compiler=("g++",), archiver=("ar",), linker=("g++",), programs=()
)


def _plan(
    *cases: str,
    board: Board | None = M4,
    pins: Mapping[str, Pins] | None = None,
    concurrency: Concurrency = Concurrency.SEQUENTIAL,
) -> MemoryPlan:
    return plan_memory(
        {case: program_of(case) for case in cases},
        pointer_bytes=4,
        board=board,
        spans={},
        pins=pins or {},
        concurrency=concurrency,
    )


def _arenas(plan: MemoryPlan) -> list[tuple[str, Arena]]:
    return [
        (f"{m.model}.{m.method}", a)
        for model in plan.models
        for m in model.methods
        for a in m.arenas
    ]


def test_a_common_block_is_as_large_as_the_largest_method() -> None:
    apart, plan = _plan(*CASES, concurrency=Concurrency.PARALLEL), _plan(*CASES)
    assert apart.common == ()
    (block,) = plan.common
    own, sizes = 0, dict.fromkeys((name for name, _ in _arenas(plan)), 0)
    for name, arena in _arenas(plan):
        if name == "counter.forward":
            assert arena.common is None
            own += arena.size_bytes
        else:
            assert arena.common is not None
            assert arena.common.offset_bytes % 16 == 0
            end = arena.common.offset_bytes + arena.size_bytes
            sizes[name] = max(sizes[name], end)
    assert block == CommonArena(name="common", size_bytes=max(sizes.values()))
    assert plan.arena_bytes == block.size_bytes + own < apart.arena_bytes
    # Nothing else differs.
    assert [(n, replace(a, common=None)) for n, a in _arenas(plan)] == _arenas(apart)


def test_arenas_of_one_method_lie_beside_each_other() -> None:
    plan = _plan(*CASES)
    for (one, a), (other, b) in combinations(_arenas(plan), 2):
        if one == other and a.common and b.common:
            first, second = sorted((a, b), key=lambda x: x.common.offset_bytes)  # type: ignore[union-attr]  # both have one
            assert first.common is not None
            assert second.common is not None
            end = first.common.offset_bytes + first.size_bytes
            assert end <= second.common.offset_bytes


def test_what_no_other_method_shares_stays_alone() -> None:
    alone = _plan("mlp", "counter")
    assert alone == _plan("mlp", "counter", concurrency=Concurrency.PARALLEL)


def test_each_chosen_memory_has_a_block() -> None:
    pins = {"mlp": Pins(every="psram"), "two_arenas": Pins(by_id=((2, "psram"),))}
    plan = _plan("mlp", "two_arenas", "add_mul", pins=pins)
    assert [(c.name, c.region) for c in plan.common] == [
        ("common", None),
        ("common_psram", "psram"),
    ]
    places = {p.section: p.region for p in plan.placements}
    assert places[".bss.orch_arenas_common"] == "sram"
    assert places[".bss.orch_arenas_common_psram"] == "psram"
    assert not any("orch_arena_" in section for section in places)


def test_a_byte_too_little_for_the_block_is_refused() -> None:
    plan = _plan("mlp", "add_mul")
    (block,) = plan.common
    pins = {"mlp": Pins(every="psram"), "add_mul": Pins(every="psram")}
    for size_bytes in (block.size_bytes, block.size_bytes - 1):
        regions = tuple(
            replace(r, size_bytes=size_bytes) if r.name == "psram" else r for r in M4.regions
        )
        board = replace(M4, regions=regions)
        if size_bytes == block.size_bytes:
            assert _plan("mlp", "add_mul", board=board, pins=pins).common
            continue
        with pytest.raises(MemoryPlanError) as caught:
            _plan("mlp", "add_mul", board=board, pins=pins)
        (problem,) = caught.value.diagnostics
        assert problem.message == (
            "what the arenas of all methods have in common does not fit psram"
        )
        assert problem.notes == (
            ("needs", f"{block.size_bytes} bytes"),
            ("region", f"psram: {size_bytes} of {size_bytes} bytes free"),
        )


def test_every_output_names_the_block() -> None:
    plan = _plan("mlp", "add_mul")
    (block,) = plan.common
    programs = {case: program_of(case) for case in ("mlp", "add_mul")}
    header = api_header(Product("p", "head", programs, plan)).text
    assert f"#define P_COMMON_ARENA_BYTES {block.size_bytes}\n" in header
    assert "            + P_COMMON_ARENA_BYTES\n" in header
    assert "read them before" in header
    source = api_source(Product("p", "head", programs, plan)).text
    assert f"uint8_t common_arena[{block.size_bytes}];" in source
    assert "constexpr uint8_t* p_mlp_forward_arena1 = common_arena + 0;" in source
    assert "kCommonArenas{kCommonBlocks}" in source
    script = linker_script("head", M4, plan).text
    assert "{ *(.bss.orch_arenas_common) } > sram" in script
    document = json.loads(memory_plan_json(plan))
    assert document["common_arenas"] == [{"name": "common", "size_bytes": block.size_bytes}]
    arena = document["models"][0]["methods"][0]["arenas"][0]
    assert (arena["common"], arena["offset_bytes"]) == ("common", 0)
    owner = Owners("p", [], plan).of_piece(".bss.orch_arenas_common", "a.o")
    assert owner.name == "common arena of all methods"


def _kept(program: Program) -> dict[str, set[int]]:
    return {m.name: set(kept_arenas(m)) for m in with_state(program, {}).methods}


def test_programs_with_state_keep_their_arenas() -> None:
    assert _kept(program_of("counter")) == {"forward": {1}}
    assert _kept(program_of("kv_cache")) == {"forward": {1}}
    cache = read_program((DATA / "shared_cache" / "model.pte").read_bytes(), file="a")
    assert _kept(cache) == {"prefill": {2}, "decode": {2}, "peek": {2}}


@pytest.mark.parametrize("case", ["mlp", "two_arenas", "kws_dscnn_fp32", "small_cnn"])
def test_others_do_not(case: str) -> None:
    assert set().union(*_kept(program_of(case)).values()) == set()


def _tensor(offset_bytes: int, like: TensorValue) -> TensorValue:
    return replace(like, allocation=Allocation(memory_id=1, offset_bytes=offset_bytes))


def _method(instructions: Sequence[Instruction]) -> Method:
    """Values: an input, an output, a temporary, a second name of the temporary."""
    (method,) = program_of("add_mul").methods
    like = method.values[method.inputs[0]]
    assert isinstance(like, TensorValue)
    values = tuple(_tensor(64 * at, like) for at in (0, 1, 2, 2))
    return replace(
        method, values=values, inputs=(0,), outputs=(1,), instructions=tuple(instructions)
    )


def _call(*args: int) -> KernelCall:
    return KernelCall(operator=0, args=args)


@pytest.mark.parametrize(
    ("instructions", "kept"),
    [
        ([_call(0, 1, 1)], set()),
        ([_call(0, 2, 1, 1)], set()),  # scratch memory of one call
        ([_call(0, 2, 2), _call(2, 1, 1)], set()),
        ([_call(0, 2, 2), _call(3, 1, 1)], set()),  # a view of what is written
        ([_call(2, 1, 1), _call(0, 2, 2)], {1}),  # what the last call left
        ([_call(3, 1, 1), _call(0, 2, 2)], {1}),  # the same by another name
        ([_call(2, 1, 1), _call(2, 1, 1)], {1}),
        ([_call(2, 0, 2), _call(0, 1, 1)], {1}),  # changed in place
        ([MoveCall(source=0, target=1)], set()),
        ([MoveCall(source=2, target=1), MoveCall(source=0, target=2)], {1}),
        ([DelegateCall(delegate=0, args=(0, 1))], set()),
        ([], {1}),  # an output that nothing has written
    ],
)
def test_what_counts_as_kept(instructions: list[Instruction], kept: set[int]) -> None:
    program = replace(program_of("add_mul"), methods=(_method(instructions),))
    (method,) = with_state(program, {}).methods
    assert kept_arenas(method) == kept


@pytest.mark.parametrize("common_arenas", [False, True])
def test_only_products_with_a_block_have_the_check(*, common_arenas: bool) -> None:
    plan = plan_compile(
        profile="p",
        target=target_of("cortex-m4", "gnu"),
        toolchain=GNU,
        resolution=Resolution(),
        runtime_sources=("src/load_values.cpp", "src/load_method.cpp"),
        models=(),
        common_arenas=common_arenas,
    )
    having = {u.source for u in plan.units if "-DORCH_COMMON_ARENAS=1" in u.flags}
    expected = {"src/runtime/src/load_values.cpp"} if common_arenas else set()
    assert having == expected
