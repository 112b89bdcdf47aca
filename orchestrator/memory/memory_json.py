"""`memory_plan.json`: the memory plan for people and tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.memory.plan import Arena, MemoryPlan, MethodMemory


def _planned(arena: Arena) -> dict[str, object]:
    if arena.file_bytes is None:
        return {}
    return {"file_bytes": arena.file_bytes, "planner": arena.planner}


def _scratch(method: MethodMemory) -> dict[str, object]:
    if not method.scratch:
        return {}
    return {
        "scratch": [
            {
                "instruction": need.instruction,
                "operator": need.operator,
                "library": need.library,
                "argument": need.argument,
                "file_bytes": need.reserved_bytes,
                "size_bytes": need.size_bytes,
            }
            for need in method.scratch
        ]
    }


def memory_plan_json(plan: MemoryPlan) -> str:
    """Canonical JSON text, ending in a newline. All sizes are bytes."""
    document = {
        "schema": 1,
        "arena_bytes": plan.arena_bytes,
        "state_bytes": plan.state_bytes,
        "models": [
            {
                "model": model.model,
                "program_bytes": model.program_bytes,
                "methods": [
                    {
                        "method": method.method,
                        "state_bytes": method.state_bytes,
                        "delegates": [
                            {"backend": d.backend, "state_bytes": d.state_bytes}
                            for d in method.delegates
                        ],
                        "temporary_bytes": method.temporary_bytes,
                        "input_bytes": list(method.input_bytes),
                        "output_bytes": list(method.output_bytes),
                        **({"caller_bytes": c} if (c := method.caller_bytes) else {}),
                        **_scratch(method),
                        "arenas": [
                            {
                                "memory_id": arena.memory_id,
                                "size_bytes": arena.size_bytes,
                                "lower_bound_bytes": arena.peak_live_bytes,
                                "gap_percent": round(arena.gap_percent, 2),
                                **({"shared": [*s]} if (s := arena.shared) else {}),
                                **_planned(arena),
                                **(
                                    {
                                        "common": place.name,
                                        "offset_bytes": place.offset_bytes,
                                    }
                                    if (place := arena.common)
                                    else {}
                                ),
                            }
                            for arena in method.arenas
                        ],
                    }
                    for method in model.methods
                ],
            }
            for model in plan.models
        ],
        **(
            {
                "common_arenas": [
                    {"name": c.name, "size_bytes": c.size_bytes} for c in plan.common
                ]
            }
            if plan.common
            else {}
        ),
        "placements": [
            {
                "section": placement.section,
                "region": placement.region,
                "size_bytes": placement.size_bytes,
            }
            for placement in plan.placements
        ],
    }
    return json.dumps(document, indent=2) + "\n"
