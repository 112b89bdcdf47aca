"""Planning memory: an offset for each block, in as few bytes as possible.

In: blocks, each with a lifetime, a size and an alignment. Out: their offsets, with a
lower bound; a check of plans that shares no code with the planner; CSV and pictures.

Greedy planners come first; where none reaches the lower bound, a search looks for a
plan that does. Everything is decided by the blocks alone: no clock, no chance but that
of fixed seeds, and not the order in which they are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from orchestrator.planner.blocks import BlockPlan, components
from orchestrator.planner.bounds import least_bytes, peak_live_bytes
from orchestrator.planner.greedy import Conflicts, greedy_plans
from orchestrator.planner.search import RESTARTS, STRATEGIES, Outcome, search

if TYPE_CHECKING:
    from orchestrator.planner.blocks import Block

__all__ = ["ROUNDS", "plan_blocks"]

# 14 greedy plans of a thousand blocks that are all live at once took 14 times the square of that.
# tests/unit/planner/test_planner.py holds it with a smaller bound.
_MOST_PAIRS = 5_000_000
"""Blocks that are live together, in all greedy plans: about a second."""
# An order either leads to a plan soon or hardly ever, and which one does depends on the blocks: so
# all are tried with little before any gets much (docs/planner.md).
ROUNDS = (2_000, 30_000)
"""Nodes that each strategy may visit, round by round, for a target."""
# The gap is known by then, and a size in between is worth less than the bound itself: one round,
# with half of the nodes.
_BISECTION = (1_000,)
"""Likewise for targets between the bound and the best plan."""
# Less than the first round of a strategy, as there are 32 of these. MiniMalloc's instance J is
# solved by one of them alone.
_RESTART = 1_500
"""Nodes of each search by chance, between the rounds."""
# Chosen by hand. A target where the search gave up may still have a plan, so each one more is a
# guess.
_PATIENCE = 6
"""At how many of these targets the search may give up."""


def plan_blocks(
    blocks: Sequence[Block],
    *,
    planner: Literal["best", "greedy"] = "best",
    capacity_bytes: int | None = None,
    at_most: BlockPlan | None = None,
    rounds: Sequence[int] = ROUNDS,
) -> BlockPlan:
    """Give each block an offset; blocks live at the same time never overlap.

    Args:
        blocks: In any order: it does not show in the offsets.
        planner: `best` also searches, `greedy` does not.
        capacity_bytes: A plan that fits is good enough; None requests the smallest.
        at_most: A plan to start from; it is kept unless a smaller one is found.
        rounds: Nodes per strategy of the search, see `ROUNDS`.

    Returns:
        The smallest plan found. If it is greater than the capacity, `least_bytes`
        shows whether the capacity is proven to be too small.
    """
    # Blocks without bytes lie anywhere: at 0.
    order = sorted(
        (i for i, block in enumerate(blocks) if block.size_bytes),
        key=lambda i: _identity(blocks[i]),
    )
    parts = [_Part([blocks[i] for i in group], tuple(group)) for group in components(blocks, order)]
    least = max((part.least for part in parts), default=0)
    enough = max(least, capacity_bytes or 0)
    for part in parts:
        part.try_greedy(enough)
    # A capacity below the bound is proven to be too small already.
    if planner == "best" and least <= (capacity_bytes or least):
        for part in parts:
            if part.size > enough:
                part.try_search(enough, rounds, minimise=capacity_bytes is None)
    offsets = [0] * len(blocks)
    for part in parts:
        for index, offset in zip(part.group, part.offsets, strict=True):
            offsets[index] = offset
    largest = max(parts, key=lambda part: part.size, default=None)
    plan = BlockPlan(
        offsets=tuple(offsets),
        size_bytes=largest.size if largest else 0,
        peak_live_bytes=peak_live_bytes(blocks),
        planner=largest.planner if largest else "nothing to plan",
        least_bytes=max((part.least for part in parts), default=0),
    )
    if at_most is not None and at_most.size_bytes <= plan.size_bytes:
        return at_most
    return plan


def _identity(block: Block) -> tuple[int, int, int, int, str]:
    """What blocks are sorted by, so that the order they come in does not matter."""
    return (block.first, block.last, block.size_bytes, block.alignment, block.name)


@dataclass(slots=True)
class _Part:
    """Blocks that hang together in time, and the best plan of them so far."""

    blocks: Sequence[Block]
    group: tuple[int, ...]
    least: int = 0
    size: int = 0
    offsets: tuple[int, ...] = ()
    planner: str = ""

    def __post_init__(self) -> None:
        self.least = least_bytes(self.blocks)

    def offer(self, planner: str, offsets: tuple[int, ...]) -> None:
        """Take a plan if it is the smallest."""
        ends = (o + b.size_bytes for o, b in zip(offsets, self.blocks, strict=True))
        size = max(ends)
        if not self.offsets or size < self.size:
            self.size, self.offsets, self.planner = size, offsets, planner

    def try_greedy(self, enough: int) -> None:
        """Greedy plans, until one is small enough or they have taken too long."""
        conflicts, spent = Conflicts(self.blocks), 0
        for planner, offsets in greedy_plans(conflicts):
            self.offer(planner, offsets)
            spent += sum(mask.bit_count() for mask in conflicts.of)
            if self.size <= enough or spent > _MOST_PAIRS:
                return

    def try_search(self, enough: int, rounds: Sequence[int], *, minimise: bool) -> None:
        """Search for a plan that is small enough, or else for the smallest.

        The whole effort goes to the requested target. What lies between it and
        the best plan is bisected with less.
        """
        if self._meets(enough, rounds) or not minimise:
            return
        low, patience = max(enough + 1, self.least), _PATIENCE
        while low < self.size and patience:
            middle = (low + self.size) // 2
            if not self._meets(middle, _BISECTION):
                # A proof that no plan fits raises `least`, and is no attempt that failed.
                patience -= self.least <= middle
                low = middle + 1

    def _meets(self, target: int, rounds: Sequence[int]) -> bool:
        """Whether some strategy finds a plan of a target; notes proof that none can."""
        for number, most in enumerate(rounds):
            chances = [(strategy, _RESTART) for strategy in RESTARTS if number]
            for strategy, nodes in (*chances, *((s, most) for s in STRATEGIES)):
                found = search(self.blocks, capacity_bytes=target, strategy=strategy, nodes=nodes)
                if found.outcome is Outcome.FOUND:
                    self.offer(strategy.name, found.offsets)
                    return True
                if found.outcome is Outcome.IMPOSSIBLE:
                    self.least = max(self.least, target + 1)
                    return False
        return False
