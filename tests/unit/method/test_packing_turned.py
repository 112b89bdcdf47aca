"""Packed convolutions turned: as if their image and windows were transposed."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest

from orchestrator.method.passes.packing import mve
from orchestrator.method.passes.packing.convolution import Convolution
from orchestrator.method.passes.packing.phases import Phase, groups_of
from orchestrator.method.passes.packing.turned import (
    Turned,
    is_turned,
    rows_at,
    turned_lines,
    turned_pixels,
)
from orchestrator.method.passes.tables import Axis

_PIXELS, _LINES = 28, 24
"""Words of a PackedPixels, and of a PackedLines."""
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


def _split(words: list[int], header: int) -> tuple[tuple[int, ...], bytes]:
    data = struct.pack(f"<{len(words) - header}i", *words[header:])
    return (*words[:header],), data


def _pixels(phase: Phase, strip: mve.Strip) -> tuple[tuple[int, ...], bytes]:
    return _split(mve.pixels([(phase, strip)]), _PIXELS)


def _turned(conv: Convolution, room: int = 0) -> tuple[Phase, Turned | None]:
    (phase,) = groups_of(conv)
    return phase, turned_pixels(*_pixels(phase, mve.strip_of(phase, 0)), room)


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
    assert is_turned(found.header)
    at = rows_at(found.header)
    assert found.header[at : at + 6] == rows.words()
    (other,) = groups_of(_transposed(conv))
    strip = mve.strip_along(columns, rows, channels, 2048, is_apart=False)
    header, weights = _pixels(other, strip)
    assert found.weights == weights
    lines = (channels, columns.size * channels, phase.pixel, phase.line)
    same = (*header[:18], *found.header[18:20], *lines, *header[24:])
    assert found.header == same
    assert bool(found.header[19]) == strip.in_place
    assert turned_pixels(found.header, found.weights, 0) is None


@pytest.mark.parametrize("room", [0, 1200, 2048, 9999])
def test_strips_are_as_long_as_there_is_room(room: int) -> None:
    _, shortest = _turned(_convolution(_TALL, replace(_WIDE, size=96, out=96)))
    _, found = _turned(_convolution(_TALL, replace(_WIDE, size=96, out=96)), room)
    assert shortest is not None
    assert found is not None
    assert found.scratch_bytes <= max(room, shortest.scratch_bytes)
    assert (found.header[18] > shortest.header[18]) == (room > shortest.scratch_bytes)
    assert found.scratch_bytes == (found.header[18] - 1) * 3 * 16 + 9 * 16


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
    found, other = (
        _split(mve.lines(c, way), _LINES)
        for c in (conv, _transposed(conv))
        if (way := mve.lines_of(c, 0))
    )
    turned = turned_lines(*found, 2048)
    assert turned is not None
    header, weights = other
    pixels = turned.header[18]
    lines = (32, 20 * 32, 7, 20 * 7)
    assert turned.header == (*header[:18], pixels, header[19], *lines)
    assert turned.weights == weights
    assert turned.scratch_bytes == (pixels + 2) * 3 * 32
    assert turned_lines(turned.header, turned.weights, 0) is None


def test_lines_of_two_columns_stay() -> None:
    columns = Axis(size=20, out=19, kernel=2)
    conv = _convolution(replace(_TALL, size=8, out=8), columns, channels=32)
    way = mve.lines_of(conv, 0)
    assert way is not None
    assert turned_lines(*_split(mve.lines(conv, way), _LINES), 0) is None
