"""Attributes of other packages, temporarily replaced."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

import torch
from executorch.exir import pass_base as executorch_base
from torch._export import pass_base as torch_base

_ABSENT = object()


class Patches:
    """Replacements that are reverted in reverse order."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def replace(self, owner: Any, name: str, new: Any) -> None:
        """Replace the value of an attribute that `owner` itself has.

        Raises:
            KeyError: It has none of that name.
        """
        self._before.append((owner, name, vars(owner)[name]))
        setattr(owner, name, new)

    def add(self, owner: Any, name: str, new: Any) -> None:
        """Add an attribute that `owner` itself does not have.

        Raises:
            KeyError: It has one of that name.
        """
        if name in vars(owner):
            raise KeyError(name)
        self._before.append((owner, name, _ABSENT))
        setattr(owner, name, new)

    def afterwards(self, undo: Callable[[], None]) -> None:
        """Call something once all later replacements are reverted."""
        self._before.append((None, "", undo))

    def restore(self) -> None:
        """Revert everything."""
        while self._before:
            owner, name, value = self._before.pop()
            if owner is None:
                value()
            elif value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


# The classes of passes that replay graphs: ExecuTorch's, and PyTorch's own copy.

BASES: Final[tuple[Any, ...]] = (
    executorch_base._ExportPassBase,
    torch_base._ExportPassBaseDeprecatedDoNotUse,
)
"""Their methods pass on every node unchanged."""
PROXIES: Final[dict[Any, Any]] = {
    BASES[0]: executorch_base.ProxyValue,
    BASES[1]: torch_base.ProxyValue,
}
"""Values during a replay, with the node that they come from."""
PROXY_KINDS: Final = tuple(PROXIES.values())
TRACERS: Final = (*(base.ExportTracer for base in BASES), executorch_base.ExportPass.ExportTracer)
INTERPRETERS: Final = (
    *(base.ExportInterpreter for base in BASES),
    executorch_base.ExportPass.ExportInterpreter,
)


# PyTorch's sequence number for gradient records.
#
# Dispatching with gradients counts on, and nodes of graphs are numbered by that (`seq_nr`). If a
# result is known without dispatching, the number advances by as much.
#
# Source: PyTorch 2.13 `torch/csrc/autograd/function.h`, `Node`: each one that is made takes the
# next number.


def sequence_number() -> int:
    """The next number."""
    return int(torch.autograd._get_sequence_nr())


def advance(count: int) -> None:
    """Consume `count` numbers."""
    for _ in range(count):
        torch._C._functions.UndefinedGrad()


# What makes lowering faster; each can be switched off.


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
