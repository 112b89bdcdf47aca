"""State that the methods of a program share.

ExecuTorch's `MemoryPlanningPass(share_mutable_buffers=True)` puts the mutable buffers
of all methods into an arena of their own, the one with memory id 2: the same buffer at
the same offset in each, and nothing else. No flag says so; this is how it is
recognised.

Source: ExecuTorch `exir/passes/memory_planning_pass.py`, `run_multimethod`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.program.program import Method, Program

SHARED_ID: Final = 2
"""Memory id of the arena that methods share."""


def shares_state(program: Program) -> bool:
    """Whether the methods of a program share the arena with memory id 2.

    They do if there are several, all with that arena and of one size, and what lies in
    it are the same buffers: two that overlap are one, with the same place, dtype, shape
    and initial state. No input or output lies there.
    """
    methods = program.methods
    sizes = {m.arena_bytes[SHARED_ID:] for m in methods}
    if len(methods) <= 1 or len(sizes) != 1:
        return False
    (rest,) = sizes
    if len(rest) != 1 or rest[0] == 0:
        return False
    buffers: dict[int, tuple[object, ...]] = {}
    for method in methods:
        for index, value in _shared(method):
            if index in {*method.inputs, *method.outputs} or value.is_dynamic:
                return False
            facts = (
                value.size_bytes,
                *(value.dtype, value.sizes, value.dim_order),
                program.data_bytes(value) if value.is_mutable_state else b"",
            )
            offset = value.allocation.offset_bytes if value.allocation else 0
            if buffers.setdefault(offset, facts) != facts:
                return False
    return bool(buffers) and not _overlap(buffers)


def _shared(method: Method) -> Iterator[tuple[int, TensorValue]]:
    for index, value in enumerate(method.values):
        place = value.allocation if isinstance(value, TensorValue) else None
        if place is None or place.memory_id != SHARED_ID:
            continue
        if isinstance(value, TensorValue) and value.size_bytes:
            yield index, value


def _overlap(buffers: dict[int, tuple[object, ...]]) -> bool:
    end = 0
    for offset, (size_bytes, *_) in sorted(buffers.items()):
        assert isinstance(size_bytes, int)  # noqa: S101  # built above
        if offset < end:
            return True
        end = offset + size_bytes
    return False


def shared_bytes(program: Program) -> int:
    """Bytes of the buffers in the shared arena."""
    places = {
        value.allocation.offset_bytes: value.size_bytes
        for method in program.methods
        for _, value in _shared(method)
        if value.allocation is not None
    }
    return sum(places.values())
