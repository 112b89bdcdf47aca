"""Functions that a product has to have, of those that the inventory has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.method.passes.inventory import LOOPS, PACKED

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.method.passes.inventory import Row

_ISAS: Final = {"host": "scalar", "cortex-m0plus": "scalar", "cortex-m55": "mve"}


def isa_of(cpu: str) -> str:
    """The instruction set of a core."""
    return _ISAS.get(cpu, "dsp")


def packed_names(
    cpu: str, optimize: str, chosen: Callable[[Row], bool], *, limits: bool = True
) -> set[str]:
    """Packed kernels of a core and their loops, as reports name them.

    Args:
        cpu: The core.
        optimize: What the product favours: some are for speed or size alone.
        chosen: Whether the product has a kernel.
        limits: Whether it has calls with limits of each as well.
    """
    isa, whens = isa_of(cpu), {"", "scratch", optimize}
    rows = [row for row in PACKED if row.isa == isa and row.when in whens and chosen(row)]
    found = {row.function(is_limited=limited) for row in rows for limited in {False, limits}}
    kernels = {row.name for row in rows}
    return found | {
        loop.name
        for loop in LOOPS
        if loop.isa == isa and loop.when in whens and not kernels.isdisjoint(loop.of.split())
    }
