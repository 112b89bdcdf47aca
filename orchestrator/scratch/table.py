"""Tables of scratch sizes of another version of CMSIS-NN, compared with ours."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping

from orchestrator.catalog import cmsis_nn
from orchestrator.catalog.cmsis_nn import Backend, Convolution, DataType, Pair, Shape
from orchestrator.errors import (
    Diagnostic,
    MemoryPlanError,
    SourceSpan,
    UsageError,
    did_you_mean,
)

COLUMNS = (
    *("function", "backend", "data_type", "input_nhwc", "filter_nhwc", "output_nhwc"),
    *("padding_hw", "stride_hw", "dilation_hw", "ch_mult", "padding_offsets_hw"),
    *("input_offset", "output_offset", "activation_min", "activation_max"),
    *("dim_dst_width", "ch_src", "bytes"),
)
_SHOWN = 20  # problems of one kind
_NUMBER = re.compile(r"-?[0-9]{1,10}")


class _RowError(ValueError):
    """A row of a table of scratch sizes is damaged."""


class _Row:
    """Cells of a row, by column."""

    def __init__(self, header: list[str], cells: list[str]) -> None:
        if len(cells) != len(header):
            raise _RowError(
                f"the row has {len(cells)} cells, the first one has {len(header)}"
            )
        self._cells = dict(zip(header, cells, strict=True))

    def __getitem__(self, column: str) -> str:
        return self._cells[column]

    def choice(self, column: str, known: Iterable[str]) -> str:
        """A name out of a closed set."""
        known, found = tuple(known), self[column]
        if found not in known:
            near = did_you_mean(found, known) or f"known are {', '.join(known)}"
            raise _RowError(f'{column} cannot be "{found}", {near}')
        return found

    def numbers(self, column: str, count: int) -> tuple[int, ...]:
        """A given count of numbers with an x between."""
        parts = self[column].split("x")
        if len(parts) != count or not all(map(_NUMBER.fullmatch, parts)):
            form = "x".join(["1"] * count) if count > 1 else "1"
            raise _RowError(f'{column} is "{self[column]}", not like {form}')
        return tuple(map(int, parts))

    def number(self, column: str) -> int:
        """One number."""
        return self.numbers(column, 1)[0]

    def shape(self, column: str) -> Shape:
        """Sizes of images or of a filter."""
        return Shape(*self.numbers(column, len(Shape._fields)))

    def pair(self, column: str) -> Pair:
        """A setting of rows and columns."""
        return Pair(*self.numbers(column, len(Pair._fields)))

    def convolution(self, *, output: bool = True, ch_mult: bool = False) -> Convolution:
        """The geometry of a row; columns that do not matter may be empty."""
        stride = self.pair("stride_hw")
        if min(stride) < 1:
            raise _RowError(f'stride_hw is "{self["stride_hw"]}", not 1 or more')
        return Convolution(
            input=self.shape("input_nhwc"),
            filter=self.shape("filter_nhwc"),
            output=self.shape("output_nhwc") if output else Shape(1, 1, 1, 1),
            padding=self.pair("padding_hw"),
            stride=stride,
            dilation=self.pair("dilation_hw"),
            ch_mult=self.number("ch_mult") if ch_mult else 1,
        )


_Size = Callable[[Backend, DataType, _Row], int]
_8_BIT_WEIGHTS = (DataType.A8W8, DataType.A16W8)
_FUNCTIONS: Mapping[str, tuple[tuple[DataType, ...], _Size]] = {
    "convolve_wrapper_buffer_size": (
        tuple(DataType),
        lambda b, t, row: cmsis_nn.convolve_wrapper(b, t, row.convolution()),
    ),
    "depthwise_conv_wrapper_buffer_size": (
        tuple(DataType),
        lambda b, t, row: cmsis_nn.depthwise_conv_wrapper(
            b, t, row.convolution(ch_mult=True)
        ),
    ),
    "transpose_conv_buffer_size": (
        (DataType.A8W8,),
        lambda b, _, row: cmsis_nn.transpose_conv(b, row.convolution()),
    ),
    "transpose_conv_reverse_conv_buffer_size": (
        (DataType.A8W8,),
        lambda _b, _t, row: cmsis_nn.transpose_conv_reverse_conv(
            row.convolution(output=False)
        ),
    ),
    "fully_connected_buffer_size": (
        _8_BIT_WEIGHTS,
        lambda b, t, row: cmsis_nn.fully_connected(
            b, t, rows=row.shape("filter_nhwc").c
        ),
    ),
    "avgpool_buffer_size": (
        _8_BIT_WEIGHTS,
        lambda b, t, row: cmsis_nn.avgpool(b, t, channels=row.number("ch_src")),
    ),
    "svdf_buffer_size": (
        (DataType.A8W8,),
        lambda b, _, row: cmsis_nn.svdf(b, filters=row.shape("filter_nhwc").n),
    ),
}


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


def _check(
    file: str, text: str, bad: list[Diagnostic], different: list[Diagnostic]
) -> int:
    """Count of the rows of a table; adds to the problems and to the differences."""
    lines = [line.rstrip("\r") for line in text.removeprefix("\ufeff").split("\n")]
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
        message=f"{where.file} is no table of scratch sizes: {problem}",
        where=where,
        hint="docs/scratch.md tells what such a table holds",
    )


def _differences(row: _Row, where: SourceSpan) -> list[Diagnostic]:
    """The difference of a row, if there is one. Raises _RowError."""
    function = row.choice("function", _FUNCTIONS)
    types, size_of = _FUNCTIONS[function]
    backend = Backend[row.choice("backend", Backend.__members__)]
    data_type = DataType(row.choice("data_type", types))
    expected, found = row.number("bytes"), size_of(backend, data_type, row)
    if expected == found:
        return []
    return [
        Diagnostic(
            code="scratch-difference",
            message=f"{function} of {backend.name}, {data_type} differs",
            where=where,
            notes=(
                ("found", f"{found} bytes, which is what Orchestrator computes"),
                ("expected", f"{expected} bytes, as the table says"),
            ),
            hint="a CMSIS-NN of this table needs sizes of its own: write expressions"
            " in its functions.yaml, docs/scratch.md tells how",
        )
    ]
