"""The arena in which methods of a program share state.

Whether they do is decided in `method/state.py`, and is then `Program.sharers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from orchestrator.program.program import Method
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.program.program import Method, Program

# `share_mutable_buffers` of ExecuTorch's MemoryPlanningPass puts them into memory 2
# (exir/passes/memory_planning_pass.py, 1.5.1).
SHARED_ID: Final = 2
"""Memory id of the arena that methods share."""


def shared_tensors(method: Method) -> Iterator[tuple[int, int, TensorValue]]:
    """(value index, offset in bytes, tensor) of what lies in that arena."""
    for index, value in enumerate(method.values):
        if not isinstance(value, TensorValue) or not value.size_bytes:
            continue
        place = value.allocation
        if place is not None and place.memory_id == SHARED_ID:
            yield index, place.offset_bytes, value


def shared_bytes(program: Program) -> int:
    """Bytes of the buffers in the shared arena."""
    places = {
        # By offset, as each method has its own tensor for one buffer.
        offset: value.size_bytes
        for method in program.methods
        for _, offset, value in shared_tensors(method)
    }
    return sum(places.values())
