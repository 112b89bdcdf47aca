"""Blocks that share memory over time, and where a plan puts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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
