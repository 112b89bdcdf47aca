"""A small network for handwritten digits, and what the build exports of it."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

FOLDER = Path(__file__).parent
TRAINING = 898
"""Digits to train with; the rest, 899, are for the test."""


class Block(nn.Sequential):
    """A convolution, normalized and cut at zero."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            *(nn.BatchNorm2d(outputs), nn.ReLU()),
        )


class Digits(nn.Module):
    """Scores [1, 10] for an image [1, 1, 8, 8] with values from 0 to 16."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(Block(1, 16, 1), Block(16, 32, 2))
        self.more = nn.Sequential(Block(32, 32, 1), nn.AvgPool2d(2))
        self.scores = nn.Linear(32 * 4, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """The scores."""
        return self.scores(self.more(self.features(image)).flatten(1))


def images() -> torch.Tensor:
    """All 1,797 images, [1797, 1, 8, 8]."""
    with np.load(FOLDER / "digits.npz") as data:
        return torch.from_numpy(data["inputs"].astype(np.float32))


def build() -> dict[str, object]:
    """What the profile asks for: the network, an example, and samples."""
    network = Digits()
    with np.load(FOLDER / "weights.npz") as weights:
        state = {name: torch.from_numpy(weights[name]) for name in weights.files}
    network.load_state_dict(state)
    channels_last = {"memory_format": torch.channels_last}
    samples = [(image.to(**channels_last),) for image in images()[:128].split(1)]
    return {
        "module": network.to(**channels_last),
        "inputs": samples[0],
        "calibration": samples,
    }
