"""Lowering for XNNPACK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
    XnnpackDynamicallyQuantizedPartitioner,
    XnnpackPartitioner,
)
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

from orchestrator.profile.lowering import Quantize, Weights

if TYPE_CHECKING:
    from orchestrator.export.request import Request


def quantizer(request: Request) -> Any:
    """What decides where scales are."""
    choice = request.quantize or Quantize()
    config = get_symmetric_quantization_config(
        is_per_channel=choice.weights is Weights.PER_CHANNEL, is_dynamic=choice.dynamic
    )
    return XNNPACKQuantizer().set_global(config)


def lowered(program: Any, request: Request) -> Any:
    """Lower an exported program."""
    partitioners: list[Any] = [XnnpackPartitioner()]
    if request.quantize is not None and request.quantize.dynamic:
        # Its patterns must be matched before their layers are taken one by one.
        partitioners.insert(0, XnnpackDynamicallyQuantizedPartitioner())
    # What is not a core operator may have a kernel or be decomposed.
    config = EdgeCompileConfig(_check_ir_validity=False)
    return to_edge_transform_and_lower(program, partitioner=partitioners, compile_config=config)
