"""Changes from another build, or from a lock, to this one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.measure import By, changed_rows
from orchestrator.measure.size import SizeReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """A number of bytes before and now; None where it is not there."""

    name: str
    before: int | None
    after: int | None

    @property
    def change(self) -> int:
        """How much more it is now."""
        return (self.after or 0) - (self.before or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTable:
    """Rows of one kind; `head` says what they are."""

    title: str
    head: str
    rows: tuple[ChangeRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What changed from something else to this build.

    Args:
        title: What that is.
        tables: Numbers that changed.
        lines: Facts of a lock that differ.
    """

    title: str
    tables: tuple[ChangeTable, ...]
    lines: tuple[str, ...] = ()


def change_of_reports(title: str, before: SizeReport, after: SizeReport) -> Change:
    """The change from another build."""
    x, y = before.totals, after.totals
    totals: list[tuple[str, int | None, int | None]] = [
        ("flash", x.flash_bytes, y.flash_bytes),
        ("flash without models", x.flash_bytes_without_models, y.flash_bytes_without_models),
        ("RAM", x.ram_bytes, y.ram_bytes),
        (
            "deepest stack",
            before.stack.stack_bytes if before.stack else None,
            after.stack.stack_bytes if after.stack else None,
        ),
    ]
    flash: list[tuple[str, int | None, int | None]] = []
    ram: list[tuple[str, int | None, int | None]] = []
    for group, rows in changed_rows(before, after, By.PART):
        for old, new in rows:
            name = old.name if old.name == group else f"{group}: {old.name}"
            flash.append((name, old.flash_bytes, new.flash_bytes))
            ram.append((name, old.ram_bytes, new.ram_bytes))
    return Change(
        title=title,
        tables=(
            _table("Totals", "bytes", totals, all_rows=True),
            _table("Flash", "part", flash),
            _table("RAM", "part", ram),
        ),
    )


def change_of_locks(
    title: str, before: Mapping[str, int], after: Mapping[str, int], lines: Iterable[str]
) -> Change:
    """The change from a lock.

    Args:
        title: The lock.
        before: Sizes that it names.
        after: Those of this build.
        lines: All facts that differ.
    """
    names = dict.fromkeys([*after, *before])
    rows = [(name, before.get(name), after.get(name)) for name in names]
    return Change(
        title=title, tables=(_table("Sizes", "bytes", rows, all_rows=True),), lines=tuple(lines)
    )


def _table(
    title: str,
    head: str,
    rows: Iterable[tuple[str, int | None, int | None]],
    *,
    all_rows: bool = False,
) -> ChangeTable:
    """A table of rows, those that change most first; without `all_rows` only those."""
    found = [ChangeRow(name=n, before=b, after=a) for n, b, a in rows]
    if all_rows:
        found = [r for r in found if (r.before, r.after) != (None, None)]
    else:
        found = [r for r in found if r.change]
        found.sort(key=lambda r: (-abs(r.change), r.name))
    return ChangeTable(title=title, head=head, rows=tuple(found))
