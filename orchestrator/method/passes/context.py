"""What passes know of the build beside the method."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a method is made for.

    Args:
        isa: Instruction set of the core, if the device does not load the method.
        fast: Whether the product favours speed.
        unaligned: Whether code may load words from any address.
        plans: Whether memory is planned afterwards, of a method that the device does not
            load: arenas may grow, as the planner finds the room again.
        replans: Whether memory is planned afterwards.
        modest: Whether a pass that may cost memory must cost less.
    """

    isa: str = ""
    fast: bool = False
    unaligned: bool = True
    plans: bool = False
    replans: bool = False
    modest: bool = False
