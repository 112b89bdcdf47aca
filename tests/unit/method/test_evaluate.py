"""Evaluators: against PyTorch's results, at the edges, and what they decline.

tests/integration/test_evaluate.py compares them with the kernels, to the bit.
"""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from orchestrator.core.dtype import COMPLEX, ScalarType
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.evaluate import evaluated_kernels, results_of
from orchestrator.program.values import IntValue
from tests.unit.method.recorded_calls import (
    Call,
    Tensor,
    kernel_names,
    method_of,
    read_calls,
    reference_calls,
)

ROOT: Final = Path(__file__).parents[3]
S = ScalarType
FORMATS: Final = {
    S.Byte: "u1",
    S.Char: "i1",
    S.Short: "i2",
    S.Int: "i4",
    S.Long: "i8",
    S.Half: "f2",
    S.Float: "f4",
    S.Double: "f8",
    S.Bool: "?",
    S.BFloat16: "u2",
    S.UInt16: "u2",
    S.UInt32: "u4",
    S.UInt64: "u8",
}
INT8: Final = ROOT / "tests" / "data" / "cortex_m" / "calls.bin"
INF = math.inf
NAN = math.nan


def given(dtype: ScalarType, numbers: Any) -> Tensor:
    """An input."""
    found = np.asarray(numbers)
    data = found.astype(FORMATS[dtype]).tobytes()
    return Tensor(dtype, found.shape, tuple(range(found.ndim)), data)


def out(dtype: ScalarType, *sizes: int) -> Tensor:
    """An output."""
    count = math.prod(sizes) * dtype.item_bytes
    return Tensor(dtype, sizes, tuple(range(len(sizes))), bytes(count), is_out=True)


def evaluate(operator: str, *args: Any) -> dict[int, bytes] | None:
    """What the build computes for a call."""
    method = method_of([Call(operator, args)])
    (call,) = method.instructions
    assert isinstance(call, LinkedCall)
    found = results_of(method, call, frozenset())
    return None if found is None else {i: bytes(d) for i, d in found.items()}


def items(operator: str, *args: Any) -> list[Any] | None:
    """Items of the only output; -0.0 as "-0"."""
    found = evaluate(operator, *args)
    if found is None:
        return None
    (data,) = found.values()
    form = FORMATS[args[-1].dtype]
    numbers = np.frombuffer(data, form).tolist()
    return ["-0" if repr(n) == "-0.0" else n for n in numbers]


def numbers_of(dtype: ScalarType, data: bytes) -> np.ndarray[Any, Any]:
    """Items as doubles, or as integers."""
    if dtype is S.BFloat16:
        wide = np.frombuffer(data, "<u2").astype("<u4") << np.uint32(16)
        return wide.view("<f4").astype("f8")
    found = np.frombuffer(data, FORMATS[dtype])
    return found.astype("f8") if found.dtype.kind == "f" else found


def test_recorded_calls_match_pytorch() -> None:
    """Within the error that kernels may have.

    Only NaN and complex numbers are reasons to decline.

    Calls of `cortex_m` have the results of `tests/data/cortex_m/semantics.py`.
    """
    seen: Counter[str] = Counter()
    declined = 0
    for call in (*reference_calls(), *read_calls(INT8)):
        name = kernel_names().get(call.operator)
        if name not in evaluated_kernels():
            continue
        method = method_of([call])
        (linked,) = method.instructions
        assert isinstance(linked, LinkedCall)
        if any(t.dtype in COMPLEX for t in call.outs):
            results_of(method, linked, frozenset())  # it may decline, and may not fail
            continue
        wants = [numbers_of(t.dtype, t.data) for t in call.outs]
        got = results_of(method, linked, frozenset())
        if got is None:
            assert any(w.dtype.kind == "f" and np.isnan(w).any() for w in wants), call
            declined += 1
            continue
        seen[call.operator] += 1
        for index, want, tensor in zip(linked.outs, wants, call.outs, strict=True):
            found = numbers_of(tensor.dtype, bytes(got[index]))
            if found.dtype.kind != "f":
                assert (found == want).all(), call
                continue
            inside = np.isfinite(want)
            assert (found[~inside] == want[~inside]).all(), call
            error = np.abs(found[inside] - want[inside])
            assert (error <= call.atol + call.rtol * np.abs(want[inside])).all(), call
    every = {
        operator
        for operator, kernel in kernel_names().items()
        if kernel in evaluated_kernels() and not kernel.startswith("orch::prim_ops::")
    }
    assert every == {*seen}
    assert declined < seen.total() / 20


@pytest.mark.parametrize(
    ("operator", "dtype", "args", "want"),
    [
        # -0 and infinity
        ("add", S.Float, ([-0.0, -0.0, INF], [-0.0, 0.0, 1.0], 1), ["-0", 0.0, INF]),
        ("sub", S.Float, ([0.0, -0.0], [0.0, 0.0], 1), [0.0, "-0"]),
        ("mul", S.Float, ([-0.0, INF], [1.0, -2.0]), ["-0", -INF]),
        ("div", S.Float, ([1.0, -1.0, 0.0], [0.0, 0.0, -2.0]), [INF, -INF, "-0"]),
        ("neg", S.Float, ([0.0, -INF],), ["-0", INF]),
        # integers wrap around
        ("add", S.Char, ([127, -128], [1, -1], 1), [-128, 127]),
        ("add", S.Char, ([1, 1], [3, 100], 127), [126, -99]),
        ("sub", S.Byte, ([0, 5], [1, 7], 1), [255, 254]),
        ("mul", S.Int, ([1 << 30, -(1 << 31)], [4, -1]), [0, -(1 << 31)]),
        ("mul", S.Long, ([1 << 62, 3], [4, -5]), [0, -15]),
        ("neg", S.Char, ([-128, 5],), [-128, -5]),
        ("neg", S.Byte, ([1, 0],), [255, 0]),
        # each operation is rounded to the type in which the kernel computes
        ("add", S.Float, ([16777216.0], [0.1], 10), [16777216.0]),
        ("add", S.Half, ([2048.0], [0.75], 2), [2050.0]),
        ("mul", S.Half, ([65504.0], [2.0]), [INF]),
        ("add", S.Bool, ([True, False], [True, False], True), [True, False]),
    ],
)
def test_edges(operator: str, dtype: ScalarType, args: tuple[Any, ...], want: list[Any]) -> None:
    taken = [given(dtype, a) if isinstance(a, list) else a for a in args]
    assert items(f"aten::{operator}.out", *taken, out(dtype, len(want))) == want


@pytest.mark.parametrize(
    ("number", "dtype", "want"),
    [
        (-1.9, S.Char, -1),
        (130.0, S.Char, -126),
        (300, S.Char, 44),
        (3e9, S.Int, 3_000_000_000 - (1 << 32)),
        (1e19, S.Long, (1 << 63) - 1),
        (-INF, S.Long, -(1 << 63)),
        (NAN, S.Int, 0),
        (NAN, S.Float, None),
        (NAN, S.Bool, True),
        (16777217, S.Float, 16777216.0),
        (65519.0, S.Half, 65504.0),
        (65520.0, S.Half, INF),
        # by way of float32, where it becomes a tie
        (1 + 2.0**-11 + 2.0**-40, S.Half, 1.0),
        # halves are rounded to even
        (1 + 2.0**-8, S.BFloat16, 0x3F80),
        (1 + 3 * 2.0**-8, S.BFloat16, 0x3F82),
        (1 + 2.0**-8 + 2.0**-20, S.BFloat16, 0x3F81),
        (3.4e38, S.BFloat16, 0x7F80),
    ],
)
def test_numbers_become_items(number: float, dtype: ScalarType, want: Any) -> None:
    found = items("aten::scalar_tensor.out", number, out(dtype))
    assert found == (None if want is None else [want])


def test_sums_are_made_one_after_the_other() -> None:
    """In another order the small ones would add up."""
    numbers = [16777216.0, *[1.0] * 8]
    column, to = given(S.Float, [[1.0]] * 9), out(S.Float, 1, 1)
    row = given(S.Float, [numbers])
    assert items("aten::mm.out", row, column, to) == [16777216.0]
    row = given(S.Float, [numbers[::-1]])
    assert items("aten::mm.out", row, column, to) == [16777224.0]


def test_products_are_rounded_before_they_are_added() -> None:
    """A fused multiply-add would not round the product."""
    x = 1 + 2.0**-12
    rounded = float(np.float32(x) * np.float32(x)) - 1
    assert rounded != x * x - 1
    a, b = given(S.Float, [[-1.0, x]]), given(S.Float, [[1.0], [x]])
    assert items("aten::mm.out", a, b, out(S.Float, 1, 1)) == [rounded]


@pytest.mark.parametrize(
    ("scale", "zero", "numbers", "want"),
    [
        (1.0, 0, [0.5, 1.5, -0.5, -2.5], [0, 2, 0, -2]),  # ties to even
        (1.0, 0, [128.0, -200.0, INF, -INF, NAN], [127, -128, 127, -128, -128]),
        (0.1, 3, [0.25, -0.05], [5, 3]),
        (0.0, 0, [0.0, 1.0], [-128, 127]),
        # Quotients are just below the ties, products with 1 / scale are ties.
        (0.1, 0, [1.5499999523162842, 2.3499999046325684], [16, 24]),
    ],
)
def test_quantization(scale: float, zero: int, numbers: list[float], want: list[int]) -> None:
    found = items(
        "quantized_decomposed::quantize_per_tensor.out",
        *(given(S.Float, numbers), scale, zero, -128, 127, int(S.Char)),
        out(S.Char, len(numbers)),
    )
    assert found == want


def test_zero_points_have_32_bits() -> None:
    """Higher bits are dropped."""
    found = items(
        "quantized_decomposed::dequantize_per_channel.out",
        *(given(S.Char, [5]), given(S.Double, [0.5]), given(S.Long, [3 + (1 << 32)])),
        *(0, -128, 127, int(S.Char), None, out(S.Float, 1)),
    )
    assert found == [1.0]


@pytest.mark.parametrize(
    ("operator", "args"),
    [
        ("aten::add.out", ([1.0], [NAN], 1)),
        ("aten::sub.out", ([INF], [INF], 1)),
        ("aten::mul.out", ([0.0], [INF])),
        ("aten::div.out", ([0.0], [0.0])),
    ],
)
def test_nan_is_left_to_the_kernel(operator: str, args: tuple[Any, ...]) -> None:
    """Its bits depend on the machine."""
    taken = [given(S.Float, a) if isinstance(a, list) else a for a in args]
    assert items(operator, *taken, out(S.Float, 1)) is None


@pytest.mark.parametrize(
    ("operator", "args"),
    [
        # sizes
        ("aten::add.out", (given(S.Int, [1, 2]), given(S.Int, [1] * 3), 1)),
        ("aten::add.out", (given(S.Int, [1, 2]), given(S.Int, [1, 2]), 1)),
        # categories fall
        ("aten::add.out", (given(S.Float, [1.0]), given(S.Double, [1.0]), 1)),
        ("aten::add.out", (given(S.Int, [1]), given(S.Int, [1]), 0.5)),
        ("aten::div.out", (given(S.Int, [1]), given(S.Int, [1]))),
        # kinds of arguments
        ("aten::mul.out", (given(S.Int, [1]), 1)),
        ("aten::add.out", (given(S.Int, [1]), given(S.Int, [1]), "1")),
        ("aten::index.Tensor_out", (given(S.Int, [1]), 0)),
        ("aten::arange.start_out", (0.0, 1, 1)),
    ],
)
def test_errors_are_left_to_the_kernel(operator: str, args: tuple[Any, ...]) -> None:
    assert items(operator, *args, out(S.Int, 1)) is None


def test_sizes_that_do_not_fit_are_left_to_the_kernel() -> None:
    a, b = given(S.Float, [[1.0, 2.0]]), given(S.Float, [[1.0], [2.0]])
    to = out(S.Float, 1, 1)
    three = given(S.Float, [1.0, 2.0, 3.0])
    assert items("aten::addmm.out", three, a, b, 1, 1, to) is None
    assert items("aten::mm.out", a, a, to) is None
    assert items("aten::mul.out", three, a, to) is None


def test_tensors_in_a_list_must_be_constant() -> None:
    args = (given(S.Int, [7]), (given(S.Int, [0]),), out(S.Int, 1))
    method = method_of([Call("aten::index.Tensor_out", args)])
    (call,) = method.instructions
    assert isinstance(call, LinkedCall)
    assert results_of(method, call, frozenset()) is not None
    assert results_of(method, call, {1}) is None
    values = (method.values[0], IntValue(3), *method.values[2:])
    assert results_of(replace(method, values=values), call, frozenset()) is None
    assert results_of(replace(method, data=()), call, frozenset()) is None


@pytest.mark.parametrize("at", [5, -6])
def test_an_index_out_of_range_is_left_to_the_kernel(at: int) -> None:
    table = given(S.Float, [[float(i)] for i in range(5)])
    index = given(S.Long, [at])
    to = out(S.Float, 1, 1)
    assert evaluate("aten::index.Tensor_out", table, (index,), to) is None
    args = (table, index, -1, False, False, out(S.Float, 1, 1))
    assert evaluate("aten::embedding.out", *args) is None


def test_an_index_may_count_from_the_end_but_not_a_row() -> None:
    table, index = given(S.Int, [[1], [2], [3]]), given(S.Int, [-1])
    assert items("aten::index.Tensor_out", table, (index,), out(S.Int, 1, 1)) == [3]
    args = (table, index, -1, False, False, out(S.Int, 1, 1))
    assert items("aten::embedding.out", *args) is None


def test_dim_orders_are_followed() -> None:
    """Items are in the order of the output's memory."""
    a = replace(given(S.Int, [[1, 2, 3], [4, 5, 6]]), sizes=(3, 2), order=(1, 0))
    b = given(S.Int, [[10, 10], [20, 20], [30, 30]])
    to = replace(out(S.Int, 3, 2), order=(1, 0))
    assert items("aten::add.out", a, b, 1, to) == [11, 22, 33, 14, 25, 36]
    to = out(S.Int, 3, 2)
    assert items("aten::add.out", a, b, 1, to) == [11, 14, 22, 25, 33, 36]


def test_bytes_that_are_no_truth_value_are_left_to_the_kernel() -> None:
    odd = Tensor(S.Bool, (1,), (0,), b"\x02")
    assert items("aten::mul.out", odd, odd, out(S.Bool, 1)) is None


def test_kernels_of_others_are_not_computed() -> None:
    call = Call("aten::neg.out", (given(S.Int, [1]), out(S.Int, 1)))
    method = method_of([call])
    (linked,) = method.instructions
    assert isinstance(linked, LinkedCall)
    assert results_of(method, linked, frozenset()) == {1: struct.pack("<i", -1)}
    for function in ("mine::neg_out", "orch::portable::neg"):
        assert results_of(method, replace(linked, function=function), ()) is None


def test_values_that_a_run_writes_are_not_constant() -> None:
    number = Call("aten::full.out", ((1,), 3, out(S.Int, 1)))
    method = method_of([number])
    (linked,) = method.instructions
    assert isinstance(linked, LinkedCall)
    assert results_of(method, linked, frozenset()) is not None
    for index in range(len(method.values)):
        if index not in linked.outs and index != linked.args[0]:
            assert results_of(method, linked, {index}) is None


def test_the_page_names_the_operators_with_an_evaluator() -> None:
    page = (ROOT / "docs" / "constants.md").read_text(encoding="utf-8")
    rows = page.partition("## Computed")[2].partition("\n## ")[0]
    found = re.findall(r"`(\w+::[\w.]+)`", rows)
    assert len(found) == len({*found})
    assert {kernel_names()[name] for name in found} == evaluated_kernels()
