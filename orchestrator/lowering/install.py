"""Installs mechanisms; imports PyTorch and ExecuTorch."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Collection, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from orchestrator.lowering.copies import Copies
from orchestrator.lowering.memo import Memo
from orchestrator.lowering.passes import (
    Passes,
    collect_rarely,
    look_up_once,
    share_provenance,
    verify_once,
)
from orchestrator.lowering.patches import Mechanism, Patches
from orchestrator.lowering.recompile import DeferredCode, Signatures
from orchestrator.lowering.registry import Ledger
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


# The context manager that makes lowering faster.

KNOWN: Final = {"torch": ("2.13.0",), "executorch": ("1.5.1",)}
"""Versions that the mechanisms were compared with."""


class _Running:
    depth = 0
    ledger = Ledger()
    lock = threading.RLock()


@contextmanager
def accelerated(mechanisms: Collection[Mechanism] = tuple(Mechanism)) -> Iterator[Ledger]:
    """Lower faster inside the block; its end restores everything.

    A nested block does nothing. With versions of PyTorch
    or ExecuTorch that it does not know it warns and changes nothing.

    Args:
        mechanisms: Those to use; all by default.

    Yields:
        The work done, pass by pass; totals are available at the end.
    """
    with _Running.lock:
        if _Running.depth or unknown_versions():
            if not _Running.depth:
                found = ", ".join(unknown_versions())
                warnings.warn(f"lowering is not accelerated: {found}", stacklevel=3)
            yield _Running.ledger if _Running.depth else Ledger()
            return
        patches = Patches()
        ledger = _Running.ledger = Ledger()
        finish = None
        try:
            _Running.depth += 1
            finish = install(frozenset(mechanisms), ledger, patches)
            yield ledger
        finally:
            patches.restore()
            _Running.depth -= 1
            if finish is not None:
                finish()


def unknown_versions() -> list[str]:
    """Packages that are missing or have unsupported versions."""
    found = []
    for name, versions in KNOWN.items():
        try:
            installed = version(name).split("+")[0]
        except PackageNotFoundError:
            found.append(f"{name} is not installed")
            continue
        if installed not in versions:
            supported = ", ".join(versions)
            found.append(f"{name} {installed} is not supported, only {supported}")
    return found
