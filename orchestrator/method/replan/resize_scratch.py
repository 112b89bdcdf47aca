"""Resize scratch tensors to what calls need on the target."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.method.places import placed
from orchestrator.planner.blocks import aligned
from orchestrator.program.program import Method
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.scratch.needs import ScratchNeed


def resize_scratch(method: Method, needs: Iterable[ScratchNeed]) -> Method:
    """The method with scratch tensors of the needed sizes.

    A tensor that shrinks keeps its place. One that grows gets a place behind
    everything else: the method is correct without replanning, if not small.

    Args:
        method: The method.
        needs: Scratch needs of its calls.
    """
    values = list(method.values)
    arenas = list(method.arena_bytes)
    for need in needs:
        value = values[need.value]
        if need.size_bytes == need.reserved_bytes or not isinstance(value, TensorValue):
            continue
        place = value.allocation
        if place is None:
            continue
        changed = _with_bytes(value, need.size_bytes)
        if changed.size_bytes > value.size_bytes:
            begin = aligned(arenas[place.memory_id])
            arenas[place.memory_id] = begin + changed.size_bytes
            changed = placed(changed, place.memory_id, begin)
        values[need.value] = changed
    return replace(method, values=tuple(values), arena_bytes=tuple(arenas))


def _with_bytes(value: TensorValue, size_bytes: int) -> TensorValue:
    """A tensor with as many items as fit, all in its first dimension."""
    items = -(-size_bytes // value.dtype.item_bytes)
    sizes = (items, *(1 for _ in value.sizes[1:]))
    return replace(value, sizes=sizes)
