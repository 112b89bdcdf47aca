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
from orchestrator.method.passes.images import (
    axes_of,
    axis_members,
    image_members,
    image_of,
    one_or_two,
)
from orchestrator.method.passes.packing.convolution import HIGHEST, LOWEST
from orchestrator.method.passes.preparing.form import (
    Form,
    Memory,
    int8_form,
    members,
    scale_of_output,
)
from orchestrator.method.windows import Axis

if TYPE_CHECKING:
    from orchestrator.method.passes.arguments import Arguments
    from orchestrator.method.passes.images import Image
    from orchestrator.method.passes.preparing.form import Preparer

_SCALES: Final = ("requantize_multipliers", "requantize_shifts")
_ONE: Final = Axis(size=1, out=1)


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
    def prepare(arguments: Arguments, _isa: str) -> Form:
        _, *kernel, group = arguments.tensor("weight").sizes
        x = image_of(arguments.tensor("input"), nhwc=nhwc)
        y = image_of(arguments.tensor("out"), nhwc=nhwc)
        rows, columns = axes_of(arguments, x, y, kernel, ("stride", "padding", "dilation"))
        channels, outputs = x[3], y[3]
        offset = arguments.number("input_offset")
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
                multiplier=arguments.number("depth_multiplier") if depthwise else 1,
                x_offset=offset,
            )
        return int8_form(
            function,
            _memory(arguments, "input", "weight", "bias", *_SCALES),
            sizes=sizes,
            # Each channel has its own, in a tensor.
            scale=members(multiplier=0, shift=0),
            offset=arguments.number("output_offset"),
            range=_range(arguments),
        )

    return prepare


def _memory(arguments: Arguments, *names: str | None) -> Memory:
    """The tensors of a call, by their names in the schema; the output comes last."""
    pointers = ("input", "weights", "bias", "multipliers", "shifts")
    return arguments.places(**dict(zip(pointers, names, strict=True)), out="out")


def _range(arguments: Arguments) -> Numbers:
    low, high = map(arguments.number, ("activation_min", "activation_max"))
    return members(low=low, high=high)


def _linear(arguments: Arguments, _isa: str) -> Form:
    outputs, depth = arguments.tensor("weights").sizes
    has_sums = not arguments.is_none("kernel_sum")
    sizes = _matrix(
        arguments.tensor("input").numel // depth,
        depth,
        outputs,
        # Sums of programs for MVE hold the part of the offset.
        x_offset=0 if has_sums else arguments.number("input_offset"),
        w_offset=arguments.number("filter_offset"),
    )
    multiplier, shift = (arguments.numbers(name)[0] for name in _SCALES)
    bias = "kernel_sum" if has_sums else "bias"
    return int8_form(
        "quantized_linear",
        _memory(arguments, "input", "weights", bias, None, None),
        sizes=sizes,
        scale=members(multiplier=multiplier, shift=shift),
        offset=arguments.number("output_offset"),
        range=_range(arguments),
    )


def _batch_matmul(arguments: Arguments, _isa: str) -> Form:
    batch, rows, depth = arguments.tensor("lhs").sizes
    _, outputs, _ = arguments.tensor("rhs_transposed").sizes
    x_offset, w_offset = map(arguments.number, ("lhs_zero_point", "rhs_zero_point"))
    sizes = _matrix(rows, depth, outputs, batch=batch, x_offset=x_offset, w_offset=w_offset)
    return int8_form(
        "quantized_batch_matmul",
        _memory(arguments, "lhs", "rhs_transposed", None, None, None),
        sizes=sizes,
        scale=scale_of_output(arguments),
        offset=arguments.number("output_zero_point"),
        range=members(low=LOWEST, high=HIGHEST),
    )


def _transposed(*, nhwc: bool) -> Preparer:
    def prepare(arguments: Arguments, _isa: str) -> Form:
        _, *kernel, _ = arguments.tensor("weight").sizes
        x = image_of(arguments.tensor("input"), nhwc=nhwc)
        y = image_of(arguments.tensor("out"), nhwc=nhwc)
        axes = axes_of(arguments, x, y, kernel, ("stride", "padding", "dilation"))
        rows, columns = (
            members(
                axis=axis_members(axis),
                tap_step=axis.stride // gcd(axis.stride, axis.dilation),
                in_step=axis.dilation // gcd(axis.stride, axis.dilation),
            )
            for axis in axes
        )
        images = {"in": image_members(x), "out": image_members(y)}
        offset = arguments.number("input_offset")
        return int8_form(
            "quantized_transpose_conv2d",
            _memory(arguments, "input", "weight", "bias", *_SCALES),
            sizes=members(**images, rows=rows, columns=columns, x_offset=offset),
            offset=arguments.number("output_offset"),
            range=_range(arguments),
        )

    return prepare


# Pooling of int8 images, as kernels/cortex_m/pool.h has it.

_LOWEST_EXPONENT, _HIGHEST_EXPONENT = 1, 254
"""Exponents of scales that are normal floats."""


def _taps(axis: Axis) -> list[int]:
    """How many taps of each window lie in the input."""
    starts = (out * axis.stride - axis.padding for out in range(axis.out))
    return [
        sum(0 <= start + tap * axis.dilation < axis.size for tap in range(axis.kernel))
        for start in starts
    ]


def _windows(arguments: Arguments, *lists: str, nhwc: bool) -> tuple[Image, Axis, Axis]:
    x = image_of(arguments.tensor("input"), nhwc=nhwc)
    y = image_of(arguments.tensor("out"), nhwc=nhwc)
    rows, columns = axes_of(arguments, x, y, one_or_two(arguments.numbers("kernel_size")), lists)
    return x, rows, columns


def _pool(x: Image, rows: Axis, columns: Axis) -> Numbers:
    batch, _, width, channels = x
    taps = _steps(channels, rows.dilation * width, columns.dilation)
    return members(batch=batch, rows=axis_members(rows), columns=axis_members(columns), taps=taps)


def _steps(channels: int, row: int, column: int) -> Numbers:
    return members(channels=channels, row_step=row * channels, column_step=column * channels)


def _average(*, nhwc: bool) -> Preparer:
    def prepare(arguments: Arguments, _isa: str) -> Form:
        x, rows, columns = _windows(arguments, "stride", "padding", nhwc=nhwc)
        taps = [_taps(axis) for axis in (rows, columns)]
        # No average of an odd number of items lies in the middle of two steps.
        has_ties = any(not count % 2 for counts in taps for count in counts)
        is_float = arguments.tensor("scratch").dtype is ScalarType.Char and has_ties
        items = members(zero_point=0, scale=0.0)
        if is_float:
            # The scale is multiplier * 2 ** (shift - 31): as a float, its exponent with the bias of
            # 127. op_quantized_avg_pool2d.cpp makes the power of two of these bits.
            exponent = arguments.number("shift") + 127 - 31
            need(_LOWEST_EXPONENT <= exponent <= _HIGHEST_EXPONENT)
            multiplier = float32(arguments.number("multiplier"))
            scale = float32(multiplier * 2.0 ** (exponent - 127))
            items = members(zero_point=arguments.number("zero_point"), scale=scale)
        suffix = "_floats" if is_float else ""
        memory = arguments.places(input="input", out="out")
        if taps == [[rows.size], [columns.size]]:
            batch, height, width, channels = x
            return int8_form(
                f"quantized_avg_image{suffix}",
                memory,
                batch=batch,
                pixels=height * width,
                taps=_steps(channels, height * width, 1),
                items=items,
            )
        function, pool = f"quantized_avg_pool2d{suffix}", _pool(x, rows, columns)
        return int8_form(function, memory, pool=pool, items=items)

    return prepare


def _largest(*, nhwc: bool) -> Preparer:
    def prepare(arguments: Arguments, _isa: str) -> Form:
        x, rows, columns = _windows(arguments, "stride", "padding", "dilation", nhwc=nhwc)
        memory, limits = arguments.places(input="input", out="out"), _range(arguments)
        pool = _pool(x, rows, columns)
        return int8_form("quantized_max_pool2d", memory, pool=pool, range=limits)

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
        "orch::cortex_m::quantized_avg_pool2d_out": _average(nhwc=False),
        "orch::cortex_m::quantized_avg_pool2d_nhwc_out": _average(nhwc=True),
        "orch::cortex_m::quantized_max_pool2d_out": _largest(nhwc=False),
        "orch::cortex_m::quantized_max_pool2d_nhwc_out": _largest(nhwc=True),
    }
)
