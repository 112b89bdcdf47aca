"""Tables of scratch sizes of another version of CMSIS-NN, compared with ours."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from orchestrator.catalog.cmsis_nn import Backend, DataType, Pair, Shape
from orchestrator.catalog.expressions.cmsis_nn_functions import FUNCTIONS, Function
from orchestrator.catalog.expressions.values import ExpressionError
from orchestrator.document import picked
from orchestrator.errors import Diagnostic, MemoryPlanError, SourceSpan, UsageError, did_you_mean
from orchestrator.plain_table import table_lines
from orchestrator.printable import printable
from orchestrator.scratch.needs import ScratchNeed

if TYPE_CHECKING:
    Needs = Mapping[str, tuple[ScratchNeed, ...]]
    """By model, as `product_scratch` returns them."""

# Parameters of CMSIS-NN's `arm_*_get_buffer_size`, as docs/scratch.md describes them:
# who changes one side changes the other.
COLUMNS = (
    *("function", "backend", "data_type", "input_nhwc", "filter_nhwc", "output_nhwc"),
    *("padding_hw", "stride_hw", "dilation_hw", "ch_mult", "padding_offsets_hw"),
    *("input_offset", "output_offset", "activation_min", "activation_max"),
    *("dim_dst_width", "ch_src", "bytes"),
)
_SHOWN = 20  # problems of one kind
# Ten digits hold 32 bits.
_NUMBER = re.compile(r"-?[0-9]{1,10}")


class _RowError(ValueError):
    """A row of a table of scratch sizes is damaged."""


class _Row:
    """Cells of a row, by column."""

    def __init__(self, header: list[str], cells: list[str]) -> None:
        if len(cells) != len(header):
            raise _RowError(f"the row has {len(cells)} cells, the first one has {len(header)}")
        self._cells = dict(zip(header, cells, strict=True))

    def __getitem__(self, column: str) -> str:
        return self._cells[column]

    def choice(self, column: str, known: Iterable[str]) -> str:
        """A name out of a closed set."""
        known, found = tuple(known), self[column]
        if found not in known:
            near = did_you_mean(found, known) or f"use one of {', '.join(known)}"
            raise _RowError(f'{column} cannot be "{found}", {near}')
        return found

    def numbers(self, column: str, count: int) -> tuple[int, ...]:
        """A given count of numbers with an x between."""
        parts = self[column].split("x")
        if len(parts) != count or not all(map(_NUMBER.fullmatch, parts)):
            form = "x".join(["1"] * count) if count > 1 else "1"
            raise _RowError(f'{column} is "{self[column]}", not like {form}')
        return tuple(map(int, parts))


_TYPES = {"s4": DataType.A8W4, "s8": DataType.A8W8, "s16": DataType.A16W8}
"""By the ends of the names of functions in expressions."""


def _functions() -> dict[str, dict[DataType, Function]]:
    """Functions of expressions by their names in CMSIS-NN's Python binding."""
    found: dict[str, dict[DataType, Function]] = {}
    for name, function in FUNCTIONS.items():
        base, _, end = name.removeprefix("cmsis_nn.").rpartition("_")
        found.setdefault(f"{base}_buffer_size", {})[_TYPES[end]] = function
    return found


_FUNCTIONS = _functions()


def _item_count(parameter: str) -> int:
    """4 sizes of an image, 2 settings of rows and columns, or 1 number."""
    return {"nhwc": len(Shape._fields), "hw": len(Pair._fields)}.get(
        parameter.rpartition("_")[2], 1
    )


def check_tables(tables: Mapping[str, str]) -> dict[str, int]:
    """Compare CMSIS-NN's sizes with tables.

    Args:
        tables: Text by file.

    Returns:
        Number of rows by file; all of them agree.

    Raises:
        UsageError: A file is no such table (`bad-scratch-table`).
        MemoryPlanError: Rows differ (`scratch-difference`).
    """
    counts: dict[str, int] = {}
    bad: list[Diagnostic] = []
    different: list[Diagnostic] = []
    for file, text in tables.items():
        counts[file] = _check(file, text, bad, different)
    if bad:
        raise UsageError(_first(bad, "wrong"))
    if different:
        raise MemoryPlanError(_first(different, "different"))
    return counts


def _first(problems: list[Diagnostic], what: str) -> list[Diagnostic]:
    """The first problems, and how many more there are."""
    more = len(problems) - _SHOWN
    if more <= 0:
        return problems
    rest = Diagnostic(
        code=problems[0].code,
        message=f"{more} more {'rows are' if more > 1 else 'row is'} {what}",
        hint=f"the first {_SHOWN} are above",
    )
    return [*problems[:_SHOWN], rest]


def _check(file: str, text: str, bad: list[Diagnostic], different: list[Diagnostic]) -> int:
    """Count of the rows of a table; adds to the problems and to the differences."""
    lines = [line.rstrip("\r") for line in text.removeprefix("\ufeff").split("\n")]
    # Without quotes a row is a line, and numbers of lines are right.
    reader = csv.reader(lines, quoting=csv.QUOTE_NONE)
    header: list[str] = []
    rows = 0
    try:
        for cells in reader:
            number = reader.line_num
            where = SourceSpan(file=file, line=number, text=lines[number - 1])
            if number == 1:
                header = cells
                if problem := _wrong_header(header):
                    bad.append(_bad(where, problem))
                    return 0
                continue
            if not cells:
                continue
            rows += 1
            try:
                different += _differences(_Row(header, cells), where)
            except _RowError as error:
                bad.append(_bad(where, str(error)))
    except csv.Error as error:
        where = SourceSpan(file=file, line=reader.line_num)
        bad.append(_bad(where, str(error)))
    return rows


def _wrong_header(header: list[str]) -> str:
    """What is wrong with the names of the columns; "" if nothing is."""
    if missing := [c for c in COLUMNS if c not in header]:
        return f"there is no column {', '.join(missing)}"
    if unknown := [c for c in header if c not in COLUMNS]:
        return f"there is a column {', '.join(unknown)}"
    return "a column occurs twice" if len(header) > len(COLUMNS) else ""


def _bad(where: SourceSpan, problem: str) -> Diagnostic:
    return Diagnostic(
        code="bad-scratch-table",
        message=f"{where.file} is not a table of scratch sizes: {problem}",
        where=where,
        hint="docs/scratch.md describes such tables",
    )


def _differences(row: _Row, where: SourceSpan) -> list[Diagnostic]:
    """The difference of a row, if there is one. Raises _RowError."""
    function = row.choice("function", _FUNCTIONS)
    backend = Backend[row.choice("backend", Backend.__members__)]
    data_type = DataType(row.choice("data_type", _FUNCTIONS[function]))
    (expected,) = row.numbers("bytes", 1)
    size_of = _FUNCTIONS[function][data_type]
    arguments = {name: row.numbers(name, _item_count(name)) for name, _ in size_of.parameters}
    try:
        found = size_of.call(backend, arguments)
    except ExpressionError as error:
        raise _RowError(str(error)) from None
    if expected == found:
        return []
    return [
        Diagnostic.of(
            "scratch-difference",
            f"{function} of {backend.name}, {data_type} differs",
            where=where,
            found=f"{found} bytes, which is what Orchestrator computes",
            expected=f"{expected} bytes, as the table says",
            hint="a CMSIS-NN of this table needs sizes of its own: write expressions"
            " in its functions.yaml, see docs/scratch.md",
        )
    ]


# Scratch memory of calls as a table for people and as JSON data.

_TITLES = ("", "operator", "argument", "program", "CMSIS-NN", "needed", "library")
_NUMBERS = (0, 3, 4, 5)  # columns
_FIELDS = ("method", "instruction", "operator", "argument", "value", "library")


def scratch_json(needs: Needs, cmsis_nn: Needs) -> list[dict[str, object]]:
    """One object per scratch argument of a call; the keys are stable.

    Args:
        needs: With the sizes of the chosen kernels.
        cmsis_nn: With the sizes of CMSIS-NN, for operators that it has.
    """
    return [
        {
            "model": model,
            **picked(need, *_FIELDS, "reserved_bytes"),
            "cmsis_nn_bytes": cmsis_nn_bytes,
            "needed_bytes": need.needed_bytes,
        }
        for model, need, cmsis_nn_bytes in _side_by_side(needs, cmsis_nn)
    ]


def scratch_text(needs: Needs, cmsis_nn: Needs) -> str:
    """A table per method; sizes are bytes. See `scratch_json` for the arguments."""
    calls = [*_side_by_side(needs, cmsis_nn)]
    rows = [
        (
            str(need.instruction),
            need.operator,
            need.argument,
            f"{need.reserved_bytes:,}",
            "-" if other is None else f"{other:,}",
            f"{need.needed_bytes:,}",
            need.library,
        )
        for _, need, other in calls
    ]
    titles, *lines = table_lines([_TITLES, *rows], right=_NUMBERS)
    tables: dict[tuple[str, str], list[str]] = {}
    for (model, need, _), line in zip(calls, lines, strict=True):
        head = [f"{model}, method {printable(need.method)}", f"  {titles}"]
        table = tables.setdefault((model, need.method), head)
        is_short = need.reserved_bytes < need.needed_bytes
        table.append(f"  {line}" + "  (the program has too little)" * is_short)
    return "\n\n".join(map("\n".join, tables.values()))


def _side_by_side(needs: Needs, cmsis_nn: Needs) -> Iterator[tuple[str, ScratchNeed, int | None]]:
    """(model, need, size of CMSIS-NN) of every scratch argument."""
    for model in needs:
        sizes = {
            (n.method, n.instruction, n.argument): n.needed_bytes for n in cmsis_nn.get(model, ())
        }
        for need in needs[model]:
            key = (need.method, need.instruction, need.argument)
            yield model, need, sizes.get(key)
