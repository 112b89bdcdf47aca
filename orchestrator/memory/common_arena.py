"""Blocks that arenas of several methods have in common, as they never run together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from orchestrator.memory.plan import (
    Arena,
    CommonArena,
    CommonPlace,
    MemoryPlan,
    MethodMemory,
    ModelMemory,
)
from orchestrator.planner.blocks import aligned
from orchestrator.targets.regions import NO_PINS, Pins


def share_arenas(
    models: tuple[ModelMemory, ...],
    kept: Collection[tuple[str, str, int]],
    pins: Mapping[str, Pins],
) -> MemoryPlan:
    """Let arenas of methods overlap; those of one method lie beside each other.

    A block that only one method would use there is none: that method keeps its own.

    Args:
        models: With arenas of their own.
        kept: (model, method, memory id) of arenas whose content a method expects to
            find again: they stay on their own.
        pins: By model name: memories of the board that arenas have to lie in.
    """
    methods = [method for model in models for method in model.methods]
    users = Counter(n for m in methods for n in {n for _, n in _blocks(m, kept, pins)})
    sizes = {name: 0 for name in sorted(users) if users[name] > 1}

    def placed(method: MethodMemory) -> MethodMemory:
        names = {a.memory_id: n for a, n in _blocks(method, kept, pins) if n in sizes}
        ends = dict.fromkeys(sizes, 0)
        arenas = []
        for arena in method.arenas:
            name = names.get(arena.memory_id)
            if name is None:
                arenas.append(arena)
                continue
            place = CommonPlace(name=name, offset_bytes=aligned(ends[name]))
            ends[name] = place.offset_bytes + arena.size_bytes
            sizes[name] = max(sizes[name], ends[name])
            arenas.append(replace(arena, common=place))
        return replace(method, arenas=tuple(arenas))

    found = tuple(replace(m, methods=tuple(map(placed, m.methods))) for m in models)
    return MemoryPlan(
        models=found,
        common=tuple(
            CommonArena(
                name=name,
                size_bytes=size_bytes,
                region=name.removeprefix(_COMMON).removeprefix("_") or None,
            )
            for name, size_bytes in sizes.items()
        ),
    )


_COMMON = "common"


def _blocks(
    method: MethodMemory, kept: Collection[tuple[str, str, int]], pins: Mapping[str, Pins]
) -> Iterator[tuple[Arena, str]]:
    """Arenas that may overlap those of others, and the blocks for them.

    There is a block for each memory of the board that arenas have to lie in, and one
    for all others.
    """
    for arena in method.arenas:
        key = (method.model, method.method, arena.memory_id)
        if arena.size_bytes and not arena.shared and key not in kept:
            region = pins.get(method.model, NO_PINS).region(arena.memory_id)
            yield arena, f"{_COMMON}_{region}" if region else _COMMON
