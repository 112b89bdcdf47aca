"""`memory_plan.json`: the memory plan for people and tools."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.memory.plan import Arena, MemoryPlan, MethodMemory
    from orchestrator.scratch import ScratchNeed


def memory_plan_json(plan: MemoryPlan) -> str:
    """Canonical JSON text, ending in a newline. All sizes are bytes."""
    common = [{"name": c.name, "size_bytes": c.size_bytes} for c in plan.common]
    document = {
        "schema": 1,
        "arena_bytes": plan.arena_bytes,
        "state_bytes": plan.state_bytes,
        "models": [
            {
                "model": model.model,
                "program_bytes": model.program_bytes,
                "methods": [_method(method) for method in model.methods],
            }
            for model in plan.models
        ],
        **_unless_empty(common_arenas=common),
        "placements": [asdict(placement) for placement in plan.placements],
    }
    return json.dumps(document, indent=2) + "\n"


def _unless_empty(**values: object) -> dict[str, object]:
    """Keys that most products do not need appear only in those that do."""
    return {key: value for key, value in values.items() if value}


def _method(method: MethodMemory) -> dict[str, object]:
    return {
        "method": method.method,
        "state_bytes": method.state_bytes,
        "delegates": [asdict(delegate) for delegate in method.delegates],
        "temporary_bytes": method.temporary_bytes,
        "input_bytes": method.input_bytes,
        "output_bytes": method.output_bytes,
        **_unless_empty(
            caller_bytes=method.caller_bytes, scratch=[_scratch(need) for need in method.scratch]
        ),
        "arenas": [_arena(arena) for arena in method.arenas],
    }


def _scratch(need: ScratchNeed) -> dict[str, object]:
    return {
        "instruction": need.instruction,
        "operator": need.operator,
        "library": need.library,
        "argument": need.argument,
        "file_bytes": need.reserved_bytes,
        "size_bytes": need.size_bytes,
    }


def _arena(arena: Arena) -> dict[str, object]:
    facts: dict[str, object] = {
        "memory_id": arena.memory_id,
        "size_bytes": arena.size_bytes,
        "lower_bound_bytes": arena.peak_live_bytes,
        "gap_percent": round(arena.gap_percent, 2),
        **_unless_empty(shared=arena.shared),
    }
    if arena.file_bytes is not None:
        facts |= {"file_bytes": arena.file_bytes, "planner": arena.planner}
    if arena.common is not None:
        facts |= {"common": arena.common.name, "offset_bytes": arena.common.offset_bytes}
    return facts
