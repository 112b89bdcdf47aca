"""Sizes and predicates of reductions, distances and adaptive pooling."""

from __future__ import annotations

import pytest

from orchestrator.catalog.expressions import reductions
from orchestrator.catalog.expressions.values import (
    ExpressionError,
    Number,
    Range,
    TensorFacts,
    Undecided,
)
from orchestrator.core.dtype import ScalarType


def tensor(*sizes: Number) -> TensorFacts:
    return TensorFacts(dtype=ScalarType.Float, sizes=sizes, dim_order=tuple(range(len(sizes))))


def test_a_reduction_has_items_unless_one_of_its_dimensions_is_empty() -> None:
    x = tensor(2, 0, 3)
    assert reductions.has_items(x, (0, -1))
    assert reductions.has_items(x, 2)
    assert not reductions.has_items(x, (0, 1))
    assert not reductions.has_items(x, None)
    assert not reductions.has_items(x, ())
    assert reductions.has_items(tensor(), (0,))
    with pytest.raises(Undecided):
        reductions.has_items(tensor(Range(0, 4)), None)
    with pytest.raises(ExpressionError):
        reductions.has_items(x, (3,))


def test_lengths_and_sizes_along_a_dimension() -> None:
    assert reductions.length(tensor(2, 5), -1) == 5
    assert reductions.length(tensor(), -1) == 1
    assert reductions.resized(tensor(2, 5), -1, 3) == (2, 3)
    assert reductions.resized(tensor(), 0, 3) == ()
    assert reductions.halved(tensor(2, 6), 1) == (2, 3)
    assert reductions.area(tensor(9, 9, 4, 5)) == 20
    assert reductions.area(tensor(9, 9)) == 1
    for odd in (tensor(2, 5), tensor()):
        with pytest.raises(ExpressionError):
            reductions.halved(odd, -1)


def test_sizes_of_adaptive_pooling() -> None:
    assert reductions.adapted(tensor(0, 3, 7, 7), (2, 9)) == (0, 3, 2, 9)
    assert reductions.adapted(tensor(3, 7, 7), (0,)) == (3, 0, 0)
    for image, sizes in (
        (tensor(7, 7), (1, 1)),
        (tensor(3, 7, 0), (1, 1)),
        (tensor(3, 7, 7), (1, 1, 1)),
        (tensor(3, 7, 7), (1, -1)),
        (tensor(3, 7, 7), (1, 1 << 31)),
    ):
        with pytest.raises(ExpressionError):
            reductions.adapted(image, sizes)


def test_sizes_of_volumes() -> None:
    assert reductions.adapted(tensor(0, 3, 7, 7, 7), (2, 9, 1), dims=3) == (0, 3, 2, 9, 1)
    assert reductions.adapted(tensor(3, 7, 7, 7), (0,), dims=3) == (3, 0, 0, 0)
    with pytest.raises(ExpressionError):
        reductions.adapted(tensor(3, 7, 7), (1,), dims=3)


def test_sizes_of_products_of_three() -> None:
    a, b, c = tensor(8, 3), tensor(5, 3, 4), tensor(8, 4)
    added = ((1, 3), (0,), (1, -2))
    assert reductions.trilinear(a, b, c, *added, (2, 3)) == (8, 5)
    assert reductions.trilinear(a, b, c, *added, ()) == (8, 5, 3, 4)
    for wrong in (((1,), (0,), (1, 2)), ((0, 1), (0,), (0, 1)), ((1, 9), (0,), (1, 2))):
        with pytest.raises(ExpressionError):
            reductions.trilinear(a, b, c, wrong[0], wrong[1], wrong[2], (2, 3))


def test_sizes_of_linear_layers() -> None:
    assert reductions.applied(tensor(4, 2, 3), tensor(5, 3)) == (4, 2, 5)
    for given, weight in (
        (tensor(), tensor(5, 3)),
        (tensor(3), tensor(3)),
        (tensor(2), tensor(5, 3)),
    ):
        with pytest.raises(ExpressionError):
            reductions.applied(given, weight)


def test_sizes_of_distances() -> None:
    rows = reductions.distances(tensor(5, 1, 2, 3), tensor(4, 6, 3))
    assert rows == (5, 4, 2, 6)
    assert reductions.pairs(tensor(5, 3)) == (10,)
    assert reductions.pairs(tensor(0, 3)) == (0,)
    for a, b in (
        (tensor(3), tensor(2, 3)),
        (tensor(2, 3), tensor(2, 4)),
        (tensor(2, 2, 3), tensor(3, 2, 3)),
    ):
        with pytest.raises(ExpressionError):
            reductions.distances(a, b)
    for x in (tensor(3), tensor(1 << 17, 3)):
        with pytest.raises(ExpressionError):
            reductions.pairs(x)


@pytest.mark.parametrize(
    ("power", "expected"), [(0.0, True), (-0.0, True), (float("inf"), True), (-1.0, False)]
)
def test_powers_of_norms(power: float, *, expected: bool) -> None:
    assert reductions.is_norm(power) is expected
    assert not reductions.is_norm(float("nan"))
