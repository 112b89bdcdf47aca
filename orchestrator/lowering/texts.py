"""Describe nodes on demand.

For every node that is replayed, a text for error messages is made, which hardly any
pass reads.

Source: ExecuTorch 1.5 `exir/pass_base.py`, `ExportInterpreter.run_node`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.fx import Interpreter, Node

from orchestrator.lowering.bases import BASES

if TYPE_CHECKING:
    from orchestrator.lowering.patches import Patches


def describe_on_demand(patches: Patches) -> None:
    """Make descriptions on demand until the patches are reverted."""

    def run_node(self: Any, n: Node) -> Any:
        self.node = n
        vars(self.callback)["node_debug_str"] = _Described(n)
        return Interpreter.run_node(self, n)

    for base in BASES:
        patches.replace(base.ExportInterpreter, "run_node", run_node)
        patches.add(base, "node_debug_str", _Text())


class _Described:
    """Placeholder for the description of a node."""

    def __init__(self, node: Node) -> None:
        self.node = node


class _Text:
    """The attribute of a pass: the text, or what it was set to."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        found = None if instance is None else vars(instance).get("node_debug_str")
        return found.node.format_node() if isinstance(found, _Described) else found

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)["node_debug_str"] = value
