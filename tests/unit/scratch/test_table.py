"""Tables of scratch sizes: those that agree, that differ and that are none."""

from __future__ import annotations

import pytest

from orchestrator.errors import Diagnostic, ExitCode, MemoryPlanError, SourceSpan, UsageError
from orchestrator.scratch.table import check_tables
from tests.conftest import CORPUS

TABLES = (CORPUS / "cmsis_nn_scratch.csv", CORPUS.parent / "scratch" / "rows.csv")
HEADER = (
    "function,backend,data_type,input_nhwc,filter_nhwc,output_nhwc,padding_hw,stride_hw,"
    "dilation_hw,ch_mult,padding_offsets_hw,input_offset,output_offset,activation_min,"
    "activation_max,dim_dst_width,ch_src,bytes"
)
POOL = "avgpool_buffer_size,DSP,A8W8,,,,,,,,,,,,,49,64,256"
CONV = (
    "convolve_wrapper_buffer_size,MVE,A8W8,1x9x9x6,5x3x3x6,1x9x9x5,1x1,1x1,1x1,,,0,0,-128,127,,,256"
)
NO_TABLE = "t.csv is not a table of scratch sizes: "
HINT = "docs/scratch.md describes such tables"


def test_tables_that_agree() -> None:
    tables = {path.name: path.read_text() for path in TABLES}
    assert check_tables(tables) == {"cmsis_nn_scratch.csv": 600, "rows.csv": 2100}


@pytest.mark.parametrize(
    "text",
    [
        f"{HEADER}\n{POOL}\n{CONV}",
        f"\ufeff{HEADER}\r\n{POOL}\r\n\r\n{CONV}\r\n",
        "bytes,ch_src,"
        + HEADER.removesuffix(",ch_src,bytes")
        + "\n256,64,"
        + POOL.removesuffix(",64,256")
        + "\n256,,"
        + CONV.removesuffix(",,256"),
    ],
)
def test_forms_of_a_table(text: str) -> None:
    assert check_tables({"t.csv": text}) == {"t.csv": 2}


def test_a_table_without_rows() -> None:
    assert check_tables({"t.csv": HEADER}) == {"t.csv": 0}


def test_a_row_that_is_no_csv() -> None:
    with pytest.raises(UsageError) as caught:
        check_tables({"t.csv": f"{HEADER}\n{POOL}\nfunc\rtion,{POOL}\n{POOL}"})
    (problem,) = caught.value.diagnostics
    assert problem.message.startswith(NO_TABLE + "new-line character seen")
    assert problem.where == SourceSpan(file="t.csv", line=3)


def differing(file: str, line: int, text: str, name: str, sizes: tuple[int, int]) -> Diagnostic:
    return Diagnostic(
        code="scratch-difference",
        message=f"{name} differs",
        where=SourceSpan(file=file, line=line, text=text),
        notes=(
            ("found", f"{sizes[0]} bytes, which is what Orchestrator computes"),
            ("expected", f"{sizes[1]} bytes, as the table says"),
        ),
        hint="a CMSIS-NN of this table needs sizes of its own: write expressions in its"
        " functions.yaml, see docs/scratch.md",
    )


def test_every_row_that_differs_is_named() -> None:
    pool = POOL.replace("256", "257")
    conv = CONV.replace("MVE", "DSP")
    with pytest.raises(MemoryPlanError) as caught:
        check_tables({"a.csv": f"{HEADER}\n{CONV}\n\n{pool}\n", "b.csv": f"{HEADER}\n{conv}"})
    assert caught.value.exit_code is ExitCode.MEMORY
    assert caught.value.diagnostics == (
        differing("a.csv", 4, pool, "avgpool_buffer_size of DSP, A8W8", (256, 257)),
        differing("b.csv", 2, conv, "convolve_wrapper_buffer_size of DSP, A8W8", (224, 256)),
    )


@pytest.mark.parametrize(
    ("more", "message"), [(1, "1 more row is different"), (2, "2 more rows are different")]
)
def test_the_first_of_many_are_named(more: int, message: str) -> None:
    rows = "\n".join([POOL.replace("256", "0")] * (20 + more))
    with pytest.raises(MemoryPlanError) as caught:
        check_tables({"t.csv": f"{HEADER}\n{rows}"})
    assert len(caught.value.diagnostics) == 21
    assert caught.value.diagnostics[-1] == Diagnostic(
        code="scratch-difference", message=message, hint="the first 20 are above"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            "there is no column function, backend, data_type, input_nhwc, filter_nhwc,"
            " output_nhwc, padding_hw, stride_hw, dilation_hw, ch_mult,"
            " padding_offsets_hw, input_offset, output_offset, activation_min,"
            " activation_max, dim_dst_width,"
            " ch_src, bytes",
        ),
        (HEADER.removesuffix(",bytes"), "there is no column bytes"),
        (f"{HEADER},note", "there is a column note"),
        (f"{HEADER},bytes", "a column occurs twice"),
    ],
)
def test_wrong_columns(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_tables({"t.csv": text})
    assert caught.value.diagnostics == (
        Diagnostic(
            code="bad-scratch-table",
            message=NO_TABLE + message,
            where=SourceSpan(file="t.csv", line=1, text=text),
            hint=HINT,
        ),
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (f"{POOL},1", "the row has 19 cells, the first one has 18"),
        (
            POOL.replace("avgpool", "avgpol"),
            'function cannot be "avgpol_buffer_size", did you mean "avgpool_buffer_size"?',
        ),
        (POOL.replace("DSP", "NEON"), 'backend cannot be "NEON", use one of SCALAR, DSP, MVE'),
        (POOL.replace("A8W8", "A8W4"), 'data_type cannot be "A8W4", did you mean "A8W8"?'),
        (POOL.replace("256", ""), 'bytes is "", not like 1'),
        (POOL.replace("64", "6.4"), 'ch_src is "6.4", not like 1'),
        (CONV.replace("1x9x9x6", "1x9x9"), 'input_nhwc is "1x9x9", not like 1x1x1x1'),
        (CONV.replace("5x3x3x6", ""), 'filter_nhwc is "", not like 1x1x1x1'),
        (CONV.replace(",1x1,1x1,1x1,", ",1x1x1,1x1,1x1,"), 'padding_hw is "1x1x1", not like 1x1'),
        (CONV.replace(",1x1,1x1,1x1,", ",1x1,1x0,1x1,"), "stride_hw is [1, 0], not 1 or more"),
        (
            f'"{POOL}"',
            'function cannot be ""avgpool_buffer_size", did you mean "avgpool_buffer_size"?',
        ),
    ],
)
def test_wrong_rows(row: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        # A row that differs is not reported while others cannot be read.
        check_tables({"t.csv": f"{HEADER}\n{POOL.replace('256', '0')}\n{row}\n"})
    assert caught.value.diagnostics == (
        Diagnostic(
            code="bad-scratch-table",
            message=NO_TABLE + message,
            where=SourceSpan(file="t.csv", line=3, text=row),
            hint=HINT,
        ),
    )
