"""How a model that is Python code becomes a program."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

CORTEX_M: Final = "cortex-m"
PORTABLE: Final = "portable"
XNNPACK: Final = "xnnpack"
ETHOS_U: Final = tuple(
    f"ethos-{core}-{macs}"
    for core, sizes in {
        "u55": (32, 64, 128, 256),
        "u65": (256, 512),
        "u85": (128, 256, 512, 1024, 2048),
    }.items()
    for macs in sizes
)
"""Ethos-U by multiply-accumulate units. Source: Vela 5.1, `--accelerator-config`."""
LOWERINGS: Final = (PORTABLE, CORTEX_M, XNNPACK, *ETHOS_U)


class Activations(StrEnum):
    """What activations are quantized to."""

    INT8 = "int8"
    INT16 = "int16"


class Weights(StrEnum):
    """How many scales the weights of a layer have."""

    PER_CHANNEL = "per-channel"
    PER_TENSOR = "per-tensor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantize:
    """How a model is quantized.

    Args:
        activations: Their dtype.
        weights: One scale for each channel, or one for all.
        dynamic: Scales of activations are chosen at run time.
    """

    activations: Activations = Activations.INT8
    weights: Weights = Weights.PER_CHANNEL
    dynamic: bool = False


def quantize_text(quantize: Quantize) -> str:
    """`int8 per-channel`."""
    words = (quantize.activations.value, quantize.weights.value)
    return " ".join((*words, *(("dynamic",) if quantize.dynamic else ())))


def refusal(lowering: str, quantize: Quantize) -> tuple[str, str]:
    """Why a lowering cannot quantize so: key of the table, what it takes; or two ""."""
    if quantize.activations is Activations.INT16 and lowering not in ETHOS_U:
        return "activations", "int8; int16 is for Ethos-U"
    if quantize.dynamic and lowering not in (XNNPACK, PORTABLE):
        return "dynamic", f"false; true is for {XNNPACK} and {PORTABLE}"
    if quantize.weights is Weights.PER_TENSOR and lowering == CORTEX_M:
        return (
            "weights",
            "per-channel: ExecuTorch's quantizer for Cortex-M has no other",
        )
    if quantize.weights is Weights.PER_TENSOR and quantize.dynamic:
        return "weights", "per-channel; dynamic scales want that"
    return "", ""
