"""Scratch memory of calls as a table for people and as JSON data."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING

from orchestrator.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from orchestrator.scratch.calls import ScratchCall

_TITLES = ("", "operator", "argument", "program", "CMSIS-NN", "needed", "library")
_TEXTS = (1, 2, 6)  # columns that begin at the left


def scratch_json(calls: Iterable[ScratchCall]) -> list[dict[str, object]]:
    """One object per scratch argument of a call; the keys are stable."""
    return [asdict(call) for call in calls]


def scratch_text(calls: Sequence[ScratchCall]) -> str:
    """A table per method; sizes are bytes."""
    rows = [_row(call) for call in calls]
    columns = list(zip(_TITLES, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    lines: list[str] = []
    for (model, method), group in groupby(
        zip(calls, rows, strict=True), lambda item: (item[0].model, item[0].method)
    ):
        lines += [f"{model}, method {printable(method)}", _line(_TITLES, widths)]
        lines += [_line(row, widths) + _remark(call) for call, row in group]
        lines.append("")
    return "\n".join(lines[:-1])


def _row(call: ScratchCall) -> tuple[str, ...]:
    cmsis_nn = "-" if call.cmsis_nn_bytes is None else f"{call.cmsis_nn_bytes:,}"
    return (
        str(call.instruction),
        call.operator,
        call.argument,
        f"{call.reserved_bytes:,}",
        cmsis_nn,
        f"{call.needed_bytes:,}",
        call.library,
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.ljust(width) if index in _TEXTS else cell.rjust(width)
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  " + "  ".join(padded).rstrip()


def _remark(call: ScratchCall) -> str:
    too_small = call.reserved_bytes < call.needed_bytes
    return "  (the program has too little)" if too_small else ""
