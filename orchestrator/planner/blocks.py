"""Blocks that share memory over time, and where a plan puts them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, count
from typing import Final, Protocol

# As ExecuTorch's memory planning aligns tensors by default.
ALIGNMENT: Final = 16
"""Bytes to which blocks in arenas are aligned; blocks that the program aligns less
keep its alignment.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Bytes that are needed together for some time.

    Args:
        name: Tells blocks of one plan apart.
        first: First instruction (or moment) at which the block is live; may be
            negative.
        last: Last one, inclusive; not before `first`.
        size_bytes: From 0 on.
        alignment: Of its offset in bytes, a power of two.
    """

    name: str
    first: int
    last: int
    size_bytes: int
    alignment: int = ALIGNMENT


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPlan:
    """An offset for each block.

    Args:
        offsets: In bytes, in the order of the blocks.
        size_bytes: Highest end of a block.
        peak_live_bytes: Most bytes that are live at one time.
        planner: What found the offsets.
        least_bytes: No plan of these blocks is smaller, as far as is known: at least
            `peak_live_bytes`, more where alignment or a finished search says so.
    """

    offsets: tuple[int, ...]
    size_bytes: int
    peak_live_bytes: int
    planner: str
    least_bytes: int = 0

    @property
    def gap_percent(self) -> float:
        """How far the plan is above the peak of live bytes."""
        if self.peak_live_bytes == 0:
            return 0.0
        return 100.0 * (self.size_bytes - self.peak_live_bytes) / self.peak_live_bytes

    @property
    def is_least(self) -> bool:
        """Whether no plan can be smaller."""
        return self.size_bytes <= max(self.least_bytes, self.peak_live_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaFacts:
    """What came of planning one arena.

    Args:
        memory_id: By which tensors name it.
        size_bytes: Of the arena now.
        lower_bound_bytes: Most bytes that are needed at one time.
        file_bytes: Size in the program; None if it has no such arena.
        planner: What found the offsets; `file` where those of the program stayed.
    """

    memory_id: int
    size_bytes: int
    lower_bound_bytes: int
    file_bytes: int | None
    planner: str


def aligned(size_bytes: int, *, like: int = 0) -> int:
    """The next multiple of the alignment of arenas, or as far behind one as `like`."""
    return -(-size_bytes // ALIGNMENT) * ALIGNMENT + like % ALIGNMENT


# Time in sections: the maximal sets of blocks that are live together.

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
    # A block that begins behind the end of all before it begins a new group.
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
