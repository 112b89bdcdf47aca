"""The context manager that makes lowering faster."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from orchestrator.lowering.mechanisms import Ledger, Mechanism
from orchestrator.lowering.patches import Patches

# The mechanisms replace internals, which change without notice: another version is
# lowered plainly, with a warning. To add one, run tests/interop/test_lowering.py with
# it and compare what the modules name as their source.
KNOWN: Final = {"torch": ("2.13.0",), "executorch": ("1.5.1",)}
"""Versions that the mechanisms were compared with."""


class _Running:
    depth = 0
    ledger = Ledger()
    # The packages are patched for the whole process: a second thread would lower with
    # half of the patches, or see them removed. Reentrant, as blocks may be nested.
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
        # Imports PyTorch and ExecuTorch, of which the versions have to be known first.
        from orchestrator.lowering.install import install  # noqa: PLC0415

        patches = Patches()
        ledger = _Running.ledger = Ledger()
        finish = None
        try:
            _Running.depth += 1
            finish = install(frozenset(mechanisms), ledger, patches)
            yield ledger
        finally:
            # Also after an error in the middle of `install`: what was patched by then
            # is undone.
            patches.restore()
            _Running.depth -= 1
            if finish is not None:
                finish()


def unknown_versions() -> list[str]:
    """Packages that are missing or have unsupported versions."""
    found = []
    for name, versions in KNOWN.items():
        try:
            # PyTorch's and ExecuTorch's wheels for CPUs are "2.13.0+cpu".
            installed = version(name).split("+")[0]
        except PackageNotFoundError:
            found.append(f"{name} is not installed")
            continue
        if installed not in versions:
            supported = ", ".join(versions)
            found.append(f"{name} {installed} is not supported, only {supported}")
    return found
