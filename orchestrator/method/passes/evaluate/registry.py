"""Which kernels the build can compute, and with what.

NumPy is imported with the first call that is computed: most programs have none.
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ALL
from orchestrator.method.passes.arguments import UnknownCallError
from orchestrator.program.values import (
    OptionalTensorListValue,
    TensorListValue,
    TensorValue,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from orchestrator.method.linked import LinkedCall, LinkedMethod
    from orchestrator.program.values import Value

_LISTS = (TensorListValue, OptionalTensorListValue)

_FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    "affine": (
        "orch::cortex_m::dequantize_per_tensor_out",
        "orch::cortex_m::quantize_per_tensor_out",
        "orch::quantized::dequantize_per_channel_out",
        "orch::quantized::dequantize_per_tensor_Tensor_out",
        "orch::quantized::dequantize_per_tensor_out",
        "orch::quantized::dequantize_per_token_out",
        "orch::quantized::quantize_per_channel_out",
        "orch::quantized::quantize_per_tensor_Tensor_out",
        "orch::quantized::quantize_per_tensor_out",
        "orch::quantized::quantize_per_token_out",
    ),
    "arithmetic": (
        "orch::portable::abs_out",
        "orch::portable::add_out",
        "orch::portable::bitwise_and_Scalar_out",
        "orch::portable::bitwise_and_Tensor_out",
        "orch::portable::bitwise_not_out",
        "orch::portable::bitwise_or_Scalar_out",
        "orch::portable::bitwise_or_Tensor_out",
        "orch::portable::mul_out",
        "orch::portable::neg_out",
        "orch::portable::sub_out",
    ),
    "choose": (
        "orch::quantized::choose_qparams_Tensor_out",
        "orch::quantized::choose_qparams_per_token_asymmetric_out",
    ),
    "compare": (
        "orch::portable::eq_Scalar_out",
        "orch::portable::eq_Tensor_out",
        "orch::portable::ge_Scalar_out",
        "orch::portable::ge_Tensor_out",
        "orch::portable::gt_Scalar_out",
        "orch::portable::gt_Tensor_out",
        "orch::portable::le_Scalar_out",
        "orch::portable::le_Tensor_out",
        "orch::portable::logical_not_out",
        "orch::portable::logical_xor_out",
        "orch::portable::lt_Scalar_out",
        "orch::portable::lt_Tensor_out",
        "orch::portable::ne_Scalar_out",
        "orch::portable::ne_Tensor_out",
    ),
    "convolve": ("orch::portable::convolution_out",),
    "create": (
        "orch::portable::arange_start_out",
        "orch::portable::full_out",
        "orch::portable::scalar_tensor_out",
    ),
    "divide": (
        "orch::portable::div_out",
        "orch::portable::div_out_mode",
        "orch::portable::fmod_Scalar_out",
        "orch::portable::remainder_Scalar_out",
    ),
    "images": (
        "orch::portable::avg_pool2d_out",
        "orch::portable::max_pool2d_with_indices_out",
        "orch::portable::upsample_nearest2d_vec_out",
    ),
    "int8_images": (
        "orch::cortex_m::quantized_avg_pool2d_nhwc_out",
        "orch::cortex_m::quantized_avg_pool2d_out",
        "orch::cortex_m::quantized_conv2d_nhwc_out",
        "orch::cortex_m::quantized_conv2d_out",
        "orch::cortex_m::quantized_depthwise_conv2d_nhwc_out",
        "orch::cortex_m::quantized_depthwise_conv2d_out",
        "orch::cortex_m::quantized_max_pool2d_nhwc_out",
        "orch::cortex_m::quantized_max_pool2d_out",
        "orch::cortex_m::quantized_transpose_conv2d_nhwc_out",
        "orch::cortex_m::quantized_transpose_conv2d_out",
    ),
    "int8_items": (
        "orch::cortex_m::pad_out",
        "orch::cortex_m::quantized_activation_out",
        "orch::cortex_m::quantized_add_out",
        "orch::cortex_m::quantized_div_out",
        "orch::cortex_m::quantized_mul_out",
        "orch::cortex_m::transpose_out",
    ),
    "int8_rows": (
        "orch::cortex_m::quantized_batch_matmul_out",
        "orch::cortex_m::quantized_linear_out",
        "orch::cortex_m::softmax_out",
    ),
    "limit": (
        "orch::cortex_m::maximum_out",
        "orch::cortex_m::minimum_out",
        "orch::portable::clamp_out",
        "orch::portable::hardtanh_out",
        "orch::portable::maximum_out",
        "orch::portable::minimum_out",
        "orch::portable::relu_out",
    ),
    "matrix": (
        "orch::portable::addmm_out",
        "orch::portable::bmm_out",
        "orch::portable::mm_out",
    ),
    "normalize": (
        "orch::portable::_native_batch_norm_legit_no_training_out",
        "orch::portable::native_layer_norm_out",
    ),
    "pick": (
        "orch::portable::_to_dim_order_copy_out",
        "orch::portable::cat_out",
        "orch::portable::embedding_out",
        "orch::portable::flip_out",
        "orch::portable::index_Tensor_out",
        "orch::portable::index_put_out",
        "orch::portable::where_self_out",
    ),
    "real": (
        "orch::portable::_softmax_out",
        "orch::portable::cos_out",
        "orch::portable::gelu_out",
        "orch::portable::sigmoid_out",
        "orch::portable::sin_out",
        "orch::portable::tanh_out",
    ),
    "reduce": (
        "orch::portable::any_all_out",
        "orch::portable::any_dims_out",
        "orch::portable::any_out",
        "orch::portable::argmax_out",
        "orch::portable::max_dim_max",
        "orch::portable::mean_dtype_out",
        "orch::portable::mean_out",
        "orch::portable::sum_IntList_out",
        "orch::portable::var_correction_out",
    ),
    "scalars": (
        "orch::prim_ops::_local_scalar_dense",
        "orch::prim_ops::add_Scalar",
        "orch::prim_ops::ceil_Scalar",
        "orch::prim_ops::eq_Scalar",
        "orch::prim_ops::floordiv_Scalar",
        "orch::prim_ops::floordiv_int",
        "orch::prim_ops::ge_Scalar",
        "orch::prim_ops::gt_Scalar",
        "orch::prim_ops::le_Scalar",
        "orch::prim_ops::lt_Scalar",
        "orch::prim_ops::mod_int",
        "orch::prim_ops::mul_Scalar",
        "orch::prim_ops::neg_Scalar",
        "orch::prim_ops::round_Scalar",
        "orch::prim_ops::sub_Scalar",
        "orch::prim_ops::sym_float_Scalar",
        "orch::prim_ops::sym_int_Scalar",
        "orch::prim_ops::sym_ite_Scalar",
        "orch::prim_ops::sym_max_Scalar",
        "orch::prim_ops::sym_min_Scalar",
        "orch::prim_ops::sym_not_Scalar",
        "orch::prim_ops::sym_numel",
        "orch::prim_ops::sym_size_int",
        "orch::prim_ops::truediv_Scalar",
    ),
}
"""Kernels by the module that has their evaluators, under `EVALUATORS`."""

_SCALARS: Final = "scalars"
"""Those whose result is a number, no tensor."""

_FAMILY: Final = MappingProxyType(
    {kernel: family for family, kernels in _FAMILIES.items() for kernel in kernels}
)


def evaluated_kernels() -> Mapping[str, str]:
    """The module that computes what a kernel does, by the kernel's C++ name."""
    return _FAMILY


def has_evaluator(call: LinkedCall) -> bool:
    """Whether there is an evaluator for the kernel of a call.

    It is found by kernel, not by operator: a kernel of the user's may round otherwise.
    """
    return call.function in _FAMILY


def results_of(
    method: LinkedMethod, call: LinkedCall, unknown: Collection[int]
) -> dict[int, bytes] | None:
    """What a call writes, if everything it is given is constant.

    Args:
        method: Has the call.
        call: One of its calls.
        unknown: Values that something writes or moves.

    Returns:
        By value index: the items of each output, in the order of its memory. None if
        something is not known before a run, if the kernel would report an error, if
        the evaluator does not cover the arguments, and if an item were NaN: kernels do
        not promise its bits.
    """
    inputs = _inputs(method, call) if may_be_computed(method, call) else None
    if inputs is None or not inputs.isdisjoint(unknown):
        return None
    data = dict(method.data)
    if not inputs <= data.keys():
        return None
    package = __name__.rpartition(".")[0]
    family = import_module(f"{package}.{_FAMILY[call.function]}")
    constants = import_module(f"{package}.constant_call")
    known = constants.ConstantCall(method, call, frozenset(unknown), data)
    try:
        results: dict[int, bytes] = constants.evaluated(
            family.EVALUATORS[call.function], known
        )
    except UnknownCallError:
        return None
    return results


def number_of(
    method: LinkedMethod,
    call: LinkedCall,
    unknown: Collection[int],
    moved: Collection[int],
) -> Value | None:
    """The number that a call returns, if it is the same in every run.

    Args:
        method: Has the call.
        call: One of its calls.
        unknown: Values that something writes or moves.
        moved: Values that moves read or write.

    Returns:
        A number of the kind that its slot has. None if something is not known before a
        run, if the kernel would report an error, and for NaN.
    """
    if _FAMILY.get(call.function) != _SCALARS or len(call.outs) != 1:
        return None
    if not _may_be_known(method.values[call.args[0]], call.args[0], unknown):
        return None
    package = __name__.rpartition(".")[0]
    scalars = import_module(f"{package}.{_SCALARS}")
    constants = import_module(f"{package}.constant_call")
    data = dict(method.data)
    known = constants.ConstantCall(method, call, frozenset(unknown), data, moved)
    try:
        found: Value = scalars.as_value(scalars.EVALUATORS[call.function](known))
    except UnknownCallError:
        return None
    return found if type(found) is type(method.values[call.outs[0]]) else None


def _may_be_known(value: Value, index: int, unknown: Collection[int]) -> bool:
    """Whether it is worth a look: NumPy is imported for it."""
    if isinstance(value, TensorValue):
        return not value.is_dynamic
    return index not in unknown


def _inputs(method: LinkedMethod, call: LinkedCall) -> set[int] | None:
    """Tensors that a call only reads; None if one is no constant, as most are."""
    inputs = set()
    for index in _tensors(method, call):
        tensor = method.values[index]
        if not isinstance(tensor, TensorValue) or tensor.dtype not in ALL:
            return None
        if index not in call.outs:
            inputs.add(index)
            if tensor.allocation is not None:
                return None
    return inputs


def may_be_computed(method: LinkedMethod, call: LinkedCall) -> bool:
    """Whether a call has an evaluator for its tensors, and reads none in an arena."""
    gives_tensors = _FAMILY.get(call.function, _SCALARS) != _SCALARS
    distinct = len(set(call.outs)) == len(call.outs)
    return gives_tensors and distinct and _inputs(method, call) is not None


def _tensors(method: LinkedMethod, call: LinkedCall) -> Iterator[int]:
    for argument in call.args:
        value = method.values[argument]
        if isinstance(value, _LISTS):
            yield from (item for item in value.items if item >= 0)
        elif isinstance(value, TensorValue):
            yield argument
