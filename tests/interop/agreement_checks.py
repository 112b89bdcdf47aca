"""What a comparison with PyTorch finds in lowered programs with wrong constants.

    python -m tests.interop.agreement_checks

Prints a line of JSON: by case, the error or the warnings. Needs PyTorch and ExecuTorch.
"""
# mypy: ignore-errors
# ruff: noqa: T201
# (torch is not there when the project is checked)

from __future__ import annotations

import json
from typing import Any

import torch
from torch import nn

from orchestrator.export import lower
from orchestrator.export.failure import ExportError
from orchestrator.export.lowerings import portable
from orchestrator.export.request import Request
from orchestrator.export.source import Model, Source

REQUEST = Request(file="", function="", folder="", lowering="portable", cpu="host", isa="")
ITEMS = 1000
X = torch.linspace(-3, 3, ITEMS)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.linspace(0, 9, ITEMS), requires_grad=False)
        self.register_buffer("state", torch.zeros(ITEMS))

    def add(self, x: Any) -> Any:
        return x + self.bias

    def floor(self, x: Any) -> Any:
        return torch.floor(x + self.bias)

    def divide(self, x: Any) -> Any:
        return torch.div(x + self.bias, 0.5, rounding_mode="trunc")

    def compare(self, x: Any) -> Any:
        return x + self.bias > 1

    def largest(self, x: Any) -> Any:
        return torch.max((x + self.bias).view(100, 10), 1).values

    def places(self, x: Any) -> Any:
        return torch.max((x + self.bias).view(100, 10), 1)

    def keep_whole(self, x: Any) -> None:
        self.state.copy_(torch.floor(x + self.bias))

    def keep_random(self, x: Any) -> None:
        self.state.copy_(torch.rand_like(x))

    def read(self, x: Any) -> Any:
        return self.state * x

    def random(self, x: Any) -> Any:
        return x + torch.rand_like(x)


class Method(nn.Module):
    def __init__(self, net: Net, name: str) -> None:
        super().__init__()
        self.net, self.name = net, name

    def forward(self, x: Any) -> Any:
        return getattr(self.net, self.name)(x)


def found(wrong: int, *names: str) -> Any:
    """The error, or the warnings, where the first items of a constant are wrong."""

    def lowered(program: Any, request: Request) -> Any:
        edge = plain(program, request)
        state = edge.exported_program().state_dict
        for name in [name for name in state if name.endswith("bias")]:
            state[name] = state[name].detach().clone()
            state[name][:wrong] += 1
        return edge

    net = Net()
    model = Model({name: Source(Method(net, name), (X,)) for name in names}, ())
    modules = {name: method.module for name, method in model.methods.items()}
    plain, portable.lowered = portable.lowered, lowered
    try:
        modules, outputs = lower.with_reference(modules, model)
        program = lower.lowered(modules, model, REQUEST, outputs)
    except ExportError as error:
        return [error.code, error.message, dict(error.notes).get("method")]
    finally:
        portable.lowered = plain
    return list(getattr(program, "uncompared", ()))


def main() -> None:
    cases = {
        "right": (0, "add"),
        "one": (1, "add"),
        "few": (50, "add"),
        "few, of a step": (50, "floor"),
        "more, of a step": (51, "floor"),
        "few, of a quotient": (50, "divide"),
        "few, of a comparison": (50, "compare"),
        "few, of the largest": (50, "largest"),
        "few, beside places": (50, "places"),
        "few, of a step in state": (50, "keep_whole", "read"),
        "random": (0, "random"),
        "random, then wrong": (1, "random", "add"),
        "random state": (0, "keep_random", "read", "add"),
        "random state, then wrong": (1, "keep_random", "read", "add"),
    }
    print(json.dumps({name: found(*case) for name, case in cases.items()}))


if __name__ == "__main__":
    main()
