"""Installs mechanisms; imports PyTorch and ExecuTorch."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from orchestrator.lowering.apart import collect_rarely, share_provenance
from orchestrator.lowering.copies import Copies
from orchestrator.lowering.mechanisms import Ledger, Mechanism
from orchestrator.lowering.memo import Memo
from orchestrator.lowering.patches import Patches
from orchestrator.lowering.recompile import DeferredCode


def install(mechanisms: AbstractSet[Mechanism], ledger: Ledger, patches: Patches) -> None:
    """Install mechanisms until the patches are reverted.

    Args:
        mechanisms: Which ones.
        ledger: Gets what they do.
        patches: Get what is replaced.
    """
    if Mechanism.PROVENANCE in mechanisms:
        share_provenance(patches)
    if Mechanism.COLLECTOR in mechanisms:
        collect_rarely(patches)
    if Mechanism.RECOMPILE in mechanisms:
        DeferredCode(ledger).install(patches)
    memo = Memo(ledger, remembers=Mechanism.MEMO in mechanisms)
    if Mechanism.COPY in mechanisms:
        copies = Copies(ledger, memo)
        copies.install(patches)
        memo.stamp = copies.stamp
    if {Mechanism.COPY, Mechanism.MEMO} & mechanisms:
        memo.install(patches)
