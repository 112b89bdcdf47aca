"""Laws of plans, held by an oracle that knows sets of (time, address) only."""

from __future__ import annotations

import sys
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.planner import plan_blocks
from orchestrator.planner.blocks import Block, BlockPlan
from orchestrator.planner.bounds import least_bytes
from orchestrator.planner.greedy import Conflicts, greedy_plans
from orchestrator.planner.plan_files import read_blocks
from orchestrator.planner.search import RESTARTS, STRATEGIES, Outcome, Strategy, search
from orchestrator.planner.verify_plan import check_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(__file__).resolve().parents[2] / "data" / "memory-plans"
HARD = sorted(DATA.glob("?.*.csv"))


def blocks_of(*rows: tuple[int, int, int], alignment: int = 1) -> list[Block]:
    """Blocks from (first, last, size)."""
    return [
        Block(name=f"b{i}", first=f, last=t, size_bytes=s, alignment=alignment)
        for i, (f, t, s) in enumerate(rows)
    ]


@st.composite
def problems(
    draw: st.DrawFn, *, most: int = 10, mixed: bool = True, sizes: int = 40
) -> list[Block]:
    alignment = draw(st.sampled_from([1, 4, 16]))
    blocks = []
    for index in range(draw(st.integers(0, most))):
        first = draw(st.integers(-2, 9))
        if mixed:
            alignment = draw(st.sampled_from([1, 2, 8, 16]))
        blocks.append(
            Block(
                name=f"b{index}",
                first=first,
                last=first + draw(st.integers(0, 6)),
                size_bytes=draw(st.integers(0, sizes)),
                alignment=alignment,
            )
        )
    return blocks


def cells(block: Block, offset: int) -> set[tuple[int, int]]:
    return {
        (time, address)
        for time in range(block.first, block.last + 1)
        for address in range(offset, offset + block.size_bytes)
    }


def oracle(blocks: list[Block], plan: BlockPlan) -> None:
    """A plan is right, checked without any code of planner or verifier."""
    used: set[tuple[int, int]] = set()
    for block, offset in zip(blocks, plan.offsets, strict=True):
        mine = cells(block, offset)
        assert not used & mine
        used |= mine
        assert offset >= 0
        assert offset % block.alignment == 0
    times = [time for time, _ in used]
    peak = max((times.count(time) for time in set(times)), default=0)
    assert plan.peak_live_bytes == peak
    assert plan.size_bytes == max((address + 1 for _, address in used), default=0)
    assert peak <= plan.least_bytes <= plan.size_bytes


def smallest(blocks: list[Block]) -> int:
    """By brute force: in some order, lowest places first give a smallest plan."""
    best = sys.maxsize
    solid = [b for b in blocks if b.size_bytes]
    for order in permutations(solid):
        placed: list[tuple[Block, int]] = []
        for block in order:
            offset = 0
            while any(
                other.first <= block.last
                and block.first <= other.last
                and at < offset + block.size_bytes
                and offset < at + other.size_bytes
                for other, at in placed
            ):
                offset += block.alignment
            placed.append((block, offset))
        best = min(best, max((at + b.size_bytes for b, at in placed), default=0))
    return best


@given(problems(most=16))
def test_blocks_live_at_one_time_never_overlap(blocks: list[Block]) -> None:
    for planner in ("best", "greedy"):
        plan = plan_blocks(blocks, planner=planner, rounds=(50,))
        oracle(blocks, plan)
        assert check_plan(blocks, plan) == ()


@given(problems(most=10), st.randoms(use_true_random=False))
def test_the_order_of_blocks_does_not_show(blocks: list[Block], random: object) -> None:
    plan = plan_blocks(blocks, rounds=(50,))
    shuffled = blocks[:]
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # a random.Random
    again = plan_blocks(shuffled, rounds=(50,))
    places = {b.name: o for b, o in zip(blocks, plan.offsets, strict=True)}
    assert places == {b.name: o for b, o in zip(shuffled, again.offsets, strict=True)}
    assert again.planner == plan.planner


@given(problems(most=12))
def test_no_greedy_plan_is_smaller(blocks: list[Block]) -> None:
    solid = sorted(
        (b for b in blocks if b.size_bytes),
        key=lambda b: (b.first, b.last, b.size_bytes, b.alignment, b.name),
    )
    sizes = [
        max((o + b.size_bytes for o, b in zip(offsets, solid, strict=True)), default=0)
        for _, offsets in greedy_plans(Conflicts(solid))
    ]
    plan = plan_blocks(blocks, planner="greedy")
    assert plan.size_bytes <= min(sizes)
    assert plan_blocks(blocks, rounds=(50,)).size_bytes <= plan.size_bytes


@given(problems(most=6, mixed=False, sizes=24))
def test_small_plans_are_the_smallest(blocks: list[Block]) -> None:
    plan = plan_blocks(blocks)
    assert plan.size_bytes == smallest(blocks)


@given(problems(most=6, mixed=False, sizes=24))
def test_every_strategy_finds_n_bytes_and_refuses_one_less(blocks: list[Block]) -> None:
    solid = [b for b in blocks if b.size_bytes]
    if not solid:
        return
    size = smallest(solid)
    for strategy in (*STRATEGIES, RESTARTS[0], RESTARTS[-1]):
        at = search(solid, capacity_bytes=size, strategy=strategy, nodes=10_000)
        assert at.outcome is Outcome.FOUND
        below = search(solid, capacity_bytes=size - 1, strategy=strategy, nodes=10_000)
        assert below.outcome is Outcome.IMPOSSIBLE


def test_the_search_gives_up_at_its_limit_of_nodes() -> None:
    blocks = blocks_of((0, 3, 4), (2, 5, 4), (4, 7, 4), (6, 9, 4))
    found = search(blocks, capacity_bytes=8, strategy=STRATEGIES[0], nodes=1)
    assert (found.outcome, found.offsets) == (Outcome.GAVE_UP, ())


def test_with_differing_alignments_the_search_proves_nothing() -> None:
    blocks = [
        Block(name="a", first=0, last=0, size_bytes=4, alignment=4),
        Block(name="b", first=0, last=0, size_bytes=4, alignment=8),
    ]
    found = search(blocks, capacity_bytes=7, strategy=STRATEGIES[0], nodes=100)
    assert found.outcome is Outcome.GAVE_UP


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
def test_a_gap_below_a_block_that_lies_on_its_neighbour_is_tried(strategy: Strategy) -> None:
    # Whichever way up, at one end a block must lie higher than the floor there, and
    # lower than anything that could lie below it.
    blocks = blocks_of(
        *((0, 0, 5), (0, 2, 6), (1, 1, 5), (2, 2, 2), (1, 5, 4), (3, 3, 5), (3, 3, 3)),
        *((4, 4, 6), (4, 5, 2), (2, 6, 3), (6, 6, 6), (5, 7, 6), (7, 7, 5)),
    )
    found = search(blocks, capacity_bytes=15, strategy=strategy, nodes=1_000)
    assert found.outcome is Outcome.FOUND
    below = search(blocks, capacity_bytes=14, strategy=strategy, nodes=1_000)
    assert below.outcome is Outcome.IMPOSSIBLE


def test_the_search_finds_what_no_greedy_plan_does() -> None:
    blocks = read_blocks((DATA / HARD[0].name).read_text(), file="A.csv")
    greedy = plan_blocks(blocks, planner="greedy")
    best = plan_blocks(blocks, capacity_bytes=1048576)
    assert best.size_bytes == 1048576 < greedy.size_bytes
    assert best.planner == "search (fewest choices; large first)"
    assert best.is_least
    assert not greedy.is_least


def test_a_bound_above_the_peak_is_proven() -> None:
    # Each pair fits in 37 bytes, one of the two on top; all pairs together do not.
    rows = ((0, 0, 31), (0, 2, 1), (2, 3, 5), (3, 5, 31), (5, 7, 5))
    blocks = blocks_of(*rows, alignment=16)
    assert least_bytes(blocks) == 37
    plan = plan_blocks(blocks)
    assert plan.size_bytes == plan.least_bytes == smallest(blocks) == 47
    assert plan.is_least
    assert plan_blocks(blocks, capacity_bytes=40).least_bytes == 41


@pytest.mark.parametrize("path", HARD, ids=lambda path: path.name[0])
def test_hard_instances_are_solved(path: Path) -> None:
    capacity = int(path.name.split(".")[1])
    blocks = read_blocks(path.read_text(encoding="utf-8"), file=path.name)
    plan = plan_blocks(blocks, capacity_bytes=capacity)
    assert plan.size_bytes <= capacity
    assert check_plan(blocks, plan) == ()


def test_a_capacity_below_the_peak_needs_no_search() -> None:
    blocks = blocks_of((0, 0, 4), (0, 0, 4))
    plan = plan_blocks(blocks, capacity_bytes=7)
    assert (plan.size_bytes, plan.least_bytes, plan.planner) == (8, 8, "greedy-by-size")


def test_alignment_raises_the_bound() -> None:
    blocks = blocks_of((0, 0, 5), (0, 0, 5), (0, 0, 1), alignment=16)
    assert least_bytes(blocks) == 33
    plan = plan_blocks(blocks)
    assert (plan.size_bytes, plan.peak_live_bytes, plan.is_least) == (33, 11, True)
    assert plan.gap_percent == 200.0


def test_nothing_takes_nothing() -> None:
    assert plan_blocks([]) == BlockPlan(
        offsets=(), size_bytes=0, peak_live_bytes=0, planner="nothing to plan"
    )
    plan = plan_blocks(blocks_of((0, 1, 0)))
    assert (plan.offsets, plan.size_bytes, plan.gap_percent) == ((0,), 0, 0.0)


def test_a_known_plan_is_kept_unless_a_smaller_one_is_found() -> None:
    blocks = blocks_of((0, 1, 4), (1, 2, 4))
    known = BlockPlan(offsets=(4, 0), size_bytes=8, peak_live_bytes=8, planner="the program's")
    assert plan_blocks(blocks, at_most=known) is known
    wasteful = BlockPlan(offsets=(8, 0), size_bytes=12, peak_live_bytes=8, planner="the program's")
    assert plan_blocks(blocks, at_most=wasteful).size_bytes == 8


def test_planning_leaves_pythons_limit_of_depth_alone() -> None:
    before = sys.getrecursionlimit()
    blocks = blocks_of(*((0, 0, 1 + i % 3) for i in range(600)))
    found = search(blocks, capacity_bytes=1200, strategy=STRATEGIES[0], nodes=10_000)
    assert found.outcome is Outcome.FOUND
    assert sys.getrecursionlimit() == before


def test_greedy_plans_of_many_blocks_end(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def counted(conflicts: Conflicts) -> Iterator[tuple[str, tuple[int, ...]]]:
        for plan in greedy_plans(conflicts):
            tried.append(plan)
            yield plan

    monkeypatch.setattr("orchestrator.planner.greedy_plans", counted)
    blocks = [*blocks_of((0, 9, 5)), *blocks_of(*[(0, 9, 5)] * 9, alignment=16)]
    plan_blocks(blocks, planner="greedy")
    assert len(tried) == 14
    tried.clear()
    monkeypatch.setattr("orchestrator.planner._MOST_PAIRS", 250)
    assert not check_plan(blocks, plan_blocks(blocks, planner="greedy"))
    assert len(tried) == 3  # of 100 pairs each
