"""Models whose weights torchao has quantized to 4 bits."""
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
from torch import nn
from torchao.quantization import IntxWeightOnlyConfig, PerAxis, PerGroup, quantize_
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


def _quantized(module: nn.Module, granularity: Any) -> nn.Module:
    config = IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=granularity)
    quantize_(module.eval(), config)
    return module


def rows() -> tuple[nn.Module, Any]:
    """A scale for each row, of an odd number of columns."""
    module = nn.Sequential(nn.Linear(75, 40), nn.ReLU(), nn.Linear(40, 3))
    return _quantized(module, PerAxis(0)), torch.randn(2, 75)


def groups() -> tuple[nn.Module, Any]:
    """A scale for each 32 columns; products of several rows, one without a bias."""
    module = nn.Sequential(nn.Linear(64, 96), nn.Tanh(), nn.Linear(96, 5, bias=False))
    return _quantized(module, PerGroup(32)), torch.randn(1, 4, 64)


def image() -> tuple[nn.Module, Any]:
    """int8 activations, and weights of 4 bits from a PT2E quantizer."""
    quantizer = CortexMQuantizer()
    four = {"quant_min": -8, "quant_max": 7}
    for part in quantizer.quantizers:
        config = getattr(part, "quantization_config", None)
        if config is not None:
            weight = replace(config.weight, **four)
            part.quantization_config = replace(config, weight=weight)
    network = nn.Sequential(
        *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 24, 1), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10)),
    )
    layout = torch.channels_last
    network = network.eval().to(memory_format=layout)
    example = torch.randn(1, 8, 8, 8).to(memory_format=layout)
    graph = torch.export.export(network, (example,), strict=False).module()
    prepared = prepare_pt2e(graph, quantizer)
    for _ in range(4):
        prepared(torch.randn(1, 8, 8, 8).to(memory_format=layout))
    return convert_pt2e(prepared), example
