"""Tables of scratch sizes, to compare CMSIS-NN's sizes of another version with ours."""

from __future__ import annotations

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
    """A row is not one of a table of scratch sizes."""


class _Row:
    """Cells of a row, by column."""

    def __init__(self, cells: Mapping[str, str]) -> None:
        self._cells = cells

    def __getitem__(self, column: str) -> str:
        return self._cells[column]

    def choice(self, column: str, known: Iterable[str]) -> str:
        """One of the names a column may have."""
        known, found = tuple(known), self[column]
        if found not in known:
            near = did_you_mean(found, known) or f"known are {', '.join(known)}"
            raise _RowError(f'{column} cannot be "{found}", {near}')
        return found

    def numbers(self, column: str, count: int) -> tuple[int, ...]:
        """So many numbers with an x between."""
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
    """The first problems, and how many there are besides."""
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
    """Rows of a table; notes those that are wrong and those that differ."""
    lines = text.removeprefix("\ufeff").split("\n")
    header = lines[0].rstrip("\r").split(",")
    if problem := _wrong_header(header):
        bad.append(_bad(SourceSpan(file=file, line=1, text=lines[0]), problem))
        return 0
    rows = 0
    for number, line in enumerate(lines[1:], start=2):
        where = SourceSpan(file=file, line=number, text=line.rstrip("\r"))
        if not where.text:
            continue
        rows += 1
        cells = where.text.split(",")
        if len(cells) != len(header):
            found = f"the row has {len(cells)} cells, the first one has {len(header)}"
            bad.append(_bad(where, found))
            continue
        try:
            different += _differences(
                _Row(dict(zip(header, cells, strict=True))), where
            )
        except _RowError as error:
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
