"""A firmware's bytes, grouped by operator, kernel, model or section.

Every way of grouping divides the same parts: its rows add up to the firmware's flash
and RAM exactly, and nothing is counted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.measure.size import ContributorKind as Kind
from orchestrator.measure.size import SizePart

if TYPE_CHECKING:
    from orchestrator.measure.size import SizeReport

TITLES: Final = {
    Kind.MODEL: "models",
    Kind.KERNEL: "kernels",
    Kind.KERNEL_TABLE: "kernel table",
    Kind.DELEGATE: "delegates",
    Kind.RUNTIME: "runtime",
    Kind.API: "generated API",
    Kind.APPLICATION: "application",
    Kind.PLATFORM: "platform",
    Kind.MEMORY_FUNCTIONS: "memory functions",
    Kind.TOOLCHAIN: "toolchain's libraries",
    Kind.CONSTANTS: "merged constants",
    Kind.ARENA: "arenas",
    Kind.METHOD_STATE: "method states",
    Kind.STACK: "reserved stack",
    Kind.OTHER: "other",
    Kind.PADDING: "padding",
}

UNKNOWN_SECTION: Final = "unknown section"
"""Name in reports of earlier versions."""
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
        """Flash of all rows."""
        return sum(row.flash_bytes for row in self.rows)

    @property
    def ram_bytes(self) -> int:
        """RAM of all rows."""
        return sum(row.ram_bytes for row in self.rows)


_Place = tuple[str, str, SizePart | None]
"""Title, row, and a part; none for rows of 0 bytes that are shown all the same."""


def group_sizes(report: SizeReport, by: By) -> tuple[SizeGroup, ...]:
    """All bytes of a firmware, in groups.

    - `PART`: contributors by their kinds.
    - `OP`: what only one operator needs; what several need, by those; the rest.
    - `KERNEL`: sources of each library; the rest.
    - `MODEL`: of each model its program, arenas, states and the code only it needs;
      code that several need, by those; the rest.
    - `SECTION`: contributors of each section.
    """
    groups: dict[str, dict[str, list[SizePart]]] = {}
    for title, row, part in _WAYS[by](report, report.parts or _parts_of_contributors(report)):
        groups.setdefault(title, {}).setdefault(row, []).extend([part] if part else [])
    return tuple(
        SizeGroup(title=title, rows=tuple(sorted(map(_row, rows, rows.values()), key=_order)))
        for title, rows in groups.items()
    )


def _row(name: str, parts: Iterable[SizePart]) -> SizeRow:
    found = tuple(parts)
    return SizeRow(
        name=name,
        flash_bytes=sum(p.flash_bytes for p in found),
        ram_bytes=sum(p.ram_bytes for p in found),
    )


def _order(row: SizeRow) -> tuple[int, str]:
    return -row.flash_bytes - row.ram_bytes, row.name


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


def _by_kind(parts: Iterable[SizePart]) -> list[SizePart]:
    return sorted(parts, key=lambda part: _KINDS.index(part.kind))


_KINDS: Final = list(Kind)


def _rest(parts: Iterable[SizePart]) -> list[_Place]:
    """Parts that a way has no group for."""
    return [
        (_REST, _KERNEL_REST if part.kind is Kind.KERNEL else TITLES[part.kind], part)
        for part in _by_kind(parts)
    ]


def _by_part(_: SizeReport, parts: tuple[SizePart, ...]) -> list[_Place]:
    return [(TITLES[part.kind], part.contributor, part) for part in _by_kind(parts)]


def _by_operator(report: SizeReport, parts: tuple[SizePart, ...]) -> list[_Place]:
    own, shared = "operators, what only they need", "shared by operators"
    places: list[_Place] = [(own, o.name, None) for o in report.operators]
    places += [(own, part.operators[0], part) for part in parts if len(part.operators) == 1]
    places += [
        (shared, ", ".join(part.operators), part) for part in parts if len(part.operators) > 1
    ]
    return places + _rest(part for part in parts if not part.operators)


def _by_kernel(_: SizeReport, parts: tuple[SizePart, ...]) -> list[_Place]:
    places: list[_Place] = []
    for part in parts:
        if part.kind is Kind.KERNEL:
            library, slash, source = part.contributor.partition("/")
            title = f"kernels of {library}" if slash else "kernels of several libraries"
            places.append((title, source if slash else library, part))
    places.sort(key=lambda place: place[0])
    return places + _rest(part for part in parts if part.kind is not Kind.KERNEL)


_LISTS: Final = "the profile's lists"
_MODEL_ROWS: Final = {
    Kind.MODEL: "program",
    Kind.ARENA: "arenas",
    Kind.METHOD_STATE: "method states",
}


def _by_model(report: SizeReport, parts: tuple[SizePart, ...]) -> list[_Place]:
    needed_by_operator = {
        o.name: (*o.models, *((_LISTS,) if o.keys else ())) for o in report.operators
    }
    models: list[_Place] = []
    common: list[_Place] = []
    lists: list[_Place] = []
    shared: list[_Place] = []
    rest = []
    for part in parts:
        needed_by = {a for o in part.operators for a in needed_by_operator.get(o, (_LISTS,))}
        # Names of models have no dot: `kws.forward arena 1`.
        model, dot, _ = part.contributor.partition(".")
        if part.kind is Kind.ARENA and not dot:
            common.append(("arenas shared by models", part.contributor, part))
        elif part.kind in _MODEL_ROWS:
            models.append((f"model {model}", _MODEL_ROWS[part.kind], part))
        elif needed_by == {_LISTS}:
            lists.append(("only in the profile's lists", ", ".join(part.operators), part))
        elif len(needed_by) == 1:
            models.append((f"model {needed_by.pop()}", "code only it needs", part))
        elif needed_by:
            row = ", ".join(sorted(needed_by, key=lambda n: (n == _LISTS, n)))
            shared.append(("kernels shared by models", row, part))
        else:
            rest.append(part)
    models.sort(key=lambda place: place[0])
    return models + common + shared + lists + _rest(rest)


_NAMED: Final = frozenset(
    {
        *(Kind.KERNEL, Kind.DELEGATE, Kind.RUNTIME, Kind.PLATFORM, Kind.MODEL, Kind.ARENA),
        *(Kind.METHOD_STATE, Kind.TOOLCHAIN, Kind.OTHER),
    }
)
"""Kinds that have several contributors, or one whose name says more than the kind."""


def _by_section(report: SizeReport, parts: tuple[SizePart, ...]) -> list[_Place]:
    order = {section.name: i for i, section in enumerate(report.sections)}
    return [
        (
            part.section or _GAPS,
            TITLES[part.kind] + (f": {part.contributor}" if part.kind in _NAMED else ""),
            part,
        )
        for part in sorted(parts, key=lambda p: order.get(p.section, len(order) + (not p.section)))
    ]


_WAYS: Final[Mapping[By, Callable[[SizeReport, tuple[SizePart, ...]], list[_Place]]]] = (
    MappingProxyType(
        {
            By.PART: _by_part,
            By.OP: _by_operator,
            By.KERNEL: _by_kernel,
            By.MODEL: _by_model,
            By.SECTION: _by_section,
        }
    )
)


def changed_rows(
    a: SizeReport, b: SizeReport, by: By
) -> list[tuple[str, list[tuple[SizeRow, SizeRow]]]]:
    """Groups with the rows that differ, those that change most first."""
    before, after = group_sizes(a, by), group_sizes(b, by)
    found = []
    for title in dict.fromkeys(g.title for g in (*before, *after)):
        old, new = (
            {row.name: row for group in groups if group.title == title for row in group.rows}
            for groups in (before, after)
        )
        rows = [(old.get(n) or _row(n, ()), new.get(n) or _row(n, ())) for n in {**old, **new}]
        rows = [(x, y) for x, y in rows if x != y]
        rows.sort(key=lambda r: (-abs(_order(r[1])[0] - _order(r[0])[0]), r[0].name))
        if rows:
            found.append((title, rows))
    return found
