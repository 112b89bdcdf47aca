"""RAM against instructions: a picture of what a method can have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from orchestrator.report import svg

if TYPE_CHECKING:
    from orchestrator.method.rows.choices import Choice

_LEFT: Final = 70
_RIGHT: Final = svg.WIDTH - 20
_TOP: Final = 40
_FLOOR: Final = 300
_PERCENT: Final = 100
_MARGIN: Final = 1.08


def choices_svg(title: str, choices: Sequence[Choice]) -> str:
    """The picture as a file: instructions to the right, RAM upwards.

    Args:
        title: Names the method.
        choices: The smallest arena last.
    """
    lines = _lines(title, choices)
    label = f"{title}: bytes of arena against instructions"
    return svg.standalone(svg.picture(lines, height=_FLOOR + 40, label=label, kind="choices"))


def _lines(title: str, choices: Sequence[Choice]) -> Iterator[str]:
    most_bytes = max(choice.arena_bytes for choice in choices) * _MARGIN
    most_percent = max(1, round(_PERCENT * max(c.slowdown for c in choices) * _MARGIN + 0.5))

    def place(choice: Choice) -> tuple[float, float]:
        share = _PERCENT * choice.slowdown / most_percent
        return (
            _LEFT + (_RIGHT - _LEFT) * share,
            _FLOOR - (_FLOOR - _TOP) * choice.arena_bytes / most_bytes,
        )

    yield f'<text class="head" x="{_LEFT}" y="18">{svg.text(title)}</text>'
    for tick in svg.ticks(0, int(most_bytes), binary=True):
        y = svg.number(_FLOOR - (_FLOOR - _TOP) * tick / most_bytes)
        yield f'<path class="grid" d="M{_LEFT} {y}H{_RIGHT}"/>'
        yield (
            f'<text class="small end" x="{_LEFT - 6}" y="{svg.number(float(y) + 4)}">'
            f"{svg.bytes_text(tick)}</text>"
        )
    for tick in svg.ticks(0, most_percent):
        x = svg.number(_LEFT + (_RIGHT - _LEFT) * tick / most_percent)
        yield f'<text class="small" x="{x}" y="{_FLOOR + 18}">+{tick} %</text>'
    path = ""
    for choice in choices:
        x, y = (svg.number(n) for n in place(choice))
        # Less RAM is to be had from here on.
        path += f"H{x}V{y}" if path else f"M{x} {y}"
    yield f'<path class="series" d="{path}"/>'
    for choice in choices:
        x, y = (svg.number(n - 4) for n in place(choice))
        says = (
            f"{choice.arena_bytes:,} bytes, {_PERCENT * choice.slowdown:+.1f} %,"
            f" {choice.calls} calls"
        )
        yield (
            f'<g class="item dot"><title>{says}</title>'
            f'<rect x="{x}" y="{y}" width="8" height="8" rx="4"/></g>'
        )
