"""Weights that torchao quantized, where no linear layer has them.

    python -m tests.interop.int_weight_checks

Prints a line of JSON: by model, the operators that take its integers, and the largest
difference from PyTorch. Needs PyTorch and ExecuTorch.
"""
# mypy: ignore-errors
# ruff: noqa: T201
# (torch is not there when the project is checked)

from __future__ import annotations

import json

import torch
from torch.export import Dim
from torchao.quantization import Int8WeightOnlyConfig, IntxWeightOnlyConfig, quantize_
from torchao.quantization.granularity import PerAxis, PerGroup
from torchao.quantization.quant_primitives import MappingType

from orchestrator.export.lower import _unquantized
from orchestrator.export.request import Request
from orchestrator.export.source import Source


class Words(torch.nn.Module):
    """Words to rows, and rows to words by the same weights if they are tied."""

    def __init__(self, *, tied: bool = False) -> None:
        super().__init__()
        self.rows = torch.nn.Embedding(20, 16)
        self.tied = tied

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Of any number of words."""
        rows = self.rows(words)
        if self.tied:
            rows = torch.nn.functional.linear(rows, self.rows.weight)
        return rows


ROWS = PerAxis(0)
MODELS = {
    "8 bits": (False, Int8WeightOnlyConfig()),
    "zero points": (
        False,
        IntxWeightOnlyConfig(torch.int8, ROWS, mapping_type=MappingType.ASYMMETRIC),
    ),
    "groups": (False, IntxWeightOnlyConfig(torch.int4, PerGroup(8))),
    "3 bits": (False, IntxWeightOnlyConfig(torch.int3, ROWS)),
    "2 bits": (False, IntxWeightOnlyConfig(torch.int2, ROWS)),
    "tied": (True, IntxWeightOnlyConfig(torch.int8, ROWS)),
}


def main() -> None:
    """Check all of them."""
    torch.manual_seed(0)
    found = {}
    request = Request(
        file="", function="", folder="", lowering="portable", cpu="host", isa="scalar"
    )
    for name, (tied, config) in MODELS.items():
        net = Words(tied=tied).eval()
        quantize_(net, config, lambda layer, _: isinstance(layer, torch.nn.Embedding))
        words = torch.randint(0, 20, (2, 3))
        shapes = ({1: Dim("words", min=1, max=8)},)
        graph, _ = _unquantized(Source(net, (words,), shapes), request)
        taken = {
            str(user.target)
            for node in graph.graph.nodes
            if node.op == "get_attr"
            and getattr(graph, node.target).dtype in {torch.int8, torch.uint8}
            for user in node.users
        }
        words = torch.randint(0, 20, (2, 5))
        difference = (graph(words) - net(words)).abs().max()
        found[name] = (*sorted(taken), float(difference))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
