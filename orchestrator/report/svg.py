"""Text of SVG pictures: elements, numbers, labels and axes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from html import escape
from importlib.resources import files
from typing import Final

from orchestrator.printable import printable

# Files that are part of the page: styles, scripts and the template.


@cache
def asset(name: str) -> str:
    """Text of a file in `page/`."""
    return (files("orchestrator.report") / "page" / name).read_text(encoding="utf-8")


WIDTH: Final = 960
"""Width of pictures in their own units; a graph is as wide as it needs."""
NOTHING: Final = "\u2013"
"""In the place of a number that does not apply."""
CHARACTER: Final = 6.9
"""Width of a character of a label, about."""
COLOURS: Final = 9
"""Colours of different things; the one after them is for the rest."""

_LEGEND_ROW: Final = 18
_TICKS: Final = 6
_NICE: Final = (1, 2, 5, 10)


def text(raw: str) -> str:
    """Text from a model or a profile, safe in an element and in an attribute."""
    return escape(printable(raw))


def number(value: float) -> str:
    """Hundredths of a unit, without zeros at the end."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def label(x: float, y: float, shown: str, kind: str = "small") -> str:
    """A text of one of the classes of the page; `shown` is safe already."""
    return f'<text class="{kind}" x="{number(x)}" y="{number(y)}">{shown}</text>'


def rect(
    x: float, y: float, width: float, height: float, kind: str = "", *, radius: int = 0
) -> str:
    """A rectangle of a class, or without one."""
    look = f'class="{kind}" ' if kind else ""
    corners = f' rx="{radius}"' if radius else ""
    return (
        f'<rect {look}x="{number(x)}" y="{number(y)}" width="{number(width)}"'
        f' height="{number(height)}"{corners}/>'
    )


def legend(
    names: Iterable[tuple[str, str]], *, left: int, right: int, top: float
) -> tuple[list[str], float]:
    """Names with the colours of what they stand for, in rows; and where they end.

    Args:
        names: Each with the class that has its colour.
        left: Where rows begin.
        right: Where they have to end.
        top: Of the first row.
    """
    lines: list[str] = []
    x = float(left)
    for name, colour in names:
        width = len(name) * CHARACTER + 28
        if x > left and x + width > right:
            x, top = float(left), top + _LEGEND_ROW
        swatch = rect(x, top, 10, 10, f"swatch {colour}", radius=2)
        lines.append(swatch + label(x + 14, top + 9, text(name)))
        x += width
    return lines, top + _LEGEND_ROW


def grid_line(left: int, right: int, y: float, shown: str) -> str:
    """A line of the grid, and what it stands for."""
    at = number(y)
    line = f'<path class="grid" d="M{left} {at}H{right}"/>'
    return line + label(left - 6, float(at) + 4, shown, "small end")


def picture(
    lines: Iterable[str], *, width: float = WIDTH, height: float, label: str, kind: str
) -> str:
    """An SVG element.

    Args:
        lines: What it holds.
        width: In its own units.
        height: Likewise.
        label: What it shows, for those who do not see it.
        kind: Its class.
    """
    body = "\n".join(lines)
    return (
        f'<svg class="chart {kind}" xmlns="http://www.w3.org/2000/svg"'
        f' viewBox="0 0 {number(width)} {number(height)}" role="group"'
        f' aria-label="{text(label)}">\n{body}\n</svg>'
    )


def standalone(picture: str) -> str:
    """A picture as a file of its own, with its styles."""
    head, separator, rest = picture.partition(">")
    return f"{head}{separator}\n<style>\n{_styles()}</style>\n{rest}\n"


def size_of(picture: str) -> tuple[float, float]:
    """Width and height of a picture, in its own units."""
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture)
    if found is None:
        raise ValueError(picture[:80])
    return float(found[1]), float(found[2])


def _styles() -> str:
    """Styles without variables, which only browsers know: light, then dark ones."""
    # charts.css has the light variables in its first block and the dark ones in its
    # last.
    blocks = re.findall(r":root[^{]*{([^}]*)}", asset("charts.css"))
    rules = re.sub(
        r"@media[^{]*{\s*:root[^{]*{[^}]*}\s*}|:root[^{]*{[^}]*}", "", asset("charts.css")
    ).strip()
    light, dark = (
        dict(re.findall(r"--([\w-]+):\s*([^;]+);", block)) for block in (blocks[0], blocks[-1])
    )
    coloured = "\n".join(line for line in rules.splitlines() if "var(" in line)
    return (
        f"{_filled(rules, light)}\n@media (prefers-color-scheme: dark) {{\n"
        f"{_filled(coloured, dark)}\n}}\n"
    )


def _filled(rules: str, values: dict[str, str]) -> str:
    return re.sub(r"var\(--([\w-]+)\)", lambda found: values[found[1]], rules)


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


def compact(count: int) -> str:
    """`2.7 M`."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size:
            return f"{count / size:.2f}".rstrip("0").rstrip(".") + f" {unit}"
    return f"{count}"


def short(operator: str) -> str:
    """`quantized_conv2d` of `cortex_m::quantized_conv2d.out`."""
    return operator.rpartition("::")[2].partition(".")[0]
