"""What a benchmark found: tables of numbers, goals, and what was not measured."""

from __future__ import annotations

from dataclasses import dataclass, field

Cell = str | int | float | None
"""A number or name; None where there is nothing to compare with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of equal length under their columns; the first column names the row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        texts = [self.columns, *(tuple(map(_text, row)) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        lines = [f"## {self.title}", ""]
        for row in texts:
            cells = [
                cell.rjust(width) if at else cell.ljust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        lines.insert(3, "  ".join("-" * width for width in widths))
        return "\n".join([*lines, *(f"* {note}" for note in self.notes), ""])


def _text(cell: Cell) -> str:
    match cell:
        case None:
            return "-"
        case str():
            return cell
        case int():
            return f"{cell:,}"
    for limit, form in ((100, ",.0f"), (10, ".1f"), (0.1, ".2f")):
        if abs(cell) >= limit:
            return format(cell, form)
    return f"{cell:.4f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A number the project wants to reach, and the one it has.

    Args:
        name: What it is about.
        found: Measured.
        limit: Least value wanted, or the greatest if `at_most`.
        at_most: Which of the two.
    """

    name: str
    found: float
    limit: float
    at_most: bool

    @property
    def met(self) -> bool:
        """Whether it is reached."""
        return self.found <= self.limit if self.at_most else self.found >= self.limit

    @property
    def row(self) -> tuple[Cell, ...]:
        """Cells for `GOAL_COLUMNS`."""
        side = "at most" if self.at_most else "at least"
        answer = "yes" if self.met else "NO"
        part = self.found / self.limit if self.limit else None
        return (self.name, self.found, f"{side} {_text(self.limit)}", answer, part)


GOAL_COLUMNS = ("goal", "found", "wanted", "met", "found : wanted")


@dataclass(slots=True, kw_only=True)
class Findings:
    """Everything one benchmark has to say."""

    tables: list[Table] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


class NotMeasuredError(Exception):
    """A part cannot be measured here; the message says what is missing."""


_SHOWN = 600


def short(text: str) -> str:
    """What a program said, in one line of bounded length."""
    line = " ".join(text.split())
    if len(line) <= _SHOWN:
        return line
    return f"{line[: _SHOWN // 2]} ... {line[-_SHOWN // 2 :]}"
