"""All kernels for packed weights, by the name of their function."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.inventory import Row
from orchestrator.method.passes.packing import (
    depthwise,
    int4,
    lines,
    matrix,
    pairs,
    pixel,
    pixels,
    strips,
)
from orchestrator.method.passes.packing.header import Header
from orchestrator.method.steps import header_of

FAMILIES: Final[tuple[type[Header], ...]] = (
    *(pairs.Pairs, matrix.Matrix, depthwise.Depthwise, depthwise.Depthwise3x3),
    *(strips.Strips, pixels.Pixels, lines.Lines, pixel.Pixel),
    *(int4.Int4Convolution, int4.Int4Pairs, int4.Int4Matrix, int4.Int4Pixels, int4.Int4Pixel),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel for packed weights.

    Args:
        family: What it reads.
        row: Its line of the inventory.
        is_limited: Whether outputs have limits that are not those of int8.
    """

    family: type[Header]
    row: Row
    is_limited: bool = False

    @property
    def function(self) -> str:
        """Qualified C++ name, for prepared calls."""
        return self.row.function(is_limited=self.is_limited)

    @property
    def unprepared(self) -> str:
        """The function that reads the arguments of a call."""
        return f"{self.function}_out"

    def instead(self, name: str) -> str:
        """The function of another kernel of the family, with the same limits."""
        (row,) = (row for row in self.family.kernels() if row.name == name)
        return row.function(is_limited=self.is_limited)


_KERNELS: Final = tuple(
    Kernel(family=family, row=row, is_limited=is_limited)
    for family in FAMILIES
    for row in family.kernels()
    for is_limited in (False, True)
)
KERNELS: Final = MappingProxyType({kernel.function: kernel for kernel in _KERNELS})
"""By function of prepared calls."""
UNPREPARED: Final = MappingProxyType({k.unprepared: k for k in _KERNELS if k.row.is_whole})
"""By function of other calls; bands have prepared ones alone."""
# `packed_call` of packed.h reads them in this order.
ARGUMENTS: Final = ("input", "header", "weights", "scratch", "out")
"""Arguments of packed kernels, which no schema has. There are no weights where several headers
have theirs behind them."""
LIMITS: Final = ("low", "high")
"""Arguments in front of the last one, where outputs have limits."""


def arguments_of(kernel: Kernel, count: int) -> tuple[str, ...]:
    """Names of so many arguments of a packed kernel."""
    limits = LIMITS if kernel.is_limited else ()
    names = (*ARGUMENTS[:-1], *limits, ARGUMENTS[-1])
    return names if count == len(names) else tuple(name for name in names if name != "weights")


def packed_header(method: LinkedMethod, call: LinkedCall) -> Header | None:
    """The struct of a prepared call with packed weights; None for other calls."""
    kernel = KERNELS.get(call.function)
    words = call.form.header or header_of(method, call) if kernel else None
    return kernel.family.of(words) if kernel and words else None
