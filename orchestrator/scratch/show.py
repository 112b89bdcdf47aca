"""Scratch memory of calls as a table for people and as JSON data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from orchestrator.plain_table import table_lines
from orchestrator.printable import printable
from orchestrator.scratch.needs import ScratchNeed

if TYPE_CHECKING:
    Needs = Mapping[str, tuple[ScratchNeed, ...]]
    """By model, as `product_scratch` returns them."""

_TITLES = ("", "operator", "argument", "program", "CMSIS-NN", "needed", "library")
_NUMBERS = (0, 3, 4, 5)  # columns


def scratch_json(needs: Needs, cmsis_nn: Needs) -> list[dict[str, object]]:
    """One object per scratch argument of a call; the keys are stable.

    Args:
        needs: With the sizes of the chosen kernels.
        cmsis_nn: With the sizes of CMSIS-NN, for operators that it has.
    """
    return [
        {
            "model": model,
            "method": need.method,
            "instruction": need.instruction,
            "operator": need.operator,
            "argument": need.argument,
            "value": need.value,
            "library": need.library,
            "reserved_bytes": need.reserved_bytes,
            "cmsis_nn_bytes": cmsis_nn_bytes,
            "needed_bytes": need.needed_bytes,
        }
        for model, need, cmsis_nn_bytes in _side_by_side(needs, cmsis_nn)
    ]


def scratch_text(needs: Needs, cmsis_nn: Needs) -> str:
    """A table per method; sizes are bytes. See `scratch_json` for the arguments."""
    calls = [*_side_by_side(needs, cmsis_nn)]
    rows = [_row(need, cmsis_nn_bytes) for _, need, cmsis_nn_bytes in calls]
    titles, *lines = table_lines([_TITLES, *rows], right=_NUMBERS)
    tables = []
    for (model, method), group in groupby(
        zip(calls, lines, strict=True), lambda item: (item[0][0], item[0][1].method)
    ):
        table = [f"{model}, method {printable(method)}", f"  {titles}"]
        table += [f"  {line}{_remark(need)}" for (_, need, _), line in group]
        tables.append("\n".join(table))
    return "\n\n".join(tables)


def _side_by_side(needs: Needs, cmsis_nn: Needs) -> Iterator[tuple[str, ScratchNeed, int | None]]:
    """(model, need, size of CMSIS-NN) of every scratch argument."""
    for model in needs:
        sizes = {
            (n.method, n.instruction, n.argument): n.needed_bytes for n in cmsis_nn.get(model, ())
        }
        for need in needs[model]:
            key = (need.method, need.instruction, need.argument)
            yield model, need, sizes.get(key)


def _row(need: ScratchNeed, cmsis_nn_bytes: int | None) -> tuple[str, ...]:
    return (
        str(need.instruction),
        need.operator,
        need.argument,
        f"{need.reserved_bytes:,}",
        "-" if cmsis_nn_bytes is None else f"{cmsis_nn_bytes:,}",
        f"{need.needed_bytes:,}",
        need.library,
    )


def _remark(need: ScratchNeed) -> str:
    too_small = need.reserved_bytes < need.needed_bytes
    return "  (the program has too little)" if too_small else ""
