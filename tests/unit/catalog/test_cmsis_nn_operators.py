"""Scratch sizes of ExecuTorch's operators: what its exporter reserved in programs."""

from __future__ import annotations

import pytest

from orchestrator.catalog.expressions.condition import scratch_bytes
from orchestrator.catalog.expressions.values import TensorFacts, Value
from orchestrator.catalog.operator_page import cmsis_nn_sizes
from orchestrator.core.dtype import ScalarType
from orchestrator.core.operator import parse_schema

CONV = (
    "cortex_m::{name}.out(Tensor input, Tensor weight, Tensor? bias, int[] stride,"
    " int[] padding, int[] dilation, int input_offset, Tensor scratch, *,"
    " Tensor(a!) out) -> Tensor(a!)"
)


def tensor(*sizes: int) -> TensorFacts:
    return TensorFacts(sizes=sizes, dtype=ScalarType.Char)


@pytest.mark.parametrize(
    ("name", "sizes"), [("quantized_conv2d", "nchw"), ("quantized_conv2d_nhwc", "nhwc")]
)
def test_operators_in_both_orders_of_sizes(name: str, sizes: str) -> None:
    schema = parse_schema(CONV.format(name=name))
    ((argument, text),) = cmsis_nn_sizes(schema)
    nchw = sizes == "nchw"
    arguments: dict[str, Value] = {
        "input": tensor(1, 6, 9, 8) if nchw else tensor(1, 9, 8, 6),
        "out": tensor(1, 5, 9, 8) if nchw else tensor(1, 9, 8, 5),
        "weight": tensor(5, 3, 3, 6),
        "stride": (1, 1),
        "padding": (1, 1),
        "dilation": (1, 1),
    }
    assert argument == "scratch"
    assert scratch_bytes(text, schema, arguments, "mve") == 4 * 64
    assert scratch_bytes(text, schema, arguments, "dsp") == 2 * 56 * 2


def test_matrix_products() -> None:
    schema = parse_schema(
        "cortex_m::quantized_batch_matmul.out(Tensor lhs, int lhs_zero_point,"
        " Tensor rhs_transposed, Tensor scratch, *, Tensor(a!) out) -> Tensor(a!)"
    )
    ((_, text),) = cmsis_nn_sizes(schema)
    arguments: dict[str, Value] = {"rhs_transposed": tensor(2, 7, 30)}
    assert scratch_bytes(text, schema, arguments, "mve") == 4 * 7
    assert scratch_bytes(text, schema, arguments, "scalar") == 0


@pytest.mark.parametrize(
    "schema",
    [
        CONV.format(name="quantized_conv2d").replace("cortex_m::", "my::"),
        CONV.format(name="quantized_conv3d"),
        CONV.format(name="quantized_conv2d").replace("weight", "filter"),
        CONV.format(name="quantized_conv2d").replace("scratch", "row_scratch"),
        "cortex_m::pad.out(Tensor input, *, Tensor(a!) out) -> Tensor(a!)",
    ],
)
def test_other_operators_have_none(schema: str) -> None:
    assert cmsis_nn_sizes(parse_schema(schema)) == ()
