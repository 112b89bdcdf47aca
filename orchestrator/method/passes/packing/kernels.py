"""All kernels for packed weights, by the name of their function."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from orchestrator.method.linked import LinkedCall, LinkedMethod
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
        name: Which of the kernels of the family.
        is_limited: Whether outputs have limits that are not those of int8.
    """

    family: type[Header]
    name: str
    is_limited: bool = False

    @property
    def function(self) -> str:
        """Qualified C++ name, for prepared calls."""
        int4, limited = "int4_" * self.family.IS_INT4, "limited_" * self.is_limited
        return f"orch::cortex_m::{int4}{limited}packed_{self.name}"

    @property
    def unprepared(self) -> str:
        """The function that reads the arguments of a call."""
        return f"{self.function}_out"

    def instead(self, name: str) -> str:
        """The function of another kernel of the family, with the same limits."""
        return replace(self, name=name).function


def _kernels(family: type[Header], *names: str) -> list[Kernel]:
    return [
        Kernel(family=family, name=name, is_limited=is_limited)
        for name in names
        for is_limited in (False, True)
    ]


KERNELS: Final = MappingProxyType(
    {
        kernel.function: kernel
        for family in FAMILIES
        for kernel in _kernels(
            family, *family.WHOLE, *(narrow for narrow, _ in family.NARROW), *family.SCRATCH_SAVING
        )
    }
)
"""By function of prepared calls."""
UNPREPARED: Final = MappingProxyType(
    {kernel.unprepared: kernel for family in FAMILIES for kernel in _kernels(family, *family.WHOLE)}
)
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
