"""What the readers of linker maps give."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MapPiece:
    """An input section that was linked.

    Args:
        section: Its name, `.text._ZN4orch7executeE`.
        address: When running.
        size_bytes: More than 0.
        file: Object, or `archive(member)`; the linker's own word for what it made
            itself.
    """

    section: str
    address: int
    size_bytes: int
    file: str

    @property
    def end(self) -> int:
        """First address after it."""
        return self.address + self.size_bytes


@dataclass(frozen=True, slots=True)
class MapSection:
    """An output section and its input sections, in the order of the map."""

    name: str
    address: int
    size_bytes: int
    pieces: tuple[MapPiece, ...]
