"""Cycles of instructions by core, as data: for estimates, where no device is at hand.

An emulator counts what is executed; it has no clock. A core that executes in order
needs a number of cycles for each instruction that mostly depends on the instruction
alone. Those numbers are here, by kind of instruction, with their sources. Memory is
taken to answer at once, but for the wait states that the profile or the board has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from types import MappingProxyType
from typing import Final


class Event(IntEnum):
    """What the emulator counts: kinds of instructions, then what adds to them.

    Every instruction is of one kind. The last four are counted beside it.
    """

    DATA = 0
    """Works on registers alone: moves, sums, shifts."""
    LOAD = auto()
    STORE = auto()
    MULTIPLY = auto()
    MULTIPLY_ADD = auto()
    """Also of two pairs of halfwords, as SMLAD."""
    LONG_MULTIPLY = auto()
    """Into 64 bits."""
    LONG_MULTIPLY_ADD = auto()
    DIVIDE = auto()
    BRANCH = auto()
    LOOP_END = auto()
    """LE and LETP, whose branch is free once the loop runs."""
    FLOAT = auto()
    """Half and single precision."""
    FLOAT_MULTIPLY_ADD = auto()
    FLOAT_DIVIDE = auto()
    """And square roots."""
    DOUBLE = auto()
    """Arithmetic of double precision."""
    VECTOR_MEMORY = auto()
    """MVE: loads and stores of what lies together."""
    VECTOR_GATHER = auto()
    """MVE: loads and stores by a vector of offsets or addresses."""
    VECTOR_INTEGER = auto()
    """MVE: all but multiplications, floats, loads and stores."""
    VECTOR_MULTIPLY = auto()
    """MVE: multiplications, and floats."""
    MORE_REGISTERS = auto()
    """Registers that a load or store of several moves after the first."""
    NEIGHBOUR = auto()
    """Loads right after another load or store, which pipeline."""
    OVERLAP = auto()
    """MVE: instructions right after one for another unit, which overlap."""
    TAKEN = auto()
    """Branches that are taken, calls and returns; not LOOP_END."""


# Registers of a load or store of several are as many accesses, pairs of a gather too.
_ACCESSES: Final = (
    *(Event.LOAD, Event.STORE, Event.MORE_REGISTERS),
    *(Event.VECTOR_MEMORY, Event.VECTOR_GATHER),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What devices took, as a multiple of the estimate: measurements that were published.

    Args:
        layers: Which layers were compared.
        least: The least of the quotients, rounded to two digits.
        most: The greatest one.
    """

    layers: str
    least: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Cycles of a core.

    Args:
        cycles: By event; those left out do not occur on the core.
        source: Where the numbers are from.
        kernels: By ISA: cycles of an instruction of int8 kernels, as
            method/rows/costs.py estimates their count; 0 if the core has no such ISA.
        is_coarse: The core executes two instructions at once where it can, or its
            maker publishes no numbers: they are averages.
        compared: By layers; empty if no device was compared.
    """

    cycles: Mapping[Event, float]
    source: str
    kernels: Mapping[str, float]
    is_coarse: bool = False
    compared: tuple[Compared, ...] = ()

    def estimated(
        self, events: Sequence[int], *, wait_states: int = 0, data_wait_states: int = 0
    ) -> int:
        """Cycles for what was counted.

        Args:
            events: Counts by `Event`.
            wait_states: Of the flash: cycles that the first instruction after a taken
                branch waits. What follows is taken to be fetched ahead.
            data_wait_states: Of the memory of tensors: cycles that each load and store
                waits. Loads of constants and of the stack count too, as events do not
                say where they go.
        """
        cycles = sum(
            count * self.cycles.get(Event(event), 0.0) for event, count in enumerate(events)
        )
        cycles += wait_states * events[Event.TAKEN]
        return round(cycles + data_wait_states * sum(events[event] for event in _ACCESSES))


_CORES: Final = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m55")
# A row by event, in cycles. Manuals give some instructions as a range, of which the
# middle stands here: SDIV of the M3 and M4 takes 2 to 12, UMULL of the M3 3 to 5, UMLAL
# 4 to 7. 0.65 on the M7 is two instructions in three cycles, on the way from one a
# cycle to two. docs/targets.md has this table too, and a test compares them.
_CYCLES: Final[Mapping[Event, tuple[float, ...]]] = {
    Event.DATA: (1, 1, 1, 0.65, 1),
    Event.LOAD: (2, 2, 2, 0.65, 1),
    Event.STORE: (2, 1, 1, 0.65, 1),
    Event.MULTIPLY: (1, 1, 1, 1, 1),
    Event.MULTIPLY_ADD: (0, 2, 1, 1, 1),
    Event.LONG_MULTIPLY: (0, 4, 1, 1, 1),
    Event.LONG_MULTIPLY_ADD: (0, 5.5, 1, 1, 1),
    Event.DIVIDE: (0, 7, 7, 7, 7),
    Event.BRANCH: (1, 1, 1, 0.65, 1),
    Event.FLOAT: (0, 0, 1, 1, 1),
    Event.FLOAT_MULTIPLY_ADD: (0, 0, 3, 1, 1),
    Event.FLOAT_DIVIDE: (0, 0, 14, 16, 15),
    Event.DOUBLE: (0, 0, 0, 2, 20),
    Event.VECTOR_MEMORY: (0, 0, 0, 0, 2),
    Event.VECTOR_GATHER: (0, 0, 0, 0, 2),
    Event.VECTOR_INTEGER: (0, 0, 0, 0, 2),
    Event.VECTOR_MULTIPLY: (0, 0, 0, 0, 2),
    # LDM, STM, PUSH and POP take 1 + N cycles for N registers (manuals of the M0+, M3,
    # M4).
    Event.MORE_REGISTERS: (1, 1, 1, 0.5, 1),
    # A load right after another access is pipelined: 2 cycles become 1 on M3 and M4.
    Event.NEIGHBOUR: (0, -1, -1, 0, 0),
    # The M55 works on two of four beats a cycle: a vector instruction takes 2, and 1
    # where the one before uses another unit.
    Event.OVERLAP: (0, 0, 0, 0, -1),
    # The pipeline is filled again: 1 to 3 cycles on M3 and M4 by the manuals.
    Event.TAKEN: (1, 2, 2, 1, 2),
}
"""By event, on each of `_CORES`; 0: it does not occur there."""

_KERNELS: Final = {
    "scalar": (1.5, 0.8, 0.8, 0.5, 0.8),
    "dsp": (0, 0, 1.5, 1.0, 1.5),
    "mve": (0, 0, 0, 0, 1.65),
}
"""From runs of DS-CNN, ResNet-8 and MobileNetV1; scalar code is counted for Armv6-M,
of which Thumb-2 needs half."""


# docs/cycles.md has the measurements; tests/unit/targets/test_published_cycles.py
# computes these from what was counted for the same layers.
_COMPARED: Final[Mapping[str, tuple[Compared, ...]]] = {
    "cortex-m4": (
        Compared(layers="fully connected layers", least=0.91, most=1.08),
        Compared(layers="networks of convolutions", least=0.94, most=1.08),
    ),
    "cortex-m33": (
        Compared(layers="fully connected layers", least=1.04, most=1.04),
        Compared(layers="networks of convolutions", least=0.93, most=0.99),
    ),
    "cortex-m55": (
        Compared(layers="convolutions", least=0.98, most=1.07),
        Compared(layers="depthwise convolutions", least=1.10, most=1.36),
    ),
}
"""By core."""


def _timing(core: str, source: str, *, like: str = "", is_coarse: bool = False) -> Timing:
    at = _CORES.index(like or core)
    cycles = {event: row[at] for event, row in _CYCLES.items() if row[at]}
    return Timing(
        cycles=MappingProxyType(cycles),
        source=source,
        kernels=MappingProxyType({isa: row[at] for isa, row in _KERNELS.items()}),
        is_coarse=is_coarse,
        compared=_COMPARED.get(core, ()),
    )


TIMINGS: Mapping[str, Timing] = MappingProxyType(
    {
        "cortex-m0plus": _timing(
            "cortex-m0plus",
            "Cortex-M0+ Technical Reference Manual (DDI 0484), instruction set summary;"
            " the multiplier of one cycle",
        ),
        "cortex-m3": _timing(
            "cortex-m3",
            "Cortex-M3 Technical Reference Manual (DDI 0337), instruction timings; the"
            " middle where it gives a range",
        ),
        "cortex-m4": _timing(
            "cortex-m4",
            "Cortex-M4 Technical Reference Manual (DDI 0439), instruction set and FPU"
            " summaries; the middle where it gives a range",
        ),
        "cortex-m7": _timing(
            "cortex-m7",
            "LLVM's scheduling model of Cortex-M7 (ARMScheduleM7.td); two instructions"
            " a cycle at best, three in two cycles assumed",
            is_coarse=True,
        ),
        "cortex-m33": _timing(
            "cortex-m33",
            "no numbers of its own are published; those of Cortex-M4, whose scheduling"
            " model LLVM uses for both",
            like="cortex-m4",
            is_coarse=True,
        ),
        "cortex-m55": _timing(
            "cortex-m55",
            "LLVM's scheduling model of Cortex-M55 (ARMScheduleM55.td): two beats a"
            " cycle, units overlap; a gather moves two items a cycle (assumed)",
            is_coarse=True,
        ),
    }
)
"""By core; the others have no numbers that are public."""
