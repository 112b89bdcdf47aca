"""A firmware's bytes, grouped by operator, kernel, model or section.

Every way of grouping divides the same parts: its rows add up to the firmware's flash
and RAM exactly, and nothing is counted twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrator.measure.size import ContributorKind as Kind
from orchestrator.measure.size import SizePart
from orchestrator.measure.table import (
    STACK_TITLE,
    TITLES,
    diff_line,
    diff_titles,
    headline,
    size_line,
    size_titles,
)

if TYPE_CHECKING:
    from orchestrator.measure.size import SizeReport

UNKNOWN_SECTION: Final = "unknown section"
"""Of reports of earlier versions."""
_GAPS: Final = "between sections"
_REST: Final = "rest of the firmware"
_KERNEL_REST: Final = "kernels, operator unknown"


class By(StrEnum):
    """What a table is grouped by."""

    PART = "part"
    OP = "op"
    KERNEL = "kernel"
    MODEL = "model"
    SECTION = "section"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRow:
    """Bytes with one name."""

    name: str
    flash_bytes: int
    ram_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeGroup:
    """Rows with distinct names below a title; the largest first."""

    title: str
    rows: tuple[SizeRow, ...]

    @property
    def flash_bytes(self) -> int:
        """Of all rows."""
        return sum(row.flash_bytes for row in self.rows)

    @property
    def ram_bytes(self) -> int:
        """Of all rows."""
        return sum(row.ram_bytes for row in self.rows)


class _Place(NamedTuple):
    """Where a part is shown."""

    title: str
    row: str


def group_sizes(report: SizeReport, by: By) -> tuple[SizeGroup, ...]:
    """All bytes of a firmware, in groups.

    - `PART`: contributors by their kinds.
    - `OP`: what only one operator needs; what several need, by those; the rest.
    - `KERNEL`: sources of each library; the rest.
    - `MODEL`: of each model its program, arenas, states and the code only it needs;
      code that several need, by those; the rest.
    - `SECTION`: contributors of each section.
    """
    parts = report.parts or _parts_of_contributors(report)
    places = _WAYS[by](report, parts)
    flash: Counter[_Place] = Counter()
    ram: Counter[_Place] = Counter()
    for place, part in places:
        flash[place] += part.flash_bytes if part else 0
        ram[place] += part.ram_bytes if part else 0
    titles = dict.fromkeys(place.title for place in flash)
    return tuple(
        SizeGroup(
            title=title,
            rows=tuple(
                sorted(
                    (
                        SizeRow(name=p.row, flash_bytes=flash[p], ram_bytes=ram[p])
                        for p in flash
                        if p.title == title
                    ),
                    key=lambda row: (-row.flash_bytes - row.ram_bytes, row.name),
                )
            ),
        )
        for title in titles
    )


_Places = list[tuple[_Place, SizePart | None]]
"""In the order of groups; no part for rows of 0 bytes that are shown all the same."""


def _parts_of_contributors(report: SizeReport) -> tuple[SizePart, ...]:
    return tuple(
        SizePart(
            section=UNKNOWN_SECTION,
            kind=c.kind,
            contributor=c.name,
            operators=(),
            flash_bytes=c.flash_bytes,
            ram_bytes=c.ram_bytes,
        )
        for c in report.contributors
    )


def _rest(parts: Iterable[SizePart]) -> _Places:
    """By kind, in their order."""
    order = list(Kind)
    return [
        (_Place(_REST, _KERNEL_REST if part.kind is Kind.KERNEL else TITLES[part.kind]), part)
        for part in sorted(parts, key=lambda p: order.index(p.kind))
    ]


def _by_part(parts: tuple[SizePart, ...]) -> _Places:
    order = list(Kind)
    return [
        (_Place(TITLES[part.kind], part.contributor), part)
        for part in sorted(parts, key=lambda p: order.index(p.kind))
    ]


def _by_operator(report: SizeReport, parts: tuple[SizePart, ...]) -> _Places:
    own = "operators, what only they need"
    shared = "shared by operators"
    places: _Places = [(_Place(own, o.name), None) for o in report.operators]
    places += [(_Place(own, part.operators[0]), part) for part in parts if len(part.operators) == 1]
    places += [
        (_Place(shared, ", ".join(part.operators)), part)
        for part in parts
        if len(part.operators) > 1
    ]
    return places + _rest(part for part in parts if not part.operators)


def _by_kernel(parts: tuple[SizePart, ...]) -> _Places:
    places: _Places = []
    for part in parts:
        if part.kind is Kind.KERNEL:
            library, slash, source = part.contributor.partition("/")
            title = f"kernels of {library}" if slash else "kernels of several libraries"
            places.append((_Place(title, source if slash else library), part))
    places.sort(key=lambda item: item[0].title)
    return places + _rest(part for part in parts if part.kind is not Kind.KERNEL)


_LISTS: Final = "the profile's lists"
_MODEL_ROWS: Final = {
    Kind.MODEL: "program",
    Kind.ARENA: "arenas",
    Kind.METHOD_STATE: "method states",
}


def _by_model(report: SizeReport, parts: tuple[SizePart, ...]) -> _Places:
    needed_by_operator = {
        o.name: (*o.models, *((_LISTS,) if o.keys else ())) for o in report.operators
    }
    models: _Places = []
    common: _Places = []
    lists: _Places = []
    shared: _Places = []
    rest = []
    for part in parts:
        needed_by = {a for o in part.operators for a in needed_by_operator.get(o, (_LISTS,))}
        if part.kind in _MODEL_ROWS:
            # Names of models have no dot: `kws.forward arena 1`.
            model, dot, _ = part.contributor.partition(".")
            if part.kind is Kind.ARENA and not dot:
                common.append((_Place("arenas shared by models", part.contributor), part))
                continue
            place = _Place(f"model {model}", _MODEL_ROWS[part.kind])
            models.append((place, part))
        elif needed_by == {_LISTS}:
            title = "only in the profile's lists"
            lists += [(_Place(title, ", ".join(part.operators)), part)]
        elif len(needed_by) == 1:
            place = _Place(f"model {needed_by.pop()}", "code only it needs")
            models.append((place, part))
        elif needed_by:
            row = ", ".join(sorted(needed_by, key=lambda n: (n == _LISTS, n)))
            shared.append((_Place("kernels shared by models", row), part))
        else:
            rest.append(part)
    models.sort(key=lambda item: item[0].title)
    return models + common + shared + lists + _rest(rest)


def _by_section(report: SizeReport, parts: tuple[SizePart, ...]) -> _Places:
    order = {section.name: i for i, section in enumerate(report.sections)}
    return [
        (_Place(part.section or _GAPS, _contributor(part)), part)
        for part in sorted(parts, key=lambda p: order.get(p.section, len(order) + (not p.section)))
    ]


def _contributor(part: SizePart) -> str:
    kind = TITLES[part.kind]
    named = part.kind in (Kind.KERNEL, Kind.DELEGATE, Kind.RUNTIME)
    named = named or part.kind in (Kind.PLATFORM, Kind.MODEL)
    several = part.kind in (Kind.ARENA, Kind.METHOD_STATE, Kind.TOOLCHAIN, Kind.OTHER)
    return f"{kind}: {part.contributor}" if named or several else kind


_WAYS: Final[Mapping[By, Callable[[SizeReport, tuple[SizePart, ...]], _Places]]] = MappingProxyType(
    {
        By.PART: lambda _, parts: _by_part(parts),
        By.OP: _by_operator,
        By.KERNEL: lambda _, parts: _by_kernel(parts),
        By.MODEL: _by_model,
        By.SECTION: _by_section,
    }
)


# Tables of grouped sizes, and of how they differ, as text and for programs.


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
