"""The prepared form of a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.method.linked import Numbers, Shape
    from orchestrator.method.passes.arguments import Arguments

MOST_COPIES: Final = 4
"""That a call becomes: each has a struct of 24 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a prepared kernel computes a call.

    Args:
        function: Qualified C++ name of the kernel.
        struct: Of what it gets.
        memory: First members, pointers: name, and position of the argument; None if it
            is always null.
        shape: What the next member is a pointer to, if there is one.
        numbers: The other members.
    """

    function: str
    struct: str
    memory: tuple[tuple[str, int | None], ...]
    shape: Shape | None = None
    numbers: tuple[tuple[str, Numbers], ...] = ()


Preparer: TypeAlias = "Callable[[Arguments, str], Form]"
"""From the arguments of a call, and the instruction set of the core; raises
UnknownCallError if the call has no prepared form."""
