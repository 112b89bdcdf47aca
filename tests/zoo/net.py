"""A model of the zoo, and where models register."""
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True)
class Net:
    """A model with example inputs.

    Args:
        module: In evaluation mode.
        inputs: Example inputs, the arguments of `forward`.
        dynamic_shapes: As `torch.export.export` takes them.
        quantize: None, or the lowering whose quantizer makes it int8: `portable`,
            `cortex-m`.
        others: Inputs of other sizes, for a second run.
    """

    module: nn.Module
    inputs: tuple[Any, ...]
    dynamic_shapes: Any = None
    quantize: str | None = None
    others: tuple[Any, ...] = ()


MODELS: dict[str, Callable[[], Net]] = {}
"""By name, `GROUP/NAME`: makes the model."""


def add(
    name: str,
    make: Callable[[], Any],
    *inputs: Any,
    dynamic: Any = None,
    others: tuple[Any, ...] = (),
) -> None:
    """Register a model.

    Args:
        name: `GROUP/NAME`.
        make: Gives its module.
        inputs: Sizes of float images, or functions that give an input.
        dynamic: Dynamic shapes.
        others: As `inputs`: a second run has these sizes.
    """

    def values(of: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(torch.randn(i) if isinstance(i, tuple) else i() for i in of)

    def net() -> Net:
        module = make().eval()
        return Net(module, values(inputs), dynamic, others=values(others))

    assert name not in MODELS, name
    MODELS[name] = net


def add_int8(name: str, lowering: str, of: str) -> None:
    """Register a model of int8 numbers, made from another."""
    assert name not in MODELS, name
    assert of in MODELS, of
    MODELS[name] = lambda: replace(MODELS[of](), quantize=lowering)


def ids(most: int, *sizes: int) -> Callable[[], torch.Tensor]:
    """Whole numbers below `most`, as an input of `add`."""
    return lambda: torch.randint(0, most, sizes)


def call(function: Callable[..., Any]) -> Callable[[], nn.Module]:
    """A module that computes a function."""

    class Call(nn.Module):
        def forward(self, *args: Any) -> Any:
            return function(*args)

    return Call


def only(make: Callable[[], nn.Module], *names: str, **fixed: Any) -> Callable[[], Any]:
    """A module whose inputs have names, and whose outputs are tensors only."""

    class Only(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = make()

        def forward(self, *args: Any) -> Any:
            found = self.net(**dict(zip(names, args, strict=True)), **fixed)
            values = found.values() if isinstance(found, dict) else [found]
            kept = tuple(v for v in values if isinstance(v, torch.Tensor))
            return kept or tuple(
                v for items in values for v in items if isinstance(v, torch.Tensor)
            )

    return Only
