"""How models given as Python are lowered and quantized."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    """Dtypes of quantized activations."""

    INT8 = "int8"
    INT16 = "int16"


class Weights(StrEnum):
    """The number of scales of a layer's weights."""

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


def kernel_libraries(lowering: str | None, quantize: Quantize | None = None) -> tuple[str, ...]:
    """Kernel libraries that a lowered program calls, in the order they are tried.

    Args:
        lowering: None for programs that are given as they are.
        quantize: How the model is quantized; None if it is not.
    """
    if lowering is None:
        return ("portable",)
    own: tuple[str, ...] = ("cortex_m",) if lowering == CORTEX_M else ()
    if own and quantize and quantize.activations is Activations.INT16:
        own = ("cortex_m_int16", *own)
    return (*own, "quantized", "portable")


VELA_SYSTEM_CONFIGS: Final = (
    *("Ethos_U55_Deep_Embedded", "Ethos_U55_High_End_Embedded"),
    *("Ethos_U65_Embedded", "Ethos_U65_Mid_End", "Ethos_U65_High_End"),
    "Ethos_U65_Client_Server",
    *("Ethos_U85_SYS_Flash_Low", "Ethos_U85_SYS_Flash_High"),
    *("Ethos_U85_SYS_DRAM_Low", "Ethos_U85_SYS_DRAM_Mid", "Ethos_U85_SYS_DRAM_High"),
)
VELA_MEMORY_MODES: Final = (
    *("Sram_Only", "Shared_Sram", "Dedicated_Sram", "Dedicated_Sram_256KB"),
    *("Dedicated_Sram_384KB", "Dedicated_Sram_512KB"),
)
"""Sections of Vela's own configuration. Source: Vela 5.1, `Arm/vela.ini`."""
VELA_SET: Final = frozenset(
    {
        *("--accelerator-config", "--config", "--system-config", "--memory-mode"),
        *("--output-format", "--output-dir"),
    }
)
"""Options of Vela that the lowering sets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vela:
    """How Vela compiles for Ethos-U. Source: ExecuTorch 1.5, `EthosUCompileSpec`.

    Args:
        system_config: Clocks and memories of the system; "" for the default.
        memory_mode: The use of each memory; "" for the default.
        config: Path of the file that has both; "" for Vela's own.
        flags: Further options of Vela, such as `--optimise=Size`.
    """

    system_config: str = ""
    memory_mode: str = ""
    config: str = ""
    flags: tuple[str, ...] = ()


NO_VELA: Final = Vela()
"""Vela's defaults."""

# The same numbers as in ExecuTorch 1.5, so that a program is the one that its own
# scripts make. tests/unit/profile/test_lowering.py holds that Vela has these sections.
_DEFAULTS: Final = {
    "ethos-u55": ("Ethos_U55_High_End_Embedded", "Shared_Sram"),
    "ethos-u65": ("Ethos_U65_High_End", "Dedicated_Sram_384KB"),
    "ethos-u85": ("Ethos_U85_SYS_DRAM_Mid", "Sram_Only"),
}
"""System configuration and memory mode."""


def with_defaults(vela: Vela, lowering: str) -> Vela:
    """The settings with ExecuTorch's defaults for empty ones."""
    system_config, memory_mode = _DEFAULTS[lowering.rpartition("-")[0]]
    return replace(
        vela,
        system_config=vela.system_config or system_config,
        memory_mode=vela.memory_mode or memory_mode,
    )


def system_configs_of(lowering: str) -> tuple[str, ...]:
    """System configurations in Vela's own file for an Ethos-U."""
    core = lowering.rpartition("-")[0].replace("-", "_")
    return tuple(s for s in VELA_SYSTEM_CONFIGS if s.lower().startswith(f"{core}_"))


def quantize_text(quantize: Quantize) -> str:
    """`int8 per-channel`."""
    words = (quantize.activations.value, quantize.weights.value)
    return " ".join((*words, *(("dynamic",) if quantize.dynamic else ())))


def vela_text(vela: Vela, config: str) -> str:
    """The settings as options of Vela; `config` as the lock names it."""
    named = {
        "system-config": vela.system_config,
        "memory-mode": vela.memory_mode,
        "config": config if vela.config else "",
    }
    return " ".join((*(f"--{key}={value}" for key, value in named.items() if value), *vela.flags))


def needed_library(lowering: str, quantize: Quantize) -> str:
    """Library that programs quantized for a lowering always need; else ""."""
    return "" if lowering == XNNPACK else kernel_libraries(lowering, quantize)[0]


def unsupported(lowering: str, quantize: Quantize) -> tuple[str, str] | None:
    """A key that a lowering does not support, and what it accepts instead."""
    if quantize.activations is Activations.INT16 and lowering in (PORTABLE, XNNPACK):
        return "activations", f"int8; int16 is for {CORTEX_M} and Ethos-U"
    if quantize.dynamic and lowering not in (XNNPACK, PORTABLE):
        return "dynamic", f"false; true is for {XNNPACK} and {PORTABLE}"
    if quantize.weights is Weights.PER_TENSOR and lowering == CORTEX_M:
        return ("weights", "per-channel, the only one that ExecuTorch's quantizer for Cortex-M has")
    if quantize.weights is Weights.PER_TENSOR and quantize.dynamic:
        return "weights", "per-channel, which dynamic scales require"
    return None
