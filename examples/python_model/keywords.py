"""A small network for keyword spotting, as its authors would write it."""

import torch
from torch import nn

LABELS = ("yes", "no", "up", "down", "silence", "unknown")


class Separable(nn.Sequential):
    """A depthwise and a pointwise convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__(
            *(nn.Conv2d(channels, channels, 3, padding=1, groups=channels),),
            *(nn.BatchNorm2d(channels), nn.ReLU()),
            *(nn.Conv2d(channels, channels, 1), nn.BatchNorm2d(channels), nn.ReLU()),
        )


class Keywords(nn.Module):
    """Scores of keywords for a spectrogram [1, 1, 50, 10]: 50 frames of 10 bands."""

    def __init__(self, channels: int = 32) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(1, channels, (10, 4), stride=2, padding=(5, 1)), nn.ReLU()),
            *(Separable(channels), Separable(channels), nn.AvgPool2d((5, 5))),
        )
        self.scores = nn.Linear(channels * 5, len(LABELS))

    def forward(self, spectrogram: torch.Tensor) -> torch.Tensor:
        """Scores [1, 6]."""
        return self.scores(self.features(spectrogram).flatten(1))


def build() -> dict[str, object]:
    """What the profile asks for: the network, an example, and samples."""
    # Trained weights would be loaded here; the build notices files that are opened.
    network = Keywords().to(memory_format=torch.channels_last)
    samples = [
        (torch.randn(1, 1, 50, 10).to(memory_format=torch.channels_last),)
        for _ in range(16)
    ]
    return {"module": network, "inputs": samples[0], "calibration": samples}
