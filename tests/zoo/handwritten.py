"""Small networks as people write them for devices."""
# mypy: ignore-errors

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as f

from tests.zoo.net import add, call, ids

BATCH = {0: Dim("batch", min=1, max=8)}
LONG = {2: Dim("steps", min=2, max=64)}
STEPS = {1: Dim("steps", min=2, max=32)}


def _conv(a: int, b: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(a, b, 3, stride, 1, groups=groups, bias=False), nn.BatchNorm2d(b), nn.ReLU()
    )


class Residual(nn.Module):
    def __init__(self, channels: int, norm: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(channels, channels, 3, 1, 1), norm(channels), nn.ReLU()),
            *(nn.Conv2d(channels, channels, 3, 1, 1), norm(channels)),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.body(x))


def small_cnn() -> nn.Module:
    return nn.Sequential(
        *(_conv(3, 8, 2), _conv(8, 16, 2), Residual(16, nn.BatchNorm2d)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)),
    )


def ds_cnn() -> nn.Module:
    """For keyword spotting."""
    layers = [nn.Conv2d(1, 32, (10, 4), (2, 2), (5, 1)), nn.BatchNorm2d(32), nn.ReLU()]
    for _ in range(4):
        layers += [_conv(32, 32, groups=32), nn.Conv2d(32, 32, 1), nn.ReLU()]
    tail = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 12)]
    return nn.Sequential(*layers, *tail)


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int, gate: nn.Module) -> None:
        super().__init__()
        self.one = nn.Conv2d(channels, channels // 4, 1)
        self.two = nn.Conv2d(channels // 4, channels, 1)
        self.gate = gate

    def forward(self, x: Tensor) -> Tensor:
        y = f.adaptive_avg_pool2d(x, 1)
        return x * self.gate(self.two(f.silu(self.one(y))))


class UNet(nn.Module):
    def __init__(self, mode: str) -> None:
        super().__init__()
        self.down = nn.ModuleList([_conv(3, 8), _conv(8, 16), _conv(16, 32)])
        self.up = nn.ModuleList([_conv(48, 16), _conv(24, 8)])
        self.transposed = nn.ModuleList(
            [nn.ConvTranspose2d(32, 32, 2, 2), nn.ConvTranspose2d(16, 16, 2, 2)]
        )
        self.mode = mode
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        one = self.down[0](x)
        two = self.down[1](f.max_pool2d(one, 2))
        x = self.down[2](f.max_pool2d(two, 2))
        for step, skip, wide in zip(self.up, (two, one), self.transposed, strict=True):
            if self.mode == "transposed":
                x = wide(x)
            else:
                corners = False if self.mode == "bilinear" else None
                x = f.interpolate(x, scale_factor=2, mode=self.mode, align_corners=corners)
            x = step(torch.cat([x, skip], 1))
        return self.head(x)


class Crnn(nn.Module):
    """Reads a line of text."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.Sequential(
            *(_conv(1, 8), nn.MaxPool2d(2), _conv(8, 16), nn.MaxPool2d((2, 1))),
            *(_conv(16, 16), nn.MaxPool2d((4, 1))),
        )
        self.rnn = nn.GRU(16, 12, bidirectional=True, batch_first=True)
        self.head = nn.Linear(24, 11)

    def forward(self, x: Tensor) -> Tensor:
        x = self.convs(x).flatten(1, 2).permute(0, 2, 1)
        return f.log_softmax(self.head(self.rnn(x)[0]), -1)


class Edsr(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, 1, 1)
        self.body = nn.ModuleList(
            nn.Sequential(nn.Conv2d(16, 16, 3, 1, 1), nn.ReLU(), nn.Conv2d(16, 16, 3, 1, 1))
            for _ in range(2)
        )
        self.wide = nn.Sequential(nn.Conv2d(16, 64, 3, 1, 1), nn.PixelShuffle(2))
        self.last = nn.Conv2d(16, 3, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = y = self.first(x)
        for block in self.body:
            y = y + block(y) * 0.5
        return self.last(self.wide(x + y))


class Fpn(nn.Module):
    """A pyramid: coarse levels are enlarged and joined to finer ones."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([_conv(3, 8, 2), _conv(8, 16, 2), _conv(16, 32, 2)])
        self.side = nn.ModuleList(nn.Conv2d(c, 16, 1) for c in (8, 16, 32))
        self.join = nn.ModuleList(_conv(32, 16) for _ in range(2))
        self.head = nn.Conv2d(16, 6, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        levels = []
        for down, side in zip(self.down, self.side, strict=True):
            x = down(x)
            levels.append(side(x))
        x = levels.pop()
        outputs = [self.head(x).flatten(2)]
        for level, join in zip(reversed(levels), self.join, strict=True):
            x = f.interpolate(x, scale_factor=2, mode="nearest")
            x = join(torch.cat([x, level], 1))
            outputs.append(self.head(x).flatten(2))
        return torch.cat(outputs, 2).transpose(1, 2).sigmoid()


class ResNet8(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = _conv(3, 16)
        self.one = Residual(16, nn.BatchNorm2d)
        self.steps = nn.ModuleList(
            nn.ModuleList(
                [nn.Sequential(_conv(a, b, 2), nn.Conv2d(b, b, 3, 1, 1)), nn.Conv2d(a, b, 1, 2)]
            )
            for a, b in ((16, 24), (24, 32))
        )
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.one(self.first(x))
        for body, side in self.steps:
            x = torch.relu(body(x) + side(x))
        return self.head(f.avg_pool2d(x, 8).flatten(1))


def mobilenet_v1() -> nn.Module:
    layers = [_conv(3, 8, 2)]
    for a, b, stride in ((8, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2)):
        layers += [_conv(a, a, stride, a), nn.Conv2d(a, b, 1, bias=False)]
        layers += [nn.BatchNorm2d(b), nn.ReLU6()]
    tail = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 5), nn.Softmax(1)]
    return nn.Sequential(*layers, *tail)


def grouped() -> nn.Module:
    """As ResNeXt: convolutions of groups that have several channels."""
    return nn.Sequential(
        *(_conv(4, 16, 2), _conv(16, 16, groups=4), nn.Conv2d(16, 24, 1, groups=2)),
        *(nn.ChannelShuffle(2), nn.ReLU(), _conv(24, 24, 2, groups=3)),
        *(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(96, 7)),
    )


def curves() -> nn.Module:
    """A convolution before each of the usual functions."""
    functions = (
        *(nn.SiLU(), nn.GELU(), nn.Hardswish(), nn.Hardsigmoid(), nn.ELU()),
        *(nn.LeakyReLU(0.1), nn.Tanh(), nn.Sigmoid(), nn.Mish(), nn.Softplus()),
    )
    layers: list[nn.Module] = []
    for function in functions:
        layers += [nn.Conv2d(6, 6, 3, 1, 1), function]
    return nn.Sequential(*layers, nn.Conv2d(6, 2, 1))


class Recurrent(nn.Module):
    def __init__(self, kind: type, **options: Any) -> None:
        super().__init__()
        self.rnn = kind(6, 8, batch_first=True, **options)
        self.head = nn.Linear(8 * (2 if options.get("bidirectional") else 1), 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[0][:, -1])


class Cell(nn.Module):
    """One step with its state among inputs and outputs."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor, *state: Tensor) -> Any:
        return self.cell(x, state if len(state) > 1 else state[0])


class Tcn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Conv1d(4 if d == 1 else 8, 8, 3, dilation=d) for d in (1, 2, 4)
        )
        self.head = nn.Conv1d(8, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            y = f.relu(layer(f.pad(x, (2 * layer.dilation[0], 0))))
            x = x + y if x.shape == y.shape else y
        return self.head(x)


class WaveNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, 8, 1)
        self.gates = nn.ModuleList(nn.Conv1d(8, 16, 2, dilation=2**i) for i in range(4))
        self.skips = nn.ModuleList(nn.Conv1d(8, 8, 1) for _ in range(4))
        self.last = nn.Conv1d(8, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        x, total = self.first(x), 0.0
        for gate, skip in zip(self.gates, self.skips, strict=True):
            one, two = gate(f.pad(x, (gate.dilation[0], 0))).chunk(2, 1)
            y = skip(torch.tanh(one) * torch.sigmoid(two))
            x, total = x + y, total + y
        return self.last(f.elu(total))


class PointNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.local = nn.Sequential(
            *(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 32, 1))
        )
        self.transform = nn.Linear(32, 9)
        self.head = nn.Linear(32, 5)

    def forward(self, x: Tensor) -> Tensor:
        turn = self.transform(self.local(x).max(2).values).view(-1, 3, 3)
        x = torch.bmm(turn + torch.eye(3), x)
        return f.log_softmax(self.head(torch.amax(self.local(x), 2)), 1)


class Detector(nn.Module):
    """A head that decodes boxes and keeps the best."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(_conv(3, 8, 2), _conv(8, 16, 2), _conv(16, 16, 2))
        self.boxes = nn.Conv2d(16, 4 * 3, 1)
        self.scores = nn.Conv2d(16, 5 * 3, 1)

    def forward(self, x: Tensor) -> Any:
        x = self.body(x)
        n, _, h, w = x.shape
        boxes = self.boxes(x).view(n, 3, 4, h, w).permute(0, 3, 4, 1, 2)
        boxes = boxes.reshape(n, -1, 4)
        scores = self.scores(x).view(n, 3, 5, h, w).permute(0, 3, 4, 1, 2)
        scores = scores.reshape(n, -1, 5).sigmoid()
        y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        places = torch.stack([x, y], -1).reshape(-1, 1, 2).repeat(1, 3, 1)
        centre = boxes[..., :2].sigmoid() + places.reshape(1, -1, 2)
        size = boxes[..., 2:].exp().clamp(max=8)
        boxes = torch.cat([centre - size / 2, centre + size / 2], -1)
        best, which = scores.max(-1)
        top, where = best.topk(10, 1)
        kept = boxes.gather(1, where.unsqueeze(-1).expand(-1, -1, 4))
        return kept, top, which.gather(1, where)


class Attention(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True, **options)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        return x + self.attention(y, y, y, need_weights=False)[0]


class Seq2Seq(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.net = nn.Transformer(16, 4, 1, 1, 32, batch_first=True)
        self.head = nn.Linear(16, 20)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        x, y = self.embed(source), self.embed(target)
        return self.head(self.net(x, y, tgt_mask=mask, tgt_is_causal=True))


class Positions(nn.Module):
    """Sines of positions, for any number of steps."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.layer = nn.TransformerEncoderLayer(
            16, 2, 32, batch_first=True, activation="gelu", norm_first=True
        )
        self.rates = nn.Buffer(torch.exp(torch.arange(8) * (-math.log(1e4) / 8)))

    def forward(self, tokens: Tensor) -> Tensor:
        at = torch.arange(tokens.shape[1]).unsqueeze(1) * self.rates
        x = self.embed(tokens) + torch.cat([at.sin(), at.cos()], -1)
        return self.layer(x).mean(1)


class Bag(nn.Module):
    def __init__(self, mode: str) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(30, 8, mode=mode)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.bag(tokens))


class Spectrogram(nn.Module):
    """A short-time Fourier transform as a convolution, and mel bands."""

    def __init__(self, size: int = 64, hop: int = 32, bands: int = 10) -> None:
        super().__init__()
        count = size // 2 + 1
        angle = torch.outer(torch.arange(count), torch.arange(size)) * 2 * math.pi
        window = torch.hann_window(size)
        waves = torch.cat([torch.cos(angle / size), -torch.sin(angle / size)])
        self.waves = nn.Buffer((waves * window).unsqueeze(1))
        self.mel = nn.Buffer(torch.rand(bands, count))
        self.hop = hop

    def forward(self, x: Tensor) -> Tensor:
        x = f.pad(x.unsqueeze(1), (32, 32), mode="reflect")
        real, imaginary = f.conv1d(x, self.waves, stride=self.hop).chunk(2, 1)
        power = real.pow(2) + imaginary.pow(2)
        return torch.log10(torch.clamp(self.mel @ power, min=1e-6))


class SuperResolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 5, 1, 2), nn.Tanh(), _conv(8, 8))
        self.last = nn.Conv2d(8, 9, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return f.pixel_shuffle(self.last(self.body(x)), 3)


class RotaryBlock(nn.Module):
    """A decoder layer with rotary positions, a mask and RMS norm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(16)
        self.qkv = nn.Linear(16, 48, bias=False)
        self.out = nn.Linear(16, 16, bias=False)
        self.gate, self.up = nn.Linear(16, 32), nn.Linear(16, 32)
        self.down = nn.Linear(32, 16)

    def forward(self, x: Tensor) -> Tensor:
        n, steps, _ = x.shape
        parts = self.qkv(self.norm(x)).view(n, steps, 3, 2, 8).permute(2, 0, 3, 1, 4)
        q, k, v = parts.unbind(0)
        at = torch.arange(steps).unsqueeze(1) / 10 ** torch.arange(0, 2, 0.5)
        at = torch.cat([at, at], -1)

        def turned(t: Tensor) -> Tensor:
            one, two = t.chunk(2, -1)
            return t * at.cos() + torch.cat([-two, one], -1) * at.sin()

        y = f.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, steps, 16))
        y = self.norm(x)
        return x + self.down(f.silu(self.gate(y)) * self.up(y))


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        sizes = (32, 16, 8, 4, 8, 16)
        layers: list[nn.Module] = []
        for a, b in pairwise(sizes):
            layers += [nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.Linear(16, 32))

    def forward(self, x: Tensor) -> Tensor:
        return (self.layers(x) - x).square().mean(1)


class Vae(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(_conv(1, 4, 2), _conv(4, 8, 2), nn.Flatten())
        self.mean, self.wide = nn.Linear(128, 4), nn.Linear(128, 4)
        self.grow = nn.Linear(4, 128)
        self.decode = nn.Sequential(
            *(nn.ConvTranspose2d(8, 4, 3, 2, 1, 1), nn.LeakyReLU(0.1)),
            *(nn.ConvTranspose2d(4, 1, 4, 2, 1), nn.Sigmoid()),
        )

    def forward(self, x: Tensor, noise: Tensor) -> Any:
        x = self.encode(x)
        code = self.mean(x) + noise * torch.exp(0.5 * self.wide(x))
        return self.decode(self.grow(code).view(-1, 8, 4, 4)), code


class Warp(nn.Module):
    """A spatial transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.where = nn.Sequential(_conv(1, 4, 2), nn.Flatten(), nn.Linear(256, 6))

    def forward(self, x: Tensor) -> Tensor:
        theta = torch.tanh(self.where(x)).view(-1, 2, 3)
        grid = f.affine_grid(theta, list(x.shape), align_corners=False)
        return f.grid_sample(x, grid, align_corners=False)


class Graph(nn.Module):
    """Two layers of a graph network over a list of edges."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(5, 8), nn.Linear(8, 3)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        for layer in (self.one, self.two):
            sent = layer(nodes).index_select(0, edges[0])
            where = edges[1].unsqueeze(1).expand(-1, sent.shape[1])
            empty = torch.zeros(nodes.shape[0], sent.shape[1])
            nodes = torch.relu(empty.scatter_add(0, where, sent))
        return nodes


class Cache(nn.Module):
    """Writes into a buffer that it keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = nn.Buffer(torch.zeros(1, 8, 6))
        self.layer = nn.Linear(6, 6)

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        self.kept.index_copy_(1, at, self.layer(x))
        scores = torch.softmax(x @ self.kept.transpose(1, 2), -1)
        return scores @ self.kept


class Branch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda y: y.sin() * 2, lambda y: y.cos() - y, (x,))


class Kalman(nn.Module):
    """A filter: no network, and matrices only."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Buffer(torch.eye(4) + 0.1 * torch.eye(4).roll(2, 1).tril(-1))
        self.noise = nn.Buffer(0.01 * torch.eye(4))

    def forward(self, state: Tensor, spread: Tensor, seen: Tensor) -> Any:
        state = self.step @ state
        spread = self.step @ spread @ self.step.T + self.noise
        total = spread[:2, :2] + 0.1 * torch.eye(2)
        a, b, c, d = total.flatten().unbind()
        inverse = torch.stack([d, -b, -c, a]).view(2, 2) / (a * d - b * c)
        gain = spread[:, :2] @ inverse
        state = state + gain @ (seen - state[:2])
        return state, spread - gain @ spread[:2]


def _norms(x: Tensor) -> Tensor:
    low = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return torch.cdist(x / low, x / low).clamp(min=1e-3).rsqrt()


def _counts(x: Tensor) -> Any:
    sums = torch.cumsum(x, 1)
    order = torch.argsort(x, 1)
    median = x.median(1).values
    return sums, order, median, (x > median.unsqueeze(1)).sum(1), x.prod(1)


def _beam(logits: Tensor, kept: Tensor) -> Any:
    total = f.log_softmax(logits, -1) + kept.unsqueeze(-1)
    best, at = total.flatten(1).topk(3, 1)
    return best, torch.div(at, logits.shape[-1], rounding_mode="floor"), at % 7


def _anchors(x: Tensor) -> Tensor:
    inside = (x[:, 2] - x[:, 0]).clamp(min=0) * (x[:, 3] - x[:, 1]).clamp(min=0)
    low = torch.maximum(x[:, None, :2], x[None, :, :2])
    high = torch.minimum(x[:, None, 2:], x[None, :, 2:])
    both = (high - low).clamp(min=0).prod(-1)
    return both / (inside[:, None] + inside[None] - both + 1e-6)


def _masked(x: Tensor, lengths: Tensor) -> Tensor:
    mask = torch.arange(x.shape[1]) >= lengths.unsqueeze(1)
    filled = x.masked_fill(mask.unsqueeze(-1), float("-inf"))
    return torch.softmax(filled, 1).nan_to_num(0.0).tril()


def _mlp(activation: nn.Module) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(nn.Linear(8, 16), activation, nn.Linear(16, 4))


ACTIVATIONS = {
    "relu": nn.ReLU(),
    "relu6": nn.ReLU6(),
    "gelu": nn.GELU(),
    "gelu_tanh": nn.GELU("tanh"),
    "silu": nn.SiLU(),
    "mish": nn.Mish(),
    "elu": nn.ELU(),
    "celu": nn.CELU(),
    "selu": nn.SELU(),
    "leaky_relu": nn.LeakyReLU(),
    "prelu": nn.PReLU(),
    "hardswish": nn.Hardswish(),
    "hardsigmoid": nn.Hardsigmoid(),
    "hardtanh": nn.Hardtanh(),
    "hardshrink": nn.Hardshrink(),
    "softshrink": nn.Softshrink(),
    "tanhshrink": nn.Tanhshrink(),
    "threshold": nn.Threshold(0.1, 0.2),
    "softplus": nn.Softplus(),
    "softsign": nn.Softsign(),
    "logsigmoid": nn.LogSigmoid(),
    "sigmoid": nn.Sigmoid(),
    "tanh": nn.Tanh(),
    "softmax": nn.Softmax(1),
    "softmin": nn.Softmin(1),
    "log_softmax": nn.LogSoftmax(1),
}

for _name, _activation in ACTIVATIONS.items():
    add(f"mlp/{_name}", _mlp(_activation), (2, 8))
add("mlp/glu", lambda: nn.Sequential(nn.Linear(8, 16), nn.GLU()), (2, 8))
add("mlp/dropout", lambda: nn.Sequential(nn.Linear(8, 8), nn.Dropout()), (2, 8))
add("mlp/bilinear", lambda: nn.Bilinear(5, 6, 4), (2, 5), (2, 6))
add("mlp/cosine", lambda: nn.CosineSimilarity(), (3, 8), (3, 8))
add("mlp/autoencoder", Autoencoder, (2, 32))
add("mlp/kalman", Kalman, (4,), (4, 4), (2,))
add("mlp/branch", Branch, (3, 5))
add(
    "mlp/dynamic",
    lambda: nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3), nn.Softmax(-1)),
    (4, 6),
    dynamic=(BATCH,),
    others=((7, 6),),
)

add("cnn/small", small_cnn, (1, 3, 32, 32))
add("cnn/small_dynamic", small_cnn, (2, 3, 32, 32), dynamic=(BATCH,), others=((5, 3, 32, 32),))
add("cnn/ds_cnn", ds_cnn, (1, 1, 49, 10))
add("cnn/unet_transposed", lambda: UNet("transposed"), (1, 3, 32, 32))
add("cnn/unet_nearest", lambda: UNet("nearest"), (1, 3, 32, 32))
add("cnn/unet_bilinear", lambda: UNet("bilinear"), (1, 3, 32, 32))
add("cnn/edsr", Edsr, (1, 3, 12, 12))
add("cnn/fpn", Fpn, (1, 3, 32, 32))
add("cnn/resnet8", ResNet8, (1, 3, 32, 32))
add("cnn/mobilenet_v1", mobilenet_v1, (1, 3, 32, 32))
add("cnn/grouped", grouped, (1, 4, 32, 32))
add("cnn/activations", curves, (1, 6, 16, 16))
add("cnn/detector", Detector, (1, 3, 64, 64))
add("cnn/super_resolution", SuperResolution, (1, 1, 16, 16))
add("cnn/vae", Vae, (1, 1, 16, 16), (1, 4))
add("cnn/warp", Warp, (1, 1, 16, 16))
add(
    "cnn/conv3d",
    lambda: nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2)),
    (1, 1, 8, 8, 8),
)
add(
    "cnn/conv1d",
    lambda: nn.Sequential(nn.Conv1d(2, 8, 5, 2), nn.ReLU(), nn.MaxPool1d(2)),
    (1, 2, 40),
)
add("cnn/squeeze_excite", lambda: SqueezeExcite(16, nn.Sigmoid()), (1, 16, 8, 8))
add("cnn/squeeze_excite_hard", lambda: SqueezeExcite(16, nn.Hardsigmoid()), (1, 16, 8, 8))
for _name, _norm in {
    "group": lambda c: nn.GroupNorm(4, c),
    "instance": lambda c: nn.InstanceNorm2d(c, affine=True),
    "layer": lambda c: nn.GroupNorm(1, c),
    "batch": nn.BatchNorm2d,
    "local": lambda _: nn.LocalResponseNorm(3),
}.items():
    add(f"cnn/norm_{_name}", lambda n=_norm: Residual(8, n), (1, 8, 8, 8))
for _name, _options in {
    "nearest": {"size": (7, 11)},
    "bilinear": {"size": (7, 11), "align_corners": False},
    "bilinear_corners": {"scale_factor": 2, "align_corners": True},
    "bilinear_antialias": {"size": (5, 4), "antialias": True},
    "bicubic": {"size": (9, 5), "align_corners": False},
    "area": {"size": (4, 3)},
    "nearest-exact": {"size": (9, 9)},
}.items():
    _mode = _name.partition("_")[0]
    add(
        f"resize/{_name}",
        call(lambda x, o=_options, m=_mode: f.interpolate(x, mode=m, **o)),
        (1, 3, 8, 8),
    )
add("resize/linear", call(lambda x: f.interpolate(x, 13, mode="linear")), (1, 3, 8))
for _mode in ("constant", "reflect", "replicate", "circular"):
    add(
        f"resize/pad_{_mode}", call(lambda x, m=_mode: f.pad(x, (1, 2, 3, 1), mode=m)), (1, 3, 8, 8)
    )
add("resize/unshuffle", call(lambda x: f.pixel_unshuffle(x, 2)), (1, 3, 8, 8))
add("resize/unfold", call(lambda x: f.unfold(x, 3, stride=2)), (1, 3, 9, 9))
add("resize/fold", call(lambda x: f.fold(x, (8, 8), 2, stride=2)), (1, 12, 16))
add("resize/channel_shuffle", lambda: nn.ChannelShuffle(2), (1, 4, 5, 5))
add("resize/lp_pool", lambda: nn.LPPool2d(2, 2), (1, 3, 8, 8))
add("resize/adaptive_avg", lambda: nn.AdaptiveAvgPool2d((3, 5)), (1, 3, 8, 9))
add("resize/adaptive_max", lambda: nn.AdaptiveMaxPool2d((3, 5)), (1, 3, 8, 9))

add("sequence/crnn", Crnn, (1, 1, 16, 24))
add("sequence/gru", lambda: Recurrent(nn.GRU), (1, 5, 6))
add("sequence/lstm", lambda: Recurrent(nn.LSTM), (1, 5, 6))
add("sequence/rnn", lambda: Recurrent(nn.RNN), (1, 5, 6))
add(
    "sequence/lstm_two_ways",
    lambda: Recurrent(nn.LSTM, num_layers=2, bidirectional=True),
    (2, 5, 6),
)
add("sequence/gru_cell", lambda: Cell(nn.GRUCell(6, 8)), (2, 6), (2, 8))
add("sequence/lstm_cell", lambda: Cell(nn.LSTMCell(6, 8)), (2, 6), (2, 8), (2, 8))
add("sequence/tcn", Tcn, (1, 4, 20))
add("sequence/wavenet", WaveNet, (1, 1, 32))
add("sequence/pointnet", PointNet, (2, 3, 40))
add("sequence/spectrogram", Spectrogram, (1, 320))
add("sequence/spectrogram_net", lambda: nn.Sequential(Spectrogram(), Tail()), (1, 320))
add("sequence/bag_sum", lambda: Bag("sum"), ids(30, 2, 5))
add("sequence/bag_mean", lambda: Bag("mean"), ids(30, 2, 5))
add("sequence/graph", Graph, (6, 5), ids(6, 2, 9))
add("sequence/cache", Cache, (1, 2, 6), lambda: torch.tensor([3, 4]))

add("attention/multihead", Attention, (1, 7, 16))
add("attention/multihead_bias", lambda: Attention(add_bias_kv=True), (1, 7, 16))
add(
    "attention/scaled_dot_product",
    call(f.scaled_dot_product_attention),
    (1, 2, 6, 8),
    (1, 2, 6, 8),
    (1, 2, 6, 8),
)
add("attention/rotary", RotaryBlock, (1, 6, 16))
add("attention/rotary_dynamic", RotaryBlock, (1, 6, 16), dynamic=(STEPS,), others=((1, 13, 16),))
add(
    "attention/encoder",
    lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2, enable_nested_tensor=False
    ),
    (1, 7, 16),
)
add("attention/seq2seq", Seq2Seq, ids(20, 1, 6), ids(20, 1, 5))
add("attention/positions", Positions, ids(32, 1, 9))
add(
    "attention/positions_dynamic",
    Positions,
    ids(32, 2, 9),
    dynamic=(BATCH | STEPS,),
    others=(ids(32, 3, 17),),
)
add("sequence/tcn_dynamic", Tcn, (1, 4, 20), dynamic=(LONG,), others=((1, 4, 33),))
add(
    "sequence/spectrogram_dynamic",
    Spectrogram,
    (1, 320),
    dynamic=({1: 32 * Dim("hops", min=4, max=20)},),
    others=((1, 480),),
)
add(
    "cnn/unet_dynamic",
    lambda: UNet("bilinear"),
    (1, 3, 32, 32),
    dynamic=({2: 4 * Dim("high", min=2, max=12), 3: 4 * Dim("wide", min=2, max=12)},),
    others=((1, 3, 24, 40),),
)
add("cnn/detector_dynamic", Detector, (2, 3, 64, 64), dynamic=(BATCH,), others=((3, 3, 64, 64),))
add(
    "heads/masked_dynamic",
    call(_masked),
    (2, 5, 5),
    lambda: torch.tensor([3, 5]),
    dynamic=((BATCH, BATCH),),
    others=((3, 5, 5), lambda: torch.tensor([1, 5, 2])),
)
add("heads/nonzero", call(lambda x: (x * (x > 0)).nonzero()), (4, 5))
add("heads/masked_select", call(lambda x: torch.masked_select(x, x > 0)), (4, 5))

add("heads/norms", call(_norms), (6, 4))
add("heads/counts", call(_counts), (3, 7))
add("heads/beam", call(_beam), (2, 3, 7), (2, 3))
add("heads/overlap", call(_anchors), (6, 4))
add("heads/masked", call(_masked), (2, 5, 5), lambda: torch.tensor([3, 5]))
add("heads/argmax", call(lambda x: (x.argmax(1), x.amin(0), x.std(1))), (3, 7))
add("heads/einsum", call(lambda a, b: torch.einsum("bij,bkj->bik", a, b)), (2, 3, 4), (2, 5, 4))
add("heads/one_hot", call(lambda x: f.one_hot(x, 6).float()), ids(6, 4))
add("heads/distance", call(lambda a, b: torch.cdist(a, b)), (4, 3), (5, 3))
add("heads/where", call(lambda x: torch.where(x > 0, x.sqrt(), x.abs().log1p())), (4, 4))
add("heads/trigonometry", call(lambda x: torch.atan2(x.sin(), x.cos()).sinh()), (4, 4))
add("heads/bits", call(lambda x: ((x & 6) | (x ^ 5), x << 1, ~x)), ids(99, 7))
add("heads/erf", call(lambda x: (x.erf(), x.exp(), x.pow(3), 2**x)), (4, 4))
add("heads/logsumexp", call(lambda x: (x.logsumexp(1), x.log_softmax(0))), (4, 4))


class Tail(nn.Module):
    """Classifies a spectrogram."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(10, 8, batch_first=True)
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x.transpose(1, 2))[0].mean(1))
