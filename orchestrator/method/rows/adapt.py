"""Prelinked models by rows, with the arenas that they then need."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.method.passes.passes import drop_values
from orchestrator.method.passes.prepare_calls import slots_first
from orchestrator.method.rows.fuse import by_rows

if TYPE_CHECKING:
    from orchestrator.method.replan import Adapted


def with_rows(
    adapted: Adapted, isa: str, *, max_slowdown: float | None = None
) -> Adapted:
    """The model with every method by rows that then needs a smaller arena.

    Args:
        adapted: Linked methods with planned memory, and prepared calls.
        isa: Instruction set of the core.
        max_slowdown: By which part a run may become slower, about; None: any.
    """
    methods, linked, arenas = [], [], []
    for method, program, facts in zip(
        adapted.linked or (), adapted.program.methods, adapted.arenas, strict=True
    ):
        found = None
        if len(facts) == 1:
            found = by_rows(
                method,
                arena_bytes=facts[0].size_bytes,
                isa=isa,
                max_slowdown=max_slowdown,
            )
        if found is None:
            linked.append(method)
            methods.append(program)
            arenas.append(facts)
            continue
        linked.append(slots_first(drop_values(found.method)))
        sizes = list(program.arena_bytes)
        sizes[found.memory_id] = found.arena_bytes
        methods.append(replace(program, arena_bytes=tuple(sizes)))
        arena = replace(
            facts[0],
            size_bytes=found.arena_bytes,
            lower_bound_bytes=found.least_bytes,
            planner="rows",
        )
        arenas.append((arena,))
    return replace(
        adapted,
        program=replace(adapted.program, methods=tuple(methods)),
        linked=tuple(linked),
        arenas=tuple(arenas),
    )
