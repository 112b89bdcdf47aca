"""Offsets for blocks of which some may overlap, if one begins far enough behind.

A call that goes over its input in order may write over what it has read. So two blocks
that are live at the same time lie apart, or at a distance that such a call allows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.planner.blocks import Block

# Chosen by hand: networks of rows have tens of blocks, and `plan_rows` runs often, for each limit
# that is tried.
_NODES: Final = 4_000
"""Places that the search may try for a size."""
# Only for the least size, which is worth most: `segments.plan` compares with that limit.
_RESTARTS: Final = 60
"""Orders near those of the search that are tried for the least size."""
_NODES_AGAIN: Final = 500
"""Places that each of them may try."""
# The standard deviation: in an order of 40 blocks most move by no more than two places.
_MOVED: Final = 0.05
"""How far a block moves in such an order, as a part of all blocks."""


def plan_overlapping(
    blocks: Sequence[Block], distances: Mapping[tuple[int, int], int], *, least_bytes: int
) -> tuple[tuple[int, ...], int]:
    """An offset for each block, and the bytes of all.

    Greedy plans first; then a search for a plan of the least size, with restarts, and
    for sizes between that and the best plan. It is decided by the blocks alone.

    Args:
        blocks: In any order.
        distances: By (above, below), indices of blocks: they may overlap if the one
            above begins at least so many bytes behind the one below; with 0 if both
            begin at the same byte.
        least_bytes: No plan is smaller.
    """
    if not blocks:
        return (), 0
    table = _Table(blocks, distances)
    offsets = min((table.lowest(order) for order in _orders(blocks)), key=table.size)
    # The bound may be what no plan reaches: it only says where to begin.
    low = least_bytes
    while (size := table.size(offsets)) > low:
        # The least size first, then halves of what is left.
        # Offsets are multiples of 16, so sizes between are the same.
        target = low if low == least_bytes else (low + size) // 2 // 16 * 16
        tries = [(order, _NODES) for order in _orders(blocks)]
        if target == least_bytes:
            tries += [(order, _NODES_AGAIN) for order in _orders_again(blocks)]
        searches = (table.search(order, target, nodes) for order, nodes in tries)
        found = next((offsets for offsets in searches if offsets), None)
        if found:
            offsets = found
        else:
            low = target + 16
    return offsets, table.size(offsets)


def _orders(blocks: Sequence[Block]) -> tuple[list[int], ...]:
    every = range(len(blocks))
    return (
        sorted(every, key=lambda i: (-blocks[i].size_bytes, blocks[i].first)),
        sorted(every, key=lambda i: (blocks[i].first, -blocks[i].size_bytes)),
        sorted(every, key=lambda i: (-blocks[i].last, -blocks[i].size_bytes)),
    )


def _orders_again(blocks: Sequence[Block]) -> Iterator[list[int]]:
    """Orders in which blocks are near their places in those of `_orders`."""
    chance = random.Random(len(blocks))  # noqa: S311  # the same in every run
    orders = _orders(blocks)
    for number in range(_RESTARTS):
        places = enumerate(orders[number % len(orders)])
        moved = {b: at + chance.gauss(0, _MOVED * len(blocks)) for at, b in places}
        yield sorted(moved, key=moved.__getitem__)


@dataclass(frozen=True, slots=True)
class _Near:
    """A block that cannot be just anywhere beside another.

    Args:
        index: Of the other block.
        below: Bytes from the block to the other, if the block lies below it.
        above: Bytes from the other to the block, if the block lies above it.
        same: Whether both may begin at the same byte.
    """

    index: int
    below: int
    above: int
    same: bool


class _Table:
    """For each block: others that are live at the same time."""

    def __init__(self, blocks: Sequence[Block], distances: Mapping[tuple[int, int], int]) -> None:
        self._blocks = blocks
        self._near: list[list[_Near]] = [[] for _ in blocks]
        for i, one in enumerate(blocks):
            for j, other in enumerate(blocks):
                if i == j or not one.size_bytes or not other.size_bytes:
                    continue
                if one.first <= other.last and other.first <= one.last:
                    below, above = distances.get((j, i)), distances.get((i, j))
                    near = _Near(
                        index=j,
                        # Without a distance, the whole size is between them. A distance of 0 means
                        # "at the same byte", not "anywhere", and so it is no gap either.
                        below=min(below or one.size_bytes, one.size_bytes),
                        above=min(above or other.size_bytes, other.size_bytes),
                        same=0 in (below, above),
                    )
                    self._near[i].append(near)

    def size(self, offsets: Sequence[int]) -> int:
        """The end of the last block."""
        ends = (o + b.size_bytes for o, b in zip(offsets, self._blocks, strict=True))
        return max(ends, default=0)

    def lowest(self, order: Sequence[int]) -> tuple[int, ...]:
        """Offsets by putting blocks down in an order, each as low as it can lie."""
        offsets: dict[int, int] = {}
        for index in order:
            offsets[index] = next(self._places(index, offsets, None))
        return tuple(offsets[i] for i in range(len(self._blocks)))

    def search(self, order: Sequence[int], limit: int, nodes: int) -> tuple[int, ...] | None:
        """Offsets of a plan of a size, if one is found; blocks go down in an order.

        Args:
            order: Of all blocks.
            limit: Bytes of the plan.
            nodes: Places that may be tried.
        """
        offsets: dict[int, int] = {}
        ways = [self._places(order[0], offsets, limit)]
        while ways and nodes:
            index = order[len(ways) - 1]
            offsets.pop(index, None)
            place = next(ways[-1], None)
            nodes -= 1
            if place is None:
                ways.pop()
                continue
            offsets[index] = place
            if len(ways) == len(order):
                return tuple(offsets[i] for i in range(len(self._blocks)))
            ways.append(self._places(order[len(ways)], {**offsets}, limit))
        return None

    def _places(self, index: int, offsets: Mapping[int, int], limit: int | None) -> Iterator[int]:
        """Where a block can lie: at borders of others or of the arena, lowest first."""
        block = self._blocks[index]
        placed = [(n, offsets[n.index]) for n in self._near[index] if n.index in offsets]
        taken = [(at - n.below, at + n.above, at if n.same else -1) for n, at in placed]
        step = block.alignment
        found = {0, *(-(-end // step) * step for _, end, _ in taken)}
        found |= {same for _, _, same in taken}
        if limit is not None:
            tops = (limit - block.size_bytes, *(begin for begin, _, _ in taken))
            found |= {top // step * step for top in tops}
        for place in sorted(found):
            is_in = place >= 0 and (limit is None or place + block.size_bytes <= limit)
            if is_in and not any(
                begin < place < end and place != same for begin, end, same in taken
            ):
                yield place
