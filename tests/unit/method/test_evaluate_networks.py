"""Evaluators of functions, images, indices and int8: edges, and what they decline.

tests/integration/test_evaluate.py compares them with the kernels, to the bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from tests.unit.method.test_evaluate import evaluate, given, items, out

S = ScalarType
INF = math.inf
LARGEST = 3.4028234663852886e38


@pytest.mark.parametrize(
    ("operator", "numbers", "want"),
    [
        ("sin", [0.0, -0.0], [0.0, "-0"]),
        ("cos", [0.0, -0.0], [1.0, 1.0]),
        ("tanh", [INF, -INF, -0.0, 20.0], [1.0, -1.0, "-0", 1.0]),
        ("sigmoid", [INF, -INF, 0.0, -746.0, 746.0], [1.0, 0.0, 0.5, 0.0, 1.0]),
    ],
)
def test_functions_at_their_ends(
    operator: str, numbers: list[float], want: list[Any]
) -> None:
    for dtype in (S.Float, S.Double, S.Half):
        found = items(
            f"aten::{operator}.out", given(dtype, numbers), out(dtype, len(numbers))
        )
        assert found == want


@pytest.mark.parametrize("x", [0.8, 3.0, 355.0, 1e5, 1e22, LARGEST, 1.7e308])
def test_sine_and_cosine_of_any_size(x: float) -> None:
    """Within two last places of the C library's."""
    for dtype, number, places in (
        (S.Float, float(np.float32(min(x, LARGEST))), 2**-22),
        (S.Double, x, 2**-51),
    ):
        for operator, fn in (("sin", math.sin), ("cos", math.cos)):
            found = items(
                f"aten::{operator}.out", given(dtype, [number]), out(dtype, 1)
            )
            assert found == [pytest.approx(fn(number), rel=places, abs=0)]


def test_the_sine_of_infinity_is_left_to_the_kernel() -> None:
    assert items("aten::sin.out", given(S.Float, [INF]), out(S.Float, 1)) is None


def test_integers_are_computed_in_floats() -> None:
    assert items("aten::cos.out", given(S.Long, [0]), out(S.Double, 1)) == [1.0]
    third = float(np.float32(math.cos(3)))
    assert items("aten::cos.out", given(S.Int, [3]), out(S.Double, 1)) == [third]
    assert items("aten::cos.out", given(S.Int, [3]), out(S.Int, 1)) is None


def test_words_of_gelu() -> None:
    one = given(S.Float, [1.0])
    exact = items("aten::gelu.out", one, "none", out(S.Float, 1))
    rough = items("aten::gelu.out", one, "tanh", out(S.Float, 1))
    assert exact == [pytest.approx(0.8413447, rel=1e-6)]
    assert rough == [pytest.approx(0.8411920, rel=1e-6)]
    assert items("aten::gelu.out", one, "tan", out(S.Float, 1)) is None


def test_where_weights_lie_on_padding_only_nothing_is_added() -> None:
    """0 times infinity would be NaN, and 0 added to -0 is 0."""
    image, weight = given(S.Float, [[[1.0]]]), given(S.Float, [[[INF]]])
    lists = ((1,), (1,), (1,))
    args = (*lists, False, (0,), 1, out(S.Float, 1, 1, 3))
    bias = given(S.Float, [-0.0])
    found = items("aten::convolution.out", image, weight, bias, *args)
    assert found == ["-0", INF, "-0"]


def test_convolutions_that_do_not_fit_are_left_to_the_kernel() -> None:
    image, weight = given(S.Float, np.ones((1, 2, 3, 3))), np.ones((2, 2, 2, 2))

    def convolved(weights: Any, *, stride: int = 1, more: int = 0) -> Any:
        lists = ((stride,), (0,), (1,))
        args = (None, *lists, more > 0, (more,), 1, out(S.Float, 1, 2, 2, 2))
        return items("aten::convolution.out", image, given(S.Float, weights), *args)

    assert convolved(weight) == [8.0] * 8
    assert convolved(weight[:, :1]) is None
    assert convolved(np.ones((2, 2, 4, 4))) is None
    assert convolved(weight, stride=2) is None  # the output has other sizes
    assert convolved(weight, more=1) is None  # as large as the stride
    assert convolved(weight[0]) is None


@pytest.mark.parametrize("dtype", [S.Half, S.Float, S.Long, S.Bool])
def test_values_for_one_item_come_in_their_order(dtype: ScalarType) -> None:
    """The last one stays; sums are rounded each time."""
    table, index = given(dtype, [0, 0, 0]), given(S.Long, [2, 0, 2])
    values = given(dtype, [1, 1, 0])
    for accumulates, want in ((False, [1, 0, 0]), (True, [1, 0, 1])):
        args = (table, (index,), values, accumulates, out(dtype, 3))
        assert items("aten::index_put.out", *args) == want


def test_sums_of_halves_are_rounded_each_time() -> None:
    table, index = given(S.Half, [2048.0]), given(S.Long, [0, 0, 0])
    values = given(S.Half, [1.0, 1.0, 1.0])
    args = (table, (index,), values, True, out(S.Half, 1))
    assert items("aten::index_put.out", *args) == [2048.0]


def test_indices_out_of_range_are_left_to_the_kernel() -> None:
    table, values = given(S.Int, [1, 2]), given(S.Int, [5])
    for index in ([2], [-3]):
        args = (table, (given(S.Long, index),), values, False, out(S.Int, 2))
        assert items("aten::index_put.out", *args) is None
    args = (table, (given(S.Long, [1]),), given(S.Int, [1, 2, 3]), False, out(S.Int, 2))
    assert items("aten::index_put.out", *args) is None


def test_the_first_of_the_largest_and_windows_in_the_padding() -> None:
    image = given(S.Char, [[[3, 7, 7], [7, -128, -128]]])
    args = (image, (2, 3), (1, 1), (0, 1), (1, 1), False)
    outs = (out(S.Char, 1, 1, 3), out(S.Long, 1, 1, 3))
    found = evaluate("aten::max_pool2d_with_indices.out", *args, *outs)
    assert found is not None
    largest, places = found.values()
    assert largest == bytes([7, 7, 7])
    assert np.frombuffer(places, "<i8").tolist() == [1, 1, 1]


def test_averages_of_padding_and_of_nothing() -> None:
    image = given(S.Float, [[[3.0]]])

    def averages(*, counts: bool, divisor: int | None = None) -> Any:
        lists = ((2, 2), (1, 1), (1, 1))
        args = (*lists, False, counts, divisor, out(S.Float, 1, 2, 2))
        return items("aten::avg_pool2d.out", image, *args)

    assert averages(counts=True) == [0.75] * 4
    assert averages(counts=False) == [3.0] * 4
    assert averages(counts=False, divisor=-2) == [-1.5] * 4
    assert averages(counts=False, divisor=0) is None


def test_images_are_scaled_by_factors_or_to_sizes() -> None:
    image = given(S.Int, [[[[1, 2]]]])
    to = out(S.Int, 1, 1, 1, 4)
    name = "aten::upsample_nearest2d.vec_out"
    assert items(name, image, (1, 4), None, to) == [1, 1, 2, 2]
    assert items(name, image, None, (1.0, 2.0), to) == [1, 1, 2, 2]
    for sizes, factors in (
        (None, None),
        ((1, 4), (1.0, 2.0)),
        (None, (1, 2)),
        (None, (1.0,)),
        (None, (1.0, math.nan)),
        ((1, 0), None),
    ):
        assert items(name, image, sizes, factors, to) is None


HUGE = 1 << 29


@pytest.mark.parametrize(
    ("operator", "args"),
    [
        ("avg_pool2d.out", ((HUGE, HUGE), (1, 1), (0, 0), True, False, None)),
        ("avg_pool2d.out", ((HUGE,), (HUGE,), (HUGE >> 1,), False, False, None)),
        ("upsample_nearest2d.vec_out", ((HUGE, HUGE), None)),
        ("upsample_nearest2d.vec_out", (None, (1e8, 1e8))),
    ],
)
def test_what_would_be_huge_is_not_tried(operator: str, args: tuple[Any, ...]) -> None:
    """Sizes of the output are compared before memory is taken."""
    image = given(S.Float, np.ones((1, 1, 2, 2)))
    to = out(S.Float, 1, 1, 3, 3)
    assert items(f"aten::{operator}", image, *args, to) is None


def test_taps_far_from_the_input_take_no_time() -> None:
    """Windows of 2^28 items over an image of one."""
    window, padding = (HUGE >> 1,), (HUGE >> 2,)
    rest = (window, (1,), padding, False)
    image, to = given(S.Float, [[[5.0]]]), out(S.Float, 1, 2, 2)
    more: tuple[Any, ...] = (False, None, to)
    assert items("aten::avg_pool2d.out", image, *rest, *more) == [5.0] * 4
    image, to = given(S.Char, np.full((1, 1, 1, 1), 7, "i1")), out(S.Char, 1, 2, 2, 1)
    more = (0, 0, 0, given(S.Byte, []), to)
    name = "cortex_m::quantized_avg_pool2d_nhwc.out"
    assert items(name, image, *rest, *more) == [7] * 4


def test_values_for_far_too_many_places_are_not_put() -> None:
    table, rows = np.zeros((1, 1 << 14), "i1"), np.zeros(1 << 13, "i8")
    args = (given(S.Char, table), (given(S.Long, rows),), given(S.Char, [1]), False)
    assert items("aten::index_put.out", *args, out(S.Char, 1, 1 << 14)) is None


def test_softmax_of_nothing() -> None:
    x = given(S.Char, np.zeros((2, 0), "i1"))
    args = (x, 0, 0, -128, 1 << 30, 1, -100, out(S.Char, 2, 0))
    assert items("cortex_m::softmax.out", *args) == []


@pytest.mark.parametrize(
    ("multiplier", "limits", "want"),
    [
        (-(1 << 31), (-128, 127), None),
        (1 - (1 << 31), (-128, 127), [127]),
        (1 - (1 << 31), (127, -128), None),
    ],
)
def test_what_vectors_do_otherwise_is_left_to_the_kernel(
    multiplier: int, limits: tuple[int, int], want: list[int] | None
) -> None:
    """The lowest of 32 bits by itself; limits the wrong way round."""
    x, y = given(S.Char, [-128]), given(S.Char, [0])
    rest = (0, 1 << 30, 0, *limits, out(S.Char, 1))
    args = (x, 0, multiplier, 4, y, 0, 0, 0, *rest)
    assert items("cortex_m::quantized_add.out", *args) == want


def test_int8_images_are_channels_last() -> None:
    """In memory; a dimension of size 1 may lie anywhere."""
    image = given(S.Char, np.ones((1, 2, 3, 3), "i1"))
    lists = ((2, 2), (1, 1), (0, 0))
    scratch = given(S.Byte, [])
    rest = (*lists, False, 0, 0, 0, scratch)
    plain = out(S.Char, 1, 2, 2, 2)
    assert items("cortex_m::quantized_avg_pool2d.out", image, *rest, plain) is None
    line = given(S.Char, np.full((1, 1, 3, 3), 5, "i1"))
    found = items(
        "cortex_m::quantized_avg_pool2d.out", line, *rest, out(S.Char, 1, 1, 2, 2)
    )
    assert found == [5] * 4
