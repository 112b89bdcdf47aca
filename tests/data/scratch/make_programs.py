"""Makes <core>.pte: all operators with scratch memory that the corpus has not.

Run it with a Python that has torch and executorch (2.13.0 and 1.5.1 made the files
that are checked in):

    python tests/data/scratch/make_programs.py

The exporter wants the package tosa-tools as well.

One network of transposed convolutions with few and with many channels, a convolution
along a row, a depthwise one of one channel, an average pool and a product of matrices,
quantized to int8 and lowered for three cores. The exporter reserves what CMSIS-NN needs
on each.
"""

# mypy: torch is not there when the project is checked.
# mypy: ignore-errors

from __future__ import annotations

from pathlib import Path

import torch
from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config
from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
from executorch.backends.cortex_m.target_config import CortexMTargetConfig
from executorch.exir import to_edge
from torch.export import export
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

CORES = ("cortex-m0plus", "cortex-m4", "cortex-m55")


class Network(torch.nn.Module):
    """Few weights, many kinds of scratch memory."""

    def __init__(self) -> None:
        super().__init__()
        self.depthwise = torch.nn.Conv2d(1, 4, 3, padding=1, groups=1)
        self.few = torch.nn.ConvTranspose2d(4, 18, 2, stride=2)
        self.many = torch.nn.ConvTranspose2d(18, 2, 3, stride=2, padding=1)
        self.row = torch.nn.Conv2d(2, 3, (1, 5), padding=(0, 2))
        self.pool = torch.nn.AvgPool2d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """An image of one channel to a matrix."""
        x = self.few(self.depthwise(x))
        x = self.pool(self.row(self.many(x)))
        x = x.flatten(2)
        return torch.bmm(x, x.transpose(1, 2))


def main() -> None:
    """Write the programs beside this file."""
    torch.manual_seed(5)
    example = (torch.randn(1, 1, 4, 5).to(memory_format=torch.channels_last),)
    network = Network().eval().to(memory_format=torch.channels_last)
    exported = export(network, example).module(check_guards=False)
    prepared = prepare_pt2e(exported, CortexMQuantizer())
    for _ in range(8):
        prepared(torch.randn(1, 1, 4, 5).to(memory_format=torch.channels_last))
    quantized = convert_pt2e(prepared)
    for core in CORES:
        config = CortexMTargetConfig.from_target_string(core)
        edge = to_edge(export(quantized, example), compile_config=cortex_m_edge_compile_config())
        manager = CortexMPassManager(edge.exported_program(), target_config=config)
        edge._edge_programs["forward"] = manager.transform()  # noqa: SLF001
        program = edge.to_executorch()
        path = Path(__file__).with_name(f"{core}.pte")
        path.write_bytes(program.buffer)


if __name__ == "__main__":
    main()
