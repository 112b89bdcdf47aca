"""Lowering for int8 and int16 kernels of Cortex-M."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config
from executorch.backends.cortex_m.library import cmsis_nn
from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
from executorch.backends.cortex_m.target_config import CortexM, CortexMTargetConfig
from executorch.exir import to_edge

from orchestrator.export.int16 import Int16Quantizer, called
from orchestrator.export.islands import finished, fused
from orchestrator.export.quantizable import quantizable
from orchestrator.profile.lowering import Activations, Quantize

if TYPE_CHECKING:
    from orchestrator.export.request import Request


def quantizer(request: Request) -> Any:
    """What decides where scales are."""
    choice = request.quantize or Quantize()
    if choice.activations is Activations.INT16:
        return Int16Quantizer()
    return _Quantizer()


class _Quantizer(CortexMQuantizer):  # type: ignore[misc]  # ExecuTorch's is Any
    """ExecuTorch's, for more layers."""

    def transform_for_annotation(self, model: Any) -> Any:
        """Change a graph before scales are chosen."""
        return super().transform_for_annotation(quantizable(model))


def lowered(program: Any, request: Request) -> Any:
    """Lower an exported program for the core, or for plain C on other cores."""
    # ExecuTorch's own configuration for this backend: it keeps operators such as linear
    # whole, which its passes look for.
    edge = to_edge(program, compile_config=cortex_m_edge_compile_config())
    # Between to_edge and the backend's passes: before, operators have no edge form;
    # after, everything that was not int8 is a float call with conversions around it.
    passes = CortexMPassManager(
        called(fused(edge.exported_program())), target_config=_config(request.cpu, request.isa)
    )
    # transform() gives an ExportedProgram, and the manager has no way to take it.
    edge._edge_programs["forward"] = finished(passes.transform())  # noqa: SLF001
    return edge


def _config(cpu: str, isa: str) -> Any:
    core = f"M{cpu.removeprefix('cortex-m').upper()}"
    if not cpu.startswith("cortex-m") or core not in CortexM.__members__:
        # CMSIS-NN's scratch sizes for plain C, which our kernels do not need (decision
        # 0008); cores that ExecuTorch does not know run plain C as well.
        core, isa = "M3", "scalar"
    backend = getattr(cmsis_nn.Backend, isa.upper())
    return CortexMTargetConfig(cpu=CortexM[core], isa=backend)
