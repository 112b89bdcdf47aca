"""Arenas as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.memory.plan import MemoryPlan


def arena_lines(plan: MemoryPlan) -> Iterator[str]:
    """One line per arena that has bytes, or had some in the program."""
    for model in plan.models:
        for method in model.methods:
            for arena in method.own_arenas:
                if arena.size_bytes or arena.file_bytes:
                    yield f"{model.model} {method.method} {arena.text}"


def arenas_json(plan: MemoryPlan) -> list[dict[str, object]]:
    """The same as JSON; `file_bytes` is null where nothing was planned."""
    return [
        {
            "model": model.model,
            "method": method.method,
            "memory_id": arena.memory_id,
            "size_bytes": arena.size_bytes,
            "lower_bound_bytes": arena.peak_live_bytes,
            "gap_percent": round(arena.gap_percent, 2),
            "file_bytes": arena.file_bytes,
        }
        for model in plan.models
        for method in model.methods
        for arena in method.own_arenas
    ]
