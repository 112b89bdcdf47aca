"""Depthwise calls in strips: along rows they are as if packed so."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.method.passes.packing.convolution import Convolution
from orchestrator.method.passes.packing.header import Packed
from orchestrator.method.passes.packing.strips import Strips
from orchestrator.method.windows import Axis


def _packed(conv: Convolution, spare: int = 0) -> tuple[Strips, Packed]:
    packed = Strips.packed(conv, spare)
    assert packed is not None
    assert isinstance(packed.header, Strips)
    return packed.header, packed


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
    header, packed = _packed(conv)
    assert header.is_turned
    found = header.for_bands(packed, packed.scratch_bytes)
    assert found is not None
    rowwise = found.header
    assert isinstance(rowwise, Strips)
    assert not rowwise.is_turned
    assert (rowwise.across, rowwise.along) == (rows, columns)
    assert found.scratch_bytes == rowwise.scratch_bytes
    assert found.weights == rowwise.weights_of(conv)
    assert Strips.of(rowwise.words()) == rowwise
    assert rowwise.for_bands(found, found.scratch_bytes) == found


def test_long_lines_have_a_strip_that_fits() -> None:
    conv = _convolution(
        16, Axis(size=9, out=9, kernel=3), Axis(size=99, out=99, kernel=3, padding=1)
    )
    header, packed = _packed(conv, 9999)
    short, long = (header.for_bands(packed, room) for room in (0, 9999))
    assert short is not None
    assert long is not None
    assert short.scratch_bytes < long.scratch_bytes
    assert isinstance(long.header, Strips)
    assert long.scratch_bytes == long.header.scratch_bytes
    assert short.weights == long.weights == packed.weights


def test_strips_of_an_image_of_one_column_stay() -> None:
    rows = Axis(size=9, out=9, kernel=3, padding=1)
    header, packed = _packed(_convolution(8, rows, Axis(size=1, out=1)))
    assert header.is_turned
    assert header.for_bands(packed, 0) is None
