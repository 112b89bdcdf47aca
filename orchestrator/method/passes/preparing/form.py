"""The prepared form of a call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from orchestrator.method.linked import Prepared

if TYPE_CHECKING:
    from orchestrator.method.passes.arguments import Arguments

MOST_COPIES: Final = 4
"""That a call becomes: each has a struct of 24 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form(Prepared):
    """How a prepared kernel computes a call: with a struct whose pointers may be null.

    Args:
        function: Qualified C++ name of the kernel.
    """

    function: str


Preparer: TypeAlias = "Callable[[Arguments, str], Form]"
"""From the arguments of a call, and the instruction set of the core; raises
UnknownCallError if the call has no prepared form."""
