"""What makes lowering faster; each can be switched off."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


# Five of ten that there were: without any one of the other five, lowering took at most
# 0.2 s more in an export of seven seconds (decision 0043 has the figures).
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


# The work of accelerated lowering: in total, and by pass.

HEADINGS: Final = (
    *("pass", "pass manager", "copied", "remembered", "dispatched"),
    *("CPU seconds", "skipped"),
)
"""Headings of the columns of `Ledger.rows`."""


@dataclass(slots=True)
class PassLedger:
    """One run of one pass.

    Args:
        name: Class of the pass.
        manager: Class of the pass manager that ran it; empty if none did.
        skipped: That it found nothing to change; empty otherwise.
        copied: Nodes that were copied unchanged.
        remembered: Nodes whose result was known from an earlier dispatch.
        dispatched: Nodes that took the full path.
        cpu_s: Processor time in seconds, without passes that ran inside of it.
    """

    name: str
    manager: str = ""
    skipped: str = ""
    copied: int = 0
    remembered: int = 0
    dispatched: int = 0
    cpu_s: float = 0.0


@dataclass
class Ledger:
    """What the mechanisms did; all counts are 0 for those that are off.

    Args:
        copied: Nodes that were copied, in all passes.
        remembered: Nodes whose result was known.
        dispatched: Nodes that took the full path.
        deferred: Modules whose code was to be generated.
        generated: Those whose code was generated after all.
        passes: Every run of a pass, in order.
    """

    copied: int = 0
    remembered: int = 0
    dispatched: int = 0
    deferred: int = 0
    generated: int = 0
    passes: list[PassLedger] = field(default_factory=list)

    def rows(self) -> list[tuple[str, ...]]:
        """Texts for a table with `HEADINGS`, one row for each run of a pass."""
        return [
            (
                *(run.name, run.manager),
                *(str(run.copied), str(run.remembered), str(run.dispatched)),
                *(f"{run.cpu_s:.3f}", run.skipped),
            )
            for run in self.passes
        ]
