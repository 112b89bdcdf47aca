"""What passes did to a method: the ledger of stage `prelink`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PassCounts:
    """What a method is made of.

    Args:
        calls: Calls of kernels.
        values: Slots.
        constant_bytes: Flash of its constants and of what its state begins with.
    """

    calls: int
    values: int
    constant_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRecord:
    """What became of one pass.

    Args:
        name: Of the pass.
        skipped: Why it did not run; "" if it did.
        changed: Whether it left the method another one.
        before: What the method was made of.
        after: What it is made of since.
    """

    name: str
    skipped: str
    changed: bool
    before: PassCounts
    after: PassCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodPasses:
    """The passes of one method, in the order they come in."""

    model: str
    method: str
    passes: tuple[PassRecord, ...]
