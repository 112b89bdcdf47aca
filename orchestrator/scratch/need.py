"""Scratch memory of calls: what a program has for it, and what this target needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ScratchNeed:
    """Scratch memory of one argument of one call.

    Args:
        method: Name of the method.
        instruction: Index in the program.
        operator: Text of the operator's name.
        library: Kernel library whose kernel serves the call.
        argument: Name in the op schema.
        value: Index of the tensor that is given for it.
        reserved_bytes: What the program has.
        needed_bytes: What the kernel needs on this target.
        is_private: Nothing else touches the tensor, so that it may change.
    """

    method: str
    instruction: int
    operator: str
    library: str
    argument: str
    value: int
    reserved_bytes: int
    needed_bytes: int
    is_private: bool

    @property
    def size_bytes(self) -> int:
        """What the call gets if the build decides."""
        return self.needed_bytes if self.is_private else self.reserved_bytes
