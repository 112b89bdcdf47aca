"""Inputs and outputs that lie in memory of the caller.

An exporter that plans no memory for inputs or outputs leaves them without a place:
kernels then read and write where the application has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from orchestrator.core.layout import ALIGNMENT
from orchestrator.program.program import Method, MoveCall
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.program.program import Method


def lacks_memory(value: object) -> bool:
    """Whether it is a tensor with neither a place in an arena nor data."""
    if not isinstance(value, TensorValue) or value.is_external:
        return False
    # A tensor of no bytes needs no memory from anybody.
    placed = value.is_planned or value.is_constant
    return not placed and value.size_bytes != 0


def caller_values(method: Method) -> frozenset[int]:
    """Values in memory of the caller: inputs and outputs without a place."""
    ends = {*method.inputs, *method.outputs}
    return frozenset(index for index in ends if lacks_memory(method.values[index]))


def caller_outputs(method: Method) -> frozenset[int]:
    """Those that calls may write: inputs of the caller stay as they are."""
    return caller_values(method) - {*method.inputs}


def own_outputs(method: Method) -> tuple[bool, ...]:
    """By position: whether the caller gives memory for that output.

    One that is an input of the caller too, or an earlier output, is read where that is.
    """
    given = caller_outputs(method)
    # One value may be several outputs: the caller gives its memory once, and the others
    # are copies of it.
    first = {index: at for at, index in reversed([*enumerate(method.outputs)])}
    return tuple(index in given and first[index] == at for at, index in enumerate(method.outputs))


def caller_bytes(method: Method) -> int:
    """Bytes of one block with all of them, as the application of `run` has it."""
    sizes = (
        value.size_bytes
        for value in (method.values[index] for index in caller_values(method))
        if isinstance(value, TensorValue)
    )
    # Each begins at a multiple of 16, as in an arena.
    return sum(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)


def caller_problems(method: Method) -> Iterable[tuple[str, str, list[int]]]:
    """Why the caller cannot give memory to tensors without a place.

    Yields:
        What is wrong, what to do about it, and the values.
    """
    given = caller_values(method)
    without = {i for i, value in enumerate(method.values) if lacks_memory(value)}
    if others := sorted(without - given):
        yield (
            "tensors have no memory in the program's plan, and are neither inputs nor outputs",
            "export with memory-planned inputs and outputs (alloc_graph_input and"
            " alloc_graph_output of MemoryPlanningPass): views of them are then"
            " planned as well; or without such views (remove_view_copy=False)",
            others,
        )
    moved = {
        index
        for i in method.instructions
        if isinstance(i, MoveCall)
        for index in (i.source, i.target)
    }
    # A move exchanges memory of two values: the caller's pointer would then be that of
    # something else.
    if replaced := sorted(given & moved):
        yield (
            "inputs or outputs in memory of the caller are moved",
            "export with memory-planned inputs and outputs (alloc_graph_input and"
            " alloc_graph_output of MemoryPlanningPass)",
            replaced,
        )
    count = Counter(method.inputs)
    # Two arrays of the caller cannot both be the memory of one tensor.
    if twice := sorted(i for i in given if count[i] > 1):
        yield (
            "two inputs are one tensor in memory of the caller",
            "export with memory-planned inputs (alloc_graph_input of MemoryPlanningPass)",
            twice,
        )
