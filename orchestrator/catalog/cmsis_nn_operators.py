"""Scratch sizes of `cortex_m::*` operators that call CMSIS-NN.

Source: ExecuTorch 1.5.1, `backends/cortex_m/passes/scratch_buffer_sizes.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from orchestrator.catalog.expressions.scratch_size import check_size
from orchestrator.catalog.expressions.values import ExpressionError
from orchestrator.catalog.scratch_arguments import scratch_arguments
from orchestrator.core.operator import OpSchema

_PLACES = "padding_hw=padding, stride_hw=stride, dilation_hw=dilation"
_CONVOLUTION = (
    "cmsis_nn.convolve_wrapper_s8(input_nhwc={input}, filter_nhwc=weight.sizes,"
    f" output_nhwc={{out}}, {_PLACES})"
)
# The exporter passes outputs first and one channel, CMSIS-NN's kernel the reverse. That
# makes a difference for images of one channel only, with filters of 1x1 or one row:
# CMSIS-NN then takes a shortcut, which needs less.
_DEPTHWISE = (
    "cmsis_nn.depthwise_conv_wrapper_s8(input_nhwc={input},"
    " filter_nhwc=[weight.sizes[3], weight.sizes[1], weight.sizes[2], 1],"
    f" output_nhwc={{out}}, {_PLACES}, ch_mult=depth_multiplier)"
)
_TRANSPOSED = (
    "cmsis_nn.transpose_conv_s8(input_nhwc={input}, filter_nhwc=weight.sizes,"
    " output_nhwc={out}, stride_hw=stride)"
)
_REVERSED = (
    "cmsis_nn.transpose_conv_reverse_conv_s8(input_nhwc={input},"
    " filter_nhwc=weight.sizes, stride_hw=stride)"
)
_POOL = "cmsis_nn.avgpool_s8(dim_dst_width={out}[2], ch_src={input}[3])"
_MATMUL = (
    "cmsis_nn.fully_connected_s8(filter_nhwc="
    "[rhs_transposed.sizes[2], 1, 1, rhs_transposed.sizes[1]])"
)
_IMAGES: Mapping[str, Mapping[str, str]] = {
    "quantized_conv2d": {"scratch": _CONVOLUTION},
    "quantized_depthwise_conv2d": {"scratch": _DEPTHWISE},
    "quantized_transpose_conv2d": {"scratch": _TRANSPOSED, "output_scratch": _REVERSED},
    "quantized_avg_pool2d": {"scratch": _POOL},
}
"""Operators on images; those that end in `_nhwc` have sizes in that order."""


def cmsis_nn_sizes(schema: OpSchema) -> tuple[tuple[str, str], ...]:
    """Expressions for the scratch arguments of an operator, as in `Kernel.scratch`.

    Args:
        schema: Schema of the operator.

    Returns:
        Empty for operators that need no buffer of CMSIS-NN, or whose arguments are not
        those of ExecuTorch.
    """
    name = schema.name
    if name.namespace != "cortex_m":
        return ()
    base = name.base.removesuffix("_nhwc")
    order = "sizes" if base != name.base else "nhwc"
    sizes = _IMAGES.get(base, {})
    if base == "quantized_batch_matmul":
        sizes = {"scratch": _MATMUL}
    found = []
    for _, argument in scratch_arguments(schema):
        text = sizes.get(argument.name, "").format(input=f"input.{order}", out=f"out.{order}")
        with suppress(ExpressionError):
            check_size(text, schema)
            found.append((argument.name, text))
    return tuple(found) if len(found) == len(sizes) else ()
