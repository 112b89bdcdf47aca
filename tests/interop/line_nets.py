"""Networks of lines, as people write them for sensors and sound."""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202, ANN204
# PyTorch is not there when the project is checked.

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

SAMPLES = 4


class Net(nn.Module):
    """Layers, and a function that calls them."""

    def __init__(self, call, **layers):
        super().__init__()
        self.call = call
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, x):
        return self.call(self, x)


def _with_samples(net, *sizes):
    torch.manual_seed(1)
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            layer.running_mean.normal_()
            layer.running_var.uniform_(0.5, 2)
    samples = [(torch.randn(sizes),) for _ in range(SAMPLES)]
    return net.eval(), samples[0], samples


def _gestures(images):
    def layer(inputs, outputs, size, padding=0, groups=1):
        if images:
            window, border = (1, size), (0, padding)
            return nn.Conv2d(inputs, outputs, window, padding=border, groups=groups)
        return nn.Conv1d(inputs, outputs, size, padding=padding, groups=groups)

    norm = nn.BatchNorm2d if images else nn.BatchNorm1d
    pool = nn.MaxPool2d((1, 2)) if images else nn.MaxPool1d(2)
    mean = nn.AdaptiveAvgPool2d(1) if images else nn.AdaptiveAvgPool1d(1)

    def call(net, x):
        x = net.body(x.unsqueeze(2) if images else x)
        x = torch.relu(x + net.more(x))
        return net.head(x.flatten(1))

    torch.manual_seed(0)
    body = nn.Sequential(
        *(layer(3, 16, 5, 2), norm(16), nn.ReLU(inplace=True), pool),
        *(layer(16, 32, 3, 1), norm(32), nn.ReLU(), pool),
        *(layer(32, 32, 3, 1, 32), norm(32), nn.ReLU6()),
        *(layer(32, 48, 1), norm(48), nn.ReLU(), mean),
    )
    net = Net(call, body=body, more=layer(48, 48, 1), head=nn.Linear(48, 6))
    return _with_samples(net, 1, 3, 128)


def gestures():
    return _gestures(images=False)


def gestures_as_images():
    return _gestures(images=True)


class Block(nn.Module):
    """Of a temporal convolutional network: what looks ahead is cut off."""

    def __init__(self, inputs, outputs, dilation):
        super().__init__()
        self.cut = 2 * dilation
        layer = nn.Conv1d(inputs, outputs, 3, padding=self.cut, dilation=dilation)
        self.layer = nn.utils.parametrizations.weight_norm(layer)
        self.norm = nn.BatchNorm1d(outputs)
        self.skip = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else None

    def forward(self, x):
        y = torch.relu(self.norm(self.layer(x))[:, :, : -self.cut].contiguous())
        return torch.relu(y + (x if self.skip is None else self.skip(x)))


def temporal():
    blocks = Block(4, 8, 1), Block(8, 8, 2), Block(8, 8, 4)
    head = nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, 3)
    return _with_samples(nn.Sequential(*blocks, *head), 1, 4, 64)


def in_place():
    def call(net, x):
        y = net.norm(net.first(x))
        functional.relu_(y)
        z = net.second(y)
        z += y
        z.mul_(0.5)
        z[:, 0] = 0.25
        return net.head(z.mean(-1))

    layers = {
        "first": nn.Conv1d(3, 8, 3, padding=1),
        "second": nn.Conv1d(8, 8, 3, padding=1),
        "norm": nn.BatchNorm1d(8),
        "head": nn.Linear(8, 2),
    }
    return _with_samples(Net(call, **layers), 1, 3, 32)


def inception():
    def call(net, x):
        y = torch.cat([net.one(x), net.five(x), net.pool(x), x[:, 1:3]], 1)
        return net.norm(y).relu().mean(dim=2, keepdim=True).squeeze(-1)

    layers = {
        "one": nn.Conv1d(4, 8, 1),
        "five": nn.Conv1d(4, 8, 5, padding=2),
        "pool": nn.AvgPool1d(3, 1, 1),
        "norm": nn.BatchNorm1d(22),
    }
    return _with_samples(Net(call, **layers), 1, 4, 40)


def autoencoder():
    net = nn.Sequential(
        nn.Conv1d(1, 8, 4, stride=2, padding=1),
        *(nn.BatchNorm1d(8), nn.LeakyReLU(0.1)),
        *(nn.Conv1d(8, 16, 4, stride=2, padding=1), nn.ReLU()),
        nn.ConvTranspose1d(16, 8, 3, stride=2, padding=1, output_padding=1),
        *(nn.BatchNorm1d(8), nn.ReLU()),
        nn.ConvTranspose1d(8, 1, 4, stride=2, padding=1),
    )
    return _with_samples(net, 2, 1, 64)


def causal():
    def call(net, x):
        y = functional.hardswish(net.first(functional.pad(x, (4, 0))))
        return net.second(functional.pad(y, (2, 0))).transpose(1, 2)

    layers = {"first": nn.Conv1d(3, 6, 5), "second": nn.Conv1d(6, 6, 3, groups=6)}
    return _with_samples(Net(call, **layers), 1, 3, 30)


def heart():
    net = nn.Sequential(
        *(nn.BatchNorm1d(1), nn.Conv1d(1, 16, 16, stride=2, padding=7)),
        *(nn.BatchNorm1d(16), nn.ReLU(inplace=True), nn.MaxPool1d(3, 2, 1)),
        *(nn.Dropout(0.2), nn.Conv1d(16, 32, 7, padding="same"), nn.BatchNorm1d(32)),
        *(nn.ReLU6(inplace=True), nn.MaxPool1d(2, ceil_mode=True)),
        *(nn.Conv1d(32, 32, 4, padding="same"), nn.AdaptiveAvgPool1d(5)),
        *(nn.Flatten(), nn.Linear(160, 5)),
    )
    return _with_samples(net, 2, 1, 250)


def activated():
    net = nn.Sequential(
        *(nn.Conv1d(2, 6, 3), nn.Hardtanh(), nn.Conv1d(6, 6, 3, groups=6), nn.PReLU(6)),
        *(nn.Conv1d(6, 6, 3, stride=2), nn.PReLU(), nn.Conv1d(6, 4, 1), nn.PReLU(4)),
    )
    for at in (3, 7):
        net[at].weight.data.uniform_(-0.5, 0.5)
    return _with_samples(net, 1, 2, 24)


def padded():
    """Borders of the line's own items; channels that are gates; means of rows."""

    def call(net, x):
        y = functional.glu(net.first(functional.pad(x, (3, 2), mode="reflect")), 1)
        y = net.second(functional.pad(y, (1, -1), mode="circular"))
        rows = net.head(functional.pad(y, (1, 1), mode="replicate").transpose(1, 2))
        weights = torch.softmax(rows, 1).transpose(1, 2)
        return weights, rows.mean(1), rows.sum((1, 2), keepdim=True)

    layers = {"first": nn.Conv1d(3, 8, 6), "second": nn.Conv1d(4, 4, 2), "head": nn.Linear(4, 5)}
    return _with_samples(Net(call, **layers), 1, 3, 20)


def any_length():
    pads = nn.ReflectionPad1d((3, 1)), nn.ReplicationPad1d(2), nn.CircularPad1d((0, 2))
    layers = nn.Conv1d(3, 6, 3), nn.Conv1d(6, 6, 3), nn.Conv1d(6, 4, 3)
    net = nn.Sequential(*(step for pair in zip(pads, layers, strict=True) for step in pair))
    sizes = {2: torch.export.Dim("length", min=8, max=40)}
    return *_with_samples(net, 1, 3, 20), (sizes,)


def pictures():
    """Likewise images, the first one of a view, and tensors [N, C]."""

    def call(net, x):
        y = net.norm(net.slopes(net.first(x.unsqueeze(1))))
        z = net.second(functional.pad(y, (2, 1, -1, 3), mode="reflect"))
        return net.items(z.mean((2, 3))), y.softmax(1)

    items = nn.Linear(4, 6), nn.PReLU(6), nn.BatchNorm1d(6), nn.RReLU(), nn.Linear(6, 3)
    layers = {"first": nn.Conv2d(1, 4, 3), "slopes": nn.PReLU(4), "norm": nn.BatchNorm2d(4)}
    layers |= {"second": nn.Conv2d(4, 4, 3), "items": nn.Sequential(*items)}
    return _with_samples(Net(call, **layers), 2, 9, 10)


def squeezed():
    def call(net, x):
        y = net.first(x).relu()
        gate = net.down(functional.adaptive_avg_pool1d(y, 1)).relu()
        return net.last(y * net.up(gate).sigmoid())

    layers = {
        "first": nn.Conv1d(4, 8, 3, padding=1),
        "down": nn.Conv1d(8, 2, 1),
        "up": nn.Conv1d(2, 8, 1),
        "last": nn.Conv1d(8, 4, 1),
    }
    return _with_samples(Net(call, **layers), 1, 4, 24)


def recurrent():
    def call(net, x):
        y = net.pool(net.norm(net.first(x)).relu())
        return net.head(net.cell(y.transpose(1, 2))[0][:, -1])

    layers = {
        "first": nn.Conv1d(4, 8, 3, padding=1),
        "norm": nn.BatchNorm1d(8),
        "pool": nn.MaxPool1d(2),
        "cell": nn.GRU(8, 8, batch_first=True),
        "head": nn.Linear(8, 3),
    }
    return _with_samples(Net(call, **layers), 1, 4, 16)


class Stream(nn.Module):
    """Keeps the end of each line for the next one."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Conv1d(4, 8, 3)
        self.norm = nn.BatchNorm1d(8)
        self.last = nn.Conv1d(8, 4, 3)
        self.register_buffer("before", torch.zeros(1, 4, 2))
        self.register_buffer("between", torch.zeros(1, 8, 2))

    def forward(self, x):
        x = torch.cat([self.before, x], -1)
        self.before.copy_(x[:, :, -2:])
        y = torch.cat([self.between, self.norm(self.layer(x)).relu()], -1)
        self.between.copy_(y[:, :, -2:])
        return self.last(y)


def stream():
    torch.manual_seed(2)
    return _with_samples(Stream(), 1, 4, 6)


def returned():
    """A line that was changed in place, itself and a result of it."""

    def call(net, x):
        y = net.layer(x)
        z = functional.relu(y, inplace=True)
        return y, z + 1.0

    return _with_samples(Net(call, layer=nn.Conv1d(4, 4, 3, padding=1)), 1, 4, 12)


def changes_view():
    """A view sees what changes later; such a model keeps its lines."""

    def call(net, x):
        y = net.layer(x)
        view = y.view(1, -1)
        functional.relu(y, inplace=True)
        return view * 2.0

    return _with_samples(Net(call, layer=nn.Conv1d(4, 4, 3, padding=1)), 1, 4, 12)


def reduced():
    """Means, sums and largest items of lines, over any dimensions."""

    def call(net, x):
        y = net.layer(x).relu()
        more = functional.interpolate(y, scale_factor=2)
        largest = functional.adaptive_max_pool1d(more, 5)
        return y.mean(1), y.sum(-1), largest, more.mean((1, 2), keepdim=True)

    return _with_samples(Net(call, layer=nn.Conv1d(4, 6, 3, padding=1)), 1, 4, 12)


def reduced_images():
    """Likewise of images."""

    def call(net, x):
        y = net.layer(x).relu()
        pooled = functional.avg_pool2d(y, 2, divisor_override=3)
        largest = functional.adaptive_max_pool2d(y, (3, 5))
        return y.mean(1), y.mean(2), y.mean((1, 3)), pooled.sum((2, 3)), largest

    return _with_samples(Net(call, layer=nn.Conv2d(4, 6, 3, padding=1)), 1, 4, 9, 10)
