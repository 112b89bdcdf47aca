"""Int8 convolutions and matrix products whose weights are not packed.

As kernels/cortex_m/prepare_convolution.cpp and the operators there read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.method.linked import Numbers
from orchestrator.method.passes.arguments import float32, need
from orchestrator.method.passes.packing.convolution import HIGHEST, LOWEST
from orchestrator.method.passes.preparing.form import Form
from orchestrator.method.passes.tables import (
    Axis,
    axes_of,
    axis_members,
    image_members,
    image_of,
    one_or_two,
)

if TYPE_CHECKING:
    from orchestrator.method.passes.arguments import Arguments
    from orchestrator.method.passes.preparing.form import Preparer
    from orchestrator.method.passes.tables import Image

_STRUCT: Final = "orch::cortex_m::ConvolutionCall"
_ONE: Final = Axis(size=1, out=1)
_NO_SCALE: Final = (("multiplier", 0), ("shift", 0))


def _sizes(
    x: Image,
    y: Image,
    rows: Axis,
    columns: Axis,
    *,
    group_channels: int,
    group_outputs: int = 0,
    multiplier: int = 1,
    x_offset: int,
    w_offset: int = 0,
) -> Numbers:
    """`ConvolutionSizes`."""
    return (
        ("in", image_members(x)),
        ("out", image_members(y)),
        ("rows", axis_members(rows)),
        ("columns", axis_members(columns)),
        ("group_channels", group_channels),
        ("group_outputs", group_outputs),
        ("multiplier", multiplier),
        ("x_offset", x_offset),
        ("w_offset", w_offset),
    )


def _matrix(
    rows: int, depth: int, outputs: int, *, batch: int = 1, x_offset: int, w_offset: int = 0
) -> Numbers:
    """A product of matrices as that of a line of pixels."""
    return _sizes(
        (batch, 1, rows, depth),
        (batch, 1, rows, outputs),
        _ONE,
        Axis(size=rows, out=rows),
        group_channels=depth,
        group_outputs=outputs,
        x_offset=x_offset,
        w_offset=w_offset,
    )


def _convolution(*, depthwise: bool, nhwc: bool) -> Preparer:
    after = 7 if depthwise else 6
    """The first argument after the dilation and, if there is one, the multiplier."""

    def prepare(arguments: Arguments, _isa: str) -> Form:
        out = after + 7
        weights = arguments.tensor(1).sizes
        x = image_of(arguments.tensor(0), nhwc=nhwc)
        y = image_of(arguments.tensor(out), nhwc=nhwc)
        kernel = weights[1], weights[2]
        rows, columns = axes_of(arguments, x, y, kernel, (3, 4, 5))
        channels, outputs = x[3], y[3]
        offset = arguments.number(after)
        group = weights[3]
        plain = all((a.kernel, a.stride, a.padding) == (1, 1, 0) for a in (rows, columns))
        function = "quantized_depthwise_conv2d" if depthwise else "quantized_conv2d"
        if plain and group == channels and not depthwise:
            # All pixels of all images are rows of one matrix.
            function += "_matrix"
            pixels = x[0] * x[1] * x[2]
            sizes = _matrix(pixels, channels, outputs, x_offset=offset)
        else:
            sizes = _sizes(
                x,
                y,
                rows,
                columns,
                group_channels=group,
                group_outputs=0 if depthwise else outputs * group // channels,
                multiplier=arguments.number(6) if depthwise else 1,
                x_offset=offset,
            )
        return Form(
            function=f"orch::cortex_m::{function}",
            struct=_STRUCT,
            memory=(
                *(("input", 0), ("weights", 1), ("bias", 2)),
                *(("multipliers", after + 2), ("shifts", after + 3), ("out", out)),
            ),
            numbers=(
                ("sizes", sizes),
                ("scale", _NO_SCALE),
                ("offset", arguments.number(after + 1)),
                ("range", _range(arguments, after + 4, after + 5)),
            ),
        )

    return prepare


def _range(arguments: Arguments, low: int, high: int) -> Numbers:
    return ("low", arguments.number(low)), ("high", arguments.number(high))


def _linear(arguments: Arguments, _isa: str) -> Form:
    outputs, depth = arguments.tensor(1).sizes
    has_sums = not arguments.is_none(3)
    sizes = _matrix(
        arguments.tensor(0).numel // depth,
        depth,
        outputs,
        # Sums of programs for MVE hold the part of the offset.
        x_offset=0 if has_sums else arguments.number(4),
        w_offset=arguments.number(5),
    )
    multiplier, shift = arguments.numbers(7)[0], arguments.numbers(8)[0]
    return Form(
        function="orch::cortex_m::quantized_linear",
        struct=_STRUCT,
        memory=(
            *(("input", 0), ("weights", 1), ("bias", 3 if has_sums else 2)),
            *(("multipliers", None), ("shifts", None), ("out", 11)),
        ),
        numbers=(
            ("sizes", sizes),
            ("scale", (("multiplier", multiplier), ("shift", shift))),
            ("offset", arguments.number(6)),
            ("range", _range(arguments, 10, 9)),
        ),
    )


def _batch_matmul(arguments: Arguments, _isa: str) -> Form:
    batch, rows, depth = arguments.tensor(0).sizes
    _, outputs, _ = arguments.tensor(2).sizes
    x_offset, w_offset, offset, multiplier, shift = (arguments.number(n) for n in (1, 3, 4, 5, 6))
    sizes = _matrix(rows, depth, outputs, batch=batch, x_offset=x_offset, w_offset=w_offset)
    return Form(
        function="orch::cortex_m::quantized_batch_matmul",
        struct=_STRUCT,
        memory=(
            *(("input", 0), ("weights", 2), ("bias", None)),
            *(("multipliers", None), ("shifts", None), ("out", 8)),
        ),
        numbers=(
            ("sizes", sizes),
            ("scale", (("multiplier", multiplier), ("shift", shift))),
            ("offset", offset),
            ("range", (("low", LOWEST), ("high", HIGHEST))),
        ),
    )


def _transposed(*, nhwc: bool) -> Preparer:
    def prepare(arguments: Arguments, _isa: str) -> Form:
        weights = arguments.tensor(1).sizes
        x = image_of(arguments.tensor(0), nhwc=nhwc)
        y = image_of(arguments.tensor(15), nhwc=nhwc)
        axes = axes_of(arguments, x, y, (weights[1], weights[2]), (3, 4, 6))
        rows, columns = (
            (
                ("axis", axis_members(axis)),
                ("tap_step", axis.stride // gcd(axis.stride, axis.dilation)),
                ("in_step", axis.dilation // gcd(axis.stride, axis.dilation)),
            )
            for axis in axes
        )
        return Form(
            function="orch::cortex_m::quantized_transpose_conv2d",
            struct="orch::cortex_m::TransposedCall",
            memory=(
                *(("input", 0), ("weights", 1), ("bias", 2)),
                *(("multipliers", 9), ("shifts", 10), ("out", 15)),
            ),
            numbers=(
                (
                    "sizes",
                    (
                        ("in", image_members(x)),
                        ("out", image_members(y)),
                        ("rows", rows),
                        ("columns", columns),
                        ("x_offset", arguments.number(7)),
                    ),
                ),
                ("offset", arguments.number(8)),
                ("range", _range(arguments, 11, 12)),
            ),
        )

    return prepare


CONVOLUTIONS: Final[Mapping[str, Preparer]] = MappingProxyType(
    {
        "orch::cortex_m::quantized_linear_out": _linear,
        "orch::cortex_m::quantized_batch_matmul_out": _batch_matmul,
        "orch::cortex_m::quantized_transpose_conv2d_out": _transposed(nhwc=False),
        "orch::cortex_m::quantized_transpose_conv2d_nhwc_out": _transposed(nhwc=True),
        **{
            f"orch::cortex_m::quantized_{kind}conv2d{layout}_out": _convolution(
                depthwise=bool(kind), nhwc=bool(layout)
            )
            for kind in ("", "depthwise_")
            for layout in ("", "_nhwc")
        },
    }
)


# Pooling of int8 images, as kernels/cortex_m/pool.h has it.

_LOWEST_EXPONENT, _HIGHEST_EXPONENT = 1, 254
"""Of the scales that are normal floats."""


def _taps(axis: Axis) -> list[int]:
    """Of each window: how many taps lie in the input."""
    starts = (out * axis.stride - axis.padding for out in range(axis.out))
    return [
        sum(0 <= start + tap * axis.dilation < axis.size for tap in range(axis.kernel))
        for start in starts
    ]


def _windows(
    arguments: Arguments, out: int, *, nhwc: bool, dilated: bool
) -> tuple[Image, Axis, Axis]:
    x = image_of(arguments.tensor(0), nhwc=nhwc)
    y = image_of(arguments.tensor(out), nhwc=nhwc)
    lists = (2, 3, 4) if dilated else (2, 3)
    rows, columns = axes_of(arguments, x, y, one_or_two(arguments.numbers(1)), lists)
    return x, rows, columns


def _pool(x: Image, rows: Axis, columns: Axis) -> Numbers:
    batch, _, width, channels = x
    return (
        ("batch", batch),
        ("rows", axis_members(rows)),
        ("columns", axis_members(columns)),
        ("taps", _steps(channels, rows.dilation * width, columns.dilation)),
    )


def _steps(channels: int, row: int, column: int) -> Numbers:
    return (
        ("channels", channels),
        ("row_step", row * channels),
        ("column_step", column * channels),
    )


def _average(*, nhwc: bool) -> Preparer:
    def prepare(arguments: Arguments, _isa: str) -> Form:
        x, rows, columns = _windows(arguments, 9, nhwc=nhwc, dilated=False)
        taps = [_taps(axis) for axis in (rows, columns)]
        # Of an odd number of items no average lies in the middle of two steps.
        has_ties = any(not count % 2 for counts in taps for count in counts)
        is_float = arguments.tensor(8).dtype is ScalarType.Char and has_ties
        items: Numbers = (("zero_point", 0), ("scale", 0.0))
        if is_float:
            exponent = arguments.number(7) + 127 - 31
            need(_LOWEST_EXPONENT <= exponent <= _HIGHEST_EXPONENT)
            multiplier = float32(arguments.number(6))
            scale = float32(multiplier * 2.0 ** (exponent - 127))
            items = (("zero_point", arguments.number(5)), ("scale", scale))
        suffix = "_floats" if is_float else ""
        memory = (("input", 0), ("out", 9))
        if taps == [[rows.size], [columns.size]]:
            batch, height, width, channels = x
            return Form(
                function=f"orch::cortex_m::quantized_avg_image{suffix}",
                struct="orch::cortex_m::AverageImageCall",
                memory=memory,
                numbers=(
                    ("batch", batch),
                    ("pixels", height * width),
                    ("taps", _steps(channels, height * width, 1)),
                    ("items", items),
                ),
            )
        return Form(
            function=f"orch::cortex_m::quantized_avg_pool2d{suffix}",
            struct="orch::cortex_m::AveragePoolCall",
            memory=memory,
            numbers=(("pool", _pool(x, rows, columns)), ("items", items)),
        )

    return prepare


def _largest(*, nhwc: bool) -> Preparer:
    def prepare(arguments: Arguments, _isa: str) -> Form:
        x, rows, columns = _windows(arguments, 10, nhwc=nhwc, dilated=True)
        low, high = arguments.number(8), arguments.number(9)
        return Form(
            function="orch::cortex_m::quantized_max_pool2d",
            struct="orch::cortex_m::MaxPoolCall",
            memory=(("input", 0), ("out", 10)),
            numbers=(("pool", _pool(x, rows, columns)), ("range", (("low", low), ("high", high)))),
        )

    return prepare


POOLS: Final[Mapping[str, Preparer]] = MappingProxyType(
    {
        "orch::cortex_m::quantized_avg_pool2d_out": _average(nhwc=False),
        "orch::cortex_m::quantized_avg_pool2d_nhwc_out": _average(nhwc=True),
        "orch::cortex_m::quantized_max_pool2d_out": _largest(nhwc=False),
        "orch::cortex_m::quantized_max_pool2d_nhwc_out": _largest(nhwc=True),
    }
)
