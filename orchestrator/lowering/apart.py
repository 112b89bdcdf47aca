"""Mechanisms that are independent of others."""

from __future__ import annotations

import gc
from typing import Any, Final

from torch.fx.traceback import NodeSource

from orchestrator.lowering.patches import Patches


def share_provenance(patches: Patches) -> None:
    """Share the records of where nodes come from until the patches are reverted.

    For every node that is replayed, `NodeSource` copies all records of the node it
    comes from, and theirs, deeply; most copies are dropped at once. Existing records
    are never changed, so a list of the same records is equivalent.

    Source: PyTorch 2.13 `torch/fx/traceback.py`, `NodeSource`.
    """
    # PyTorch 2.13 deep-copies the whole chain of sources for every node that a pass
    # makes, and each pass makes the chain one longer. Nothing changes the records
    # afterwards, so that they can be shared.
    original = NodeSource.__init__

    def record(self: NodeSource, node: Any, pass_name: str = "", action: Any = None) -> None:
        if not node or "from_node" not in node.meta:
            original(self, node, pass_name, action)
            return
        # With None the original sets all that does not depend on the node; name, target
        # and graph are set here as it would set them.
        original(self, None, pass_name, action)
        self.node_info = self.NodeInfo(
            name=node.name, target=str(node.target), graph_id=id(node.graph)
        )
        # The list is copied, its records are not: passes append to the list.
        self.from_node = list(node.meta["from_node"])

    patches.replace(NodeSource, "__init__", record)


# Chosen by hand. Graphs live until the end, and the collector finds nothing in them:
# with the defaults, lowering MobileNetV1 0.25 for Cortex-M took 1.69 s of processor
# time instead of 1.19 (decision 0043).
RARELY: Final = 50_000
"""New objects before the youngest generation is scanned; 700 or 2,000 by default."""


def collect_rarely(patches: Patches) -> None:
    """Run the garbage collector less often until the patches are reverted, if it runs.

    Graphs are made of objects that refer to each other, which the collector scans again
    and again while they are still in use.
    """
    before = young, middle, old = gc.get_threshold()
    # First on the stack, so last to be undone: after all other patches.
    patches.afterwards(lambda: gc.set_threshold(*before))
    if young:
        # A user who set a higher threshold, or turned the collector off (0), keeps it.
        gc.set_threshold(max(RARELY, young), middle, max(1000, old))
