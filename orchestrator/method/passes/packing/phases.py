"""Calls as several convolutions: transposed ones, and those of groups of channels.

Outputs of a transposed convolution that are a stride apart see the same taps, of inputs
side by side: they are a phase, and the outputs of a convolution.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from math import gcd
from typing import Final

from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import Arguments, UnknownCallError, need
from orchestrator.method.passes.images import axes_of, image_of
from orchestrator.method.passes.packing.convolution import (
    Convolution,
    array_of,
    check,
    convolution_of,
)
from orchestrator.method.windows import Axis

TRANSPOSED: Final = {
    "orch::cortex_m::quantized_transpose_conv2d_out": False,
    "orch::cortex_m::quantized_transpose_conv2d_nhwc_out": True,
}
"""Whether images have sizes N, H, W, C; else N, C, H, W."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A convolution whose inputs and outputs lie apart, in bytes.

    Args:
        conv: What is computed.
        x_first: Where the first input is.
        x_pixel: From a pixel of the image to the next one.
        first: Where the first output is.
        line: From a line to the next one.
        pixel: From a pixel to the next one.
        image: From an image to the next one.
    """

    conv: Convolution
    x_first: int = 0
    x_pixel: int
    first: int = 0
    line: int
    pixel: int
    image: int


def groups_of(conv: Convolution) -> list[Phase]:
    """The groups of a convolution, or the whole one."""
    outputs = len(conv.weights)
    line = conv.columns.out * outputs
    inputs, each = conv.channels // conv.groups, outputs // conv.groups
    found = []
    for group in range(conv.groups):
        those = slice(group * each, (group + 1) * each)
        found.append(
            Phase(
                conv=replace(
                    conv,
                    channels=inputs,
                    depthwise=False,
                    groups=1,
                    weights=conv.weights[those],
                    sums=conv.sums[those],
                    multipliers=conv.multipliers[those],
                    shifts=conv.shifts[those],
                ),
                x_first=group * inputs,
                x_pixel=conv.channels,
                first=group * each,
                line=line,
                pixel=outputs,
                image=conv.rows.out * line,
            )
        )
    return found


def transposed(method: LinkedMethod, most: int) -> list[tuple[int, LinkedCall, list[Phase]]]:
    """Calls whose sums are less than `most`, and their phases."""
    found = []
    for number, call in enumerate(method.instructions):
        if isinstance(call, LinkedCall) and call.function in TRANSPOSED:
            with suppress(UnknownCallError):
                phases = _phases(Arguments(method, call), nhwc=TRANSPOSED[call.function])
                for phase in phases:
                    check(phase.conv, most)
                found.append((number, call, phases))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taps:
    """Outputs of a phase along one dimension, and the taps that they see."""

    axis: Axis
    first: int
    taps: tuple[int, ...]


def _taps(axis: Axis) -> list[_Taps]:
    """The phases of an axis, whose padding and stride are those of the inputs."""
    # Taps of a phase are `stride / common` apart, inputs that they see `dilation / common`.
    common = gcd(axis.stride, axis.dilation)
    found = []
    for first in range(min(axis.stride, axis.out)):
        # Input i adds to output i * stride - padding + tap * dilation.
        taps = [
            tap
            for tap in range(axis.kernel)
            if (first + axis.padding - tap * axis.dilation) % axis.stride == 0
            # The last tap sees the first input.
        ][::-1]
        last = taps[0] if taps else 0
        begin = (first + axis.padding - last * axis.dilation) // axis.stride
        found.append(
            _Taps(
                axis=Axis(
                    size=axis.size,
                    out=-(-(axis.out - first) // axis.stride),
                    kernel=max(len(taps), 1),
                    padding=-begin,
                    dilation=axis.dilation // common if len(taps) > 1 else 1,
                ),
                first=first,
                taps=tuple(taps),
            )
        )
    return found


def _phases(arguments: Arguments, *, nhwc: bool) -> list[Phase]:
    """What a call computes.

    Raises:
        UnknownCallError: That depends on the run.
    """
    import numpy as np  # noqa: PLC0415  # only where something is packed

    weights = array_of(arguments, "weight")
    image, out = (image_of(arguments.tensor(name), nhwc=nhwc) for name in ("input", "out"))
    channels, outputs = image[-1], out[-1]
    need(weights.shape[0] == outputs and weights.shape[3] == channels)
    lists = ("stride", "padding", "dilation")
    rows, columns = axes = axes_of(arguments, image, out, weights.shape[1:3], lists)
    whole = convolution_of(arguments, image, axes, weights)
    line = columns.out * outputs
    return [
        Phase(
            conv=replace(
                whole,
                rows=row.axis,
                columns=column.axis,
                # Outputs without a tap have one of zero.
                weights=weights[:, row.taps][:, :, column.taps].reshape(outputs, -1)
                if row.taps and column.taps
                else np.zeros((outputs, row.axis.kernel * column.axis.kernel * channels), np.int64),
            ),
            x_pixel=channels,
            first=row.first * line + column.first * outputs,
            line=rows.stride * line,
            pixel=columns.stride * outputs,
            image=rows.out * line,
        )
        for row, column in product(_taps(rows), _taps(columns))
    ]
