"""The ledger of stage `prelink`: what each pass changed in a method."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PassCounts:
    """Counts of a method.

    Args:
        calls: Calls of kernels.
        values: Slots.
        constant_bytes: Flash of its constants and of its initial state, as far as
            anything uses them.
    """

    calls: int
    values: int
    constant_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRecord:
    """The record of one pass.

    Args:
        name: Name of the pass.
        skipped: Why it did not run; "" if it did.
        changed: Whether it changed the method.
        before: Counts before the pass.
        after: Counts after it.
        notes: What became of single calls, where the pass says it.
    """

    name: str
    skipped: str
    changed: bool
    before: PassCounts
    after: PassCounts
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodPasses:
    """The records of one method's passes, in order."""

    model: str
    method: str
    passes: tuple[PassRecord, ...]
