"""Random chains of operators on images in channels-last layout, most of them views."""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201, ANN202, ARG005
# PyTorch is not there when the project is checked.

from __future__ import annotations

import random

import torch
from torch import nn

CHAINS = 24
LONGEST = 5
SIZES = (1, 8, 6, 6)
LAST = torch.channels_last


def _view(x, draw):
    sizes = [n for n in x.shape if n > 1]
    at = draw.randrange(len(sizes))
    parts = [n for n in (2, 3) if sizes[at] % n == 0]
    if parts:
        part = draw.choice(parts)
        sizes[at : at + 1] = [part, sizes[at] // part]
    draw.shuffle(sizes)
    return lambda y: y.reshape(sizes)


def _permuted(x, draw):
    dims = list(range(x.dim()))
    draw.shuffle(dims)
    return lambda y: y.permute(dims)


def _saved(x, draw):
    del draw
    return lambda y: y.contiguous(memory_format=LAST) if x.dim() == 4 else y


STEPS = {
    "view": _view,
    "permute": _permuted,
    "channels last": _saved,
    "relu": lambda x, draw: torch.relu,
    "double": lambda x, draw: lambda y: y * 2,
    "flatten": lambda x, draw: lambda y: y.flatten(1),
    "unsqueeze": lambda x, draw: lambda y: y.unsqueeze(1),
    "shuffle": lambda x, draw: (
        (lambda y: nn.functional.pixel_shuffle(y, 2))
        if x.dim() == 4 and x.shape[1] % 4 == 0
        else torch.relu
    ),
    "clone": lambda x, draw: torch.clone,
}
"""By name: makes a step that fits a tensor."""


def chain(seed: int):
    """A function of an image, and the names of its steps."""
    draw = random.Random(seed)  # noqa: S311  # the same each time
    x = torch.zeros(SIZES).to(memory_format=LAST)
    steps, names = [], []
    for _ in range(draw.randint(2, LONGEST)):
        name = draw.choice(list(STEPS))
        step = STEPS[name](x, draw)
        x = step(x)
        steps.append(step)
        names.append(name)

    def of(image):
        for one in steps:
            image = one(image)
        return image

    return of, names


class Chains(nn.Module):
    """All of them."""

    def __init__(self) -> None:
        super().__init__()
        self.chains = [chain(seed)[0] for seed in range(CHAINS)]

    def forward(self, x):
        return tuple(of(x) for of in self.chains)


class Small(nn.Module):
    """Written as people do: a convolution between views."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Conv2d(8, 16, 3, padding=1)

    def forward(self, x):
        y = torch.relu(self.one(x))
        z = y.view(1, 2, 8, 6, 6).permute(0, 2, 1, 3, 4).reshape(1, 16, 6, 6)
        return z, nn.functional.pixel_shuffle(y, 2), y.flatten(1), y.unsqueeze(0)


def _image():
    torch.manual_seed(0)
    return torch.randn(SIZES).to(memory_format=LAST)


def chains():
    return Chains(), _image()


def small():
    torch.manual_seed(0)
    return Small().to(memory_format=LAST), _image()
