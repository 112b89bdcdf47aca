"""Networks of what has int16 kernels on Cortex-M.

    ORCHESTRATOR_EXPORT_PYTHON=... python -m tests.data.int16.make_programs

writes their programs, inputs, and what quantized PyTorch gives.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN002, ANN201, ANN202, ANN204
# PyTorch is not there when the project is checked.

import torch
from torch import nn
from torch.nn import functional

LAST = torch.channels_last


class ConvNet(nn.Module):
    """Layers of a small network for images, with a residual and a gate."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.depth = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.point = nn.Conv2d(16, 16, 1)
        self.groups = nn.Conv2d(16, 24, 3, stride=2, groups=2)
        self.gate = nn.Conv2d(16, 24, 3, stride=2)
        self.last = nn.Linear(24, 10)

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x)))
        x = self.point(functional.relu6(self.depth(x))) + x
        x = functional.max_pool2d(x, 2)
        x = torch.tanh(self.groups(x)) * torch.sigmoid(self.gate(x))
        x = functional.avg_pool2d(x, x.shape[-1]).flatten(1)
        return torch.softmax(3 * self.last(x), 1)


class Moves(nn.Module):
    """Items that change places, and those that are chosen."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.second = nn.Conv2d(8, 6, 1)

    def forward(self, x):
        x = functional.pad(self.first(x), (1, 2, 0, 1))
        x = torch.cat([x, functional.hardswish(x)], 1)
        x = self.second(functional.interpolate(x, scale_factor=2))
        x = functional.avg_pool2d(x.flip(2), 3, 2, 1)
        x = torch.maximum(x, x.roll(1, 3)) - torch.clamp(x, -0.3, 0.2)
        return x.permute(0, 2, 3, 1).amax(2)


class Steps(nn.Module):
    """A recurrent layer, as products and sums, of a line of samples."""

    def __init__(self):
        super().__init__()
        self.front = nn.Conv1d(2, 6, 5, stride=2)
        self.steps = nn.GRU(6, 8, batch_first=True)
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        x = torch.relu(self.front(x)).permute(0, 2, 1)
        return self.last(self.steps(x)[0][:, -1])


def _made(make, *sizes):
    torch.manual_seed(16)
    network = make().eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    form = LAST if len(sizes) == len(("N", "C", "H", "W")) else torch.contiguous_format
    inputs = [torch.randn(sizes).to(memory_format=form) for _ in range(17)]
    network = network.to(memory_format=form)
    return network, (inputs[0],), [(given,) for given in inputs]


def convnet():
    """Convolution, depthwise convolution, sums, products, tables, pools, softmax."""
    return _made(ConvNet, 1, 3, 16, 16)


def moves():
    """Pads, joins, resizes and other moves."""
    return _made(Moves, 1, 3, 8, 8)


def steps():
    """A recurrent layer."""
    return _made(Steps, 1, 2, 21)
