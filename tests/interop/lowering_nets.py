"""Networks that are lowered in several ways; runs where ExecuTorch is installed."""

# mypy: ignore-errors
# PyTorch is not there when the project is checked.

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from executorch.exir import EdgeCompileConfig, to_edge, to_edge_transform_and_lower
from torch import nn
from torch.export import Dim, export

if TYPE_CHECKING:
    from collections.abc import Callable


class Residual(nn.Module):
    """Inverted residual blocks of 8 channels."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(
                *(nn.Conv2d(8, 16, 1), nn.BatchNorm2d(16), nn.ReLU6()),
                *(nn.Conv2d(16, 16, 3, 1, 1, groups=16), nn.BatchNorm2d(16)),
                *(nn.ReLU6(), nn.Conv2d(16, 8, 1), nn.BatchNorm2d(8)),
            )
            for _ in range(blocks)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + block(x)
        return x


class MobileNet(nn.Module):
    """MobileNetV1 of a quarter of the channels, for two classes."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU()]
        channels = (8, 16, 32, 32, 64, 64, *[128] * 6, 256, 256)
        strides = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1)
        for (a, b), stride in zip(pairwise(channels), strides, strict=True):
            layers += [
                *(nn.Conv2d(a, a, 3, stride, 1, groups=a, bias=False),),
                *(nn.BatchNorm2d(a), nn.ReLU(), nn.Conv2d(a, b, 1, bias=False)),
                *(nn.BatchNorm2d(b), nn.ReLU()),
            ]
        self.layers = nn.Sequential(*layers, nn.AvgPool2d(3))
        self.linear = nn.Linear(256, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.layers(x).flatten(1))


class ChannelNorm(nn.Module):
    """Layer normalisation over the channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Normed(nn.Module):
    """Convolutions with layer normalisation, a residual where shapes match."""

    def __init__(self, *channels: int) -> None:
        super().__init__()
        pairs = list(pairwise(channels))
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, 1, 1) for a, b in pairs)
        self.norms = nn.ModuleList(ChannelNorm(b) for _, b in pairs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for conv, norm in zip(self.convs, self.norms, strict=True):
            y = torch.relu(norm(conv(x)))
            x = x + y if x.shape == y.shape else y
        return x.mean((2, 3))


class Dense(nn.Module):
    """Any number of rows at once."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.layers(x), -1).reshape(-1, 3) + x[:, :3]


class Branches(nn.Module):
    """What is computed depends on the input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda y: y.sin() * 2, lambda y: y.cos() - y, (x,))


class Random(nn.Module):
    """A few operators in any order."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.steps = random.Random(seed).choices(range(7), k=8)  # noqa: S311
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x
        for step in self.steps:
            if step == 0:
                x, kept = torch.relu(x), x
            elif step == 1:
                x = x + kept.transpose(-1, -2)
            elif step == 2:
                x = self.linear(x)
            elif step == 3:
                x = torch.cat([x, kept], 0)[:4]
            elif step == 4:
                x = x.reshape(2, 8).permute(1, 0).reshape(4, 4)
            elif step == 5:
                x, _ = x.max(-1, keepdim=True)
                x = x.expand(4, 4)
            else:
                x = torch.split(x, 2)[0].repeat(2, 1)
        return x


def _quantized(module: nn.Module, inputs: tuple, quantizer: object) -> nn.Module:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e  # noqa: PLC0415

    prepared = prepare_pt2e(export(module, inputs).module(check_guards=False), quantizer)
    prepared(*inputs)
    return convert_pt2e(prepared)


def _cortex_m(module: nn.Module, *sizes: int) -> Callable[[], object]:
    from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config  # noqa: PLC0415
    from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager  # noqa: PLC0415
    from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer  # noqa: PLC0415
    from executorch.backends.cortex_m.target_config import CortexMTargetConfig  # noqa: PLC0415

    inputs = (torch.randn(sizes).to(memory_format=torch.channels_last),)
    module = module.eval().to(memory_format=torch.channels_last)
    program = export(_quantized(module, inputs, CortexMQuantizer()), inputs)
    config = CortexMTargetConfig.from_target_string("cortex-m55")

    def lower() -> object:
        edge = to_edge(program, compile_config=cortex_m_edge_compile_config())
        edge._edge_programs["forward"] = CortexMPassManager(  # noqa: SLF001
            edge.exported_program(), target_config=config
        ).transform()
        return edge

    return lower


def _ethos_u(module: nn.Module, *sizes: int) -> Callable[[], object]:
    from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner  # noqa: PLC0415
    from executorch.backends.arm.quantizer import EthosUQuantizer, get_symmetric_quantization_config  # noqa: PLC0415

    inputs = (torch.randn(sizes),)
    spec = EthosUCompileSpec(
        "ethos-u55-128", system_config="Ethos_U55_High_End_Embedded", memory_mode="Shared_Sram"
    )
    quantizer = EthosUQuantizer(spec)
    quantizer.set_global(get_symmetric_quantization_config())
    program = export(_quantized(module.eval(), inputs, quantizer), inputs)
    return lambda: to_edge_transform_and_lower(
        program,
        partitioner=[EthosUPartitioner(spec)],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )


def _xnnpack() -> Callable[[], object]:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner  # noqa: PLC0415

    program = export(Residual(2).eval(), (torch.randn(1, 8, 8, 8),))
    return lambda: to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])


def _portable(module: nn.Module, *sizes: int, dynamic: object = None) -> Callable[[], object]:
    program = export(module.eval(), (torch.randn(*sizes),), dynamic_shapes=dynamic)
    return lambda: to_edge(program)


NETS: dict[str, Callable[[], Callable[[], object]]] = {
    "cortex-m": lambda: _cortex_m(Residual(2), 1, 8, 8, 8),
    "ethos-u": lambda: _ethos_u(Normed(3, 8, 8), 1, 3, 8, 8),
    "xnnpack": _xnnpack,
    "portable": lambda: _portable(Residual(1), 1, 8, 4, 4),
    "dynamic": lambda: _portable(Dense(), 4, 6, dynamic=({0: Dim("rows", min=1, max=9)},)),
    "branches": lambda: _portable(Branches(), 3, 5),
    **{f"random {n}": lambda n=n: _portable(Random(n), 4, 4) for n in range(12)},
}
"""By name: gives what lowers the network."""

LARGE: dict[str, Callable[[], Callable[[], object]]] = {
    "nine convolutions, Ethos-U55": lambda: _ethos_u(
        Normed(3, 16, 16, 16, *[32] * 6), 1, 3, 32, 32
    ),
    "three convolutions, Ethos-U55": lambda: _ethos_u(Normed(3, 16, 16, 16), 1, 3, 32, 32),
    "MobileNetV1 0.25, Cortex-M": lambda: _cortex_m(MobileNet(), 1, 3, 96, 96),
    **{
        f"{n} inverted residuals, Cortex-M": lambda n=n: _cortex_m(Residual(n), 1, 8, 16, 16)
        for n in (5, 25, 75)
    },
}
"""Those that are measured."""


def lowering(name: str) -> Callable[[], object]:
    """What lowers a network but for `to_executorch`; always the same weights."""
    torch.manual_seed(7)
    return {**NETS, **LARGE}[name]()
