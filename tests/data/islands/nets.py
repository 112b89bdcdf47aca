"""Networks with layers that ExecuTorch's quantizer for Cortex-M leaves to floats."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201, ANN202, ANN204
# PyTorch is not there when the project is checked.

import torch
from torch import nn
from torch.nn import functional


class Moved(nn.Module):
    """Items that change places, between convolutions."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 4, 1)

    def forward(self, x):
        x = functional.interpolate(self.first(x), scale_factor=2)
        x = torch.roll(self.second(x).flip(2), 1, 3)
        return self.second(x * 0.5).amax(3)


class Limits(nn.Module):
    """A relu that shares its scale with what has negative items."""

    def __init__(self):
        super().__init__()
        self.one = nn.Conv2d(3, 4, 1)
        self.two = nn.Conv2d(3, 4, 1)
        self.last = nn.Conv2d(8, 3, 1)

    def forward(self, x):
        return self.last(torch.cat([torch.relu(self.one(x)), self.two(x)], 1))


class Dense(nn.Module):
    """A batch norm without a convolution, as in DenseNet."""

    def __init__(self):
        super().__init__()
        self.one = nn.Conv2d(3, 4, 1)
        self.norm = nn.BatchNorm2d(7)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2)
        self.two = nn.Conv2d(7, 3, 1)

    def forward(self, x):
        x = torch.cat([x, self.one(x)], 1)
        return self.two(torch.relu(self.norm(x)))


class Gates(nn.Module):
    """Factors from 0 to 1, as in MobileNetV3: layers with a bias and without."""

    def __init__(self):
        super().__init__()
        self.one = nn.Conv2d(3, 8, 1)
        self.two = nn.Conv2d(3, 8, 1, bias=False)
        self.last = nn.Linear(8, 4, bias=False)

    def forward(self, x):
        x = functional.hardsigmoid(self.one(x)) * functional.hardsigmoid(self.two(x))
        return functional.hardsigmoid(self.last(x.permute(0, 2, 3, 1)))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]


class Last(nn.Module):
    """The last step of a recurrent layer."""

    def __init__(self, kind):
        super().__init__()
        self.steps = kind(4, 6, batch_first=True)

    def forward(self, x):
        return self.steps(x)[0][:, -1]


def _functions():
    layers = []
    for function in (
        *(nn.Hardswish(), nn.ELU(), nn.LeakyReLU(0.1), nn.Softplus(), nn.Mish()),
        *(nn.SiLU(), nn.GELU(), nn.Tanh(), nn.Hardsigmoid(), nn.Softsign()),
    ):
        layers += [nn.Conv2d(4, 4, 1), function]
    return nn.Sequential(*layers)


def _lines():
    return nn.Sequential(
        *(nn.Conv1d(3, 8, 3, padding=2, dilation=2), nn.ReLU()),
        *(nn.Conv1d(8, 8, 3, stride=2, groups=8), nn.Hardswish(), nn.Conv1d(8, 2, 1)),
    )


NETS = {
    "functions": lambda: (_functions(), (torch.randn(1, 4, 6, 6),)),
    "moved": lambda: (Moved(), (torch.randn(1, 3, 4, 4),)),
    "limits": lambda: (Limits(), (torch.randn(1, 3, 6, 6),)),
    "dense": lambda: (Dense(), (torch.randn(1, 3, 6, 6),)),
    "lines": lambda: (_lines(), (torch.randn(1, 3, 20),)),
    "gates": lambda: (Gates(), (3 * torch.randn(1, 3, 6, 6),)),
    "attention": lambda: (Attention(), (torch.randn(1, 5, 8),)),
    "gru": lambda: (Last(nn.GRU), (torch.randn(1, 3, 4),)),
    "lstm": lambda: (Last(nn.LSTM), (torch.randn(1, 3, 4),)),
    "cell": lambda: (nn.GRUCell(4, 6), (torch.randn(2, 4), torch.randn(2, 6))),
}


def __getattr__(name):
    """The function of a network, as profiles name it."""
    if name not in NETS:
        raise AttributeError(name)
    return NETS[name]
