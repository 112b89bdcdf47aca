"""Other forms of the network of examples/gestures, with the same weights."""
# mypy: ignore-errors
# ruff: noqa: ANN201, ANN202, ANN001
# PyTorch is not there when the project is checked.

from __future__ import annotations

import numpy as np
import torch
from network import build as as_lines
from torch import nn


def as_batch():
    """The network on all windows of `windows.npy`, with the scales of the example."""
    return {**as_lines(), "inputs": torch.from_numpy(np.load("windows.npy"))}


def _image_layer(layer):
    match layer:
        case nn.Conv1d():
            sizes = layer.in_channels, layer.out_channels, (1, *layer.kernel_size)
            made = nn.Conv2d(*sizes)
        case nn.BatchNorm1d():
            made = nn.BatchNorm2d(layer.num_features)
        case nn.MaxPool1d():
            return nn.MaxPool2d((1, layer.kernel_size))
        case nn.AdaptiveAvgPool1d():
            return nn.AdaptiveAvgPool2d(1)
        case _:
            return layer
    shapes = {name: value.shape for name, value in made.state_dict().items()}
    state = layer.state_dict()
    made.load_state_dict({name: state[name].view(shapes[name]) for name in shapes})
    return made


def as_images():
    """The network with lines as images of one row, [1, 3, 1, 64]."""
    built = as_lines()
    layers = [part for part in built["module"].modules() if not [*part.children()]]
    samples = [window.unsqueeze(2) for window in built["calibration"]]
    module = nn.Sequential(*map(_image_layer, layers))
    return {"module": module, "inputs": samples[0], "calibration": samples}
