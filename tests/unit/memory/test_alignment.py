"""`memory.alignment`: arenas are whole lines of a cache."""

from __future__ import annotations

import pytest

from orchestrator.emit.generate.api_source import api_source
from orchestrator.emit.generate.linker import linker_script
from orchestrator.memory.product import plan_memory
from orchestrator.targets.regions import Concurrency
from tests.unit.products import program_of, target_of

CASES = ("add_mul", "multi_method", "two_arenas", "mlp")


@pytest.mark.parametrize("concurrency", Concurrency)
@pytest.mark.parametrize("alignment", [16, 32, 256])
def test_arenas_begin_and_end_with_a_line(
    alignment: int, concurrency: Concurrency
) -> None:
    programs = {case: program_of(case) for case in CASES}
    target = target_of("cortex-m4", "gnu")

    def planned(alignment: int) -> list[int]:
        plan = plan_memory(
            programs,
            pointer_bytes=4,
            board=target.board,
            spans={},
            concurrency=concurrency,
            alignment=alignment,
        )
        text = api_source("p", "Head.", programs, plan).text
        own = "kArenaAlignment" if alignment == 16 else alignment
        blocks = [a for m in plan.models for x in m.methods for a in x.own_arenas]
        full = [a for a in blocks if a.size_bytes]
        assert text.count(f"alignas({own})\n") == len(full) + len(plan.common)
        assert target.board is not None
        script = linker_script("Head.", target.board, plan).text
        assert script.count(f"(NOLOAD) : ALIGN({alignment}) {{ *(.bss.orch") > 0
        for model in plan.models:
            for method in model.methods:
                for arena in method.arenas:
                    assert arena.common is None or (
                        arena.common.offset_bytes % alignment == 0
                    )
        sizes = [a.size_bytes for m in plan.models for x in m.methods for a in x.arenas]
        return sizes + [c.size_bytes for c in plan.common]

    before, found = planned(16), planned(alignment)
    if alignment > 16:
        assert all(size % alignment == 0 for size in found)
    assert all(old <= new for old, new in zip(before, found, strict=True))
