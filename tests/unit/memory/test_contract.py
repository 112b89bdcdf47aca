"""What a lock says of memory."""

from __future__ import annotations

from orchestrator.memory.plan import Arena, MemoryPlan, MethodMemory, ModelMemory, memory_facts
from orchestrator.scratch.needs import ScratchNeed

NEED = ScratchNeed(
    method="forward",
    instruction=3,
    operator="cortex_m::pool.out",
    library="cortex_m",
    argument="scratch",
    value=9,
    reserved_bytes=100,
    needed_bytes=120,
    is_private=True,
)
ARENAS = (
    Arena(memory_id=1, size_bytes=120, peak_live_bytes=100, file_bytes=150),
    Arena(memory_id=2, size_bytes=16, peak_live_bytes=0, shared=("a", "forward")),
    Arena(memory_id=3, size_bytes=8, peak_live_bytes=8),
)


def _plan(*needs: ScratchNeed) -> MemoryPlan:
    method = MethodMemory(
        model="kws",
        method="forward",
        arenas=ARENAS,
        state_bytes=0,
        input_bytes=(),
        output_bytes=(),
        scratch=needs,
    )
    model = ModelMemory(model="kws", program_bytes=0, methods=(method,))
    return MemoryPlan(models=(model,))


def test_a_lock_has_arenas_and_scratch_memory() -> None:
    facts = memory_facts(_plan(NEED), isa="dsp", library=lambda name: f"<{name}>")
    assert facts == (
        ("kws forward 0003 scratch", "cortex_m::pool.out 120 bytes"),
        ("kws forward arena 1", "120 bytes, lower bound 100, gap 20.00 %, file 150"),
        ("kws forward arena 3", "8 bytes, lower bound 8, gap 0.00 %"),
        ("scratch isa", "dsp"),
        ("scratch library cortex_m", "<cortex_m>"),
    )


def test_without_scratch_memory_there_is_no_contract() -> None:
    names = [n for n, _ in memory_facts(_plan(), isa="dsp", library=str)]
    assert names == ["kws forward arena 1", "kws forward arena 3"]


def test_arenas_in_words() -> None:
    assert [arena.text for arena in ARENAS] == [
        "arena 1: 150 -> 120 bytes, gap 20.0 %",
        "arena 2: 16 bytes, gap 0.0 %",
        "arena 3: 8 bytes, gap 0.0 %",
    ]
