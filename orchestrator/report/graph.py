"""The instructions of a method as rows of a table, and as a graph.

The page lays the graph out where it is read. `report --svg graph` runs the same script
in an engine of the extra `pictures`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.printable import printable
from orchestrator.report import svg
from orchestrator.report.assets import asset
from orchestrator.report.facts import MethodFacts, ReportFacts, Step

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
    numbers = ["MACs", "weights", "read", "written"]
    if facts.cost_unit:
        numbers.insert(1, facts.cost_unit)
    if facts.cycles:
        numbers.insert(2, "est. cycles")
    has_sources = any(step.source for step in method.steps)
    heads = ("#", "operator", "result", *numbers, "kernel")
    return Table(
        title=f"Graph of {method.title}: {len(method.steps)} instructions",
        heads=(*heads, "source") if has_sources else heads,
        numeric=frozenset({0, *range(3, 3 + len(numbers))}),
        rows=tuple(_row(facts, method, step, has_source=has_sources) for step in method.steps),
    )


def _row(facts: ReportFacts, method: MethodFacts, step: Step, *, has_source: bool) -> Row:
    key = (method.model, method.name, step.index)
    cost = facts.costs.get(key)
    weights, reads, writes = method.bytes_of(step)
    numbers = [step.macs, weights, reads, writes]
    if facts.cost_unit:
        numbers.insert(1, cost)
    if facts.cycles:
        numbers.insert(2, facts.cycles.get(key))
    origin = f" ({step.origin})" if step.origin != step.index else ""
    work = ""
    if facts.cost_unit and cost:
        work = f"{svg.compact(cost)} {facts.cost_unit}"
    elif step.macs:
        work = f"{svg.compact(step.macs)} MACs"
    cells = (
        f"{step.index}{origin}",
        step.operator,
        ", ".join(method.tensors[i].text for i in step.writes),
        *(svg.NOTHING if n is None else f"{n:,}" for n in numbers),
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
