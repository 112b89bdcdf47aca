"""Memory a product needs, byte for byte."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferUse:
    """A planned tensor: its place in the arena and when it is live.

    Args:
        values: Indices of the values that share the storage (views).
        memory_id: Arena of the program, from 1.
        offset_bytes: Place in that arena.
        size_bytes: Upper bound of its size.
        first: Index of the first instruction that touches it; -1 for inputs and state.
        last: Index of the last one, inclusive; `len(instructions)` for outputs and
            state.
    """

    values: tuple[int, ...]
    memory_id: int
    offset_bytes: int
    size_bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """One static block that planned tensors of a method lie in."""

    memory_id: int
    size_bytes: int
    peak_live_bytes: int

    @property
    def gap_percent(self) -> float:
        """How far the arena is above the peak of live bytes, its lower bound."""
        if self.peak_live_bytes == 0:
            return 0.0
        return 100.0 * (self.size_bytes - self.peak_live_bytes) / self.peak_live_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodMemory:
    """What one method of one model needs in RAM, besides the stack.

    Args:
        arenas: Planned arenas in order of their memory id.
        state_bytes: Static block for values and instructions; exact.
        input_bytes: Per input, upper bound.
        output_bytes: Per output, upper bound.
    """

    model: str
    method: str
    arenas: tuple[Arena, ...]
    state_bytes: int
    input_bytes: tuple[int, ...]
    output_bytes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMemory:
    """One model: its program in flash and its methods."""

    model: str
    program_bytes: int
    methods: tuple[MethodMemory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """Every byte of RAM the product needs besides the stack, and its program flash."""

    models: tuple[ModelMemory, ...]

    @property
    def arena_bytes(self) -> int:
        """All arenas together."""
        return sum(
            a.size_bytes for m in self.models for x in m.methods for a in x.arenas
        )

    @property
    def state_bytes(self) -> int:
        """Method state of all methods together."""
        return sum(x.state_bytes for m in self.models for x in m.methods)
