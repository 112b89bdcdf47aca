"""Weights that depend on constants alone become constants, others stay.

    python -m tests.interop.weight_checks

Prints a line of JSON: by model, how many layers have a constant weight and bias, of how
many, and whether the graph computes the same. Needs PyTorch and ExecuTorch.
"""
# mypy: ignore-errors
# ruff: noqa: T201
# (torch is not there when the project is checked)

from __future__ import annotations

import copy
import json
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from orchestrator.export.weights import with_constant_weights

LAYERS = ("conv", "linear")


class Normalized(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = weight_norm(nn.Conv2d(3, 4, 3))
        self.two = weight_norm(nn.ConvTranspose2d(4, 4, 2, 2))
        self.head = weight_norm(nn.Linear(4, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.silu(self.one(x), inplace=True)
        return self.head(self.two(y).mean((2, 3)))


class Standardized(nn.Conv2d):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = functional.batch_norm(
            self.weight.reshape(1, self.out_channels, -1), None, None, training=True
        )
        return functional.conv2d(x, weight.reshape_as(self.weight), 2 * self.bias)


class Split(nn.Module):
    """Two weights in one parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.both = nn.Parameter(torch.randn(8, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one, two = self.both.chunk(2)
        return functional.linear(x, one) - functional.linear(x, two)


class Counted(nn.Module):
    """A weight that each run changes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randn(4, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.weight.view(-1).add_(1.0)
        return functional.linear(x, self.weight * 2)


class Given(nn.Module):
    """A weight that depends on the input."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, self.weight * x.sum())


class Random(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, functional.dropout(self.weight, training=True))


IMAGE, ROWS = (1, 3, 8, 8), (2, 3)
MODELS = {
    "normalized": (Normalized, IMAGE),
    "standardized": (lambda: Standardized(3, 4, 3), IMAGE),
    "split": (Split, ROWS),
    "counted": (Counted, ROWS),
    "given": (Given, ROWS),
    "random": (Random, ROWS),
}


def _checked(make: Any, sizes: tuple[int, ...]) -> dict[str, Any]:
    torch.manual_seed(0)
    module, x = make().eval(), torch.randn(sizes)
    graph = torch.export.export(copy.deepcopy(module), (x,), strict=False).module()
    torch.manual_seed(1)
    before = [graph(x), graph(x)]
    graph = torch.export.export(copy.deepcopy(module), (x,), strict=False).module()
    with_constant_weights(graph)
    torch.manual_seed(1)
    after = [graph(x), graph(x)]
    layers = [
        node
        for node in graph.graph.nodes
        if node.op == "call_function" and any(n in str(node.target) for n in LAYERS)
    ]
    constant = sum(
        all(source.op == "get_attr" for source in node.args[1:3] if source is not None)
        for node in layers
    )
    return {
        "constant": constant,
        "layers": len(layers),
        "same": all(map(torch.equal, before, after)),
    }


if __name__ == "__main__":
    print(json.dumps({name: _checked(*model) for name, model in MODELS.items()}))
