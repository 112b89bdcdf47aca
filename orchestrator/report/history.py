"""Sizes over the history of locks: one point for each commit, a line for each lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.measure import By, changed_rows
from orchestrator.measure.size import SizeReport
from orchestrator.report import svg

# Units of the picture. By eye.
_LEFT, _RIGHT, _TOP, _PLOT, _FOOT = 84, 16, 34, 150, 26
_SHOWN: Final = ("flash", "ram")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A commit of the locks.

    Args:
        commit: Its abbreviated name.
        date: `2026-03-04`.
        subject: First line of its message.
        values: By product: sizes in the order of `History.names`, None where the lock
            names none. Empty while the product has no lock.
        changed: Indices of products whose lock it changed.
    """

    commit: str
    date: str
    subject: str
    values: tuple[tuple[int | None, ...], ...]
    changed: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All commits of the locks of products.

    Args:
        products: Their locks.
        names: Of the sizes.
        points: The oldest first.
        left_out: Versions of locks that cannot be read, or name no sizes.
        is_cut: There are older commits.
    """

    products: tuple[str, ...]
    names: tuple[str, ...]
    points: tuple[Point, ...]
    left_out: int = 0
    is_cut: bool = False

    @property
    def picture(self) -> str:
        """Flash and RAM, one above the other, as SVG: a line for each product."""
        lines: list[str] = []
        y = 0.0
        if len(self.products) > 1:
            names = [(n, f"s{min(i, svg.COLOURS)}") for i, n in enumerate(self.products)]
            end = svg.WIDTH - _RIGHT
            lines, y = svg.legend(names, left=_LEFT, right=end, top=4.0)
        first = True
        for number, name in enumerate(self.names):
            if name not in _SHOWN:
                continue
            values = [
                [p.values[n][number] if p.values[n] else None for p in self.points]
                for n in range(len(self.products))
            ]
            lines += _chart(name, values, self, y, is_first=first)
            first = False
            y += _TOP + _PLOT + _FOOT
        return svg.picture(
            lines,
            height=max(y, 1),
            label=f"Sizes in {len(self.points)} commits; a table of the same follows",
            kind="history",
        )


def _chart(
    name: str,
    every: Sequence[Sequence[int | None]],
    history: History,
    top: float,
    *,
    is_first: bool,
) -> Iterator[str]:
    points = history.points
    most = max((v for values in every for v in values if v is not None), default=0) or 1
    floor = top + _TOP + _PLOT
    right = svg.WIDTH - _RIGHT

    def place(index: int, value: int) -> tuple[float, float]:
        share = index / max(len(points) - 1, 1)
        # 1.08: room above the highest point. From 0, as a cut axis makes small changes
        # large.
        return (_LEFT + 8 + (right - _LEFT - 16) * share, floor - _PLOT * value / (most * 1.08))

    title = {"flash": "Flash", "ram": "RAM"}[name]
    yield svg.label(_LEFT, top + 18, title, "head")
    for tick in svg.ticks(0, int(most * 1.08), binary=True):
        y = floor - _PLOT * tick / (most * 1.08)
        yield svg.grid_line(_LEFT, right, y, svg.bytes_text(tick))
    for number, values in enumerate(every):
        colour = f" s{min(number, svg.COLOURS)}" if len(every) > 1 else ""
        path = _path(values, place)
        yield f'<path class="series{colour}" d="{path}"/>'
    stop = 0 if is_first else -1
    for number, values in enumerate(every):
        product = f"{history.products[number]}, " if len(every) > 1 else ""
        colour = f" s{min(number, svg.COLOURS)}" if len(every) > 1 else ""
        for index, (value, point) in enumerate(zip(values, points, strict=True)):
            if value is None or number not in point.changed:
                continue
            x, y_at = place(index, value)
            says = f"{product}{point.commit}, {point.date}: {value:,} bytes"
            yield (
                f'<g class="item dot{colour}" role="img" tabindex="{stop}"><title>'
                f"{svg.text(f'{says}, {point.subject}')}</title>"
                f"{svg.rect(x - 4, y_at - 4, 8, 8, radius=4)}</g>"
            )
            stop = -1
    if points:
        for point, anchor, at in ((points[0], "", _LEFT), (points[-1], " end", right)):
            yield svg.label(at, floor + 16, svg.text(point.date), f"small{anchor}")


def _path(values: Sequence[int | None], place: Callable[[int, int], tuple[float, float]]) -> str:
    """A line through values, with gaps where there is none."""
    path = ""
    for index, value in enumerate(values):
        if value is None:
            path += " "
            continue
        x, y = place(index, value)
        command = "L" if path and not path.endswith(" ") else "M"
        path += f"{command}{svg.number(x)} {svg.number(y)}"
    return path.strip()


# Changes from another build, or from a lock, to this one.


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
    totals = (
        ("flash", x.flash_bytes, y.flash_bytes),
        ("flash without models", x.flash_bytes_without_models, y.flash_bytes_without_models),
        ("RAM", x.ram_bytes, y.ram_bytes),
        ("deepest stack", before.stack_bytes, after.stack_bytes),
    )
    parts = [
        (old.name if old.name == group else f"{group}: {old.name}", old, new)
        for group, rows in changed_rows(before, after, By.PART)
        for old, new in rows
    ]
    flash = ((name, old.flash_bytes, new.flash_bytes) for name, old, new in parts)
    ram = ((name, old.ram_bytes, new.ram_bytes) for name, old, new in parts)
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
