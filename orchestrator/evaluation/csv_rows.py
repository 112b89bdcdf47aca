"""Rows of CSV files, as spreadsheets, pandas and NumPy write them."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from math import isnan, nan
from typing import Any, Final, TextIO

from orchestrator.evaluation.bad_data import bad_data

CSV_TEXT: Final[dict[str, Any]] = {"encoding": "utf-8-sig", "newline": ""}
"""How a CSV file is opened: with or without a byte order mark."""
_SAID: Final = re.compile("sep=(.)", re.IGNORECASE)
"""Excel's first line, which says what separates cells."""
_QUOTED: Final = re.compile('"[^"]*"')
_FRACTION: Final = re.compile(r"[+-]?\d*([.,])\d+([eE][+-]?\d+)?", re.ASCII)


def number_of(value: Any) -> float:  # noqa: ANN401
    """A number, or NaN; Python reads 1_0 as 10."""
    with suppress(ValueError, TypeError):
        return nan if "_" in str(value) else float(value)
    return nan


def csv_rows(place: str, opened: Callable[[], TextIO]) -> Iterator[tuple[int, list[str]]]:
    """The rows of a file that are not blank, each with its line; cells are stripped.

    Comments before them, which begin with `#`, are left out. The last one is a row if it
    names the columns, as that of `numpy.savetxt`. Decimal commas of files whose cells are
    separated by semicolons become points.

    Args:
        place: The file, for messages.
        opened: Begins to read it.

    Raises:
        UsageError: It is none, or has decimal commas and points (`bad-data`).
    """
    try:
        with opened() as file:
            yield from _rows(place, file)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        is_code = isinstance(error, UnicodeDecodeError)
        hint = "save it in UTF-8; Excel calls this form CSV UTF-8" if is_code else ""
        raise bad_data(place, "not a CSV file in UTF-8", found=str(error), hint=hint) from None


def _rows(place: str, file: TextIO) -> Iterator[tuple[int, list[str]]]:
    separator, comment, skipped, first = _beginning(file)
    # Loggers write a space after each comma; without this, quotes behind it are text.
    form: dict[str, Any] = {"delimiter": separator, "skipinitialspace": True}
    reader = csv.reader(chain(first, file), **form)
    names = next(csv.reader([comment], **form), [])
    marks: set[str] = set()
    for row in reader:
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        at = skipped + reader.line_num
        if separator == ";":
            # Only between semicolons: elsewhere a comma is what separates.
            cells = [_with_point(cell, marks) for cell in cells]
        # "1.234" would be a thousand in one cell and a fraction in the next.
        if len(marks) > 1:
            raise bad_data(
                place,
                "decimal commas and decimal points are mixed",
                line=at,
                hint="write all numbers with one of them, and without separators of thousands",
            )
        # numpy.savetxt writes its header as a comment.
        if len(names) == len(cells) and not _has_number(names) and _has_number(cells):
            yield skipped, [name.strip() for name in names]
        names = []
        yield at, cells


def _beginning(file: TextIO) -> tuple[str, str, int, list[str]]:
    """What separates cells, the last comment, the lines before the first row, and two of these."""
    separator, comment = "", ""
    for skipped, line in enumerate(file):
        if not separator and (said := _SAID.fullmatch(line.strip('\r\n" '))):
            separator = said[1]
        elif line.startswith("#"):
            comment = line.strip("# \r\n")
        elif line.strip():
            first = [line, *islice(file, 1)]
            return separator or _separator(first), comment, skipped, first
    return ",", "", 0, []


def _has_number(cells: Sequence[str]) -> bool:
    return not all(isnan(number_of(cell)) for cell in cells)


def _with_point(cell: str, marks: set[str]) -> str:
    """A cell; a decimal comma becomes a point. `marks` gets which of them there was."""
    if (found := _FRACTION.fullmatch(cell)) is None:
        return cell
    marks.add(found[1])
    return cell.replace(",", ".")


def _separator(lines: Sequence[str]) -> str:
    """What separates the cells of rows; a decimal comma, or one in a name, does not."""
    rows = [_QUOTED.sub("", line) for line in lines if line.strip()]
    # Before counting: a row of decimal commas has more commas than semicolons.
    cells = rows[-1].split(";") if ";" in rows[0] else []
    if len(cells) > 1 and all("," not in c or _FRACTION.fullmatch(c.strip()) for c in cells):
        return ";"

    def evenness(mark: str) -> tuple[bool, int]:
        # Units in a header, as "acc, g", have commas that its rows have not.
        counts = [row.count(mark) for row in rows]
        return len({*counts}) == 1 and counts[0] > 0, counts[0]

    found = max(",;\t", key=evenness)
    return found if found in rows[0] else " "  # as numpy.savetxt writes
