"""CMSIS-NN's buffer sizes as functions of expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.catalog import cmsis_nn
from orchestrator.catalog.cmsis_nn import Backend, Convolution, DataType, Pair, Shape
from orchestrator.catalog.expressions.values import ExpressionError, Kind

Arguments = Mapping[str, tuple[int, ...]]
"""Arguments of a call; a number is a list of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function of the language, called with named arguments.

    Args:
        parameters: (name, kind); all are required.
        call: Computes the size from an ISA and the arguments.
    """

    parameters: tuple[tuple[str, Kind], ...]
    call: Callable[[Backend, Arguments], int]


def _convolution(arguments: Arguments) -> Convolution:
    """The convolution of some arguments; omitted ones do not matter."""
    stride = Pair(*_items(arguments, "stride_hw", _PAIR))
    if min(stride) < 1:
        raise ExpressionError(f"stride_hw is {list(stride)}, not 1 or more")
    return Convolution(
        input=_shape(arguments, "input_nhwc"),
        filter=_shape(arguments, "filter_nhwc"),
        output=_shape(arguments, "output_nhwc"),
        padding=Pair(*_items(arguments, "padding_hw", _PAIR)),
        stride=stride,
        dilation=Pair(*_items(arguments, "dilation_hw", _PAIR)),
        ch_mult=arguments.get("ch_mult", (1,))[0],
    )


_PAIR = len(Pair._fields)


def _shape(arguments: Arguments, name: str) -> Shape:
    return Shape(*_items(arguments, name, len(Shape._fields)))


def _items(arguments: Arguments, name: str, count: int) -> tuple[int, ...]:
    items = arguments.get(name, (1,) * count)
    if len(items) != count:
        raise ExpressionError(f"{name} has {len(items)} items, not {count}")
    return items


_GEOMETRY = tuple(
    (name, Kind.NUMBERS)
    for name in (
        *("input_nhwc", "filter_nhwc", "output_nhwc"),
        *("padding_hw", "stride_hw", "dilation_hw"),
    )
)
_TRANSPOSED = tuple(p for p in _GEOMETRY if p[0] not in ("padding_hw", "dilation_hw"))


def _convolve(types: DataType) -> Function:
    return Function(
        parameters=_GEOMETRY,
        call=lambda isa, a: cmsis_nn.convolve_wrapper(isa, types, _convolution(a)),
    )


def _depthwise(types: DataType) -> Function:
    return Function(
        parameters=(*_GEOMETRY, ("ch_mult", Kind.NUMBER)),
        call=lambda isa, a: cmsis_nn.depthwise_conv_wrapper(isa, types, _convolution(a)),
    )


def _fully_connected(types: DataType) -> Function:
    return Function(
        parameters=(("filter_nhwc", Kind.NUMBERS),),
        call=lambda isa, a: cmsis_nn.fully_connected(isa, types, rows=_shape(a, "filter_nhwc").c),
    )


def _avgpool(types: DataType) -> Function:
    return Function(
        parameters=(("dim_dst_width", Kind.NUMBER), ("ch_src", Kind.NUMBER)),
        call=lambda isa, a: cmsis_nn.avgpool(isa, types, channels=a["ch_src"][0]),
    )


FUNCTIONS: Mapping[str, Function] = {
    "cmsis_nn.convolve_wrapper_s4": _convolve(DataType.A8W4),
    "cmsis_nn.convolve_wrapper_s8": _convolve(DataType.A8W8),
    "cmsis_nn.convolve_wrapper_s16": _convolve(DataType.A16W8),
    "cmsis_nn.depthwise_conv_wrapper_s4": _depthwise(DataType.A8W4),
    "cmsis_nn.depthwise_conv_wrapper_s8": _depthwise(DataType.A8W8),
    "cmsis_nn.depthwise_conv_wrapper_s16": _depthwise(DataType.A16W8),
    "cmsis_nn.fully_connected_s8": _fully_connected(DataType.A8W8),
    "cmsis_nn.fully_connected_s16": _fully_connected(DataType.A16W8),
    "cmsis_nn.avgpool_s8": _avgpool(DataType.A8W8),
    "cmsis_nn.avgpool_s16": _avgpool(DataType.A16W8),
    "cmsis_nn.svdf_s8": Function(
        parameters=(("filter_nhwc", Kind.NUMBERS),),
        call=lambda isa, a: cmsis_nn.svdf(isa, filters=_shape(a, "filter_nhwc").n),
    ),
    "cmsis_nn.transpose_conv_s8": Function(
        parameters=_TRANSPOSED, call=lambda isa, a: cmsis_nn.transpose_conv(isa, _convolution(a))
    ),
    "cmsis_nn.transpose_conv_reverse_conv_s8": Function(
        parameters=tuple(p for p in _TRANSPOSED if p[0] != "output_nhwc"),
        call=lambda _, a: cmsis_nn.transpose_conv_reverse_conv(_convolution(a)),
    ),
}
"""CMSIS-NN's sizes by name."""
