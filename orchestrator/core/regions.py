"""Memories of a board of the user's, and what is to lie in which."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionChoice:
    """A memory as the profile describes it.

    Args:
        name: Unique in the profile.
        size_bytes: Length, or how much of the board's may be used.
        origin: First address; None for one of the board's.
        kind: `flash` or `ram`; None is the board's, or `ram`.
    """

    name: str
    size_bytes: int
    origin: int | None = None
    kind: str | None = None


class Concurrency(StrEnum):
    """Whether methods of a product may run at the same time."""

    PARALLEL = "parallel"
    SEQUENTIAL = "sequential"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """Memories that the arenas of a model have to lie in.

    Args:
        every: That of all arenas; None leaves it to the build.
        by_id: (memory id, name), sorted: of these arenas it is another one.
    """

    every: str | None = None
    by_id: tuple[tuple[int, str], ...] = ()

    def region(self, memory_id: int) -> str | None:
        """Name of the memory for an arena; None leaves it to the build."""
        return dict(self.by_id).get(memory_id, self.every)


NO_PINS = Pins()
"""Everything is left to the build."""
