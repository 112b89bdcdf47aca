"""Installs mechanisms; imports PyTorch and ExecuTorch."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final

from orchestrator.lowering.apart import collect_rarely, share_provenance
from orchestrator.lowering.copies import Copies
from orchestrator.lowering.mechanisms import Ledger, Mechanism
from orchestrator.lowering.memo import Memo
from orchestrator.lowering.passes import Passes
from orchestrator.lowering.patches import Patches
from orchestrator.lowering.recompile import DeferredCode

_COUNTED: Final = ("copied", "remembered", "dispatched")


def install(
    mechanisms: AbstractSet[Mechanism], ledger: Ledger, patches: Patches
) -> Callable[[], None]:
    """Install mechanisms until the patches are reverted.

    Args:
        mechanisms: Which ones.
        ledger: Gets what they do.
        patches: Get what is replaced.

    Returns:
        What to call at the end: it completes the ledger.
    """
    # Watched first: all other patches count for the pass that runs.
    passes, code = Passes(ledger), DeferredCode()
    passes.install(patches)
    if Mechanism.PROVENANCE in mechanisms:
        share_provenance(patches)
    if Mechanism.COLLECTOR in mechanisms:
        collect_rarely(patches)
    if Mechanism.RECOMPILE in mechanisms:
        code.install(patches)
    # Copies need stamps, which the memo gives: with COPY alone it stamps and remembers
    # nothing.
    memo = Memo(passes, remembers=Mechanism.MEMO in mechanisms)
    if Mechanism.COPY in mechanisms:
        copies = Copies(passes, memo)
        copies.install(patches)
        memo.stamp = copies.stamp
    if {Mechanism.COPY, Mechanism.MEMO} & mechanisms:
        memo.install(patches)

    def finish() -> None:
        # Read at the end: totals grow while the block runs.
        ledger.deferred, ledger.generated = code.deferred, code.generated
        for name in _COUNTED:
            setattr(ledger, name, passes.total(name))

    return finish
