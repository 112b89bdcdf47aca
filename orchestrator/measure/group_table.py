"""Tables of grouped sizes, and of how they differ, as text and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.measure.groups import By, SizeRow, group_sizes
from orchestrator.measure.table import (
    STACK_TITLE,
    diff_line,
    diff_titles,
    headline,
    size_line,
    size_titles,
)

if TYPE_CHECKING:
    from orchestrator.measure.groups import SizeGroup
    from orchestrator.measure.size import SizeReport


def group_table(report: SizeReport, by: By) -> str:
    """All bytes of a firmware, grouped; lines are at most 80 columns wide."""
    flash, ram = report.totals.flash_bytes, report.totals.ram_bytes
    lines = [headline(report), "", size_titles()]
    for group in group_sizes(report, by):
        both = (group.flash_bytes, group.ram_bytes)
        lines.append(size_line(group.title, *both, flash, ram))
        lines += [
            size_line(f"  {row.name}", row.flash_bytes, row.ram_bytes, flash, ram)
            for row in group.rows
        ]
    lines.append(size_line("total", flash, ram, flash, ram))
    without = report.totals.flash_bytes_without_models
    lines.append(size_line("  without models", without, 0, flash, ram))
    return "".join(f"{line}\n" for line in lines)


def group_document(report: SizeReport, by: By) -> dict[str, object]:
    """The same for programs; the rows of all groups add up to the totals."""
    return {
        "profile": report.profile,
        "by": str(by),
        "flash_bytes": report.totals.flash_bytes,
        "ram_bytes": report.totals.ram_bytes,
        "groups": [
            {
                "title": group.title,
                "flash_bytes": group.flash_bytes,
                "ram_bytes": group.ram_bytes,
                "rows": [
                    {"name": row.name, "flash_bytes": row.flash_bytes, "ram_bytes": row.ram_bytes}
                    for row in group.rows
                ],
            }
            for group in group_sizes(report, by)
        ],
    }


def changed_rows(
    a: SizeReport, b: SizeReport, by: By
) -> list[tuple[str, list[tuple[SizeRow, SizeRow]]]]:
    """Groups with the rows that differ, those that change most first."""
    before, after = group_sizes(a, by), group_sizes(b, by)
    titles = dict.fromkeys(g.title for g in (*before, *after))
    found = []
    for title in titles:
        old, new = _rows(before, title), _rows(after, title)
        rows = [(old.get(name, _none(name)), new.get(name, _none(name))) for name in {**old, **new}]
        rows = [(x, y) for x, y in rows if _cost(x) != _cost(y)]
        rows.sort(key=lambda r: (-abs(sum(_cost(r[1])) - sum(_cost(r[0]))), r[0].name))
        if rows:
            found.append((title, rows))
    return found


def _rows(groups: tuple[SizeGroup, ...], title: str) -> dict[str, SizeRow]:
    return {r.name: r for group in groups if group.title == title for r in group.rows}


def _none(name: str) -> SizeRow:
    return SizeRow(name=name, flash_bytes=0, ram_bytes=0)


def _cost(row: SizeRow) -> tuple[int, int]:
    return row.flash_bytes, row.ram_bytes


def diff_table(a: SizeReport, b: SizeReport, by: By = By.PART, *, what: str = "") -> str:
    """How `b` differs from `a`: rows that changed, and the totals.

    Lines end in newlines and are at most 80 columns wide.

    Args:
        a: Before.
        b: After.
        by: What rows are.
        what: The change in words; "" if there is none.
    """
    lines = [f"from  {headline(a)}", f"to    {headline(b)}"]
    lines += [f"      {what}"] if what else []
    lines += ["", diff_titles()]
    changes = changed_rows(a, b, by)
    for title, rows in changes:
        lines.append(title)
        lines += [diff_line(f"  {x.name}", _cost(x), _cost(y)) for x, y in rows]
    if not changes:
        lines.append("nothing changed")
    x, y = a.totals, b.totals
    lines.append(diff_line("total", (x.flash_bytes, x.ram_bytes), (y.flash_bytes, y.ram_bytes)))
    without = (x.flash_bytes_without_models, y.flash_bytes_without_models)
    lines.append(diff_line("  without models", (without[0], 0), (without[1], 0)))
    if a.stack or b.stack:
        before, after = _stack_bytes(a) or 0, _stack_bytes(b) or 0
        lines.append(diff_line(STACK_TITLE, (0, before), (0, after)))
    return "".join(f"{line}\n" for line in lines)


def diff_document(a: SizeReport, b: SizeReport, by: By = By.PART) -> dict[str, object]:
    """The same for programs: rows that differ add up to the change of the totals."""
    return {
        "by": str(by),
        **_totals(a, b),
        "groups": [
            {
                "title": title,
                "rows": [
                    {
                        "name": old.name,
                        "flash_bytes": [old.flash_bytes, new.flash_bytes],
                        "ram_bytes": [old.ram_bytes, new.ram_bytes],
                    }
                    for old, new in rows
                ],
            }
            for title, rows in changed_rows(a, b, by)
        ],
    }


def _totals(a: SizeReport, b: SizeReport) -> dict[str, object]:
    x, y = a.totals, b.totals
    return {
        "profiles": [a.profile, b.profile],
        "flash_bytes": [x.flash_bytes, y.flash_bytes],
        "flash_bytes_without_models": [x.flash_bytes_without_models, y.flash_bytes_without_models],
        "ram_bytes": [x.ram_bytes, y.ram_bytes],
        "stack_bytes": [_stack_bytes(a), _stack_bytes(b)],
    }


def _stack_bytes(report: SizeReport) -> int | None:
    """Worst stack use; None on hosts."""
    return report.stack.stack_bytes if report.stack else None
