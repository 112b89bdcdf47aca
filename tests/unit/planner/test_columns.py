"""Tilings of a full rectangle: plans without an unused byte."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from benchmarks.tilings import FAMILIES, Family
from orchestrator.planner import plan_blocks
from orchestrator.planner.blocks import Block
from orchestrator.planner.columns import search_columns
from orchestrator.planner.verify_plan import check_plan

SMALL = [
    Family(moments=6, size_bytes=9, blocks=9, pinwheels=p, across=a)
    for p in (0.0, 0.5, 1.0)
    for a in (0.3, 0.7)
]


def cover(blocks: list[Block], offsets: tuple[int, ...]) -> list[tuple[int, int]]:
    """Every moment of every byte, as often as it is used."""
    return sorted(
        (time, address)
        for block, offset in zip(blocks, offsets, strict=True)
        for time in range(block.first, block.last + 1)
        for address in range(offset, offset + block.size_bytes)
    )


@pytest.mark.parametrize("family", SMALL, ids=str)
def test_small_tilings_are_covered_once(family: Family) -> None:
    everything = [(t, x) for t in range(family.moments) for x in range(9)]
    for seed in range(20):
        blocks = family.draw(seed)
        offsets = search_columns(blocks, capacity_bytes=9, trees=20_000)
        assert offsets is not None
        assert cover(blocks, offsets) == everything


def test_no_plan_is_found_where_none_exists() -> None:
    # Full all the time, but the longer ones leave no gap of 2 to the shorter.
    rows = ((0, 0, 2), (0, 1, 1), (0, 2, 1), (1, 2, 1), (2, 2, 2), (1, 1, 1))
    for extra in (0, 1):
        blocks = [
            Block(name=f"b{i}", first=f, last=t, size_bytes=s, alignment=1)
            for i, (f, t, s) in enumerate((*rows, (0, 2, 1))[: 6 + extra])
        ]
        found = search_columns(blocks, capacity_bytes=4 + extra, trees=2_000)
        plan = plan_blocks(blocks, capacity_bytes=4 + extra)
        assert (found is not None) == (plan.size_bytes <= 4 + extra)


@pytest.mark.parametrize(
    "name",
    ["cut in two, long", "cut in two", "cut in two, few bytes", "half pinwheels"],
)
def test_tilings_of_300_blocks_are_solved(name: str) -> None:
    blocks = FAMILIES[name].draw(seed=100)
    plan = plan_blocks(blocks, capacity_bytes=FAMILIES[name].size_bytes)
    assert plan.is_least
    assert plan.planner == "search (by columns)"
    assert check_plan(blocks, plan) == ()


def test_offsets_are_aligned_and_do_not_depend_on_the_order() -> None:
    family = FAMILIES["cut in two, short"]
    blocks = [
        replace(b, size_bytes=16 * b.size_bytes, alignment=16)
        for b in family.draw(seed=101)
    ]
    plan = plan_blocks(blocks)
    assert plan.size_bytes == 16 * family.size_bytes
    assert check_plan(blocks, plan) == ()
    shuffled = blocks[:]
    Random(1).shuffle(shuffled)  # noqa: S311  # not for secrets
    again = plan_blocks(shuffled)
    places = {b.name: o for b, o in zip(blocks, plan.offsets, strict=True)}
    assert places == {b.name: o for b, o in zip(shuffled, again.offsets, strict=True)}


def test_an_unused_byte_leaves_all_to_the_other_search() -> None:
    blocks = FAMILIES["cut in two, long"].draw(seed=100)
    size = FAMILIES["cut in two, long"].size_bytes
    assert search_columns(blocks, capacity_bytes=size, trees=100_000) is not None
    assert search_columns(blocks, capacity_bytes=size + 1, trees=100_000) is None
    assert search_columns(blocks[1:], capacity_bytes=size, trees=100_000) is None


def test_the_search_gives_up_at_its_limit_of_nodes() -> None:
    blocks = FAMILIES["cut in two, short"].draw(seed=100)
    size = FAMILIES["cut in two, short"].size_bytes
    assert search_columns(blocks, capacity_bytes=size, trees=50) is None
