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
from orchestrator.measure.table import TITLES

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
