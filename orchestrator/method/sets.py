"""Tensors that belong together: disjoint sets, and those that overlap."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


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
        low, high = sorted((self.of(one), self.of(other)))
        self._parent[high] = low

    def join_overlapping(self, places: Iterable[tuple[Any, Any, int]]) -> None:
        """Join items of which one begins before the other ends.

        Args:
            places: (begin, end, item): numbers, or (space, number).
        """
        reach, holder = None, -1  # where those before end, and which one does
        for begin, end, item in sorted(places):
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
