"""The path of a board's file in the place of a board's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from orchestrator.targets.boards import Board

SUFFIX: Final = ".toml"
"""By which a profile's `board` is known to be a path."""


class OwnBoard(str):
    """The path of a board's file, as a profile writes it, and what the file says."""

    __slots__ = ("board",)

    board: Board

    def __new__(cls, written: str, board: Board) -> Self:
        """Make a string with the board that it names."""
        self = super().__new__(cls, str(written))
        self.board = board
        return self

    def __reduce__(self) -> tuple[type[OwnBoard], tuple[str, Board]]:
        """What makes a copy (a hook of pickle)."""
        return OwnBoard, (str(self), self.board)
