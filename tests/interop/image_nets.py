"""Images that come from lines, or whose layout ExecuTorch takes for another."""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN002, ANN201, ANN202, ANN204
# PyTorch is not there when the project is checked.

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class LinesAsImage(nn.Module):
    """Frames of features, as an image of one row."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(10, 8, (1, 3), padding=(0, 1))

    def forward(self, x):
        y = self.conv(x.permute(0, 2, 1).unsqueeze(2))
        return functional.relu(y).mean((2, 3))


class Lines(nn.Module):
    """Frames of features, through a convolution of lines."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(8, 8, 3, padding=1, groups=8)

    def forward(self, x):
        return functional.silu(self.conv(x.transpose(1, 2)).transpose(1, 2))


class Gated(nn.Module):
    """Channels weighed by their means, after a norm in PyTorch's own layout."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.gate = nn.Conv2d(8, 8, 1)
        self.head = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        y = functional.silu(self.norm(self.conv(x)))
        return self.head(y * self.gate(y.mean((2, 3), keepdim=True)).sigmoid())


class Extrema(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.head = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        y = self.conv(x)
        z = torch.maximum(y, functional.max_pool2d(-y, 3, 1, 1))
        return self.head(torch.minimum(z, functional.avg_pool2d(y, 3, 1, 1)) + y)


class Pads(nn.Module):
    """Pads behind an operator whose int8 form keeps the layout of its input."""

    def __init__(self, then):
        super().__init__()
        self.then = then

    def forward(self, x):
        return self.then(functional.pad(torch.softmax(x, -1), [1, 0, 2, 2]))


def _made(module, *sizes):
    torch.manual_seed(0)
    return module(), torch.randn(sizes)


def lines_as_image():
    return _made(LinesAsImage, 1, 12, 10)


def lines():
    return _made(Lines, 1, 12, 8)


def gated():
    return _made(Gated, 1, 3, 8, 8)


def extrema():
    return _made(Extrema, 1, 3, 8, 8)


def pads():
    return _made(lambda: Pads(nn.Identity()), 1, 4, 16, 5)


def more_pads():
    return _made(lambda: Pads(nn.ConstantPad3d((1, 1, 0, 0, 1, 2), 0.5)), 1, 4, 16, 5)


def pooled_pads():
    return _made(lambda: Pads(nn.AvgPool2d(3, 2, 1)), 1, 4, 16, 5)
