"""Results of stages that several products of a workspace have in common."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

MOST_RESULTS: Final = 64
"""As many as the stages of some twenty products have: products of one profile, which
have most in common, are done one after the other."""


class RecentResults:
    """The last results, by key; those used least recently are dropped first."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, object] = OrderedDict()

    def get(self, key: str) -> object | None:
        """See `Results`."""
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key]

    def put(self, key: str, value: object) -> None:
        """See `Results`."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > MOST_RESULTS:
            self._values.popitem(last=False)
