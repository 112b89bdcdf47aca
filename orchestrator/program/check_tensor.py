"""Checks one tensor: shape, place in its arena, data in the file."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestrator.program.problems import Problems
    from orchestrator.program.program import Program, SubsegmentOffsets
    from orchestrator.program.values import TensorValue

MAX_DIM: Final = 8
"""Most dimensions of a tensor; `kMaxDim` of the runtime."""

MAX_BYTES: Final = 2**31 - 1
"""Of a tensor or an arena; the runtime counts in signed 32 bits."""


def check_tensor(
    program: Program,
    arena_bytes: tuple[int, ...],
    tensor: TensorValue,
    place: str,
    problems: Problems,
) -> None:
    """Note in `problems` everything about a tensor that cannot be.

    Args:
        program: The program, for constants and initial state.
        arena_bytes: Sizes of the method's arenas by memory id.
        tensor: Any tensor of the method.
        place: Names the value in messages.
        problems: Gets what is found.
    """
    if not _check_shape(tensor, place, problems):
        return  # what follows needs a size in bytes
    _check_place(arena_bytes, tensor, place, problems)
    if tensor.is_constant or tensor.is_mutable_state:
        _check_data(program, tensor, place, problems)
    extra = tensor.extra
    if extra is None:
        return
    if extra.is_external and not extra.qualified_name:
        problems.damaged("an external tensor has no name", place=place)
    if extra.device_type != 0:
        problems.unsupported(
            "a tensor lies on another device than the CPU",
            place=place,
            found=f"device type {extra.device_type}",
            expected="device type 0 (CPU)",
            hint="export the model for the CPU",
        )


def _check_shape(tensor: TensorValue, place: str, problems: Problems) -> bool:
    sizes, dim_order = tensor.sizes, tensor.dim_order
    rank = len(sizes)
    if len(dim_order) == rank > MAX_DIM:
        problems.unsupported(
            "a tensor has too many dimensions",
            place=place,
            found=f"{rank} dimensions",
            expected=f"at most {MAX_DIM}",
            hint="merge dimensions of the tensor before exporting the model",
        )
        return False
    if len(dim_order) != rank or sorted(dim_order) != list(range(rank)):
        problems.damaged(
            "the dim order of a tensor is no permutation of its dimensions",
            place=place,
            found=str(list(dim_order[: MAX_DIM + 1])),
            expected=f"0 to {rank - 1} in some order" if rank else "[]",
        )
        return False
    if rank and min(sizes) < 0:
        problems.damaged(
            "a tensor has a negative size", place=place, found=str(list(sizes))
        )
        return False
    # A size of 0 counts as 1: the device multiplies one by one, and the product must
    # not overflow on the way.
    largest = prod(max(size, 1) for size in sizes) * tensor.dtype.item_bytes
    if largest > MAX_BYTES:
        problems.damaged(
            "a tensor is impossibly large",
            place=place,
            found=f"{list(sizes)} of {tensor.dtype.name}, {largest} bytes",
            expected=f"at most {MAX_BYTES} bytes",
        )
        return False
    return True


def _check_place(
    arena_bytes: tuple[int, ...], tensor: TensorValue, place: str, problems: Problems
) -> None:
    allocation = tensor.allocation
    if allocation is None:
        return
    if not 1 <= allocation.memory_id < len(arena_bytes):
        problems.damaged(
            "a tensor is planned into an arena that is not there",
            place=place,
            found=f"memory id {allocation.memory_id}",
            expected=f"1 to {len(arena_bytes) - 1}"
            if len(arena_bytes) > 1
            else "no planned tensor, the method has no arena",
        )
        return
    size = arena_bytes[allocation.memory_id]
    if allocation.offset_bytes + tensor.size_bytes > size:
        problems.damaged(
            "a tensor is planned past the end of its arena",
            place=place,
            found=f"offset {allocation.offset_bytes}, {tensor.size_bytes} bytes",
            expected=f"to end at most at {size}",
        )
    _check_alignment(tensor, allocation.offset_bytes, "planned", place, problems)


def _check_data(
    program: Program, tensor: TensorValue, place: str, problems: Problems
) -> None:
    if tensor.is_constant and program.has_inline_constants:
        _check_inline(program, tensor, place, problems)
        return
    index = tensor.data_buffer_index
    tables: tuple[SubsegmentOffsets, ...]
    if tensor.is_constant:
        constants = program.constants
        tables = () if constants is None else (constants,)
        number = 0
    else:
        tables = program.mutable_segments
        number = tensor.extra.mutable_segment_index if tensor.extra else 0
    if number >= len(tables) or index >= len(tables[number].offsets):
        problems.damaged(
            "a tensor has data that is not in the program",
            place=place,
            found=f"data buffer {index} of table {number}",
            expected=f"below {len(tables[number].offsets)}"
            if number < len(tables)
            else f"a table below {len(tables)}",
        )
        return
    table = tables[number]
    if table.segment_index >= len(program.segments):
        return  # noted once, with the table
    segment = program.segments[table.segment_index]
    offset = table.offsets[index]
    if offset + tensor.size_bytes > segment.size_bytes:
        problems.damaged(
            "the data of a tensor leaves its segment",
            place=place,
            found=f"offset {offset}, {tensor.size_bytes} bytes",
            expected=f"to end at most at {segment.size_bytes}",
        )
    elif tensor.is_constant:  # used where it lies; initial state is copied
        start = program.data_offset(tensor)
        _check_alignment(tensor, start, "stored", place, problems)


def _check_inline(
    program: Program, tensor: TensorValue, place: str, problems: Problems
) -> None:
    index, constants = tensor.data_buffer_index, program.inline_constants
    if index >= len(constants):
        problems.damaged(
            "a tensor has data that is not in the program",
            place=place,
            found=f"constant {index} of the flatbuffer",
            expected=f"below {len(constants)}",
        )
        return
    start, size_bytes = constants[index]
    if tensor.size_bytes > size_bytes:
        problems.damaged(
            "a tensor has less data than it is large",
            place=place,
            found=f"{size_bytes} bytes",
            expected=f"{tensor.size_bytes}",
        )
        return
    _check_alignment(tensor, start, "stored", place, problems)


def _check_alignment(
    tensor: TensorValue, offset: int, what: str, place: str, problems: Problems
) -> None:
    if offset % tensor.dtype.item_bytes:
        problems.damaged(
            f"a tensor is {what} at an offset that its dtype cannot have",
            place=place,
            found=f"offset {offset} for {tensor.dtype.name}",
            expected=f"a multiple of {tensor.dtype.item_bytes}",
        )
