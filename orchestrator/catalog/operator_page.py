"""The operators that have a kernel, as a table beside ExecuTorch's lists."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from orchestrator.catalog.expressions.reader import compiled
from orchestrator.catalog.expressions.values import ExpressionError, Kind
from orchestrator.catalog.keys import tensor_arguments
from orchestrator.catalog.scratch_arguments import scratch_arguments
from orchestrator.core.dtype import ALL, DTYPE_GROUPS, ScalarType
from orchestrator.core.kernel import Kernel
from orchestrator.core.operator import OpSchema

# Operators of ExecuTorch's kernel libraries, by name.
#
# Source: the `functions.yaml` of its releases, 1.5.1 for the portable library.


def names(*parts: str) -> frozenset[str]:
    """Full names, of pairs of a namespace and a text of operators."""
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return frozenset(f"{space}::{name}" for space, text in pairs for name in text.split())


PORTABLE: Final = names(
    "aten",
    """
    _adaptive_avg_pool2d.out _cdist_forward.out _conj_physical.out
    _log_softmax.out _native_batch_norm_legit.no_stats_out
    _native_batch_norm_legit.out _native_batch_norm_legit_no_training.out
    _pdist_forward.out _softmax.out _to_copy.out _upsample_bilinear2d_aa.out
    abs.out acos.out acosh.out add.Scalar_out add.out addmm.out alias_copy.out
    amax.out amin.out any.all_out any.dims_out any.out arange.out
    arange.start_out argmax.out argmin.out as_strided_copy.out asin.out
    asinh.out atan.out atan2.out atanh.out avg_pool2d.out
    bitwise_and.Scalar_out bitwise_and.Tensor_out
    bitwise_left_shift.Tensor_Scalar_out bitwise_left_shift.Tensor_out
    bitwise_not.out bitwise_or.Scalar_out bitwise_or.Tensor_out
    bitwise_right_shift.Tensor_Scalar_out bitwise_right_shift.Tensor_out
    bitwise_xor.Scalar_out bitwise_xor.Tensor_out bmm.out cat.out ceil.out
    clamp.Tensor_out clamp.out clone.out constant_pad_nd.out convolution.out
    convolution_backward.out copy.out copy_ cos.out cosh.out cumsum.out
    detach_copy.out diagonal_copy.out div.Scalar_mode_out div.Scalar_out
    div.out div.out_mode elu.out embedding.out empty.out eq.Scalar_out
    eq.Tensor_out erf.out exp.out expand_copy.out expm1.out fill.Scalar_out
    fill.Tensor_out flip.out floor.out floor_divide.out fmod.Scalar_out
    fmod.Tensor_out full.out full_like.out gather.out ge.Scalar_out
    ge.Tensor_out gelu.out glu.out grid_sampler_2d.out gt.Scalar_out
    gt.Tensor_out hardtanh.out index.Tensor_out index_put.out index_put_
    index_select.out isinf.out isnan.out le.Scalar_out le.Tensor_out
    leaky_relu.out lift_fresh_copy.out log.out log10.out log1p.out log2.out
    logical_and.out logical_not.out logical_or.out logical_xor.out logit.out
    lt.Scalar_out lt.Tensor_out masked_fill.Scalar_out masked_scatter.out
    masked_select.out max.dim_max max.unary_out max_pool2d_with_indices.out
    max_pool2d_with_indices_backward.grad_input maximum.out mean.dtype_out
    mean.out min.dim_min min.unary_out minimum.out mm.out mul.Scalar_out
    mul.out narrow_copy.out native_dropout.out native_group_norm.out
    native_layer_norm.out ne.Scalar_out ne.Tensor_out neg.out nonzero.out
    ones.out permute_copy.out pixel_shuffle.out pixel_unshuffle.out
    pow.Scalar_out pow.Tensor_Scalar_out pow.Tensor_Tensor_out prod.int_out
    prod.out rand.out randn.out reciprocal.out reflection_pad1d.out
    reflection_pad2d.out reflection_pad3d.out relu.out remainder.Scalar_out
    remainder.Tensor_out repeat.out repeat_interleave.Tensor_out
    replication_pad1d.out replication_pad2d.out replication_pad3d.out roll.out
    round.out rsqrt.out rsub.Scalar_out scalar_tensor.out scatter.src_out
    scatter.value_out scatter_add.out select_copy.int_out select_scatter.out
    sigmoid.out sign.out sin.out sinh.out slice_copy.Tensor_out
    slice_scatter.out split_copy.Tensor_out split_with_sizes_copy.out sqrt.out
    squeeze_copy.dim_out squeeze_copy.dims_out stack.out sub.Scalar_out
    sub.out sum.IntList_out t_copy.out tan.out tanh.out topk.values
    transpose_copy.int_out tril.out trunc.out unbind_copy.int_out
    unfold_copy.out unsqueeze_copy.out upsample_bilinear2d.vec_out
    upsample_nearest2d.vec_out var.correction_out var.out
    var_mean.correction_out view_as_real_copy.out view_copy.out where.self_out
    zeros.out
    """,
    "dim_order_ops",
    """
    _clone_dim_order.out _empty_dim_order.out _to_dim_order_copy.out
    """,
    "et_copy",
    """
    _d2h_copy.out _h2d_copy.out
    """,
)
"""`kernels/portable/functions.yaml`."""

QUANTIZED: Final = names(
    "quantized_decomposed",
    """
    add.out choose_qparams.Tensor_out choose_qparams_per_token_asymmetric.out
    dequantize_per_channel.out dequantize_per_tensor.Tensor_out
    dequantize_per_tensor.out dequantize_per_token.out
    embedding_2bit.dtype_out embedding_2bit.out embedding_4bit.dtype_out
    embedding_4bit.out embedding_byte.dtype_out embedding_byte.out
    mixed_linear.out mixed_mm.out quantize_per_channel.out
    quantize_per_tensor.Tensor_out quantize_per_tensor.out
    quantize_per_token.out
    """,
)
"""`kernels/quantized/quantized.yaml`."""

CUSTOM: Final = names(
    "aten",
    """
    allclose.Tensor allclose.out
    """,
)
"""`kernels/portable/custom_ops.yaml`."""

NEVER_CALLED: Final = {"aten::allclose.Tensor": "aten::allclose.out"}
"""Operators that no program calls, and what programs call instead.

They give a new tensor. `to_executorch` writes out variants only; ExecuTorch's own
kernel of such an operator does nothing but abort.
"""

CORTEX_M: Final = names(
    "cortex_m",
    """
    dequantize_per_tensor.out maximum.out minimum.out pad.out
    quantize_per_tensor.out quantized_activation.out quantized_add.out
    quantized_avg_pool2d.out quantized_batch_matmul.out quantized_conv2d.out
    quantized_depthwise_conv2d.out quantized_div.out quantized_linear.out
    quantized_max_pool2d.out quantized_mul.out quantized_transpose_conv2d.out
    softmax.out transpose.out
    """,
)
"""`backends/cortex_m/ops/operators.yaml`."""


LISTS: Final = {
    "portable": PORTABLE,
    "quantized": QUANTIZED,
    "custom": CUSTOM,
    "cortex_m": CORTEX_M,
}
"""ExecuTorch's lists by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """An operator that has a kernel.

    Args:
        operator: Its name.
        library: The library that has the kernel.
        dtypes: Dtypes of its tensors, in words.
        dim_orders: `any`, `same` or `contiguous`.
        isas: Instruction sets with code of their own.
        error: Largest error of its floats; `exact`: the bits of PyTorch.
        limits: What its numbers must be, as conditions.
        executorch: The list of ExecuTorch that has it; empty if none does.
    """

    operator: str
    library: str
    dtypes: str
    dim_orders: str
    isas: tuple[str, ...]
    error: str
    limits: tuple[str, ...]
    executorch: str


def operator_rows(kernels: Iterable[Kernel]) -> tuple[OperatorRow, ...]:
    """A row for each operator of a library, by name."""
    rows = {
        (str(kernel.operator), kernel.library): OperatorRow(
            operator=str(kernel.operator),
            library=kernel.library,
            dtypes=dtypes_of(kernel),
            dim_orders=kernel.dim_orders,
            isas=kernel.isas,
            error=kernel.error or "exact",
            limits=limits_of(kernel),
            executorch=_list_of(str(kernel.operator)),
        )
        for kernel in kernels
    }
    return tuple(rows[key] for key in sorted(rows))


def missing(rows: Sequence[OperatorRow]) -> dict[str, list[str]]:
    """By list of ExecuTorch: operators that have no kernel here."""
    here = {row.operator for row in rows}
    return {name: sorted(listed - here) for name, listed in LISTS.items()}


def counts(rows: Sequence[OperatorRow]) -> dict[str, tuple[int, int]]:
    """By list of ExecuTorch: operators that have a kernel here, of how many."""
    gone = missing(rows)
    return {name: (len(listed) - len(gone[name]), len(listed)) for name, listed in LISTS.items()}


def dtypes_of(kernel: Kernel) -> str:
    """`real, Bool`, or by argument if they differ: `self: real; out: floating`."""
    given: dict[str, list[str]] = {}
    for argument, dtypes in kernel.dtypes:
        given.setdefault(_in_groups(dtypes), []).append(argument)
    if not given:
        return "no tensors"
    if len(given) == 1:
        return next(iter(given))
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in given.items())


def limits_of(kernel: Kernel) -> tuple[str, ...]:
    """Conditions on numbers alone, without those that only bound 32 or 64 bits."""
    tensors = {*tensor_arguments(kernel.schema), "result"}
    found = []
    for condition in kernel.requires:
        nodes = [*ast.walk(ast.parse(condition, mode="eval"))]
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        numbers = [node.value for node in nodes if isinstance(node, ast.Constant)]
        if not names & tensors and not any(
            isinstance(number, int) and number >= _HUGE for number in numbers
        ):
            found.append(condition)
    return tuple(found)


# `kMaxExtent` of kernels/util/check.h: conditions with it are on all numbers of a kind.
_HUGE: Final = 1 << 30


def _in_groups(dtypes: frozenset[ScalarType]) -> str:
    if dtypes >= ALL:
        return "all"
    found, left = [], set(dtypes)
    # The largest group first, so that the text is short.
    for name in ("real", "integral", "floating", "complex"):
        if left >= DTYPE_GROUPS[name]:
            found.append(name)
            left -= DTYPE_GROUPS[name]
    return ", ".join([*found, *(d.name for d in sorted(left))])


def _list_of(operator: str) -> str:
    return next((name for name, listed in LISTS.items() if operator in listed), "")


# Scratch sizes of `cortex_m::*` operators that call CMSIS-NN.
#
# Source: ExecuTorch 1.5.1, `backends/cortex_m/passes/scratch_buffer_sizes.py`.

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
            compiled(text, schema, Kind.NUMBER)
            found.append((argument.name, text))
    return tuple(found) if len(found) == len(sizes) else ()
