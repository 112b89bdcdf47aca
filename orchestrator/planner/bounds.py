"""What every plan of some blocks needs at least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.planner.blocks import Block


def peak_live_bytes(blocks: Iterable[Block]) -> int:
    """Most bytes that are live at one time."""
    changes: Counter[int] = Counter()
    for block in blocks:
        changes[block.first] += block.size_bytes
        changes[block.last + 1] -= block.size_bytes
    return max(accumulate(changes[time] for time in sorted(changes)), default=0)


def least_bytes(blocks: Sequence[Block]) -> int:
    """What no plan can go below: the peak, and what alignment adds to it.

    All offsets are multiples of the smallest alignment, so of the blocks that are live
    at a time every one but the highest takes a multiple of it.
    """
    solid = [b for b in blocks if b.size_bytes]
    unit = min((b.alignment for b in solid), default=1)
    bound = 0
    live: list[Block] = []
    for block in sorted(solid, key=lambda b: b.first):
        live = [*(b for b in live if b.last >= block.first), block]
        # The highest block needs none behind it: the one that would need most is the best choice.
        padding = [-b.size_bytes % unit for b in live]
        size = sum(b.size_bytes for b in live)
        bound = max(bound, size + sum(padding) - max(padding))
    return bound
