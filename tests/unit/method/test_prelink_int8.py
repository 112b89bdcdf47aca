"""The pass that computes calls on constants: int8 kernels, scratch, empty outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes import run_passes
from orchestrator.program.values import BoolValue, DoubleValue, IntValue, TensorValue
from tests.unit.method.methods import Builder

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedMethod

EVALUATE = "evaluate_constants"
IMAGE = bytes([1, 2, 3, 250, 3, 2, 5, 250, 1, 2, 1, 251, 3, 2, 3, 249])
MEANS = bytes([2, 2, 3, 250])


def typed(
    b: Builder, dtype: ScalarType, sizes: tuple[int, ...], place: int | None
) -> int:
    """The slot of a tensor of a dtype."""
    index = b.tensor(sizes, place)
    value = b.values[index]
    assert isinstance(value, TensorValue)
    b.values[index] = replace(value, dtype=dtype)
    return index


def averages(b: Builder, image: int, scratch: int, out: int, function: str) -> None:
    """A call of a pooling; its scratch follows the output among what it writes."""
    kernel, stride, padding = b.numbers(2, 2), b.numbers(1, 1), b.numbers(0, 0)
    zero, ceil_mode = b.value(IntValue(0)), b.value(BoolValue(value=False))
    b.call(
        "cortex_m::quantized_avg_pool2d_nhwc.out",
        *(image, kernel, stride, padding, ceil_mode, zero, zero, zero, scratch, out),
        outs=(out, scratch),
        function=function,
    )


def program(function: str) -> LinkedMethod:
    """Averages of a constant, whose place another kernel writes later."""
    b = Builder()
    char = ScalarType.Char
    image = typed(b, char, (1, 2, 2, 4), None)
    b.data = [(image, IMAGE)]
    scratch = b.tensor((4,), 4)
    y, x, largest, out = (typed(b, char, (1, 1, 1, 4), at) for at in (0, 8, 12, 0))
    averages(b, image, scratch, y, function)
    for base, args in (("maximum", (x, y, largest)), ("minimum", (x, largest, out))):
        kernel = f"orch::cortex_m::{base}_out"
        b.call(f"cortex_m::{base}.out", *args, function=kernel)
    return b.method((x,), (out,))


def bases(method: LinkedMethod) -> list[str]:
    """What is left of a method."""
    return [i.operator.base for i in method.instructions if isinstance(i, LinkedCall)]


def test_a_call_with_scratch_is_computed() -> None:
    method = program("orch::cortex_m::quantized_avg_pool2d_nhwc_out")
    after = run_passes(method, [EVALUATE, "drop_values"])
    assert bases(after) == ["maximum", "minimum"]
    assert [data for _, data in after.data] == [MEANS]


def test_kernels_of_others_stay() -> None:
    method = program("mine::average_out")
    assert run_passes(method, [EVALUATE]) == method


@pytest.mark.parametrize("place", [None, 40])
def test_an_output_without_items_does_not_matter(place: int | None) -> None:
    """Statistics that a normalization leaves empty."""
    b = Builder()
    single = ScalarType.Float
    ones = (b"\0\0\x80\x3f", b"\0\0\x00\x40")
    image, mean = typed(b, single, (1, 1), None), typed(b, single, (1,), None)
    b.data = [(image, ones[1]), (mean, ones[0])]
    empty = [typed(b, single, (0,), place) for _ in "ab"]
    y, x, out = (typed(b, single, (1, 1), at) for at in (0, 4, 8))
    eps, momentum = b.value(DoubleValue(0.0)), b.value(DoubleValue(0.1))
    name = "_native_batch_norm_legit_no_training"
    b.data = [item for item in b.data if item[0] not in empty]
    b.call(
        f"aten::{name}.out",
        *(image, mean, mean, mean, mean, momentum, eps, y, *empty),
        outs=(y, *empty),
        function=f"orch::portable::{name}_out",
    )
    b.call("aten::relu.out", x, out)
    b.call("mine::use.out", x, y, out)
    after = run_passes(b.method((x,), (out,)), [EVALUATE])
    assert bases(after) == ["relu", "use"]
    assert dict(after.data)[y] == ones[1]
