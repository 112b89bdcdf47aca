"""Methods that share state, and the sizes of memory that methods have in common."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from orchestrator.emit.generate.ports import memory_of
from orchestrator.memory.plan import MemoryPlan, common_symbol, identifier

if TYPE_CHECKING:
    from orchestrator.emit.generate.ports import ApiMethod


def sharing(methods: Sequence[ApiMethod], memory: MemoryPlan) -> list[list[ApiMethod]]:
    """Groups of methods that share state, by model."""
    return [
        found
        for _, group in groupby(methods, attrgetter("model"))
        if (found := [m for m in group if any(a.shared for a in memory_of(memory, m).arenas)])
    ]


def common_constant(profile: str, name: str) -> str:
    """Name of the header's constant for the size of a block."""
    return f"{identifier(profile)}_{common_symbol(name)}_BYTES".upper()
