"""Share the records of where nodes come from.

For every node that is replayed, `NodeSource` copies all records of the node it comes
from, and theirs, deeply; most copies are dropped at once. Existing records are never
changed, so a list of the same records is equivalent.

Source: PyTorch 2.13 `torch/fx/traceback.py`, `NodeSource`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.fx.traceback import NodeSource

if TYPE_CHECKING:
    from orchestrator.lowering.patches import Patches


def share_provenance(patches: Patches) -> None:
    """Share records until the patches are reverted."""
    original = NodeSource.__init__

    def record(
        self: NodeSource, node: Any, pass_name: str = "", action: Any = None
    ) -> None:
        if not node or "from_node" not in node.meta:
            original(self, node, pass_name, action)
            return
        original(self, None, pass_name, action)
        self.node_info = self.NodeInfo(
            name=node.name, target=str(node.target), graph_id=id(node.graph)
        )
        self.from_node = list(node.meta["from_node"])

    patches.replace(NodeSource, "__init__", record)
