"""Lowering for Ethos-U: through TOSA and Vela."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from typing import TYPE_CHECKING, Any

import torch
from ethosu.vela.errors import VelaError
from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
from executorch.backends.arm.quantizer import (
    EthosUQuantizer,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
)
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torch.fx.passes.operator_support import OperatorSupportBase

from orchestrator.export.failure import ExportError
from orchestrator.profile.lowering import Activations, Quantize, Weights, with_defaults

if TYPE_CHECKING:
    from orchestrator.export.request import Request


def quantizer(request: Request) -> Any:
    """What decides where scales are."""
    choice = request.quantize or Quantize()
    is_int8 = choice.activations is Activations.INT8
    config = (
        get_symmetric_quantization_config if is_int8 else get_symmetric_a16w8_quantization_config
    )
    found = EthosUQuantizer(_specification(request))
    found.set_global(config(is_per_channel=choice.weights is Weights.PER_CHANNEL))
    return found


class _NoCounters(OperatorSupportBase):  # type: ignore[misc]  # PyTorch's is Any
    """Leaves calls with wide integers, such as counters, to kernels.

    ExecuTorch delegates some that its passes then cannot lower.
    """

    def is_node_supported(self, submodules: Any, node: Any) -> bool:
        """Whether the delegate may have a call."""
        del submodules
        values = [n.meta.get("val") for n in (node, *node.all_input_nodes)]
        wide = {getattr(v, "dtype", None) for v in values} & {torch.int32, torch.int64}
        return "quantize" in str(node.target) or not wide  # a bias is int32


def lowered(program: Any, request: Request) -> Any:
    """Lower an exported program for the accelerator that the lowering names."""
    with _refusals(request):
        return to_edge_transform_and_lower(
            program,
            partitioner=[EthosUPartitioner(_specification(request), [_NoCounters()])],
            # What is left for kernels need not be a core operator; validation is for
            # backends that take those alone.
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
        )


@contextmanager
def _refusals(request: Request) -> Iterator[None]:
    """Add what Vela prints to its error: some reasons go only to the terminal."""
    said = StringIO()
    try:
        # Vela 5.1 prints why it refuses an operator, and raises an error that only says
        # that it did.
        with redirect_stderr(said):
            yield
    except (VelaError, SystemExit) as error:
        lines = said.getvalue().strip().splitlines()
        text = error.error_msg if isinstance(error, VelaError) else "".join(lines[-1:])
        raise ExportError(
            "cannot-lower",
            f"Vela cannot compile the model for {request.lowering}",
            notes=(("found", text.rpartition("error: ")[2] or str(error)),),
            hint="correct [models.vela], or choose another lowering",
        ) from error
    finally:
        sys.stderr.write(said.getvalue())


def _specification(request: Request) -> Any:
    vela = with_defaults(request.vela, request.lowering)
    return EthosUCompileSpec(
        request.lowering,
        system_config=vela.system_config,
        memory_mode=vela.memory_mode,
        # Vela looks up a plain `folder/file` among its own configurations.
        config_ini=f"./{vela.config}" if vela.config else None,
        extra_flags=list(vela.flags),
    )
