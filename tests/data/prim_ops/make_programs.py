"""Makes model.pte, its inputs and the outputs that ExecuTorch's runtime gives.

One method per kind of prim op, with other operators only where kernels exist. Run it
with a Python that has torch and executorch (2.13.0 and 1.5.1 made what is checked in):

    python tests/data/prim_ops/make_programs.py
"""
# mypy: torch is not there when the project is checked.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from executorch.exir import to_edge
from executorch.runtime import Runtime
from torch.export import Dim, export

HERE = Path(__file__).parent


class View(torch.nn.Module):
    """A view whose sizes follow the input: sym_size, mul, et_view, add."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 12).reshape(3, 4))

    def forward(self, x):
        rows = torch.relu(x).view(x.shape[0] * 2, 3)
        return torch.tanh(torch.mm(rows, self.weight)), x.shape[0] * 2 + 1


class Branch(torch.nn.Module):
    """A branch on a size: gt with a result that is declared as an int."""

    def forward(self, x):
        return torch.cond(x.shape[0] > 3, torch.relu, torch.tanh, (x,))


class Moved(torch.nn.Module):
    """A view of what a move has replaced: its memory is not where it was planned."""

    def forward(self, x):
        y = torch.cond(x.shape[0] > 3, torch.relu, torch.tanh, (x,))
        return torch.tanh(y.view(-1, 2, 1).permute(0, 2, 1)), x + x


class Item(torch.nn.Module):
    """An int from a tensor as alpha, and arithmetic on it."""

    def forward(self, x, n):
        k = n.item()
        return torch.add(x, x, alpha=k * 2 - 7), k // 3, k % 4


class Real(torch.nn.Module):
    """A double from a tensor, declared as an int."""

    def forward(self, x, n):
        k = n.item()
        return torch.add(x, x, alpha=k * 0.5), k * 0.5 - 1


def main() -> None:
    """Write the program, its scenario and the arrays."""
    torch.manual_seed(0)
    rows = Dim("rows", min=2, max=5)
    one = torch.randn(3)
    methods = {
        "branch": (Branch(), (torch.randn(4, 2),), ({0: rows},)),
        "item": (Item(), (one, torch.tensor(4)), None),
        "moved": (Moved(), (torch.randn(4, 2),), ({0: rows},)),
        "real": (Real(), (one, torch.tensor(4.5)), None),
        "view": (View(), (torch.randn(3, 6),), ({0: rows},)),
    }
    exported = {
        name: export(module, args, dynamic_shapes=shapes)
        for name, (module, args, shapes) in methods.items()
    }
    data = to_edge(exported).to_executorch().buffer
    (HERE / "model.pte").write_bytes(data)
    calls = [
        ("view", (torch.randn(3, 6),)),
        ("view", (torch.randn(5, 6),)),
        ("view", (torch.randn(2, 6),)),
        ("branch", (torch.randn(3, 2),)),
        ("branch", (torch.randn(4, 2),)),
        ("item", (torch.randn(3), torch.tensor(11))),
        ("item", (torch.randn(3), torch.tensor(2))),
        ("real", (torch.randn(3), torch.tensor(-2.25))),
        ("moved", (torch.randn(2, 2),)),
        ("moved", (torch.randn(5, 2),)),
    ]
    program = Runtime.get().load_program(data)
    loaded = {name: program.load_method(name) for name in methods}
    runs = []
    for number, (name, args) in enumerate(calls):
        outputs = loaded[name].execute(list(args))
        eager = methods[name][0](*args)
        eager = eager if isinstance(eager, tuple) else (eager,)
        for ours, theirs in zip(outputs, eager, strict=True):
            torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs))
        runs.append(
            {
                "method": name,
                "inputs": [_entry(number, "in", *item) for item in enumerate(args)],
                "outputs": [_entry(number, "out", *x) for x in enumerate(outputs)],
            }
        )
    scenario = {"tolerance": {"atol": 1e-6, "rtol": 1e-5}, "runs": runs}
    text = json.dumps(scenario)
    (HERE / "scenario.json").write_text(text + "\n", encoding="utf-8")


def _entry(number, side, position, value) -> dict:
    if not isinstance(value, torch.Tensor):
        kind = "int" if isinstance(value, int) else "double"
        return {"kind": kind, "value": value}
    file = f"run{number}.{side}{position}.npy"
    np.save(HERE / file, value.numpy())
    return {
        "kind": "tensor",
        "file": file,
        "dtype": str(value.numpy().dtype),
        "shape": list(value.shape),
        "dim_order": list(range(value.dim())),
    }


if __name__ == "__main__":
    main()
