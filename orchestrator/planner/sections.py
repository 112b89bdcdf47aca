"""Time in sections: the maximal sets of blocks that are live together."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import compress, count
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from orchestrator.planner.blocks import Block

_BITS: Final = bytes.maketrans(b"01", b"\0\1")
_SPARSE: Final = 8
"""Where one bit of so many is set, finding it takes as long as looking at all."""


class Lived(Protocol):
    """Something with a lifetime; see `Block`."""

    @property
    def first(self) -> int:
        """When it begins."""

    @property
    def last(self) -> int:
        """When it ends, inclusive."""


class Sections:
    """Blocks by the sections they are live in.

    Two blocks are live at one time exactly if they share a section: of the times
    between a first instruction and the next last one, the last sees all blocks.

    Attributes:
        count: Number of sections.
        spans: First and last section of each block, inclusive.
    """

    def __init__(self, blocks: Sequence[Lived]) -> None:
        begins = sorted({b.first for b in blocks})
        times: list[int] = []
        for end in sorted({b.last for b in blocks}):
            # A section ends where a block does, if one has begun since the last.
            before = bisect_right(begins, times[-1]) if times else 0
            if bisect_right(begins, end) > before:
                times.append(end)
        self.count = len(times)
        self.spans = [
            (bisect_left(times, b.first), bisect_right(times, b.last) - 1) for b in blocks
        ]


def components(blocks: Sequence[Block], order: Sequence[int]) -> list[list[int]]:
    """Blocks in groups that are never live together, each in the order given."""
    groups: dict[int, list[int]] = {}
    group, end = -1, None
    found = {}
    for index in sorted(order, key=lambda i: blocks[i].first):
        if end is None or blocks[index].first > end:
            group, end = group + 1, blocks[index].last
        end = max(end, blocks[index].last)
        found[index] = group
    for index in order:
        groups.setdefault(found[index], []).append(index)
    return [groups[g] for g in sorted(groups)]


def indices(mask: int) -> Iterator[int]:
    """Set bits, lowest first."""
    if mask.bit_count() * _SPARSE > mask.bit_length():
        yield from compress(count(), f"{mask:b}"[::-1].encode().translate(_BITS))
        return
    while mask:
        bit = mask & -mask
        mask ^= bit
        yield bit.bit_length() - 1
