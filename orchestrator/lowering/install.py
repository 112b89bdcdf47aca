"""Installs mechanisms; imports PyTorch and ExecuTorch."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final

from orchestrator.lowering.apart import collect_rarely, look_up_once, share_provenance, verify_once
from orchestrator.lowering.copies import Copies
from orchestrator.lowering.mechanisms import Ledger, Mechanism
from orchestrator.lowering.memo import Memo
from orchestrator.lowering.passes import Passes
from orchestrator.lowering.patches import Patches
from orchestrator.lowering.recompile import DeferredCode, Signatures
from orchestrator.lowering.skips import Skips

_COUNTED: Final = ("copied", "remembered", "dispatched")
_APART: Final[dict[Mechanism, Callable[[Patches], None]]] = {
    Mechanism.PROVENANCE: share_provenance,
    Mechanism.SIGNATURES: lambda patches: Signatures().install(patches),
    Mechanism.OPERATORS: look_up_once,
    Mechanism.CHECKS: verify_once,
    Mechanism.COLLECTOR: collect_rarely,
}
"""Those that are independent of others."""
_STAMPED: Final = {Mechanism.SHOULD_RUN, Mechanism.NO_OP, Mechanism.COPY}
"""Those that need to know how values were computed."""


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
    passes, code = Passes(ledger), DeferredCode()
    passes.install(patches)
    for mechanism, put_in_place in _APART.items():
        if mechanism in mechanisms:
            put_in_place(patches)
    if Mechanism.RECOMPILE in mechanisms:
        code.install(patches)
    memo = Memo(passes, remembers=Mechanism.MEMO in mechanisms)
    if _STAMPED & mechanisms:
        copies = Copies(passes, memo)
        copies.install(patches, copy=Mechanism.COPY in mechanisms)
        memo.stamp = copies.stamp
        Skips(passes, copies, mechanisms).install(patches)
    if (_STAMPED | {Mechanism.MEMO}) & mechanisms:
        memo.install(patches)

    def finish() -> None:
        ledger.skipped = passes.skipped
        ledger.deferred, ledger.generated = code.deferred, code.generated
        for name in _COUNTED:
            setattr(ledger, name, passes.total(name))

    return finish
