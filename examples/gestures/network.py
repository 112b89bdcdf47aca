"""A network that recognises gestures; the export calls `build`."""

from pathlib import Path

import numpy as np
import torch
from samples import CLASSES, gestures
from torch import nn

WEIGHTS = Path(__file__).with_name("weights.npz")


class Block(nn.Sequential):
    """A convolution over time, normalized, cut at zero, and pooled by two."""

    def __init__(self, inputs: int, outputs: int, size: int) -> None:
        super().__init__(
            nn.Conv1d(inputs, outputs, size),
            nn.BatchNorm1d(outputs),
            nn.ReLU(),
            nn.MaxPool1d(2),
        )


class Gestures(nn.Sequential):
    """Scores [N, 4] for windows [N, 3, 64]."""

    def __init__(self) -> None:
        super().__init__(
            Block(3, 8, 5),
            Block(8, 16, 3),
            Block(16, 24, 3),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
            nn.Linear(24, len(CLASSES)),
        )


def build() -> dict[str, object]:
    """The trained network, an example of its input, and windows to calibrate with."""
    network = Gestures()
    with np.load(WEIGHTS) as weights:
        state = {name: torch.from_numpy(weights[name]) for name in weights.files}
    network.load_state_dict(state)
    windows = torch.from_numpy(gestures(128, seed=2)[0]).split(1)
    return {"module": network, "inputs": windows[0], "calibration": windows}
