"""What ecosystems call cores, and boards that have them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.targets.cores import Target

ZEPHYR_BOARDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "host": ("native_sim/native/64",),
        "cortex-m0plus": ("qemu_cortex_m0",),
        "cortex-m3": ("qemu_cortex_m3", "mps2/an385"),
        "cortex-m4": ("mps2/an386",),
        "cortex-m7": ("mps2/an500",),
        "cortex-m33": ("mps2/an521/cpu0",),
        "cortex-m55": ("mps3/corstone300/an547",),
        "rv32imac": ("qemu_riscv32",),
    }
)
"""Boards for twister, by core: emulated ones, or Zephyr on the development machine."""

CMSIS_CORES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "cortex-m0plus": ("Cortex-M0", "Cortex-M0+"),
        "cortex-m3": ("Cortex-M3",),
        "cortex-m4": ("Cortex-M4",),
        "cortex-m7": ("Cortex-M7",),
        "cortex-m23": ("Cortex-M23",),
        "cortex-m33": ("Cortex-M33",),
        "cortex-m35p": ("Cortex-M35P",),
        "cortex-m55": ("Cortex-M55",),
        "cortex-m85": ("Cortex-M85",),
    }
)
"""`Dcore` of a pack, by core: those with its instruction set."""

CMSIS_DEVICES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cortex-m0plus": "ARMCM0P",
        "cortex-m3": "ARMCM3",
        "cortex-m4": "ARMCM4",
        "cortex-m7": "ARMCM7",
        "cortex-m23": "ARMCM23",
        "cortex-m33": "ARMCM33",
        "cortex-m35p": "ARMCM35P",
        "cortex-m55": "ARMCM55",
        "cortex-m85": "ARMCM85",
    }
)
"""Device of Arm's pack Cortex_DFP with the core."""


def arduino_folder(target: Target) -> str:
    """Folder of a precompiled library: the core, and FPU and float ABI, if any.

    Source: Arduino library specification, "Precompiled binaries".
    """
    prefixes = ("-mfpu=", "-mfloat-abi=")
    flags = target.isa.machine_flags
    parts = [f.removeprefix(p) for p in prefixes for f in flags if f.startswith(p)]
    core = target.cpu.name
    return f"{core}/{'-'.join(parts)}" if len(parts) == len(prefixes) else core
