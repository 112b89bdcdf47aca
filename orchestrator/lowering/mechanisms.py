"""What makes lowering faster; each can be switched off."""

from __future__ import annotations

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
    SHOULD_RUN = "should_run"
    """Skip a pass if the graph has no operator that it changes."""
    NO_OP = "no_op"
    """Skip a replay if the graph has not changed since an earlier one."""
    CHECKS = "checks"
    """Verify a program once in a run of a pass manager."""
    COPY = "copy"
    """Copy a node that the pass does not change and whose inputs are unchanged."""
    SIGNATURES = "signatures"
    """Build the tables of a signature once, not for each lookup of a node."""
    OPERATORS = "operators"
    """Look up the decomposable operators once, not for each library."""
    COLLECTOR = "collector"
    """Run the garbage collector less often."""
