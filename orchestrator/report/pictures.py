"""The pictures of the page as files of their own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from orchestrator.memory.plan import identifier
from orchestrator.printable import printable
from orchestrator.report import svg
from orchestrator.report.arena import arena_picture
from orchestrator.report.facts import MethodFacts, ReportFacts, Step
from orchestrator.report.memory_map import memory_map, treemap
from orchestrator.report.svg import asset

if TYPE_CHECKING:
    from orchestrator.method.rows.adapt import Choice


# The instructions of a method as rows of a table, and as a graph.
#
# The page lays the graph out where it is read. `report --svg graph` runs the same script in an
# engine of the extra `pictures`.

# The layout runs in the reader's browser; above this the page has the table alone.
# Chosen by hand.
MOST_DRAWN: Final = 1500
"""Most instructions of a method whose graph is laid out."""
_STACK_BYTES: Final = 256 * 1024 * 1024
"""Address space for the stack of the layout, which recurses along paths of a graph."""
_BROWSER: Final = """
globalThis.structuredClone = (value) => JSON.parse(JSON.stringify(value));
"""
"""What dagre needs of a browser."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An instruction.

    Args:
        cells: One for each head of the table.
        after: Instructions whose results it reads; -1 stands for what was before.
        work: What it costs, in short; "" if nothing says.
        is_output: It writes an output of the method.
    """

    cells: tuple[str, ...]
    after: tuple[int, ...]
    work: str
    is_output: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The instructions of a method.

    Args:
        title: What the graph of it shows.
        heads: Of the columns.
        numeric: Indices of columns of numbers.
        rows: In order.
    """

    title: str
    heads: tuple[str, ...]
    numeric: frozenset[int]
    rows: tuple[Row, ...]


def table_of(facts: ReportFacts, method: MethodFacts) -> Table:
    """The table of a method."""
    numbers = [name for name, _ in _numbers(facts, method, None)]
    has_sources = any(step.source for step in method.steps)
    heads = ("#", "operator", "result", *numbers, "kernel")
    return Table(
        title=f"Graph of {method.title}: {len(method.steps)} instructions",
        heads=(*heads, "source") if has_sources else heads,
        numeric=frozenset({0, *range(3, 3 + len(numbers))}),
        rows=tuple(_row(facts, method, step, has_source=has_sources) for step in method.steps),
    )


def _numbers(
    facts: ReportFacts, method: MethodFacts, step: Step | None
) -> Iterator[tuple[str, int | None]]:
    """The columns of numbers by their heads, with those of a step if there is one."""
    key = (method.model, method.name, step.index if step else -1)
    weights, reads, writes = method.bytes_of(step) if step else (None, None, None)
    yield "MACs", step.macs if step else None
    if facts.cost_unit:
        yield facts.cost_unit, facts.costs.get(key)
    if facts.cycles:
        yield "est. cycles", facts.cycles.get(key)
    yield from (("weights", weights), ("read", reads), ("written", writes))


def _row(facts: ReportFacts, method: MethodFacts, step: Step, *, has_source: bool) -> Row:
    origin = f" ({step.origin})" if step.origin != step.index else ""
    cost = facts.costs.get((method.model, method.name, step.index))
    work = ""
    if facts.cost_unit and cost:
        work = f"{svg.compact(cost)} {facts.cost_unit}"
    elif step.macs:
        work = f"{svg.compact(step.macs)} MACs"
    cells = (
        f"{step.index}{origin}",
        step.operator,
        ", ".join(method.tensors[i].text for i in step.writes),
        *(svg.NOTHING if n is None else f"{n:,}" for _, n in _numbers(facts, method, step)),
        step.function,
    )
    return Row(
        cells=(*cells, step.source) if has_source else cells,
        after=step.after,
        work=work,
        is_output=not set(method.outputs).isdisjoint(step.writes),
    )


def graph_picture(facts: ReportFacts, method: MethodFacts) -> str:
    """The graph of a method as SVG, as wide as it needs.

    Raises:
        ImportError: The extra `pictures` is not installed.
    """
    table = table_of(facts, method)
    rows = [
        {
            "cells": [printable(cell) for cell in row.cells],
            "after": [str(step) for step in row.after],
            "work": row.work,
            "isOutput": row.is_output,
        }
        for row in table.rows
    ]
    drawn = _drawn(json.dumps([table.heads, rows, 0]))
    return svg.picture(
        [drawn["body"]],
        width=drawn["width"],
        height=drawn["height"],
        label=table.title,
        kind="graph",
    )


def _drawn(arguments: str) -> dict[str, Any]:
    """What `methodGraph` of graph.js returns."""
    import quickjs  # noqa: PLC0415  # of an extra

    found: list[str] = []
    problems: list[Exception] = []

    def draw() -> None:
        try:
            engine = quickjs.Context()
            # Half of the thread's: quickjs has to stop before that is used up.
            engine.set_max_stack_size(_STACK_BYTES // 2)
            for script in (_BROWSER, asset("vendor/dagre.min.js"), asset("graph.js")):
                engine.eval(script)
            engine.set("given", arguments)
            found.append(engine.eval("JSON.stringify(methodGraph(...JSON.parse(given)))"))
        except Exception as problem:  # noqa: BLE001  # raised below
            problems.append(problem)

    # A thread, as only threads have a stack of a chosen size.
    before = threading.stack_size(_STACK_BYTES)
    try:
        thread = threading.Thread(target=draw)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    for problem in problems:
        raise problem
    drawn: dict[str, Any] = json.loads(found[0])
    return drawn


def drawn_methods(facts: ReportFacts) -> Iterator[MethodFacts]:
    """Methods with a graph that is laid out."""
    for method in facts.methods:
        if 0 < len(method.steps) <= MOST_DRAWN:
            yield method


KINDS: Final = ("flash", "memory", "arena", "graph")
_SCALE: Final = 2.0
"""Pixels of a PNG for each unit of the picture."""
# 40 million pixels of 4 bytes are 160 MB. Chosen by hand.
_MOST_PIXELS: Final = 40_000_000
"""Most pixels of a PNG; larger pictures are drawn smaller."""
_PAPER: Final = "#ffffff"
_SANS: Final = (
    *("DejaVu Sans", "Noto Sans", "Liberation Sans", "Roboto", "Ubuntu", "Cantarell"),
    *("Arial", "Helvetica", "Segoe UI", "FreeSans", "Nimbus Sans"),
)
_MONO: Final = (
    *("DejaVu Sans Mono", "Noto Sans Mono", "Liberation Mono", "Roboto Mono"),
    *("Ubuntu Mono", "Menlo", "Consolas", "Courier New", "FreeMono", *_SANS),
)
"""Families to draw text with; the first that is installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture as text of SVG; `name` is its own, without a suffix."""

    name: str
    text: str


class NoFontsError(Exception):
    """None of the families of fonts is installed."""


def pictures(facts: ReportFacts, kind: str) -> Iterator[Picture]:
    """The pictures of one of `KINDS`: one for each arena, or for each method's graph.

    Raises:
        ImportError: The extra `pictures`, which graphs need, is not installed.
    """
    if kind == "flash":
        yield Picture(name=kind, text=svg.standalone(treemap(facts)))
    elif kind == "memory":
        yield Picture(name=kind, text=svg.standalone(memory_map(facts)))
    elif kind == "graph":
        for method in drawn_methods(facts):
            yield Picture(
                name=f"{method.model}-{identifier(method.name)}-graph",
                text=svg.standalone(graph_picture(facts, method)),
            )
    else:
        for method in facts.methods:
            for arena in method.arenas:
                yield Picture(
                    name=f"{method.model}-{identifier(method.name)}-arena{arena.plan.memory_id}",
                    text=svg.standalone(arena_picture(method, arena)),
                )


def png(picture: Picture, *, system_fonts: bool = True) -> bytes:
    """A picture as PNG, on white.

    Args:
        picture: It.
        system_fonts: Draw text with the fonts of the system.

    Raises:
        ImportError: The extra `pictures` is not installed.
        NoFontsError: There are no fonts.
    """
    import resvg_py  # noqa: PLC0415  # of an extra

    width, height = svg.size_of(picture.text)
    return resvg_py.svg_to_bytes(
        svg_string=picture.text,
        zoom=min(_SCALE, (_MOST_PIXELS / (width * height)) ** 0.5),
        background=_PAPER,
        skip_system_fonts=not system_fonts,
        sans_serif_family=_installed(_SANS, system_fonts=system_fonts),
        monospace_family=_installed(_MONO, system_fonts=system_fonts),
    )


@cache
def _installed(families: tuple[str, ...], *, system_fonts: bool) -> str:
    """The first family that draws a letter: text without a font is left out."""
    import resvg_py  # noqa: PLC0415  # of an extra

    def draw(letter: str, family: str) -> bytes:
        head = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">'
        text = f'<text y="15" font-family="{family}">{letter}</text>'
        return resvg_py.svg_to_bytes(
            svg_string=f"{head}{text}</svg>", skip_system_fonts=not system_fonts
        )

    for family in families:
        if draw("M", family) != draw("", family):
            return family
    raise NoFontsError


# RAM against instructions: a picture of what a method can have.

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

    yield svg.label(_LEFT, 18, svg.text(title), "head")
    for tick in svg.ticks(0, int(most_bytes), binary=True):
        y = svg.number(_FLOOR - (_FLOOR - _TOP) * tick / most_bytes)
        yield f'<path class="grid" d="M{_LEFT} {y}H{_RIGHT}"/>'
        yield svg.label(_LEFT - 6, float(y) + 4, svg.bytes_text(tick), "small end")
    for tick in svg.ticks(0, most_percent):
        at = _LEFT + (_RIGHT - _LEFT) * tick / most_percent
        yield svg.label(at, _FLOOR + 18, f"+{tick} %")
    path = ""
    for choice in choices:
        x, y = (svg.number(n) for n in place(choice))
        # Less RAM is to be had from here on.
        path += f"H{x}V{y}" if path else f"M{x} {y}"
    yield f'<path class="series" d="{path}"/>'
    for choice in choices:
        at, height = (n - 4 for n in place(choice))
        says = (
            f"{choice.arena_bytes:,} bytes, {_PERCENT * choice.slowdown:+.1f} %,"
            f" {choice.calls} calls"
        )
        dot = svg.rect(at, height, 8, 8, radius=4)
        yield f'<g class="item dot"><title>{says}</title>{dot}</g>'
