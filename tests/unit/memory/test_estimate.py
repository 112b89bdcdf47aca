"""What a firmware takes for its code, and where programs go beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from benchmarks.code_sizes import joined
from orchestrator.cli.main import run
from orchestrator.core.dtype import ScalarType
from orchestrator.errors import Diagnostic, MemoryPlanError
from orchestrator.memory.estimate import CODE_SIZES, estimated_costs
from orchestrator.memory.plan import FirmwareNeeds, MemoryPlan
from orchestrator.memory.product import (
    CODE_RESERVE_BYTES,
    RAM_RESERVE_BYTES,
    link_overflow,
    plan_memory,
)
from orchestrator.planner.blocks import aligned
from orchestrator.shell.sources import library_file, library_names
from orchestrator.targets.boards import NO_PLACES, Board, Pins, Places, Region
from tests.integration.joined_nets import Net, program_bytes
from tests.unit.products import program_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


NET = program_of("add_mul")
NEEDS = FirmwareNeeds(
    code_bytes=10_000,
    table_bytes=1000,
    variable_bytes=300,
    smallest_code_bytes=10_000,
    sure_code_bytes=5000,
)


def test_code_that_runs_in_ram_counts_there_as_well() -> None:
    copied = _board(
        ("flash", "flash", 1 << 20),
        ("itcm", "ram", 1 << 20),
        ("sram", "ram", 1 << 20),
        places=Places(code="itcm"),
    )
    plan = _plan(copied)
    costs = estimated_costs(plan, copied)
    assert costs["ram"]["code"] == NEEDS.code_bytes
    assert costs["ram"]["stack"] == copied.stack_bytes
    least = estimated_costs(plan, copied, least=True)
    assert least["ram"]["code"] == NEEDS.sure_code_bytes
    assert estimated_costs(plan, None)["ram"]["code"] == 0


def test_the_table_has_the_kernels() -> None:
    """`python -m benchmarks.code_sizes` measures those that were added."""
    columns = json.loads(CODE_SIZES.read_text())
    known = {name for column in columns.values() for name, *_ in column["functions"]}
    texts = [library_file(name).read_text() for name in library_names()]
    names = {
        line.split()[-1] for text in texts for line in text.splitlines() if "kernel_name:" in line
    }
    # A kernel that was not measured yet counts with a fixed size.
    assert len(names - known) < len(names) // 20, sorted(names - known)


@pytest.mark.parametrize("load_as", ["prelinked", "pte"])
def test_kernels_that_were_measured_later_are_no_guess(
    load_as: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = Net(name="forward")
    x = net.given((2, 8), ScalarType.Float)
    edges = net.constant(np.arange(5), ScalarType.Float)
    y = net.tensor((2, 8), ScalarType.Long)
    sides = (False, False)
    net.returns(net.call("aten::bucketize.Tensor_out", x, edges, *sides, y))
    (tmp_path / "net.pte").write_bytes(program_bytes([net]))
    profile = tmp_path / "p.toml"
    profile.write_text(
        'schema = 1\nname = "p"\n[target]\ncpu = "cortex-m4"\n'
        f'[[models]]\nname = "net"\npath = "net.pte"\nload = "{load_as}"\n'
    )
    assert run(["check", str(profile)]) == 0
    assert capsys.readouterr().out.startswith("p: everything fits: 1 kernels")


def test_functions_measured_later_have_the_numbers_after_others() -> None:
    column = {"functions": [["a"], ["b"]], "groups": [[10, 11, 12, 0, 1, 3], [20, 0, 0, 5]]}
    more = {"functions": [["c"]], "groups": [[1, 2, 3, 0, 2], [4, 4, 4, 1]]}
    first = joined(column, more)
    assert first == {
        "together": 2,
        "functions": [["a"], ["b"], ["c"]],
        # a, b, c; then the same from the second dtype on; then with further ones.
        "groups": [*([10, 11, 12, 0, 1, 4], [20, 0, 0, 7]), *([1, 2, 3, 2, 8], [4, 4, 4, 5])],
    }
    assert joined(first, {"functions": [], "groups": []}) == first


def _board(
    *regions: tuple[str, str, int], places: Places = NO_PLACES, whole: tuple[Region, ...] = ()
) -> Board:
    return Board(
        name="own",
        cpu="cortex-m4",
        regions=tuple(
            Region(name=name, origin=(i + 1) << 28, size_bytes=size, kind=kind)
            for i, (name, kind, size) in enumerate(regions)
        ),
        stack_bytes=64,
        emulator=(),
        is_own=True,
        places=places,
        whole=whole,
    )


def _plan(
    board: Board,
    count: int = 10,
    needs: FirmwareNeeds | None = NEEDS,
    pins: Mapping[str, Pins] | None = None,
) -> MemoryPlan:
    """Of as many nets, each with a program of its own."""
    return plan_memory(
        {f"m{i}": replace(NET, data=bytes([i]) * len(NET.data)) for i in range(count)},
        pointer_bytes=4,
        board=board,
        spans={},
        needs=needs,
        pins=pins or {},
    )


PROGRAM = aligned(NET.size_bytes)
RAM = ("ram", "ram", 1 << 20)
PER_NET = _plan(_board(("flash", "flash", 1 << 20), RAM), 1)
STATE, ARENA = PER_NET.state_bytes, aligned(PER_NET.arena_bytes)


def _programs(plan: MemoryPlan) -> list[str]:
    return [p.region for p in plan.placements if p.section.startswith(".rodata")]


def _refused(board: Board, **more: Any) -> Diagnostic:
    with pytest.raises(MemoryPlanError) as caught:
        _plan(board, **more)
    return caught.value.diagnostics[0]


def test_programs_give_way_to_code_that_is_larger_than_the_reserve() -> None:
    """Many models on an M55: their tables are in the first flash, too."""
    first = CODE_RESERVE_BYTES + 10 * PROGRAM
    board = _board(("itcm", "flash", first), ("code_sram", "flash", 1 << 20), RAM)
    assert _programs(_plan(board, needs=None)) == ["itcm"] * 10
    # What fits the reserve moves nothing.
    assert _programs(_plan(board)) == ["itcm"] * 10
    large = replace(NEEDS, table_bytes=CODE_RESERVE_BYTES - 10_000 + 3 * PROGRAM)
    plan = _plan(board, needs=large)
    assert _programs(plan) == ["itcm"] * 7 + ["code_sram"] * 3
    assert plan.tight == ()


def test_a_reserve_that_code_does_not_need_is_there_for_programs() -> None:
    room = NEEDS.code_bytes + NEEDS.table_bytes
    board = _board(("flash", "flash", room + 10 * PROGRAM), RAM)
    assert _programs(_plan(replace(board, is_own=False))) == ["flash"] * 10


def test_the_largest_go_first_where_the_order_of_the_profile_does_not_fit() -> None:
    large = replace(NET, data=b"1" * (2 * PROGRAM))
    room = NEEDS.code_bytes + NEEDS.table_bytes
    board = _board(("a", "flash", room + 2 * PROGRAM), ("b", "flash", PROGRAM), RAM)
    plan = plan_memory(
        {"small": NET, "large": large}, pointer_bytes=4, board=board, spans={}, needs=NEEDS
    )
    assert _programs(plan) == ["b", "a"]


def test_variables_of_many_methods_leave_arenas_less_room() -> None:
    """The RAM of twenty nets misses by some hundred bytes."""
    needs = replace(NEEDS, variable_bytes=RAM_RESERVE_BYTES + 644)
    first = 64 + RAM_RESERVE_BYTES + 20 * (STATE + ARENA)
    flash, more = ("flash", "flash", 1 << 20), ("more", "ram", 1 << 20)
    two = _plan(_board(flash, ("ram", "ram", first), more), 20, needs)
    regions = [p.region for p in two.placements if p.section.startswith(".bss")]
    moved = -(-644 // ARENA)
    assert regions == ["ram"] * (20 - moved) + ["more"] * moved
    problem = _refused(_board(flash, ("ram", "ram", first)), count=20, needs=needs)
    assert problem.code == "memory-too-small"
    assert problem.hint == (
        'set concurrency = "sequential" in [memory], where methods never run at once:'
        " everything fits then"
    )


def test_what_may_not_fit_is_linked_and_named() -> None:
    """Less than the most that code may need, and more than it surely needs."""
    size = NEEDS.sure_code_bytes + NEEDS.table_bytes + 10 * PROGRAM
    plan = _plan(_board(("flash", "flash", size + 16), RAM))
    most = NEEDS.code_bytes + NEEDS.table_bytes + 10 * PROGRAM
    assert plan.tight == (("flash", most),)
    problem = _refused(_board(("flash", "flash", size - 16), RAM))
    assert problem.code == "memory-too-small"
    assert problem.hint == "choose a board with more memory, or a smaller model"


def test_code_that_alone_fits_no_flash() -> None:
    size = NEEDS.sure_code_bytes + NEEDS.table_bytes - 100
    problem = _refused(_board(("flash", "flash", size), RAM))
    assert problem == Diagnostic(
        code="region-overflow",
        message="the firmware does not fit memory flash",
        notes=(("over", "100 bytes"),),
        hint="choose a board with more memory, or a smaller model",
    )


def test_the_hint_is_a_key_that_makes_it_fit() -> None:
    room = NEEDS.code_bytes + NEEDS.table_bytes
    small, large = ("a", "flash", room + PROGRAM), ("b", "flash", 1 << 20)
    narrow = ("b", "flash", 2 * PROGRAM)

    def hint(*regions: tuple[str, str, int], **more: Any) -> str:
        places = more.pop("places", NO_PLACES)
        whole = more.pop("whole", ())
        board = _board(*regions, RAM, places=places, whole=whole)
        more = {"needs": replace(NEEDS, sure_code_bytes=NEEDS.code_bytes), **more}
        return _refused(board, **more).hint.removesuffix(": everything fits then")

    chosen = Places(weights="a")
    assert hint(small, large, places=chosen) == "remove weights from [memory]"
    # Neither memory has room for all programs, both together do.
    assert hint(small, narrow, places=chosen, count=3) == "remove weights from [memory]"
    assert hint(small, narrow, places=chosen, count=4).startswith("choose a board")
    fast = replace(NEEDS, code_bytes=40_000, sure_code_bytes=30_000)
    assert hint(small, needs=fast, count=1) == 'set optimize = "size" in [target]'
    whole = (Region(name="a", origin=1 << 28, size_bytes=1 << 20, kind="flash"),)
    limit = "give a 1048576 bytes in [[memory.regions]]"
    assert hint(small, whole=whole) == limit


def test_a_pin_is_named_only_if_it_is_in_the_way() -> None:
    flash, little = ("flash", "flash", 1 << 20), ("little", "ram", 16)
    pins = {"m3": Pins(every="little")}
    problem = _refused(_board(flash, RAM, little), pins=pins)
    assert problem.hint == (
        'remove region, regions and tensors of model "m3": everything fits then'
    )


def test_what_the_linker_finds_gets_the_same_hints() -> None:
    """The estimate was wrong by more than what was left of the memory."""
    first = CODE_RESERVE_BYTES + 10 * PROGRAM
    board = _board(("itcm", "flash", first), ("code_sram", "flash", 1 << 20), RAM)
    error = link_overflow(_plan(board), board, {}, {"itcm": 157_048})
    assert error.diagnostics == (
        Diagnostic(
            code="region-overflow",
            message="the firmware does not fit memory itcm",
            notes=(("over", "157048 bytes"),),
            hint="choose a board with more memory, or a smaller model",
        ),
    )
    error = link_overflow(_plan(board), board, {}, {"itcm": 5 * PROGRAM})
    (problem,) = error.diagnostics
    assert problem.hint == 'set weights = "code_sram" in [memory]: everything fits then'


def test_code_in_ram_takes_both_memories() -> None:
    board = _board(
        ("flash", "flash", 1 << 20),
        ("ram", "ram", 64 + NEEDS.variable_bytes + 10 * (STATE + ARENA)),
        places=Places(code="ram"),
    )
    problem = _refused(board)
    assert problem.hint == "remove code from [memory]: everything fits then"
