"""Whether a plan of memory is right, checked without any code of the planner.

The check sweeps time: it knows at each moment which address ranges are in use, and
rejects one that is already taken. It trusts nothing in the plan but offsets.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from orchestrator.planner.blocks import Block, BlockPlan


def check_plan(blocks: Sequence[Block], plan: BlockPlan) -> tuple[str, ...]:
    """What is wrong with a plan; nothing if it is right.

    Args:
        blocks: What was to be planned.
        plan: Its offsets are in the order of the blocks.
    """
    if len(plan.offsets) != len(blocks):
        return (f"{len(plan.offsets)} offsets for {len(blocks)} blocks",)
    problems = []
    highest = 0
    for block, offset in zip(blocks, plan.offsets, strict=True):
        if offset < 0:
            problems.append(f'block "{block.name}" has the offset {offset}')
        if offset % block.alignment:
            problems.append(
                f'block "{block.name}" has the offset {offset}, no multiple of {block.alignment}'
            )
        highest = max(highest, offset + block.size_bytes)
    if highest != plan.size_bytes:
        problems.append(f"the highest block ends at {highest}, not at {plan.size_bytes} bytes")
    problems.extend(_overlaps(blocks, plan.offsets))
    peak = _peak(blocks)
    if peak != plan.peak_live_bytes:
        problems.append(f"{peak} bytes are live at most, the plan says {plan.peak_live_bytes}")
    return tuple(problems)


def _events(blocks: Sequence[Block]) -> list[tuple[int, bool, int]]:
    """(time, begins, index): at a time, blocks end before others begin."""
    events = []
    for index, block in enumerate(blocks):
        if block.size_bytes:
            events.append((block.first, True, index))
            events.append((block.last + 1, False, index))
    return sorted(events)


def _overlaps(blocks: Sequence[Block], offsets: Sequence[int]) -> list[str]:
    """One sentence per overlap met while sweeping time."""
    problems = []
    used: list[tuple[int, int, int]] = []
    for time, begins, index in _events(blocks):
        entry = (offsets[index], offsets[index] + blocks[index].size_bytes, index)
        if not begins:
            del used[bisect_left(used, entry)]
            continue
        at = bisect_left(used, entry)
        # While all is right, no range reaches past the next one: two are enough.
        for begin, end, other in used[max(at - 1, 0) : at + 1]:
            if begin < entry[1] and entry[0] < end:
                names = " and ".join(f'"{blocks[i].name}"' for i in sorted((index, other)))
                problems.append(
                    f"blocks {names} overlap from time {time} on,"
                    f" at bytes {max(begin, entry[0])} to {min(end, entry[1]) - 1}"
                )
        insort(used, entry)
    return problems


def _peak(blocks: Sequence[Block]) -> int:
    live = peak = 0
    for _, begins, index in _events(blocks):
        live += blocks[index].size_bytes if begins else -blocks[index].size_bytes
        peak = max(peak, live)
    return peak
