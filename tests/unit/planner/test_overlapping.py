"""Blocks that may overlap at a distance: plans keep it, small ones are the least."""

from __future__ import annotations

from itertools import permutations, product
from random import Random
from typing import TYPE_CHECKING

import pytest

from orchestrator.planner.blocks import Block
from orchestrator.planner.overlapping import plan_overlapping

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def block(name: str, first: int, last: int, units: int) -> Block:
    return Block(name=name, first=first, last=last, size_bytes=16 * units)


def may_lie(
    blocks: Sequence[Block], distances: Mapping[tuple[int, int], int], offsets: Sequence[int]
) -> bool:
    """From the definition: apart in time, apart in memory, or at a distance."""
    for i, one in enumerate(blocks):
        for j, other in enumerate(blocks):
            if i == j or one.last < other.first or other.last < one.first:
                continue
            between = offsets[i] - offsets[j]
            if between >= other.size_bytes or -between >= one.size_bytes:
                continue
            ways = [distances.get((i, j)), distances.get((j, i))]
            above = ways[0] is not None and between >= ways[0] > 0
            below = ways[1] is not None and -between >= ways[1] > 0
            if not (above or below or (0 in ways and between == 0)):
                return False
    return True


def test_an_output_lies_over_an_input() -> None:
    blocks = [block("in", -1, 0, 10), block("out", 0, 1, 10)]
    assert plan_overlapping(blocks, {}, least_bytes=0) == ((0, 160), 320)
    assert plan_overlapping(blocks, {(0, 1): 32}, least_bytes=0) == ((32, 0), 192)
    assert plan_overlapping(blocks, {(0, 1): 0}, least_bytes=0) == ((0, 0), 160)


def test_nothing_to_plan() -> None:
    assert plan_overlapping([], {}, least_bytes=0) == ((), 0)


def random_blocks(random: Random) -> tuple[list[Block], dict[tuple[int, int], int]]:
    blocks, distances = [], {}
    for index in range(random.randint(1, 4)):
        first = random.randint(0, 2)
        last = first + random.randint(0, 2)
        blocks.append(block(f"{index}", first, last, random.randint(1, 4)))
    for pair in permutations(range(len(blocks)), 2):
        if random.random() < 0.3:
            distances[pair] = 16 * random.randint(0, 3)
    return blocks, distances


@pytest.mark.parametrize("seed", range(60))
def test_small_plans_are_right_and_the_least(seed: int) -> None:
    """Against all offsets: every plan in reach of four small blocks is tried."""
    blocks, distances = random_blocks(
        Random(seed)  # noqa: S311  # the same each time
    )
    offsets, size = plan_overlapping(blocks, distances, least_bytes=0)
    assert may_lie(blocks, distances, offsets)
    ends = [o + b.size_bytes for o, b in zip(offsets, blocks, strict=True)]
    assert size == max(ends)
    limit = size // 16 - 1
    choices = [range(limit - b.size_bytes // 16 + 1) for b in blocks]
    smaller = (
        places
        for places in product(*choices)
        if may_lie(blocks, distances, [16 * p for p in places])
    )
    assert next(smaller, None) is None


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_blocks_does_not_matter_for_the_size(seed: int) -> None:
    random = Random(seed)  # noqa: S311  # the same each time
    blocks, distances = random_blocks(random)
    order = random.sample(range(len(blocks)), len(blocks))
    place = {old: new for new, old in enumerate(order)}
    shuffled = {(place[a], place[b]): d for (a, b), d in distances.items()}
    _, size = plan_overlapping(blocks, distances, least_bytes=0)
    _, again = plan_overlapping([blocks[i] for i in order], shuffled, least_bytes=0)
    assert again == size


def tiling(seed: int, count: int, side: int = 40) -> list[Block]:
    """Blocks that fill a square of `side` units: a plan without a gap is known."""
    random = Random(seed)  # noqa: S311  # the same each time
    parts = [(0, side, 0, side)]
    while len(parts) < count:
        areas = [(b - a) * (d - c) * random.random() for a, b, c, d in parts]
        index = areas.index(max(areas))
        a, b, c, d = parts[index]
        if random.random() < 0.5 and b - a > 1:
            cut = random.randint(a + 1, b - 1)
            parts[index : index + 1] = [(a, cut, c, d), (cut, b, c, d)]
        elif d - c > 1:
            cut = random.randint(c + 1, d - 1)
            parts[index : index + 1] = [(a, b, c, cut), (a, b, cut, d)]
    return [block(f"{i}", a, b - 1, d - c) for i, (a, b, c, d) in enumerate(parts)]


@pytest.mark.parametrize("seed", [3, 6, 25])
def test_restarts_find_what_no_order_does(seed: int) -> None:
    blocks = tiling(seed, 30)
    _, size_bytes = plan_overlapping(blocks, {}, least_bytes=40 * 16)
    assert size_bytes == 40 * 16
