"""Remove calls whose outputs are never read."""

from __future__ import annotations

from typing import Final

from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.dataflow import Dataflow, without
from orchestrator.method.passes.proof import Dropped, is_same
from orchestrator.method.passes.views import moves_items, views_of
from orchestrator.program.values import TensorValue

_OURS: Final = ("orch::cortex_m::", "orch::portable::", "orch::quantized::")
"""Libraries whose kernels write only their outputs.

A kernel of another library may have side effects, such as access to hardware.
"""
# tests/unit/method/test_prelink_unused.py finds the same names in the sources of kernels, by checks
# of items and by random numbers: a new kernel of that kind has to be added here.
STAY: Final = frozenset(
    {
        "orch::portable::_embedding_bag_forward_only_out",
        "orch::portable::_unique2_out",
        "orch::portable::div_out_mode",
        "orch::portable::embedding_out",
        "orch::portable::floor_divide_out",
        "orch::portable::fractional_max_pool2d_output",
        "orch::portable::fractional_max_pool3d_output",
        "orch::portable::fmod_Tensor_out",
        "orch::portable::gather_out",
        "orch::portable::histc_out",
        "orch::portable::histogram_bin_ct_out",
        "orch::portable::index_Tensor_out",
        "orch::portable::index_put_",
        "orch::portable::index_put_out",
        "orch::portable::index_select_out",
        "orch::portable::masked_scatter_out",
        "orch::portable::masked_select_out",
        "orch::portable::max_pool2d_with_indices_backward_grad_input",
        "orch::portable::native_dropout_out",
        "orch::portable::nonzero_out",
        "orch::portable::put_out",
        "orch::portable::rand_out",
        "orch::portable::randn_out",
        "orch::portable::remainder_Tensor_out",
        "orch::portable::repeat_interleave_Tensor_out",
        "orch::portable::scatter_add_out",
        "orch::portable::scatter_reduce_two_out",
        "orch::portable::scatter_src_out",
        "orch::portable::scatter_value_out",
        "orch::portable::searchsorted_Scalar_out",
        "orch::portable::searchsorted_Tensor_out",
        "orch::portable::unique_consecutive_out",
        "orch::quantized::choose_qparams_Tensor_out",
        "orch::quantized::choose_qparams_per_token_asymmetric_out",
        "orch::quantized::embedding_2bit_dtype_out",
        "orch::quantized::embedding_2bit_out",
        "orch::quantized::embedding_4bit_dtype_out",
        "orch::quantized::embedding_4bit_out",
        "orch::quantized::embedding_byte_dtype_out",
        "orch::quantized::embedding_byte_out",
    }
)
"""Kernels of these libraries that fail for some items, or draw random numbers.

A run that fails must go on failing, and calls that stay must get the numbers that they
get where nothing is left out.
"""


def may_be_unused(call: LinkedCall) -> bool:
    """Whether a call has no effects besides its outputs."""
    return moves_items(call.operator) or _is_pure(call)


def drop_unused_calls(method: LinkedMethod) -> LinkedMethod:
    """Remove calls whose outputs are never read.

    Only calls that cannot fail for any items and computed numbers.
    """
    flow, written = Dataflow(method), method.written
    places = method.places
    # From the last call on, as removing a call may make its inputs unused.
    for index, call in reversed([*enumerate(method.instructions)]):
        if not isinstance(call, LinkedCall):
            continue
        outs = tuple(places[out] for out in call.outs if out in places)
        if views_of(method, call, written, converts=True) is None and (
            not _is_pure(call)
            or not _is_settled(method, flow, written, call)
            or any(flow.is_read(index, out, places) for out in outs)
        ):
            continue
        if is_same(method, flow, {}, {index: Dropped(outs=outs)}):
            flow.drop(index)
    return without(method, flow.dropped)


def _is_pure(call: LinkedCall) -> bool:
    return call.function.startswith(_OURS) and call.function not in STAY


def _is_settled(
    method: LinkedMethod, flow: Dataflow, written: frozenset[int], call: LinkedCall
) -> bool:
    """Whether sizes, and all arguments but items, are the same in every run."""
    for index in method.named(call.args):
        value = method.values[index]
        if isinstance(value, TensorValue):
            if value.is_dynamic or index in flow.moved:
                return False
        elif index in written:
            return False
    return True
