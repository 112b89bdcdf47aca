"""Stage memory: exact sizes, a lower bound that is one, places that do not overlap."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.errors import Diagnostic, MemoryPlanError, ModelError, SourceSpan
from orchestrator.memory.plan import (
    Arena,
    DelegateState,
    MemoryPlan,
    MethodMemory,
    ModelMemory,
    Placement,
    memory_plan_json,
)
from orchestrator.memory.product import (
    CODE_RESERVE_BYTES,
    RAM_RESERVE_BYTES,
    instructions_offset,
    method_state_bytes,
    plan_memory,
)
from orchestrator.method.compact import instruction_bytes
from orchestrator.program.program import DelegateCall, KernelCall, MoveCall
from orchestrator.program.values import OptionalTensorListValue, TensorListValue, TensorValue
from orchestrator.targets.boards import Pins
from orchestrator.targets.cores import BOARDS, Board, Region
from tests.conftest import model_bytes
from tests.unit.products import SUPPORTED, program_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.program.program import Method


def _plan(
    *cases: str, board: Board | None = None, pins: Mapping[str, Pins] | None = None
) -> MemoryPlan:
    return plan_memory(
        {case: program_of(case) for case in cases},
        pointer_bytes=4 if board else 8,
        board=board,
        spans={case: SourceSpan(file="a.toml", line=7, text=case) for case in cases},
        pins=pins or {},
    )


def _methods(case: str) -> list[tuple[Method, MethodMemory]]:
    (model,) = _plan(case).models
    return list(zip(program_of(case).methods, model.methods, strict=True))


@pytest.mark.parametrize("case", SUPPORTED)
def test_arenas_are_those_of_theprogram_of(case: str) -> None:
    for method, memory in _methods(case):
        assert memory.method == method.name
        assert [(a.memory_id, a.size_bytes) for a in memory.arenas] == list(
            enumerate(method.arena_bytes[1:], start=1)
        )


Times = dict[int, list[int]]


def _accesses(method: Method) -> tuple[Times, Times]:
    """When each value is read, and when it is written."""
    reads: Times = {}
    writes: Times = {}

    def note(times: Times, index: int, time: int) -> None:
        value = method.values[index]
        items: tuple[int, ...] = ()
        if isinstance(value, TensorListValue | OptionalTensorListValue):
            items = value.items
        for found in (index, *items):
            times.setdefault(found, []).append(time)

    for time, call in enumerate(method.instructions):
        if isinstance(call, KernelCall):
            for arg in call.args:
                # An out argument is named twice, or it is the last.
                is_out = call.args.count(arg) > 1 or arg == call.args[-1]
                note(writes if is_out else reads, arg, time)
        elif isinstance(call, DelegateCall):
            for arg in call.args:
                note(reads if arg in writes else writes, arg, time)
        elif isinstance(call, MoveCall):
            note(reads, call.source, time)
            note(writes, call.target, time)
    return reads, writes


@dataclass
class _Life:
    first: int
    last: int
    begin: int
    stop: int
    is_view: bool


def _life(method: Method, index: int, reads: Times, writes: Times) -> _Life:
    value = method.values[index]
    assert isinstance(value, TensorValue)
    assert value.allocation
    end = len(method.instructions)
    times = [*reads.get(index, []), *writes.get(index, [])]
    always = value.is_mutable_state
    from_start = always or index in method.inputs
    start = min(writes.get(index, times or [end]))
    return _Life(
        first=-1 if from_start else start,
        last=end
        if always or index in method.outputs
        else max(times or [-1 if from_start else end]),
        begin=value.allocation.offset_bytes,
        stop=value.allocation.offset_bytes + value.size_bytes,
        is_view=index not in writes and not from_start,
    )


def _live_bytes(method: Method, memory_id: int) -> int:
    """Most bytes live at once, counted byte by byte and moment by moment.

    A byte is live from a write to the last read of what was written. A value that is
    read and not written itself is a view: it reads the bytes of the value it shows.
    """
    reads, writes = _accesses(method)
    lives = [
        _life(method, index, reads, writes)
        for index, value in enumerate(method.values)
        if isinstance(value, TensorValue)
        and value.allocation
        and value.allocation.memory_id == memory_id
    ]
    for view in [life for life in lives if life.is_view]:
        shown = [
            life.first
            for life in lives
            if not life.is_view
            and life.first < view.first
            and set(range(view.begin, view.stop)) <= set(range(life.begin, life.stop))
        ]
        view.first = max(shown, default=view.first)
    return max(
        len(
            {
                byte
                for life in lives
                if life.first <= time <= life.last
                for byte in range(life.begin, life.stop)
            }
        )
        for time in range(-1, len(method.instructions) + 1)
    )


SMALL = [
    case for case in SUPPORTED if all(sum(m.arena_bytes) < 20_000 for m in program_of(case).methods)
]


@pytest.mark.parametrize("case", SMALL)
def test_the_lower_bound_is_the_peak_of_live_bytes(case: str) -> None:
    for method, memory in _methods(case):
        for arena in memory.arenas:
            expected = _live_bytes(method, arena.memory_id)
            assert arena.peak_live_bytes == expected


def test_most_cases_are_small_enough_to_count() -> None:
    assert len(SMALL) > 25


@pytest.mark.parametrize("case", SUPPORTED)
def test_no_arena_is_below_its_lower_bound(case: str) -> None:
    for _, memory in _methods(case):
        for arena in memory.arenas:
            assert 0 <= arena.peak_live_bytes <= arena.size_bytes
            assert arena.gap_percent >= 0


def test_the_gap_is_counted_from_the_lower_bound() -> None:
    assert Arena(memory_id=1, size_bytes=150, peak_live_bytes=100).gap_percent == 50
    assert Arena(memory_id=1, size_bytes=9, peak_live_bytes=0).gap_percent == 0


@pytest.mark.parametrize(("pointer_bytes", "value", "instruction"), [(4, 16, 12), (8, 32, 24)])
def test_state_is_values_instructions_and_changing_sizes(
    pointer_bytes: int, value: int, instruction: int
) -> None:
    """test_generate.py has compilers confirm these sizes."""
    method = program_of("dynamic_batch").method("forward")
    dynamic = [v for v in method.values if isinstance(v, TensorValue) and v.is_dynamic]
    assert dynamic
    assert method_state_bytes(method, pointer_bytes=pointer_bytes) == (
        value * len(method.values)
        + instruction * len(method.instructions)
        + sum(4 + 4 * len(v.sizes) for v in dynamic)
    )


@pytest.mark.parametrize("pointer_bytes", [4, 8])
def test_delegates_have_handles_and_states_of_whole_words(pointer_bytes: int) -> None:
    """The loader has the same sizes, see test_delegates.py."""
    method = program_of("xnnpack_partial").method("forward")
    backend = method.delegates[0].backend

    def size(delegates: dict[str, int], method: Method = method) -> int:
        return method_state_bytes(method, pointer_bytes=pointer_bytes, delegates=delegates)

    without = size({})
    handles = 4 * pointer_bytes
    assert without == method_state_bytes(method, pointer_bytes=pointer_bytes)
    # A product that has other delegates lays this one out, and refuses it.
    assert size({"Other": 8}) == without + handles
    assert size({backend: 0}) == without + handles
    start = -(-(without + handles) // 8) * 8
    assert size({backend: 1}) == size({backend: 8}) == start + 8
    assert size({backend: 9}) == start + 16
    twice = replace(method, delegates=method.delegates * 2)
    start = -(-(without + 2 * handles) // 8) * 8
    assert size({backend: 9}, twice) == start + 32


def test_the_plan_has_the_states_of_delegates() -> None:
    program = program_of("xnnpack_partial")
    plan = plan_memory(
        {"net": program}, pointer_bytes=4, board=None, spans={}, delegates={"XnnpackBackend": 12}
    )
    ((memory,),) = [model.methods for model in plan.models]
    assert memory.delegates == (DelegateState(backend="XnnpackBackend", state_bytes=12),)
    (method,) = json.loads(memory_plan_json(plan))["models"][0]["methods"]
    assert method["delegates"] == [{"backend": "XnnpackBackend", "state_bytes": 12}]
    assert method["state_bytes"] == memory.state_bytes


@pytest.mark.parametrize(("pointer_bytes", "expected"), [(4, (16, 12)), (8, (32, 24))])
def test_instructions_lie_behind_the_values(pointer_bytes: int, expected: tuple[int, int]) -> None:
    method = program_of("add_mul").method("forward")
    value, instruction = expected
    offset = instructions_offset(method, pointer_bytes=pointer_bytes)
    assert offset == value * len(method.values)
    assert instruction_bytes(pointer_bytes) == instruction


def test_inputs_and_outputs_have_their_bytes() -> None:
    ((_, kws),) = _methods("kws_dscnn_fp32")
    assert kws.input_bytes == (49 * 10 * 4,)
    assert kws.output_bytes == (12 * 4,)
    ((method, scalars),) = _methods("passthrough")
    for index, size in zip(method.outputs, scalars.output_bytes, strict=True):
        found = method.values[index]
        assert size == (found.size_bytes if isinstance(found, TensorValue) else 8)


def test_sums_are_over_all_models_and_methods() -> None:
    plan = _plan("multi_method", "two_arenas", "add_mul")
    methods = [x for model in plan.models for x in model.methods]
    assert len(methods) > 3
    assert plan.state_bytes == sum(x.state_bytes for x in methods)
    assert plan.arena_bytes == sum(a.size_bytes for x in methods for a in x.arenas)


def test_constants_that_are_nowhere_are_refused() -> None:
    case = "external_constants"
    where = SourceSpan(file="a.toml", line=7, text=case)
    program = replace(program_of(case), external=())
    with pytest.raises(ModelError) as caught:
        plan_memory({case: program}, pointer_bytes=4, board=None, spans={case: where})
    assert caught.value.diagnostics == (
        Diagnostic(
            code="unsupported-program",
            message=f'model "{case}", method forward: tensors have their data outside the program',
            where=where,
            notes=(("found", "values 0, 1, 2, 3"),),
            hint="name its .ptd files in `data` of [[models]], or export without"
            " external constants",
        ),
    )


def test_what_lies_outside_counts_as_the_models() -> None:
    program = program_of("external_constants")
    (model,) = _plan("external_constants").models
    data = sum(-(-len(e.data) // 16) * 16 for e in program.external)
    assert model.program_bytes == program.size_bytes + data > program.size_bytes


def _board(flash: tuple[int, ...], ram: tuple[int, ...], stack: int = 0) -> Board:
    sizes = [("flash", n) for n in flash] + [("ram", n) for n in ram]
    return Board(
        name="tiny",
        cpu="cortex-m4",
        regions=tuple(
            Region(name=f"{kind}{i}", origin=i << 24, size_bytes=n, kind=kind)
            for i, (kind, n) in enumerate(sizes)
        ),
        stack_bytes=stack,
        emulator=(),
    )


FLASH = CODE_RESERVE_BYTES + len(model_bytes("add_mul"))
STATE = _plan("add_mul", board=_board((1 << 20,), (1 << 20,))).state_bytes
ARENA = _plan("add_mul").arena_bytes
RAM = RAM_RESERVE_BYTES + STATE + ARENA


def test_everything_fits_exactly() -> None:
    plan = _plan("add_mul", board=_board((FLASH,), (RAM + 64,), stack=64))
    assert plan.placements == (
        Placement(
            section=".rodata.orch_model_add_mul",
            region="flash0",
            size_bytes=FLASH - CODE_RESERVE_BYTES,
        ),
        Placement(section=".bss.orch_arena_add_mul_forward_1", region="ram1", size_bytes=ARENA),
    )


def test_a_byte_too_little_is_refused_with_the_numbers() -> None:
    with pytest.raises(MemoryPlanError) as caught:
        _plan("add_mul", board=_board((FLASH - 1,), (RAM + 64 - 1,), stack=64))
    program = FLASH - CODE_RESERVE_BYTES
    where = SourceSpan(file="a.toml", line=7, text="add_mul")
    hint = "choose a board with more memory, or a smaller model"
    assert caught.value.diagnostics == (
        Diagnostic(
            code="memory-too-small",
            message='the program of model "add_mul" does not fit tiny',
            where=where,
            notes=(
                ("needs", f"{program} bytes"),
                ("region", f"flash0: {program - 1} of {FLASH - 1} bytes free"),
            ),
            hint=hint,
        ),
        Diagnostic(
            code="memory-too-small",
            message='arena 1 of model "add_mul", method forward does not fit tiny',
            where=where,
            notes=(
                ("needs", f"{ARENA} bytes"),
                ("region", f"ram1: {ARENA - 1} of {RAM + 63} bytes free"),
            ),
            hint=hint,
        ),
    )


def test_a_memory_smaller_than_its_reserve_has_nothing_free() -> None:
    with pytest.raises(MemoryPlanError) as caught:
        _plan("add_mul", board=_board((16,), (16,)))
    notes = [note for d in caught.value.diagnostics for note in d.notes]
    assert ("region", "flash0: 0 of 16 bytes free") in notes
    assert ("region", "ram1: 0 of 16 bytes free") in notes


def test_what_does_not_fit_the_first_memory_goes_to_the_next() -> None:
    board = _board((FLASH - 1, 1 << 20), (RAM - 1, 1 << 20))
    regions = [p.region for p in _plan("add_mul", board=board).placements]
    assert regions == ["flash1", "ram3"]


def _regions(plan: MemoryPlan) -> dict[str, str]:
    return {p.section.rpartition("orch_")[2]: p.region for p in plan.placements}


def test_arenas_lie_where_the_profile_wants_them() -> None:
    board = _board((1 << 20,), (1 << 20, 1 << 20, 1 << 20))
    cases = ("two_arenas", "add_mul")
    pins = {"two_arenas": Pins(every="ram2", by_id=((2, "ram3"),))}
    assert _regions(_plan(*cases, board=board, pins=pins)) == {
        "model_two_arenas": "flash0",
        "arena_two_arenas_forward_1": "ram2",
        "arena_two_arenas_forward_2": "ram3",
        "model_add_mul": "flash0",
        "arena_add_mul_forward_1": "ram1",
    }


def test_what_is_chosen_comes_before_what_is_not() -> None:
    """A memory is not filled with what could lie elsewhere."""
    board = _board((1 << 20,), (RAM_RESERVE_BYTES + 2 * STATE + ARENA, 1 << 20))
    programs = {name: program_of("add_mul") for name in ("first", "second")}
    plan = plan_memory(
        programs, pointer_bytes=4, board=board, spans={}, pins={"second": Pins(every="ram1")}
    )
    assert _regions(plan) == {
        "model_first": "flash0",
        "arena_first_forward_1": "ram2",
        "model_second": "flash0",
        "arena_second_forward_1": "ram1",
    }


def test_a_byte_too_little_in_the_chosen_memory_is_refused() -> None:
    pins = {"add_mul": Pins(every="ram2")}
    plan = _plan("add_mul", board=_board((1 << 20,), (1 << 20, ARENA)), pins=pins)
    assert plan.placements[1].region == "ram2"
    with pytest.raises(MemoryPlanError) as caught:
        _plan("add_mul", board=_board((1 << 20,), (1 << 20, ARENA - 1)), pins=pins)
    assert caught.value.diagnostics == (
        Diagnostic(
            code="memory-too-small",
            message='arena 1 of model "add_mul", method forward does not fit ram2',
            where=SourceSpan(file="a.toml", line=7, text="add_mul"),
            notes=(
                ("needs", f"{ARENA} bytes"),
                ("region", f"ram2: {ARENA - 1} of {ARENA - 1} bytes free"),
            ),
            hint='remove region, regions and tensors of model "add_mul": everything fits then',
        ),
    )


def test_an_arena_that_there_is_not_cannot_be_placed() -> None:
    board = _board((1 << 20,), (1 << 20,))
    with pytest.raises(MemoryPlanError) as caught:
        _plan("two_arenas", board=board, pins={"two_arenas": Pins(by_id=((3, "ram1"),))})
    assert caught.value.diagnostics == (
        Diagnostic(
            code="unknown-arena",
            message='model "two_arenas" has no arena 3',
            where=SourceSpan(file="a.toml", line=7, text="two_arenas"),
            notes=(("known", "1, 2"),),
            hint="correct the memory id in `regions` of [[models]]",
        ),
    )


def test_a_single_flash_of_ones_own_has_no_reserve() -> None:
    """The linker tells exactly whether code and programs fit it."""
    size = len(model_bytes("add_mul"))
    board = replace(_board((size,), (RAM,)), is_own=True)
    assert _regions(_plan("add_mul", board=board))["model_add_mul"] == "flash0"
    several = replace(_board((size, size), (RAM,)), is_own=True)
    assert _regions(_plan("add_mul", board=several))["model_add_mul"] == "flash1"


LARGE_BOARDS = [
    BOARDS[name] for name in ("mps2-an385", "mps2-an500", "mps2-an505", "mps3-an547", "virt-rv64")
]
"""Those that the programs fit."""


@pytest.mark.parametrize("board", LARGE_BOARDS, ids=lambda b: b.name)
def test_blocks_of_several_models_have_room_beside_each_other(board: Board) -> None:
    cases = ("multi_method", "two_arenas", "kws_dscnn_fp32", "vww_mobilenetv1_fp32")
    plan = _plan(*cases, board=board)
    used = dict.fromkeys((r.name for r in board.regions), 0)
    for placement in plan.placements:
        # As the linker aligns them, whatever the order.
        used[placement.region] += placement.size_bytes + 15
    for region in board.regions:
        assert used[region.name] <= region.size_bytes
    kinds = {r.name: r.kind for r in board.regions}
    for placement in plan.placements:
        kind = "flash" if placement.section.startswith(".rodata") else "ram"
        assert kinds[placement.region] == kind
    arenas = [a for m in plan.models for x in m.methods for a in x.arenas]
    assert len(plan.placements) == len(cases) + len(arenas)


def test_the_json_has_the_plan() -> None:
    plan = _plan("two_arenas", board=BOARDS["mps2-an386"])
    text = memory_plan_json(plan)
    assert text.endswith("}\n")
    document = json.loads(text)
    assert document["arena_bytes"] == plan.arena_bytes
    assert document["state_bytes"] == plan.state_bytes
    ((model,), placements) = document["models"], document["placements"]
    (method,) = model["methods"]
    (memory,) = plan.models[0].methods
    assert method["state_bytes"] == memory.state_bytes
    assert [a["size_bytes"] for a in method["arenas"]] == [a.size_bytes for a in memory.arenas]
    assert [a["lower_bound_bytes"] for a in method["arenas"]] == [
        a.peak_live_bytes for a in memory.arenas
    ]
    assert placements == [
        {"section": p.section, "region": p.region, "size_bytes": p.size_bytes}
        for p in plan.placements
    ]


def test_a_product_without_models_needs_no_memory() -> None:
    assert _plan(board=BOARDS["mps2-an386"]) == MemoryPlan(models=())
    assert ModelMemory(model="a", program_bytes=0, methods=()).methods == ()
