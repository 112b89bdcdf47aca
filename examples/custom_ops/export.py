"""Exports the example's model, with inputs and outputs for `orchestrator run`.

Needs torch and executorch: python export.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from executorch.exir import to_edge
from torch.library import Library, impl

HERE = Path(__file__).parent
FEATURES = 8

library = Library("my_ops", "DEF")
SQUARED_RELU = "squared_relu{0}(Tensor self{1}) -> Tensor{2}"
SCALED_ADD = "scaled_add{0}(Tensor self, Tensor other, float scale{1}) -> Tensor{2}"
for schema in (SQUARED_RELU, SCALED_ADD):
    library.define(schema.format("", "", ""))
    library.define(schema.format(".out", ", *, Tensor(a!) out", "(a!)"))


@impl(library, "squared_relu", "CompositeExplicitAutograd")
def squared_relu(self: torch.Tensor) -> torch.Tensor:
    """max(self, 0) squared."""
    return torch.relu(self) * torch.relu(self)


@impl(library, "squared_relu.out", "CompositeExplicitAutograd")
def squared_relu_out(self: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    """The same into `out`."""
    return out.copy_(squared_relu(self))


@impl(library, "scaled_add", "CompositeExplicitAutograd")
def scaled_add(self: torch.Tensor, other: torch.Tensor, scale: float) -> torch.Tensor:
    """Self + scale * other."""
    return self + scale * other


@impl(library, "scaled_add.out", "CompositeExplicitAutograd")
def scaled_add_out(
    self: torch.Tensor, other: torch.Tensor, scale: float, *, out: torch.Tensor
) -> torch.Tensor:
    """The same into `out`."""
    return out.copy_(scaled_add(self, other, scale))


class Model(torch.nn.Module):
    """A linear layer, an activation of ours, and a skip connection of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(FEATURES, FEATURES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[2, FEATURES] in and out."""
        y = torch.ops.my_ops.squared_relu(self.linear(x))
        return torch.ops.my_ops.scaled_add(y, x, 0.5)


def main() -> None:
    """Write model.pte, in0.npy, out0.npy and case.json."""
    torch.manual_seed(0)
    model = Model().eval()
    x = torch.randn(2, FEATURES)
    program = to_edge(torch.export.export(model, (x,))).to_executorch()
    (HERE / "model.pte").write_bytes(program.buffer)
    np.save(HERE / "in0.npy", x.numpy())
    np.save(HERE / "out0.npy", model(x).detach().numpy())
    tensor = {
        "kind": "tensor",
        "dtype": "float32",
        "shape": list(x.shape),
        "dim_order": [0, 1],
    }
    case = {
        "description": "One call, with the outputs of PyTorch",
        "tolerance": {"atol": 1e-6, "rtol": 1e-6},
        "runs": [
            {
                "method": "forward",
                "fresh": False,
                "inputs": [{**tensor, "file": "in0.npy"}],
                "outputs": [{**tensor, "file": "out0.npy"}],
            }
        ],
    }
    (HERE / "case.json").write_text(json.dumps(case, indent=2) + "\n")


if __name__ == "__main__":
    main()
