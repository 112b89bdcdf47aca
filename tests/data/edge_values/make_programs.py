"""Makes programs with values at the edge of what there is, and ExecuTorch's outputs.

Run it with a Python that has torch and executorch (2.13.0 and 1.5.1 made what is
checked in):

    python tests/data/edge_values/make_programs.py

Writes model.pte, plain.pte (a program without constants, so without an extended
header) and scenario.json with the arrays it names.
"""
# mypy: torch is not there when the project is checked.
# ruff: noqa: ANN001, ANN201, ANN202, ARG002, PLR0917
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


class Scalars(torch.nn.Module):
    """Tensors without dimensions: input, constant, output."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = torch.nn.Parameter(torch.tensor(0.5))

    def forward(self, x, y):
        return x * self.factor, x + y, y.sum()


class Empty(torch.nn.Module):
    """Tensors without elements, of static sizes."""

    def forward(self, x, y):
        return torch.cat([x, y], 0), x + 1, torch.sum(y, 0), y * 2


class Rows(torch.nn.Module):
    """Sizes up to a bound, and down to zero."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 6).reshape(3, 2))

    def forward(self, x):
        return torch.tanh(torch.mm(x, self.weight)), torch.cat([x, x], 1)


class Indexed(torch.nn.Module):
    """A list of optional tensors, with None in it."""

    def forward(self, x, i):
        return x[:, i], x[i], x[:, :, i]


class Fixed(torch.nn.Module):
    """Inputs that the exporter specialises."""

    def forward(self, x, n, scale, flag, none=None, word="a"):
        y = x * n if flag else x
        return y + scale, n, none


class Views(torch.nn.Module):
    """Sizes as a list of ints that the method computes."""

    def forward(self, x):
        return x.reshape(x.shape[0] * 2, 2) + 0.25


def add_mul():
    """Without any constant."""

    class Plain(torch.nn.Module):
        def forward(self, x, y):
            return torch.mul(torch.add(x, y), y)

    return Plain()


F = torch.linspace(-2, 2, 24)
ROWS = Dim("rows", min=1, max=5)
METHODS = {
    "scalars": (Scalars(), [(torch.tensor(3.0), torch.tensor(-1.25))], None),
    "empty": (Empty(), [(torch.zeros(0, 3), torch.zeros(0, 3))], None),
    "rows": (Rows(), [(F[: 3 * n].reshape(n, 3).clone(),) for n in (2, 5, 1, 0)], ({0: ROWS},)),
    "indexed": (Indexed(), [(F[:8].reshape(2, 2, 2).clone(), torch.tensor([1, 0, 1]))], None),
    "fixed": (Fixed(), [(F[:3].clone(), 3, 0.5, True, None, "b")], None),
    "views": (
        Views(),
        [(F[: 4 * n].reshape(n, 4).clone(),) for n in (3, 4)],
        ({0: Dim("n", min=2, max=4)},),
    ),
}
CONSTANTS = {
    "number": 7,
    "scale": -0.5,
    "flag": True,
    "name": "edge ä",
    "tensor": torch.tensor([[1, -2], [3, 4]], dtype=torch.int16),
    "point": torch.tensor(2.5),
    "nothing": torch.zeros(0, 2),
    "sizes": [1, 28, -3],
    "mixed": {"a": 1, "b": (0.25, "c", False)},
    "dtype": torch.float16,
    "none_at_all": [],
}


def entry(value, name):
    """How the scenario names a value, which is stored if it is a tensor."""
    if value is None:
        return {"kind": "none"}
    if isinstance(value, torch.Tensor):
        np.save(HERE / f"{name}.npy", value.detach().numpy())
        return {"kind": "tensor", "file": f"{name}.npy"}
    kind = {bool: "bool", int: "int", float: "double", str: "string"}[type(value)]
    return {"kind": kind, "value": value}


def pytorch(name, given, outputs):
    """ExecuTorch's outputs, or PyTorch's where only these have the right sizes."""
    module = METHODS[name][0] if name in METHODS else None
    if module is None:
        return outputs
    eager = module(*given)
    eager = eager if isinstance(eager, tuple) else (eager,)
    return [
        want if isinstance(want, torch.Tensor) and want.shape != got.shape else got
        for want, got in zip(eager, outputs, strict=True)
    ]


def main() -> None:
    """Write everything."""
    for old in HERE.glob("*.npy"):
        old.unlink()
    graphs = {
        name: export(module, calls[0], dynamic_shapes=shapes)
        for name, (module, calls, shapes) in METHODS.items()
    }
    program = to_edge(graphs, constant_methods=CONSTANTS).to_executorch()
    (HERE / "model.pte").write_bytes(program.buffer)
    plain = export(add_mul(), (F[:4], F[4:8]))
    (HERE / "plain.pte").write_bytes(to_edge({"plain": plain}).to_executorch().buffer)
    runs = []
    for model in ("model", "plain"):
        loaded = Runtime.get().load_program(HERE / f"{model}.pte")
        calls = [(n, c) for n, (_, cs, _) in METHODS.items() for c in cs]
        calls += [(name, ()) for name in CONSTANTS]
        if model == "plain":
            calls = [("plain", (F[:4].clone(), F[4:8].clone()))]
        for name, given in calls:
            # The exporter makes None of a string.
            inputs = [None if isinstance(v, str) else v for v in given]
            outputs = loaded.load_method(name).execute(inputs)
            outputs = pytorch(name, given, outputs)
            at = f"{len(runs)}.{name}"
            runs.append(
                {
                    "model": model,
                    "method": name,
                    "inputs": [entry(v, f"{at}.in{i}") for i, v in enumerate(inputs)],
                    "outputs": [entry(v, f"{at}.out{i}") for i, v in enumerate(outputs)],
                }
            )
    document = {"tolerance": {"atol": 1e-6, "rtol": 1e-6}, "runs": runs}
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    (HERE / "scenario.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
