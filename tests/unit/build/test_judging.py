"""The calls that `test` makes, and how their outputs are compared."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.build.judging import _value
from orchestrator.core.bounds import SizeBound
from orchestrator.core.dtype import ScalarType
from orchestrator.program.values import ValueKind
from orchestrator.running.npy import Array
from orchestrator.running.product import Port


def tensor(
    sizes: tuple[int, ...],
    *bounds: SizeBound,
    dtype: ScalarType = ScalarType.Float,
) -> Port:
    """A port whose sizes may change."""
    return Port(
        kind=ValueKind.TENSOR,
        dtype=dtype,
        sizes=sizes,
        dim_order=tuple(range(len(sizes))),
        is_dynamic=True,
        bounds=bounds,
    )


def bound(dim: int, least: int, step: int = 1) -> SizeBound:
    return SizeBound(input=0, dim=dim, least=least, step=step)


@pytest.mark.parametrize(
    ("port", "shapes"),
    [
        (tensor((1, 12, 8), bound(1, 4, 4)), [(1, 12, 8), (1, 8, 8)] * 2),
        (tensor((2, 9), bound(1, 1, 2)), [(2, 9), (2, 5)] * 2),
        (tensor((9, 7), bound(0, 7), bound(1, 2)), [(9, 7), (7, 3)] * 2),
        (tensor((2, 1, 5)), [(2, 1, 5), (1, 1, 5), (2, 1, 5), (2, 1, 2)]),
        (tensor((1,)), [(1,)] * 4),
    ],
)
def test_sizes_are_within_their_bounds(
    port: Port, shapes: list[tuple[int, ...]]
) -> None:
    random = np.random.default_rng(0)
    found = [_value(port, random, run) for run in range(4)]
    assert [x.shape for x in found if isinstance(x, Array)] == shapes
    for shape in shapes:
        assert all(bound.allows(shape[bound.dim]) for bound in port.bounds)
