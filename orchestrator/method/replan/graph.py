"""Basic blocks of a method: instructions that run one after another, always."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.method.replan.steps import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Moments that follow one another.

    Args:
        first: First moment: -1 is before the run, the count of the steps after it.
        last: Last one, inclusive.
        next: Indices of the runs that can follow.
    """

    first: int
    last: int
    next: tuple[int, ...]


def runs_of(steps: Sequence[Step]) -> tuple[Run, ...]:
    """The runs of a method, in order.

    The first one begins before the first instruction, the last one is what comes after
    the last.
    """
    count = len(steps)
    starts = {-1, count}
    for index, step in enumerate(steps):
        if step.next != (index + 1,):
            starts.update((index + 1, *step.next))
    order = sorted(starts)
    number = {first: n for n, first in enumerate(order)}
    runs = []
    for n, first in enumerate(order):
        last = order[n + 1] - 1 if n + 1 < len(order) else count
        if first == count:
            following: tuple[int, ...] = ()
        elif last == -1:
            following = (number[0],)
        else:
            following = tuple(number[i] for i in steps[last].next)
        runs.append(Run(first=first, last=last, next=following))
    return tuple(runs)
