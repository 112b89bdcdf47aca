"""Sizes over the history of a lock: one point for each commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.report import svg

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LEFT, _RIGHT, _TOP, _PLOT, _FOOT = 84, 16, 34, 150, 26
_SHOWN: Final = ("flash", "ram")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A commit of the lock.

    Args:
        commit: Its abbreviated name.
        date: `2026-03-04`.
        subject: First line of its message.
        values: In the order of `History.names`; None where the lock has none.
    """

    commit: str
    date: str
    subject: str
    values: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All commits of a lock.

    Args:
        file: The lock.
        names: Of the sizes.
        points: The oldest first.
    """

    file: str
    names: tuple[str, ...]
    points: tuple[Point, ...]

    @property
    def picture(self) -> str:
        """Flash and RAM, one above the other, as SVG."""
        lines: list[str] = []
        y = 0.0
        for number, name in enumerate(self.names):
            if name not in _SHOWN:
                continue
            values = [p.values[number] for p in self.points]
            lines += _chart(name, values, self.points, y, is_first=not y)
            y += _TOP + _PLOT + _FOOT
        return svg.picture(
            lines,
            height=max(y, 1),
            label=f"Sizes in {len(self.points)} commits; a table of the same follows",
            kind="history",
        )


def _chart(
    name: str,
    values: Sequence[int | None],
    points: Sequence[Point],
    top: float,
    *,
    is_first: bool,
) -> Iterator[str]:
    known = [v for v in values if v is not None]
    most = max(known, default=0) or 1
    floor = top + _TOP + _PLOT
    right = svg.WIDTH - _RIGHT

    def place(index: int, value: int) -> tuple[float, float]:
        share = index / max(len(values) - 1, 1)
        return (
            _LEFT + 8 + (right - _LEFT - 16) * share,
            floor - _PLOT * value / (most * 1.08),
        )

    title = {"flash": "Flash", "ram": "RAM"}[name]
    yield f'<text class="head" x="{_LEFT}" y="{svg.number(top + 18)}">{title}</text>'
    for tick in svg.ticks(0, int(most * 1.08), binary=True):
        y = svg.number(floor - _PLOT * tick / (most * 1.08))
        yield (
            f'<path class="grid" d="M{_LEFT} {y}H{right}"/><text class="small end"'
            f' x="{_LEFT - 6}" y="{svg.number(float(y) + 4)}">'
            f"{svg.bytes_text(tick)}</text>"
        )
    path = ""
    for index, value in enumerate(values):
        if value is None:
            path += " "
            continue
        x, y_at = place(index, value)
        command = "L" if path and not path.endswith(" ") else "M"
        path += f"{command}{svg.number(x)} {svg.number(y_at)}"
    yield f'<path class="series" d="{path}"/>'
    first = True
    for index, (value, point) in enumerate(zip(values, points, strict=True)):
        if value is None:
            continue
        x, y_at = place(index, value)
        says = f"{point.commit}, {point.date}: {value:,} bytes, {point.subject}"
        stop = 0 if is_first and first else -1
        first = False
        yield (
            f'<g class="item dot" role="img" tabindex="{stop}"><title>'
            f'{svg.text(says)}</title><rect x="{svg.number(x - 4)}"'
            f' y="{svg.number(y_at - 4)}" width="8" height="8" rx="4"/></g>'
        )
    if points:
        for point, anchor, at in (
            (points[0], "", _LEFT),
            (points[-1], " end", right),
        ):
            yield (
                f'<text class="small{anchor}" x="{at}" y="{svg.number(floor + 16)}">'
                f"{svg.text(point.date)}</text>"
            )
