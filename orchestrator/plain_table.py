"""Plain tables of text, columns two spaces apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def table_lines(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> list[str]:
    """A line per row of a plain table, columns two spaces apart.

    Args:
        rows: All of one length.
        right: Indices of columns that are aligned to the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
