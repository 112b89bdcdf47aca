"""Plans made block by block, each put at the lowest place that is free."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.core.planning import Block


def first_fit(blocks: Sequence[Block], order: Sequence[int]) -> list[int]:
    """Offsets by putting the blocks down in an order, each as low as it can be."""
    offsets = [0] * len(blocks)
    placed: list[tuple[int, int, int]] = []
    for index in order:
        block = blocks[index]
        offset = 0
        for begin, end, other in sorted(
            place
            for place in placed
            if blocks[place[2]].first <= block.last
            and block.first <= blocks[place[2]].last
        ):
            if offset + block.size_bytes <= begin:
                break
            offset = max(offset, -(-end // block.alignment) * block.alignment)
            del other
        offsets[index] = offset
        placed.append((offset, offset + block.size_bytes, index))
    return offsets
