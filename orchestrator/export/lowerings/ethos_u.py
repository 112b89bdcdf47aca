"""Lowering for Ethos-U: through TOSA and Vela."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
from executorch.backends.arm.quantizer import (
    EthosUQuantizer,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
)
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

from orchestrator.core.lowering import Activations, Quantize, Weights

if TYPE_CHECKING:
    from orchestrator.export.request import Request


def quantizer(request: Request) -> Any:
    """What decides where scales are."""
    choice = request.quantize or Quantize()
    is_int8 = choice.activations is Activations.INT8
    config = (
        get_symmetric_quantization_config
        if is_int8
        else get_symmetric_a16w8_quantization_config
    )
    found = EthosUQuantizer(EthosUCompileSpec(request.lowering))
    found.set_global(config(is_per_channel=choice.weights is Weights.PER_CHANNEL))
    return found


def lowered(program: Any, request: Request) -> Any:
    """Lower an exported program for the accelerator that the lowering names."""
    return to_edge_transform_and_lower(
        program,
        partitioner=[EthosUPartitioner(EthosUCompileSpec(request.lowering))],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )
