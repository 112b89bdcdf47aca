"""Mechanisms that are independent of others."""

from __future__ import annotations

import gc
import os
from typing import Any, Final

import torch
from executorch.exir.pass_manager import ExportedProgramPassManager
from torch._export import utils
from torch.fx.traceback import NodeSource

from orchestrator.lowering.patches import Patches


def share_provenance(patches: Patches) -> None:
    """Share the records of where nodes come from until the patches are reverted.

    For every node that is replayed, `NodeSource` copies all records of the node it
    comes from, and theirs, deeply; most copies are dropped at once. Existing records
    are never changed, so a list of the same records is equivalent.

    Source: PyTorch 2.13 `torch/fx/traceback.py`, `NodeSource`.
    """
    original = NodeSource.__init__

    def record(self: NodeSource, node: Any, pass_name: str = "", action: Any = None) -> None:
        if not node or "from_node" not in node.meta:
            original(self, node, pass_name, action)
            return
        original(self, None, pass_name, action)
        self.node_info = self.NodeInfo(
            name=node.name, target=str(node.target), graph_id=id(node.graph)
        )
        self.from_node = list(node.meta["from_node"])

    patches.replace(NodeSource, "__init__", record)


def look_up_once(patches: Patches) -> None:
    """Look decomposable operators up once, until the patches are reverted.

    For each decomposition, and in it for each library, PyTorch looks up all operators
    of that kind by name, so that they are there. If the dispatcher lists the same ones
    as before they are.

    Source: PyTorch 2.13 `torch/_export/utils.py`, `_materialize_cpp_cia_ops`.
    """
    original, known = utils._materialize_cpp_cia_ops, [""]

    def materialize() -> None:
        listed = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
        if listed != known:
            original()
            known[:] = listed

    patches.replace(utils, "_materialize_cpp_cia_ops", materialize)


RARELY: Final = 50_000
"""New objects before the youngest generation is scanned; 700 or 2,000 by default."""


def collect_rarely(patches: Patches) -> None:
    """Run the garbage collector less often until the patches are reverted, if it runs.

    Graphs are made of objects that refer to each other, which the collector scans again
    and again while they are still in use.
    """
    before = young, middle, old = gc.get_threshold()
    patches.afterwards(lambda: gc.set_threshold(*before))
    if young:
        gc.set_threshold(max(RARELY, young), middle, max(1000, old))


VARIABLE: Final = "ORCHESTRATOR_LOWERING_CHECKS"
"""Set to 1: programs are verified before, after and between passes."""


def verify_once(patches: Patches) -> None:
    """Verify a program only at the end of a run of a pass manager, likewise.

    A pass manager verifies a program before its passes and after them. The result of
    one run is the input of the next, so the first check adds nothing. It is verified
    after each pass if a pass manager requests it (`run_checks_after_each_pass`), and
    everywhere with the variable `ORCHESTRATOR_LOWERING_CHECKS=1`.

    Source: ExecuTorch 1.5 `exir/pass_manager.py`, `ExportedProgramPassManager`.
    """
    every = os.environ.get(VARIABLE, "") == "1"
    call = ExportedProgramPassManager.__call__
    check = ExportedProgramPassManager.check
    starting: list[Any] = []

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if every:
            before, self.run_checks_after_each_pass = (self.run_checks_after_each_pass, True)
            try:
                return call(self, *args, **kwargs)
            finally:
                self.run_checks_after_each_pass = before
        if not self.run_checks_after_each_pass:
            starting.append(self)
        try:
            return call(self, *args, **kwargs)
        finally:
            if starting and starting[-1] is self:
                starting.pop()

    def check_later(self: Any, exported_program: Any) -> None:
        if starting and starting[-1] is self:
            starting.pop()
        else:
            check(self, exported_program)

    patches.replace(ExportedProgramPassManager, "__call__", run)
    patches.replace(ExportedProgramPassManager, "check", check_later)
