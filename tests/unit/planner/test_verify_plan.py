"""The verifier finds every kind of mistake; it agrees with sets of (time, address)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.planner.blocks import Block, BlockPlan
from orchestrator.planner.verify_plan import check_plan

BLOCKS = (
    Block(name="a", first=0, last=2, size_bytes=8, alignment=4),
    Block(name="b", first=2, last=4, size_bytes=8, alignment=4),
)


def plan(*offsets: int, size: int, peak: int = 16) -> BlockPlan:
    return BlockPlan(offsets=offsets, size_bytes=size, peak_live_bytes=peak, planner="test")


def test_a_right_plan_has_no_problems() -> None:
    assert check_plan(BLOCKS, plan(8, 0, size=16)) == ()


def test_overlaps_are_found() -> None:
    assert check_plan(BLOCKS, plan(0, 4, size=12)) == (
        'blocks "a" and "b" overlap from time 2 on, at bytes 4 to 7',
    )


def test_offsets_are_checked() -> None:
    assert check_plan(BLOCKS, plan(0, 10, size=18)) == (
        'block "b" has the offset 10, no multiple of 4',
    )
    assert check_plan(BLOCKS, plan(-8, 0, size=8)) == ('block "a" has the offset -8',)


def test_the_plan_is_not_believed() -> None:
    assert check_plan(BLOCKS, plan(8, 0, size=12)) == (
        "the highest block ends at 16, not at 12 bytes",
    )
    assert check_plan(BLOCKS, plan(8, 0, size=16, peak=8)) == (
        "16 bytes are live at most, the plan says 8",
    )
    assert check_plan(BLOCKS, plan(8, size=16)) == ("1 offsets for 2 blocks",)


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 4), st.integers(0, 8)),
        max_size=6,
    )
)
def test_it_agrees_with_sets_of_cells(rows: list[tuple[int, int, int, int]]) -> None:
    blocks = [
        Block(name=f"b{i}", first=f, last=f + n, size_bytes=s, alignment=1)
        for i, (f, n, s, _) in enumerate(rows)
    ]
    cells = [
        (time, address)
        for (first, length, size, offset) in rows
        for time in range(first, first + length + 1)
        for address in range(offset, offset + size)
    ]
    offsets = tuple(row[3] for row in rows)
    found = check_plan(blocks, plan(*offsets, size=-1, peak=-1))
    assert any("overlap" in p for p in found) == (len(set(cells)) < len(cells))
