"""Inputs and outputs of a method: lists, and values that the program fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.program.program import (
    DelegateCall,
    JumpFalseCall,
    KernelCall,
    MoveCall,
)
from orchestrator.program.values import (
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    IntListValue,
    IntValue,
    OptionalTensorListValue,
    TensorListValue,
    TensorValue,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from orchestrator.program.program import Method

TENSOR_LISTS = (TensorListValue, OptionalTensorListValue)
NUMBER_LISTS = (IntListValue, DoubleListValue, BoolListValue)
_NUMBERS = (IntValue, DoubleValue, BoolValue)


def with_items(method: Method, indices: Iterable[int]) -> Iterator[int]:
    """Values, and for a list of tensors the tensors in it."""
    for index in indices:
        yield index
        value = method.values[index]
        if isinstance(value, TENSOR_LISTS):
            yield from (item for item in value.items if item >= 0)


def can_be_given(method: Method, index: int) -> bool:
    """Whether a call may choose the value of an input.

    Tensors can, also those in a list, and numbers that something in the method reads.
    All others are as the program has them: the exporter has specialised the method
    for what it was called with.
    """
    value = method.values[index]
    if isinstance(value, _NUMBERS):
        return index in _read_values(method)
    return isinstance(value, (TensorValue, *TENSOR_LISTS))


def _read_values(method: Method) -> frozenset[int]:
    """Values that an instruction, a list of ints or an output takes."""
    found = set(method.outputs)
    for instruction in method.instructions:
        match instruction:
            case KernelCall(args=args) | DelegateCall(args=args):
                found.update(args)
            case MoveCall(source=source):
                found.add(source)
            case JumpFalseCall(condition=condition):
                found.add(condition)
    for value in method.values:
        if isinstance(value, IntListValue):
            found.update(value.items)
    return frozenset(found)


def most_items(method: Method, index: int) -> int:
    """Most items a list of numbers can have: a move may replace it by a longer one."""
    reaching = {index}
    moves = [i for i in method.instructions if isinstance(i, MoveCall)]
    while new := {m.source for m in moves if m.target in reaching} - reaching:
        reaching |= new
    lists = (method.values[i] for i in reaching)
    return max(len(v.items) for v in lists if isinstance(v, NUMBER_LISTS))


def has_tensors_only(method: Method) -> bool:
    """Whether all inputs and outputs are tensors."""
    ends = (*method.inputs, *method.outputs)
    return all(isinstance(method.values[i], TensorValue) for i in ends)


def has_lists(method: Method) -> bool:
    """Whether an input is neither tensor nor number, or an output a list."""
    given = (method.values[i] for i in method.inputs)
    got = (method.values[i] for i in method.outputs)
    return any(not isinstance(v, (TensorValue, *_NUMBERS)) for v in given) or any(
        isinstance(v, (*TENSOR_LISTS, *NUMBER_LISTS)) for v in got
    )
