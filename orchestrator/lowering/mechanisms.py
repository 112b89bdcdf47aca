"""What makes lowering faster; each can be switched off."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Mechanism(StrEnum):
    """One way to do less work; the resulting graphs are the same."""

    PROVENANCE = "provenance"
    """Share the records of where nodes come from instead of deep-copying them."""
    RECOMPILE = "recompile"
    """Generate the Python code of a graph only when it is read or run."""
    MEMO = "memo"
    """Do not dispatch an operator again if its arguments had the same metadata before
    and its node has the metadata of that result."""
    COPY = "copy"
    """Copy a node that the pass does not change and whose inputs are unchanged."""
    COLLECTOR = "collector"
    """Run the garbage collector less often."""


@dataclass(slots=True)
class Ledger:
    """What the mechanisms did; all counts are 0 for those that are off.

    Args:
        copied: Nodes that were copied unchanged.
        remembered: Nodes whose result was known from an earlier dispatch.
        dispatched: Nodes that took the full path.
        deferred: Modules whose code was to be generated.
        generated: Those whose code was generated after all.
    """

    copied: int = 0
    remembered: int = 0
    dispatched: int = 0
    deferred: int = 0
    generated: int = 0
