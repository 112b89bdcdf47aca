"""The context in which lowering is faster."""

from __future__ import annotations

import gc
import threading
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from orchestrator.lowering.collector import collect_rarely
from orchestrator.lowering.mechanisms import Mechanism
from orchestrator.lowering.patches import Patches

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

KNOWN: Final = {"torch": ("2.13.0",), "executorch": ("1.5.1",)}
"""Versions that the mechanisms were compared with."""


@dataclass
class Ledger:
    """What the mechanisms did; all counts are 0 for those that are off."""

    dispatched: int = 0
    remembered: int = 0
    bypassed: int = 0
    deferred: int = 0
    generated: int = 0


class _Running:
    depth = 0
    ledger = Ledger()
    lock = threading.RLock()


@contextmanager
def accelerated(
    mechanisms: Collection[Mechanism] = tuple(Mechanism),
) -> Iterator[Ledger]:
    """Lower faster inside of it; everything is as it was outside.

    Inside of another such context it does nothing of its own. With versions of PyTorch
    or ExecuTorch that it does not know it warns and changes nothing.

    Args:
        mechanisms: What to do; all by default.
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
        memo = code = None
        collector = gc.get_threshold()
        try:
            _Running.depth += 1
            if Mechanism.PROVENANCE in mechanisms:
                from orchestrator.lowering.provenance import (  # noqa: PLC0415
                    share_provenance,
                )

                share_provenance(patches)
            if Mechanism.RECOMPILE in mechanisms:
                from orchestrator.lowering.recompile import (  # noqa: PLC0415
                    DeferredCode,
                )

                code = DeferredCode()
                code.install(patches)
            if Mechanism.MEMO in mechanisms:
                from orchestrator.lowering.memo import Memo  # noqa: PLC0415

                memo = Memo()
                memo.install(patches)
            if Mechanism.TEXTS in mechanisms:
                from orchestrator.lowering.texts import (  # noqa: PLC0415
                    describe_on_demand,
                )

                describe_on_demand(patches)
            if Mechanism.COLLECTOR in mechanisms:
                collect_rarely()
            yield ledger
        finally:
            patches.restore()
            gc.set_threshold(*collector)
            _Running.depth -= 1
            if code is not None:
                ledger.deferred, ledger.generated = code.deferred, code.generated
            if memo is not None:
                ledger.dispatched, ledger.remembered = memo.misses, memo.hits
                ledger.bypassed = memo.bypasses


def unknown_versions() -> list[str]:
    """Packages that are missing or of versions that are not known."""
    found = []
    for name, versions in KNOWN.items():
        try:
            installed = version(name).split("+")[0]
        except PackageNotFoundError:
            found.append(f"{name} is not installed")
            continue
        if installed not in versions:
            found.append(f"{name} is {installed}, known are {', '.join(versions)}")
    return found
