"""Mechanisms put in place; imports PyTorch and ExecuTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.lowering.collector import collect_rarely
from orchestrator.lowering.mechanisms import Mechanism
from orchestrator.lowering.copies import Copies
from orchestrator.lowering.memo import Memo
from orchestrator.lowering.passes import Passes
from orchestrator.lowering.provenance import share_provenance
from orchestrator.lowering.recompile import DeferredCode
from orchestrator.lowering.texts import describe_on_demand

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from orchestrator.lowering.ledger import Ledger
    from orchestrator.lowering.patches import Patches

_COUNTED = ("copied", "remembered", "dispatched")


def install(
    mechanisms: Collection[Mechanism], ledger: Ledger, patches: Patches
) -> Callable[[], None]:
    """Put mechanisms in place until the patches are taken back.

    Args:
        mechanisms: Which ones.
        ledger: Gets what they do.
        patches: Get what is replaced.

    Returns:
        What to call at the end: it completes the ledger.
    """
    passes, code = Passes(ledger), DeferredCode()
    passes.install(patches)
    if Mechanism.PROVENANCE in mechanisms:
        share_provenance(patches)
    if Mechanism.RECOMPILE in mechanisms:
        code.install(patches)
    if Mechanism.TEXTS in mechanisms:
        describe_on_demand(patches)
    memo = Memo(passes, remembers=Mechanism.MEMO in mechanisms)
    copies = Copies(passes, memo)
    if Mechanism.COPY in mechanisms:
        memo.copies = copies
        copies.install(patches)
    if {Mechanism.MEMO, Mechanism.COPY} & frozenset(mechanisms):
        memo.install(patches)
    if Mechanism.COLLECTOR in mechanisms:
        collect_rarely()

    def finish() -> None:
        copies.forget()
        ledger.deferred, ledger.generated = code.deferred, code.generated
        for name in _COUNTED:
            setattr(ledger, name, passes.total(name))

    return finish
