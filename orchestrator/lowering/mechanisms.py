"""What makes lowering faster; each can be switched off."""

from __future__ import annotations

from enum import StrEnum


class Mechanism(StrEnum):
    """One way to do less; the graphs that come out are the same."""

    PROVENANCE = "provenance"
    """Records of where nodes come from are shared, not copied deeply for each node."""
    RECOMPILE = "recompile"
    """Python code of a graph is generated when it is read or run."""
    MEMO = "memo"
    """An operator whose arguments have metadata that was seen before is not dispatched
    again, if its node has the metadata that came of it then."""
    SHOULD_RUN = "should_run"
    """A pass is skipped where no operator occurs that it changes."""
    NO_OP = "no_op"
    """A replay is dropped if the graph is as an earlier one left it."""
    CHECKS = "checks"
    """A program is verified once in a run of a pass manager."""
    COPY = "copy"
    """A node that the pass leaves alone and whose inputs are as they were is copied."""
    CACHE = "cache"
    """PyTorch's own cache of dispatches also serves the quantizer's operators."""
    SIGNATURES = "signatures"
    """A signature's tables are made once, not for each node that is looked up."""
    OPERATORS = "operators"
    """Operators that can be taken apart are not looked up again for each library."""
    TEXTS = "texts"
    """The text that describes a node is made when it is read."""
    COLLECTOR = "collector"
    """The garbage collector runs rarely."""
