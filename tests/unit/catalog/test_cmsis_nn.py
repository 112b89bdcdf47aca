"""CMSIS-NN's scratch sizes: equal to tables that its own code made."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.catalog import cmsis_nn
from orchestrator.catalog.cmsis_nn import Backend, Convolution, DataType, Pair, Shape

DATA = Path(__file__).resolve().parents[2] / "data"
CORPUS_TABLE = DATA / "corpus" / "cmsis_nn_scratch.csv"
RANDOM_TABLE = DATA / "scratch" / "rows.csv"


def numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("x")))


def size(row: dict[str, str]) -> int:
    """What the model gives for a row."""
    backend, types = Backend[row["backend"]], DataType[row["data_type"]]
    function = row["function"].removesuffix("_buffer_size")
    match function:
        case "avgpool":
            return cmsis_nn.avgpool(backend, types, channels=int(row["ch_src"]))
        case "svdf":
            return cmsis_nn.svdf(backend, filters=numbers(row["filter_nhwc"])[0])
        case "fully_connected":
            rows = numbers(row["filter_nhwc"])[3]
            return cmsis_nn.fully_connected(backend, types, rows=rows)
    of = Convolution(
        input=Shape(*numbers(row["input_nhwc"])),
        filter=Shape(*numbers(row["filter_nhwc"])),
        output=Shape(*numbers(row["output_nhwc"] or "0x0x0x0")),
        padding=Pair(*numbers(row["padding_hw"])),
        stride=Pair(*numbers(row["stride_hw"])),
        dilation=Pair(*numbers(row["dilation_hw"])),
        ch_mult=int(row["ch_mult"] or 0),
    )
    sizes = {
        "convolve_wrapper": lambda: cmsis_nn.convolve_wrapper(backend, types, of),
        "depthwise_conv_wrapper": lambda: cmsis_nn.depthwise_conv_wrapper(backend, types, of),
        "transpose_conv": lambda: cmsis_nn.transpose_conv(backend, of),
        "transpose_conv_reverse_conv": lambda: cmsis_nn.transpose_conv_reverse_conv(of),
    }
    return sizes[function]()


@pytest.mark.parametrize(
    ("table", "rows"), [(CORPUS_TABLE, 600), (RANDOM_TABLE, 2100)], ids=["corpus", "random"]
)
def test_every_row_of_a_table(table: Path, rows: int) -> None:
    with table.open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    assert len(found) == rows
    wrong = [
        (number, int(row["bytes"]), size(row))
        for number, row in enumerate(found, start=2)
        if size(row) != int(row["bytes"])
    ]
    assert wrong == []


def test_the_tables_have_every_function_type_and_backend() -> None:
    seen: Counter[tuple[str, str, str]] = Counter()
    for table in (CORPUS_TABLE, RANDOM_TABLE):
        with table.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                seen[row["function"], row["data_type"], row["backend"]] += 1
    kinds = {(function, types) for function, types, _ in seen}
    assert len(kinds) == 13
    assert len(seen) == len(kinds) * len(Backend)


def test_a_row_that_is_all_padding_has_no_room_for_the_short_way() -> None:
    of = Convolution(
        input=Shape(1, 1, 2, 4),
        filter=Shape(3, 1, 5, 4),
        output=Shape(1, 1, 2, 3),
        padding=Pair(0, 2),
        stride=Pair(1, 1),
    )
    assert of.is_1xn
    # Two columns of padding at each side are more than the two that there are.
    assert cmsis_nn.convolve_wrapper(Backend.MVE, DataType.A8W8, of) == 4 * 32
