"""Memory in a lock: the plan, and the scratch memory that it was made for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.memory.plan import MemoryPlan


def memory_facts(
    plan: MemoryPlan, *, isa: str, library: Callable[[str], str]
) -> tuple[tuple[str, str], ...]:
    """Pairs of a name and a text, sorted.

    Args:
        plan: Of the product.
        isa: For which the scratch sizes were computed.
        library: Identity of a kernel library: its version, or a digest.
    """
    found = {}
    libraries = set()
    for model in plan.models:
        for method in model.methods:
            place = f"{model.model} {method.method}"
            for arena in method.own_arenas:
                planned = arena.file_bytes is not None
                file = f", file {arena.file_bytes}" if planned else ""
                found[f"{place} arena {arena.memory_id}"] = (
                    f"{arena.size_bytes} bytes, lower bound {arena.peak_live_bytes},"
                    f" gap {arena.gap_percent:.2f} %{file}"
                )
            for need in method.scratch:
                libraries.add(need.library)
                found[f"{place} {need.instruction:04} {need.argument}"] = (
                    f"{need.operator} {need.size_bytes} bytes"
                )
    if libraries:
        found["scratch isa"] = isa
    for name in libraries:
        found[f"scratch library {name}"] = library(name)
    return tuple(sorted(found.items()))
