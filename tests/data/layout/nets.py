"""Networks in PyTorch's default layout, as their authors would give them."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN002, ANN201, ANN202, ANN204
# PyTorch is not there when the project is checked.

import torch
from torch import nn
from torch.nn import functional


class Around(nn.Module):
    """A convolution, something that moves items about, and a tail."""

    def __init__(self, between, tail, channels=8):
        super().__init__()
        self.first = nn.Conv2d(3, channels, 3, padding=1)
        self.between = between
        self.tail = tail

    def forward(self, x):
        return self.tail(self.between(self.first(x)))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.scores = nn.Linear(8, 4)

    def forward(self, x):
        x = functional.relu(self.first(x))
        return self.scores(functional.relu(x + self.second(x)).mean((2, 3)))


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Conv2d(3, 8, 3, padding=1)
        self.other = nn.Conv2d(2, 8, 1)

    def forward(self, x, y):
        return torch.cat([self.image(x), self.other(y)], 1)


class ChangesView(nn.Module):
    """Changes an image through a view of it."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        y = self.first(x)
        y.view(1, 4, -1)[:, 1].mul_(3.0)
        return y


def _image(*sizes):
    return (torch.randn(*sizes),)


def _pointwise(channels):
    return nn.Conv2d(channels, 4, 1)


NETS = {
    "basic": lambda: (
        nn.Sequential(
            *(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()), nn.Linear(8, 4)
        ),
        _image(2, 3, 8, 8),
    ),
    "depthwise": lambda: (
        nn.Sequential(nn.Conv2d(4, 4, 3, groups=4), nn.ReLU6(), _pointwise(4)),
        _image(1, 4, 6, 6),
    ),
    "pools": lambda: (
        nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(3, 8, 3), nn.MaxPool2d(2)),
        _image(1, 3, 12, 12),
    ),
    "transposed": lambda: (nn.ConvTranspose2d(3, 4, 2, stride=2), _image(1, 3, 4, 4)),
    "one_pixel": lambda: (
        nn.Sequential(nn.ConvTranspose2d(8, 4, 4), nn.Conv2d(4, 3, 3)),
        _image(1, 8, 1, 1),
    ),
    "one_channel": lambda: (
        nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)),
        _image(1, 1, 8, 8),
    ),
    "residual": lambda: (Residual(), _image(1, 3, 6, 6)),
    "two_inputs": lambda: (TwoInputs(), _image(1, 3, 6, 6) + _image(1, 2, 6, 6)),
    "view": lambda: (
        Around(lambda y: y.view(y.shape[0], -1), nn.Linear(288, 3)),
        _image(2, 3, 6, 6),
    ),
    "shuffled": lambda: (
        Around(lambda y: torch.channel_shuffle(y, 2), _pointwise(8)),
        _image(1, 3, 6, 6),
    ),
    "pixels": lambda: (Around(nn.PixelShuffle(2), _pointwise(2)), _image(1, 3, 4, 4)),
    "halves": lambda: (
        Around(lambda y: torch.cat(y.chunk(2, 1)[::-1], 1), _pointwise(8)),
        _image(1, 3, 6, 6),
    ),
    "tokens": lambda: (
        Around(lambda y: y.flatten(2).transpose(1, 2), nn.Linear(8, 4)),
        _image(1, 3, 6, 6),
    ),
    "rows": lambda: (Around(lambda y: y, nn.Linear(6, 4)), _image(1, 3, 6, 6)),
    "decoder": lambda: (
        nn.Sequential(
            *(nn.Linear(10, 128), nn.Unflatten(1, (8, 4, 4))), nn.ConvTranspose2d(8, 3, 2, stride=2)
        ),
        (torch.randn(1, 10),),
    ),
    "changes_view": lambda: (ChangesView(), _image(1, 3, 6, 6)),
}


def _build(name, layout):
    torch.manual_seed(1)
    module, inputs = NETS[name]()
    samples = [tuple(torch.randn_like(value) for value in inputs) for _ in range(4)]
    if layout is torch.channels_last:
        module = module.to(memory_format=layout)
        samples = [
            tuple(v.to(memory_format=layout) if v.ndim == 4 else v for v in sample)
            for sample in samples
        ]
    return module, samples[0], samples


for _name in NETS:
    globals()[_name] = lambda name=_name: _build(name, torch.contiguous_format)
    globals()[f"{_name}_saved"] = lambda name=_name: _build(name, torch.channels_last)


def split_view():
    """A view of an image in channels-last layout, which is another image's bytes."""

    class View(nn.Module):
        def forward(self, x):
            return x.view(1, 2, 4, 6, 6) + 1

    (image,) = _image(1, 8, 6, 6)
    return View(), image.to(memory_format=torch.channels_last)
