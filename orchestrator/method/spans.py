"""Sets of numbers as sorted, disjoint ranges."""

from __future__ import annotations

from bisect import bisect_right
from typing import TypeAlias

Spans: TypeAlias = tuple[tuple[int, int], ...]
"""(begin, end) of every range, ends exclusive."""


def cut(spans: Spans, begin: int, end: int) -> Spans:
    """The spans without a range."""
    left = []
    for low, high in spans:
        if low < begin:
            left.append((low, min(high, begin)))
        if high > end:
            left.append((max(low, end), high))
    return tuple(left)


def meet(one: Spans, other: Spans) -> Spans:
    """The intersection."""
    if one == other:
        return one
    found = []
    here = there = 0
    while here < len(one) and there < len(other):
        (low, high), (begin, end) = one[here], other[there]
        if max(low, begin) < min(high, end):
            found.append((max(low, begin), min(high, end)))
        # Only the one that ends later may meet the next one of the other side.
        if high <= end:
            here += 1
        else:
            there += 1
    return tuple(found)


def join(one: Spans, other: Spans) -> Spans:
    """The union."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted((*one, *other)):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return tuple(joined)


def touches(spans: Spans, begin: int, end: int) -> bool:
    """Whether a range has a number in common with them."""
    at = bisect_right(spans, begin, key=lambda span: span[1])
    return at < len(spans) and spans[at][0] < end
