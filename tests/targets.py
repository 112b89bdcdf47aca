"""Which cores and toolchains tests run on."""

from __future__ import annotations

import os
from typing import Final

from orchestrator.targets.cores import BOARDS, CPUS

EMULATED: Final = tuple(
    cpu.name
    for cpu in CPUS.values()
    if cpu.is_arm and cpu.default_board and BOARDS[cpu.default_board].emulator
)
"""Cortex-M cores whose default board has an emulator: every test knows them."""

BUILD_ONLY: Final = tuple(
    cpu.name for cpu in CPUS.values() if cpu.is_arm and cpu.name not in EMULATED
)
"""Cortex-M cores that no emulator has."""

FURTHER: Final = tuple(cpu.name for cpu in CPUS.values() if not cpu.is_arm and not cpu.is_host)
"""RISC-V cores, and processors with Linux: `nox -s target-rv32imac` runs all on one."""

FURTHER_PAIRS: Final = (("rv32imac", "zig"), ("aarch64", "gnu"))
"""Those of them that run in every session, where a test asks for them: floats in
software of compiler_rt, and 64 bits with a C library."""

RUN_ALWAYS: Final = ("cortex-m4", "cortex-m55")
"""Cores on which everything runs with every toolchain: single and double FPU, MVE."""

LIKE_OTHERS: Final = ("cortex-m3", "cortex-m33")
"""Cores that run everything only on request: what is compiled for them is much like
that for the M0+, whose floats are in software as well, and for the M4."""

EVERYTHING: Final = "ORCHESTRATOR_EVERY_TARGET"
"""Environment variable: with 1, the other cores run everything as well."""

EVERY_PAIR: Final = os.environ.get(EVERYTHING) == "1"
"""Whether it is set."""


def runs_everything(cpu: str) -> bool:
    """Whether a core runs every case, also those that take long."""
    return EVERY_PAIR or cpu in {"host", *RUN_ALWAYS}


def with_toolchains(*cpus: str) -> list[tuple[str, str]]:
    """Each of these cores with each of its toolchains."""
    return [(cpu, t) for cpu in cpus for t in sorted(CPUS[cpu].toolchains)]


def chosen_pairs(*others: str, further: bool = False) -> list[tuple[str, str]]:
    """Emulated cores with their toolchains; some cores with one each, in turns.

    Those that run everything have all, and those of `LIKE_OTHERS` none.

    Args:
        others: Cores besides those that are emulated.
        further: Also `FURTHER_PAIRS`, or all cores of FURTHER.
    """
    pairs = []
    for index, cpu in enumerate((*EMULATED, *others)):
        if cpu in LIKE_OTHERS and not EVERY_PAIR:
            continue
        found = with_toolchains(cpu)
        pairs += found if runs_everything(cpu) else [found[index % len(found)]]
    if further:
        pairs += with_toolchains(*FURTHER) if EVERY_PAIR else FURTHER_PAIRS
    return pairs
