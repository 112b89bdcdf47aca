"""Which cores and toolchains tests run on."""

from __future__ import annotations

import os
from typing import Final

from orchestrator.targets.cores import BOARDS, CPUS

EMULATED: Final = tuple(
    cpu.name
    for cpu in CPUS.values()
    if cpu.default_board and BOARDS[cpu.default_board].emulator
)
"""Cores whose default board has an emulator."""

BUILD_ONLY: Final = tuple(
    cpu.name for cpu in CPUS.values() if cpu.default_board and cpu.name not in EMULATED
)
"""Cores that no emulator has."""

RUN_ALWAYS: Final = ("cortex-m4", "cortex-m55")
"""Cores on which everything runs with every toolchain: single and double FPU, MVE."""

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


def chosen_pairs(*others: str) -> list[tuple[str, str]]:
    """Emulated cores with their toolchains; some cores with one each, in turns.

    Those that run everything have all.

    Args:
        others: Cores besides those that are emulated.
    """
    pairs = []
    for index, cpu in enumerate((*EMULATED, *others)):
        found = with_toolchains(cpu)
        pairs += found if runs_everything(cpu) else [found[index % len(found)]]
    return pairs
