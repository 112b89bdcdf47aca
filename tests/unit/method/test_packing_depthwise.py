"""Channels that are no multiple of four, several outputs of each, and few groups: for DSP.

A call is computed from its packed bytes as the loops read them, with outputs over the
inputs that no later pixel needs.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import repeat

import numpy as np
import pytest

from orchestrator.method.passes.packing.convolution import Convolution, starts_of, without_groups
from orchestrator.method.passes.packing.depthwise import Depthwise
from orchestrator.method.windows import Axis, Image


def _convolution(channels: int, each: int, *, groups: int = 0, outputs: int = 0) -> Convolution:
    """A window of two taps; depthwise, if it has no groups."""
    rng = np.random.default_rng(channels)
    outputs, taps = outputs or channels * each, 2 * (channels // groups if groups else 1)
    return Convolution(
        batch=1,
        channels=channels,
        rows=Axis(size=1, out=1),
        columns=Axis(size=2, out=1, kernel=2),
        weights=rng.integers(-127, 128, (outputs, taps)),
        depthwise=each == 1,
        groups=groups or channels,
        sums=rng.integers(-999, 999, outputs),
        x_offset=9,
        multipliers=rng.integers(1 << 30, 1 << 31, outputs),
        shifts=rng.integers(-9, 0, outputs),
        offset=-128,
        low=-128,
        high=127,
    )


@pytest.mark.parametrize("channels", [4, 5, 6, 7, 10, 12, 15])
@pytest.mark.parametrize("each", [1, 2, 3])
def test_outputs_are_right_though_groups_overlap(channels: int, each: int) -> None:
    """The first pixel is overwritten by outputs, where there is one for each channel."""
    conv = _convolution(channels, each)
    x = np.random.default_rng(1).integers(-128, 128, (2, channels))
    expected = starts_of(conv) + (conv.weights * x.T.repeat(each, axis=0)).sum(axis=1)
    data = Depthwise.packed_dsp(conv).weights
    size = 4 * 5 + 8 + 8 * 4
    assert len(data) == -(-channels // 4) * each * size
    y: list[int | None] = [*repeat(None, channels * each)]
    scales = set()
    for at in range(0, len(data), size):
        channel, *sums = struct.unpack_from("<5i", data, at)
        weights = np.frombuffer(data, "i1", 8, at + 20).reshape(2, 2, 2)
        tile = weights.swapaxes(1, 2).reshape(4, 2)
        assert 0 <= channel <= channels - 4
        those = (tile * x[:, channel : channel + 4].T).sum(axis=1) + sums
        for lane, value in enumerate(those.tolist()):
            multiplier, to = struct.unpack_from("<2i", data, at + 28 + 8 * lane)
            y[to >> 8] = value
            scales.add((to >> 8, multiplier, to & 255))
            if each == 1 and to >> 8 == channel + lane:
                x[0, channel + lane] = 99
    assert y == expected.tolist()
    wanted = zip(range(len(y)), conv.multipliers.tolist(), (-conv.shifts).tolist(), strict=True)
    assert scales >= {*wanted}


def test_several_outputs_of_a_channel_do_not_lie_over_inputs() -> None:
    image = Image(rows=1, row_bytes=8)
    for each in (1, 2):
        header = Depthwise.packed_dsp(_convolution(4, each)).header
        assert (header.overlap(image, replace(image, row_bytes=4 * each)) is None) == (each == 2)


@pytest.mark.parametrize(("channels", "groups", "outputs"), [(8, 2, 12), (3, 3, 3), (3, 3, 6)])
def test_few_groups_become_one(channels: int, groups: int, outputs: int) -> None:
    conv = _convolution(channels, 2, groups=groups, outputs=outputs)
    assert conv.has_few_groups
    found = without_groups(conv)
    assert not found.has_few_groups
    x = np.random.default_rng(2).integers(-128, 128, (2, channels))
    sums = []
    for output, weights in enumerate(conv.weights):
        group = output // (outputs // groups)
        size = channels // groups
        sums.append(int((weights * x[:, group * size :][:, :size].reshape(-1)).sum()))
    assert (found.weights * x.reshape(-1)).sum(axis=1).tolist() == sums
    assert (starts_of(found) == starts_of(conv)).all()
