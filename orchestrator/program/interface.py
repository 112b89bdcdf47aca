"""Inputs and outputs of a method: lists, and values that the program fixes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.program.program import DelegateCall, JumpFalseCall, KernelCall, Method, MoveCall
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
    Value,
)

if TYPE_CHECKING:
    from orchestrator.core.operator import OpSchema

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


def given_inputs(method: Method) -> frozenset[int]:
    """Inputs whose values a call may choose.

    Tensors, also those in a list, and numbers that something in the method reads.
    All others are as the program has them: the exporter has specialised the method
    for what it was called with.
    """
    read = _read_values(method)
    return frozenset(
        index
        for index in method.inputs
        if isinstance(value := method.values[index], (TensorValue, *TENSOR_LISTS))
        # An exporter specialises numbers that it traced: a parameter that nothing reads
        # would be silently ignored.
        or (isinstance(value, _NUMBERS) and index in read)
    )


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


def most_items(method: Method) -> Mapping[int, int]:
    """Most items lists of numbers can have: a move may replace one by a longer one."""
    moves: dict[int, list[int]] = {}
    for i in method.instructions:
        if isinstance(i, MoveCall):
            moves.setdefault(i.source, []).append(i.target)
    lists = {i: v for i, v in enumerate(method.values) if isinstance(v, NUMBER_LISTS)}
    most: dict[int, int] = {}
    # The longest first: what it reaches can have as many items, and no more.
    # A flood from the longest: each list is visited once, however many moves there are.
    for longest in sorted(lists, key=lambda i: -len(lists[i].items)):
        reached = [longest]
        while reached:
            if (index := reached.pop()) not in most:
                most[index] = len(lists[longest].items)
                reached += moves.get(index, ())
    return most


def moved_to(moves: Iterable[tuple[int, int]]) -> Iterator[tuple[int, set[int]]]:
    """Every target of moves, with all values that may have been moved there.

    Args:
        moves: Source and target of each.
    """
    direct: dict[int, set[int]] = {}
    for source, target in moves:
        direct.setdefault(target, set()).add(source)
    for target, sources in direct.items():
        found, ahead = set(sources), [*sources]
        while ahead:
            new = direct.get(ahead.pop(), set()) - found
            found |= new
            ahead += new
        yield target, found


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


# Multiply-accumulate operations of a call, from its tensors.

_Named = dict[str, "Value"]


def macs_of(schema: OpSchema, args: Sequence[int], values: Sequence[Value]) -> int | None:
    """Multiply-accumulates of one call; of dynamic tensors the upper bound.

    Returns:
        None for operators that are no sums of products.
    """
    count = _COUNTS.get(schema.name.base)
    if count is None:
        return None
    named = {
        argument.name: values[index]
        for argument, index in zip(schema.arguments, args, strict=False)
    }
    try:
        return count(named)
    # Estimates of cost: an overload with other names has none, and is no error.
    except (KeyError, IndexError, ZeroDivisionError):
        return None  # another overload, or no item


def _tensor(named: _Named, name: str) -> TensorValue:
    value = named[name]
    if not isinstance(value, TensorValue):
        raise KeyError(name)
    return value


def _convolution(named: _Named, *, channels: int = 1) -> int:
    """Each output sums as many products as a filter has weights.

    A transposed convolution does the same from its inputs.
    """
    weight = _tensor(named, "weight")
    transposed = named.get("transposed")
    is_transposed = isinstance(transposed, BoolValue) and transposed.value
    ends = _tensor(named, "input" if is_transposed else "out")
    return ends.numel * weight.numel // ends.sizes[channels]


def _transposed(named: _Named, *, channels: int = 1) -> int:
    source = _tensor(named, "input")
    return source.numel * _tensor(named, "weight").numel // source.sizes[channels]


def _product(name: str) -> Callable[[_Named], int]:
    """A matrix product: each output sums over the last dimension of an argument."""
    return lambda named: prod(_tensor(named, "out").sizes) * _tensor(named, name).sizes[-1]


_COUNTS: Final[Mapping[str, Callable[[_Named], int]]] = MappingProxyType(
    {
        "convolution": _convolution,
        "quantized_conv2d": _convolution,
        "quantized_conv2d_nhwc": partial(_convolution, channels=-1),
        "quantized_depthwise_conv2d": _convolution,
        "quantized_depthwise_conv2d_nhwc": partial(_convolution, channels=-1),
        "quantized_transpose_conv2d": _transposed,
        "quantized_transpose_conv2d_nhwc": partial(_transposed, channels=-1),
        "quantized_linear": _product("input"),
        "quantized_batch_matmul": _product("lhs"),
        "linear": _product("input"),
        "mixed_linear": _product("input"),
        "mixed_mm": _product("input"),
        "addmm": _product("mat1"),
        "mm": _product("self"),
        "bmm": _product("self"),
    }
)
"""By base name of the operator."""
