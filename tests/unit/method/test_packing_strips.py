"""Depthwise calls in strips: along rows they are as if packed so."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from orchestrator.method.passes.packing.convolution import Convolution
from orchestrator.method.passes.packing.strips import (
    along_rows,
    best_strips,
    is_turned,
    strip_groups,
    strips_of,
)
from orchestrator.method.passes.tables import Axis

_HEADER = 27
"""Words of a PackedDepthwiseStrips."""


def _packed(words: list[int]) -> tuple[tuple[int, ...], bytes]:
    data = struct.pack(f"<{len(words) - _HEADER}i", *words[_HEADER:])
    return (*words[:_HEADER],), data


def _convolution(channels: int, rows: Axis, columns: Axis) -> Convolution:
    rng = np.random.default_rng(channels)
    return Convolution(
        batch=1,
        channels=channels,
        rows=rows,
        columns=columns,
        weights=rng.integers(-127, 128, (channels, rows.kernel * columns.kernel)),
        depthwise=True,
        sums=rng.integers(-999, 999, channels),
        x_offset=9,
        multipliers=rng.integers(1 << 30, 1 << 31, channels),
        shifts=rng.integers(-9, 0, channels),
        offset=-128,
        low=-128,
        high=127,
    )


@pytest.mark.parametrize("channels", [4, 19, 64])
@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (Axis(size=25, out=25, kernel=3, padding=1), Axis(size=5, out=5, kernel=1)),
        (
            Axis(size=9, out=9, kernel=2, padding=1, dilation=2),
            Axis(size=7, out=3, kernel=3, stride=2),
        ),
    ],
)
def test_strips_along_columns_can_lie_along_rows(channels: int, rows: Axis, columns: Axis) -> None:
    conv = _convolution(channels, rows, columns)
    strips = best_strips(conv, 0)
    assert strips is not None
    header, weights = _packed(strip_groups(conv, strips))
    assert is_turned(header)
    assert strips_of(header) == strips
    found = along_rows(header, weights, strips.scratch_bytes)
    assert found is not None
    rowwise = strips_of(found.header)
    assert not rowwise.is_turned
    assert (found.header, found.weights) == _packed(strip_groups(conv, rowwise))
    assert found.scratch_bytes == rowwise.scratch_bytes
    assert along_rows(found.header, found.weights, found.scratch_bytes) == found


def test_long_lines_have_a_strip_that_fits() -> None:
    conv = _convolution(
        16, Axis(size=9, out=9, kernel=3), Axis(size=99, out=99, kernel=3, padding=1)
    )
    strips = best_strips(conv, 9999)
    assert strips is not None
    header, weights = _packed(strip_groups(conv, strips))
    short, long = (along_rows(header, weights, room) for room in (0, 9999))
    assert short is not None
    assert long is not None
    assert short.scratch_bytes < long.scratch_bytes
    assert long.scratch_bytes == strips_of(long.header).scratch_bytes
    assert short.weights == long.weights == weights


def test_strips_of_an_image_of_one_column_stay() -> None:
    rows = Axis(size=9, out=9, kernel=3, padding=1)
    conv = _convolution(8, rows, Axis(size=1, out=1))
    strips = best_strips(conv, 0)
    assert strips is not None
    header, weights = _packed(strip_groups(conv, strips))
    assert is_turned(header)
    assert along_rows(header, weights, 0) is None
