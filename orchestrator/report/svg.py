"""Text of SVG pictures: elements, numbers, labels and axes."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from orchestrator.printable import printable
from orchestrator.report.assets import asset

if TYPE_CHECKING:
    from collections.abc import Iterable

WIDTH: Final = 960
"""Of every picture, in its own units."""
CHARACTER: Final = 6.9
"""Width of a character of a label, about."""
COLOURS: Final = 9
"""Colours of different things; the one after them is for the rest."""

_TICKS: Final = 6
_NICE: Final = (1, 2, 5, 10)


def text(raw: str) -> str:
    """Text from a model or a profile, safe in an element and in an attribute."""
    return escape(printable(raw))


def number(value: float) -> str:
    """Hundredths of a unit, without zeros at the end."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def picture(lines: Iterable[str], *, height: float, label: str, kind: str) -> str:
    """An SVG element.

    Args:
        lines: What it holds.
        height: In units of `WIDTH`.
        label: What it shows, for those who do not see it.
        kind: Its class.
    """
    body = "\n".join(lines)
    return (
        f'<svg class="chart {kind}" xmlns="http://www.w3.org/2000/svg"'
        f' viewBox="0 0 {WIDTH} {number(height)}" role="group"'
        f' aria-label="{text(label)}">\n{body}\n</svg>'
    )


def standalone(svg: str) -> str:
    """A picture as a file of its own, with its styles."""
    head, separator, rest = svg.partition(">")
    return f"{head}{separator}\n<style>\n{asset('charts.css')}</style>\n{rest}\n"


def fitted(label: str, width: float) -> str:
    """A label, or as much of it as fits; "" if that would say nothing."""
    count = int((width - 6) / CHARACTER)
    if len(label) <= count:
        return label
    return label[: count - 1] + "…" if count > 4 else ""  # noqa: PLR2004


def ticks(begin: int, end: int, *, binary: bool = False) -> range:
    """Round numbers from begin to end, some six; powers of two if `binary`."""
    span = max(end - begin, 1)
    if binary:
        step = 1
        while step * _TICKS < span:
            step *= 2
    else:
        power = 1
        while power * 10 * _TICKS <= span:
            power *= 10
        step = next((n for n in _NICE if n * power * _TICKS >= span), 10) * power
    return range(-(-begin // step) * step, end + 1, step)


def bytes_text(count: int) -> str:
    """`12.5 KiB`; small numbers in bytes."""
    for unit, size in (("MiB", 1024 * 1024), ("KiB", 1024)):
        if count >= size:
            return f"{count / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{count} B"


def short(operator: str) -> str:
    """`quantized_conv2d` of `cortex_m::quantized_conv2d.out`."""
    return operator.rpartition("::")[2].partition(".")[0]
