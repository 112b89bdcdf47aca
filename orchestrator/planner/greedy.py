"""Plans made block by block, each put where it is free when its turn comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator.planner.blocks import Sections, indices

if TYPE_CHECKING:
    from orchestrator.planner.blocks import Block

BASE = "greedy-by-size"
"""What others are compared with. Source: arXiv:2001.03288."""


class Conflicts:
    """Which blocks are live at the same time as which, found once for all planners."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        sections = Sections(blocks)
        live = [0] * sections.count
        for index, (first, last) in enumerate(sections.spans):
            for t in range(first, last + 1):
                live[t] |= 1 << index
        self.of: list[int] = []
        for first, last in sections.spans:
            mask = 0
            for t in range(first, last + 1):
                mask |= live[t]
            self.of.append(mask)
        totals = [sum(blocks[i].size_bytes for i in indices(mask)) for mask in live]
        self.peak = [max(totals[f : t + 1]) for f, t in sections.spans]
        """Most bytes that are live while a block is."""


def _life(block: Block) -> int:
    return block.last - block.first + 1


_KEYS: Mapping[str, Callable[[Conflicts, int], tuple[int, ...]]] = MappingProxyType(
    {
        "size": lambda c, i: (-c.blocks[i].size_bytes, -_life(c.blocks[i])),
        "life": lambda c, i: (-_life(c.blocks[i]), -c.blocks[i].size_bytes),
        "area": lambda c, i: (-_life(c.blocks[i]) * c.blocks[i].size_bytes,),
        "conflicts": lambda c, i: (-c.of[i].bit_count(), -c.blocks[i].size_bytes),
        "peak": lambda c, i: (-c.peak[i], -c.blocks[i].size_bytes),
        "begin": lambda c, i: (c.blocks[i].first, -c.blocks[i].size_bytes),
        "end": lambda c, i: (-c.blocks[i].last, -c.blocks[i].size_bytes),
    }
)


def greedy_plans(conflicts: Conflicts) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and offsets of every greedy plan, the common one first."""
    for fit in ("first", "best"):
        for name, key in _KEYS.items():
            order = sorted(range(len(conflicts.blocks)), key=lambda i: key(conflicts, i))
            label = f"greedy-by-{name}" + ("-best-fit" if fit == "best" else "")
            yield label, place(conflicts, order, best_fit=fit == "best")


def place(conflicts: Conflicts, order: Sequence[int], *, best_fit: bool) -> tuple[int, ...]:
    """Offsets by putting blocks down in an order.

    Args:
        conflicts: The blocks.
        order: All of them.
        best_fit: Into the smallest gap that is large enough; else into the lowest.
    """
    blocks = conflicts.blocks
    offsets = [0] * len(blocks)
    done = 0
    for index in order:
        taken = sorted(
            (offsets[other], offsets[other] + blocks[other].size_bytes)
            for other in indices(done & conflicts.of[index])
        )
        offsets[index] = _gap(blocks[index], taken, best_fit=best_fit)
        done |= 1 << index
    return tuple(offsets)


def _gap(block: Block, taken: Sequence[tuple[int, int]], *, best_fit: bool) -> int:
    """Where a block goes between ranges that are taken, sorted; else above them."""
    offset, best = 0, None
    for begin, end in taken:
        if offset + block.size_bytes <= begin:
            free = begin - offset
            if best is None or free < best[0]:
                best = free, offset
            # Ranges come sorted, so the first gap is the lowest.
            if not best_fit:
                break
        # Ranges may lie within others, as blocks that are not live together overlap.
        if end > offset:
            offset = -(-end // block.alignment) * block.alignment
    return offset if best is None else best[1]
