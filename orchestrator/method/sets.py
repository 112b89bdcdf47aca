"""Tensors that belong together: disjoint sets, and those that overlap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, TypeAlias


class Sets:
    """Disjoint sets (union-find); each is named by its least member."""

    def __init__(self, items: Iterable[int]) -> None:
        self._parent = {item: item for item in items}

    def of(self, item: int) -> int:
        """The name of an item's set."""
        while self._parent[item] != item:
            self._parent[item] = self._parent[self._parent[item]]
            item = self._parent[item]
        return item

    def join(self, one: int, other: int) -> None:
        """Join the sets of two items."""
        # The least member names a set, so that names do not depend on the order of joins.
        low, high = sorted((self.of(one), self.of(other)))
        self._parent[high] = low

    def join_overlapping(self, places: Iterable[tuple[Any, Any, int]]) -> None:
        """Join items of which one begins before the other ends.

        Args:
            places: (begin, end, item): numbers, or (space, number).
        """
        reach, holder = None, -1  # where those before end, and which one does
        for begin, end, item in sorted(places):
            # The one that reaches furthest is enough: whatever overlaps another one of its set does
            # overlap it, or comes later.
            if reach is not None and begin < reach:
                self.join(item, holder)
            if reach is None or end > reach:
                reach, holder = end, item

    def groups(self, items: Iterable[int]) -> Iterable[list[int]]:
        """The items of each set, sorted; in the order of their first ones."""
        found: dict[int, list[int]] = {}
        for item in sorted(items):
            found.setdefault(self.of(item), []).append(item)
        return found.values()


# Sets of numbers as sorted, disjoint ranges.

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
