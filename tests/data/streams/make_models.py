"""Models of a window of time that tests turn into streams.

    python tests/data/streams/make_models.py

writes `NAME.pte` beside this file; it needs PyTorch and ExecuTorch. Weights are random.
"""
# mypy: disable-error-code="misc"

from __future__ import annotations

from pathlib import Path
from typing import Final

import torch
from executorch.exir import to_edge
from torch import Tensor, nn

HERE: Final = Path(__file__).parent


class WakeWord(nn.Module):
    """Convolutions without padding over frames of features, their mean, and scores."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 6, (4, 5), stride=(2, 2))
        self.depthwise = nn.Conv2d(6, 6, 3, groups=6)
        self.pointwise = nn.Conv2d(6, 8, 1)
        self.norm = nn.BatchNorm2d(8)
        self.scores = nn.Linear(8, 3)

    def forward(self, frames: Tensor) -> Tensor:
        """`frames`: [1, 1, 24, 10], time first."""
        x = torch.relu(self.first(frames))
        x = torch.relu(self.norm(self.pointwise(self.depthwise(x))))
        return torch.softmax(self.scores(x.mean((2, 3))), 1)


class _Causal(nn.Module):
    """A convolution that sees the past only: padded at both ends, then cut."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.cut = 2 * dilation
        self.filter = nn.Conv1d(channels, channels, 3, padding=self.cut, dilation=dilation)

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.relu(self.filter(x)[:, :, : -self.cut])


class CausalTcn(nn.Module):
    """A temporal convolutional network: a number for each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.begin = nn.Conv1d(2, 6, 1)
        self.blocks = nn.Sequential(*(_Causal(6, 1 << n) for n in range(3)))
        self.end = nn.Conv1d(6, 3, 1)

    def forward(self, samples: Tensor) -> Tensor:
        """`samples`: [1, 2, 32]."""
        return self.end(self.blocks(self.begin(samples)))


class LastOfTcn(CausalTcn):
    """The same with scores of the last sample; padded before its convolutions."""

    def forward(self, samples: Tensor) -> Tensor:
        """`samples`: [1, 2, 32]."""
        x = self.begin(samples)
        for block in self.blocks:
            filtered = nn.functional.conv1d(
                nn.functional.pad(x, (block.cut, 0)),
                block.filter.weight,
                block.filter.bias,
                dilation=block.filter.dilation,
            )
            x = x + torch.relu(filtered)
        return torch.log_softmax(self.end(x)[:, :, -1], 1)


class Gru(nn.Module):
    """A convolution, and a gated recurrent unit that starts anew with each window."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Conv1d(3, 5, 4, stride=2)
        self.gates = nn.GRUCell(5, 4)

    def forward(self, samples: Tensor) -> Tensor:
        """`samples`: [1, 3, 16]."""
        x = torch.relu(self.features(samples))
        state = torch.zeros(1, 4)
        for step in range(x.shape[2]):
            state = self.gates(x[:, :, step], state)
        return state


class Padded(nn.Module):
    """Convolutions that see past and future: only what is before them streams."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Conv1d(2, 4, 3)
        self.padded = nn.Conv1d(4, 4, 3, padding=1)

    def forward(self, samples: Tensor) -> Tensor:
        """`samples`: [1, 2, 20]."""
        return self.padded(torch.sigmoid(self.inner(samples)))


class Viewed(nn.Module):
    """Frames as an image, all of whose rows are read at the end: views, no copies."""

    def __init__(self) -> None:
        super().__init__()
        self.filter = nn.Conv2d(1, 4, (3, 6), dilation=(2, 1))
        self.scores = nn.Linear(4 * 8, 3)

    def forward(self, frames: Tensor) -> Tensor:
        """`frames`: [1, 12, 6], time first."""
        x = self.filter(frames.view(1, 1, 12, 6)).view(1, 4, 8)
        return self.scores(torch.tanh(x).view(1, 32))


class Frames(nn.Module):
    """Layers that see one frame, and pools of some, in branches; scores of frames."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.mix = nn.Linear(6, 4)
        self.turn = nn.Parameter(torch.randn(1, 4, 5))
        self.scores = nn.Conv1d(10, 3, 2)

    def forward(self, frames: Tensor) -> Tensor:
        """`frames`: [1, 16, 6], time first."""
        x = nn.functional.gelu(self.mix(self.norm(frames)))
        x = torch.softmax(torch.bmm(x, self.turn), 2).transpose(1, 2)
        means = nn.functional.avg_pool1d(x, 3, stride=2)
        most = nn.functional.max_pool2d(x.unsqueeze(1), (1, 3), stride=(1, 2))
        scores = self.scores(torch.cat([means, most.squeeze(1)], 1))
        return scores * torch.amax(scores.permute(0, 2, 1), 2, keepdim=True).mT


class CausalMean(CausalTcn):
    """The mean over all samples sees the padding at the start."""

    def forward(self, samples: Tensor) -> Tensor:
        """`samples`: [1, 2, 32]."""
        return super().forward(samples).mean(2)


class Lagging(nn.Module):
    """Sums with what sees a sample of the future; the last one has none and goes."""

    def __init__(self) -> None:
        super().__init__()
        self.around = nn.Conv1d(2, 2, 3, padding=1)

    def forward(self, samples: Tensor) -> Tensor:
        """`samples`: [1, 2, 20]."""
        return (samples + self.around(samples))[:, :, :-1]


SIZES: Final = {
    WakeWord: (1, 1, 24, 10),
    CausalTcn: (1, 2, 32),
    LastOfTcn: (1, 2, 32),
    Gru: (1, 3, 16),
    Padded: (1, 2, 20),
    Viewed: (1, 12, 6),
    Frames: (1, 16, 6),
    CausalMean: (1, 2, 32),
    Lagging: (1, 2, 20),
}
"""Of the window of each."""
NAMES: Final = {
    WakeWord: "wake_word",
    CausalTcn: "causal_tcn",
    LastOfTcn: "last_of_tcn",
    Gru: "gru",
    Padded: "padded",
    Viewed: "viewed",
    Frames: "frames",
    CausalMean: "causal_mean",
    Lagging: "lagging",
}


def main() -> None:
    """Export all of them."""
    for kind, sizes in SIZES.items():
        torch.manual_seed(0)
        model: nn.Module = kind()
        model.eval()
        program = torch.export.export(model, (torch.randn(sizes),))
        buffer = to_edge(program).to_executorch().buffer
        (HERE / f"{NAMES[kind]}.pte").write_bytes(buffer)


if __name__ == "__main__":
    main()
