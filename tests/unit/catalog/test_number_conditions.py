"""Functions of conditions about dtypes of results, limits, and counts of ranges."""

from __future__ import annotations

from math import inf, nan

import pytest

from orchestrator.catalog.expressions.predicates import holds_whole, promoted
from orchestrator.catalog.expressions.shapes import broadcast, counted
from orchestrator.catalog.expressions.values import ExpressionError, TensorFacts
from orchestrator.core.dtype import ScalarType as S


def tensor(dtype: S, *sizes: int) -> TensorFacts:
    return TensorFacts(dtype=dtype, sizes=sizes)


@pytest.mark.parametrize(
    ("tensors", "expected"),
    [
        ([tensor(S.Byte, 2), tensor(S.Char, 2)], S.Short),
        ([tensor(S.Byte, 2), tensor(S.Long)], S.Byte),
        ([tensor(S.Byte, 2), tensor(S.Long), tensor(S.Half)], S.Half),
        ([tensor(S.Bool, 2), tensor(S.Long), tensor(S.Char)], S.Long),
        ([tensor(S.Half), tensor(S.BFloat16), tensor(S.Bool)], S.Float),
        ([tensor(S.Half, 1), None, tensor(S.Double)], S.Half),
        ([tensor(S.Bool), None, None], S.Bool),
    ],
)
def test_tensors_without_dimensions_count_if_their_category_is_higher(
    tensors: list[TensorFacts | None], expected: S
) -> None:
    assert promoted(*tensors) == expected


def test_tensors_that_are_none_do_not_broadcast() -> None:
    given = (tensor(S.Int, 3, 1), None, tensor(S.Int, 4))
    assert broadcast(*given) == (3, 4)


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [
        (S.Byte, -0.5, True),
        (S.Byte, -1.0, False),
        (S.Byte, 255.9, True),
        (S.Byte, 256, False),
        (S.Char, -128.9, True),
        (S.Long, 1e300, True),  # as far as 64 bits go
        (S.Int, -inf, False),
        (S.Char, nan, True),  # 0
        (S.Half, 1e300, True),
    ],
)
def test_fractions_of_limits_are_dropped(dtype: S, number: float, *, expected: bool) -> None:
    assert holds_whole(dtype, 0, number) is expected


@pytest.mark.parametrize(
    ("numbers", "dtype", "expected"),
    [
        ((0, 5, 2), S.Int, 3),
        ((5, -5, -3), S.Byte, 4),
        ((0.5, 5.5, 1.5), S.Short, 4),
        ((0.5, 5.5, 1.5), S.Long, 5),  # 0, 1, ... before 5
        ((0, 3, 0.5), S.Short, 6),
        ((0, 3, 0.5), S.Float, 6),
        ((0, 1 << 62, 1 << 61), S.Long, 2),
        ((3, 3, 1), S.Half, 0),
    ],
)
def test_ranges_are_counted_as_pytorch_does(
    numbers: tuple[int, int, int], dtype: S, expected: int
) -> None:
    assert counted(*numbers, dtype) == (expected,)


@pytest.mark.parametrize(
    ("numbers", "dtype", "message"),
    [
        ((0, 3, 0.5), S.Long, "the step is 0 without its fraction"),
        ((0, 3, 0), S.Int, "the step is 0"),
        ((0, inf, 1), S.Float, "a limit is infinite or not a number"),
        ((0, 1e30, 1e30), S.Int, "a number does not fit 64 bits"),
        ((3, 0, 1), S.Int, "the step never gets to the end"),
        ((0, 1, 1e-300), S.Float, "there would be"),
    ],
)
def test_ranges_without_end_are_refused(
    numbers: tuple[int, int, int], dtype: S, message: str
) -> None:
    with pytest.raises(ExpressionError, match=message):
        counted(*numbers, dtype)
