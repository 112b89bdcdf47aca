"""Packed convolutions turned: as if their image and windows were transposed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.method.passes.packing.convolution import Convolution
from orchestrator.method.passes.packing.header import Packed
from orchestrator.method.passes.packing.lines import Lines
from orchestrator.method.passes.packing.phases import Phase, groups_of
from orchestrator.method.passes.packing.pixels import Pixels, strip_along, strip_of
from orchestrator.method.windows import Axis

_TALL = Axis(size=9, out=9, kernel=3, padding=1)
_WIDE = Axis(size=20, out=20, kernel=3, padding=1)


def _convolution(
    rows: Axis, columns: Axis, *, channels: int = 16, outputs: int = 7, batch: int = 1
) -> Convolution:
    rng = np.random.default_rng(channels)
    taps = rows.kernel * columns.kernel * channels
    return Convolution(
        batch=batch,
        channels=channels,
        rows=rows,
        columns=columns,
        weights=rng.integers(-127, 128, (outputs, taps)),
        sums=rng.integers(-999, 999, outputs),
        x_offset=9,
        multipliers=rng.integers(1 << 30, 1 << 31, outputs),
        shifts=rng.integers(-9, 0, outputs),
        offset=-128,
        low=-128,
        high=127,
    )


def _transposed(conv: Convolution) -> Convolution:
    rows, columns = conv.rows, conv.columns
    windows = conv.weights.reshape(-1, rows.kernel, columns.kernel, conv.channels)
    return replace(
        conv, rows=columns, columns=rows, weights=windows.swapaxes(1, 2).reshape(conv.weights.shape)
    )


def _turned(conv: Convolution, room: int = 0) -> tuple[Phase, Packed | None]:
    (phase,) = groups_of(conv)
    packed = Pixels.packed([(phase, strip_of(phase, 0))])
    return phase, packed.header.for_bands(packed, room)


@pytest.mark.parametrize("channels", [1, 3, 16, 19])
@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (_TALL, _WIDE),
        (Axis(size=9, out=4, kernel=2, stride=2), Axis(size=8, out=8)),
        (
            Axis(size=9, out=9, kernel=2, padding=1, dilation=2),
            Axis(size=7, out=3, kernel=3, stride=2),
        ),
        (Axis(size=9, out=5, stride=2), Axis(size=9, out=5, stride=2)),
    ],
)
def test_pixels_are_as_of_the_transposed_image(channels: int, rows: Axis, columns: Axis) -> None:
    conv = _convolution(rows, columns, channels=channels)
    phase, found = _turned(conv)
    assert found is not None
    header = found.header
    assert isinstance(header, Pixels)
    assert header.is_turned
    assert header.image_rows == rows
    (other,) = groups_of(_transposed(conv))
    strip = strip_along(columns, rows, channels, 2048, is_apart=False)
    packed = Pixels.packed([(other, strip)])
    assert isinstance(packed.header, Pixels)
    assert found.weights == packed.weights
    assert header == replace(
        packed.header,
        pixels=header.pixels,
        in_bytes=header.in_bytes,
        x_line=channels,
        x_pixel=columns.size * channels,
        y_line=phase.pixel,
        y_pixel=phase.line,
    )
    assert bool(header.in_bytes) == strip.in_place
    assert header.for_bands(found, 0) is None


@pytest.mark.parametrize("room", [0, 1200, 2048, 9999])
def test_strips_are_as_long_as_there_is_room(room: int) -> None:
    _, shortest = _turned(_convolution(_TALL, replace(_WIDE, size=96, out=96)))
    _, found = _turned(_convolution(_TALL, replace(_WIDE, size=96, out=96)), room)
    assert shortest is not None
    assert found is not None
    assert isinstance(shortest.header, Pixels)
    assert isinstance(found.header, Pixels)
    assert found.scratch_bytes <= max(room, shortest.scratch_bytes)
    is_longer = found.header.pixels > shortest.header.pixels
    assert is_longer == (room > shortest.scratch_bytes)
    assert found.scratch_bytes == (found.header.pixels - 1) * 3 * 16 + 9 * 16


@pytest.mark.parametrize(
    ("rows", "columns", "batch"),
    [
        (_TALL, _WIDE, 2),
        (Axis(size=96, out=96), Axis(size=1, out=1), 1),
        (_TALL, Axis(size=3, out=1, kernel=3), 1),
    ],
)
def test_rows_of_one_pixel_and_several_images_stay(rows: Axis, columns: Axis, batch: int) -> None:
    _, found = _turned(_convolution(rows, columns, batch=batch))
    assert found is None


def test_lines_are_as_of_the_transposed_image() -> None:
    conv = _convolution(replace(_TALL, size=8, out=8), _WIDE, channels=32)
    found, other = (Lines.packed(c, 0) for c in (conv, _transposed(conv)))
    assert found is not None
    assert other is not None
    turned = found.header.for_bands(found, 2048)
    assert turned is not None
    assert isinstance(turned.header, Lines)
    assert isinstance(other.header, Lines)
    pixels = turned.header.pixels
    assert turned.header == replace(
        other.header, pixels=pixels, x_line=32, x_pixel=20 * 32, y_line=7, y_pixel=20 * 7
    )
    assert turned.weights == other.weights
    assert turned.scratch_bytes == (pixels + 2) * 3 * 32
    assert turned.header.for_bands(turned, 0) is None


def test_lines_of_two_columns_stay() -> None:
    columns = Axis(size=20, out=19, kernel=2)
    conv = _convolution(replace(_TALL, size=8, out=8), columns, channels=32)
    packed = Lines.packed(conv, 0)
    assert packed is not None
    assert packed.header.for_bands(packed, 0) is None
