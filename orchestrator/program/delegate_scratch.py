"""Scratch memory that ExecuTorch 1.6 plans for calls of delegates.

It stands beside the values of a method, as bytes of an arena that one call has for
itself. Here it becomes values: tensors of bytes, which the call names last. So whoever
looks at what calls touch, and where that lies, knows of it.

Source: ExecuTorch pull request 21985, `DelegateCall.scratch` and `DelegateScratch`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.program.decode_values import allocation_of
from orchestrator.program.problems import DecodeError, NewerError
from orchestrator.program.values import Dynamism, TensorValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.program.flatbuffer import Table

SCRATCH: Final = 2
"""Slot of `DelegateCall`."""


def scratch_tensors(call: Table, arena_bytes: Sequence[int]) -> tuple[TensorValue, ...]:
    """Scratch memory of a call, as tensors, in the order of the file.

    Args:
        call: The `DelegateCall`.
        arena_bytes: Size of the arena of each memory id.

    Raises:
        DecodeError: Some of it is damaged, or does not lie inside an arena.
    """
    return tuple(
        _tensor(call.entry(SCRATCH, at), arena_bytes)
        for at in call.entries(SCRATCH) or ()
    )


def _tensor(scratch: Table, arena_bytes: Sequence[int]) -> TensorValue:
    """The one way to read a table that gives bytes of an arena.

    The table has a size and a place. Which of them comes first is not known from what
    is published so far, so both orders are tried, and a table that can be read in both
    is refused.
    """
    found = []
    newer: DecodeError | None = None
    for size_slot, place_slot in ((0, 1), (1, 0)):
        try:
            place = scratch.table(place_slot)
            allocation = None if place is None else allocation_of(place)
            size = scratch.uint32(size_slot)
        except NewerError as error:
            newer = error
            continue
        except DecodeError:
            continue
        if allocation is None or not 1 <= allocation.memory_id < len(arena_bytes):
            continue
        if allocation.offset_bytes + size <= arena_bytes[allocation.memory_id]:
            found.append((size, allocation))
    if len(found) != 1:
        raise newer or DecodeError(
            "scratch memory of a delegate does not lie inside an arena",
            found=f"the table at byte {scratch.position}",
            expected="a size, and a place in an arena that has so many bytes there",
        )
    (size, allocation) = found[0]
    return TensorValue(
        dtype=ScalarType.Byte,
        sizes=(size,),
        dim_order=(0,),
        requires_grad=False,
        data_buffer_index=0,
        allocation=allocation,
        dynamism=Dynamism.STATIC,
        extra=None,
    )
