"""Calls that differ from given ones in one fact about one argument."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from orchestrator.catalog.scratch_arguments import is_scratch
from orchestrator.core.dtype import ALL, ScalarType
from orchestrator.core.operator import ArgKind
from orchestrator.program.interface import with_items
from orchestrator.program.program import KernelCall
from orchestrator.program.values import (
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    IntListValue,
    IntValue,
    NoneValue,
    OptionalTensorListValue,
    StringValue,
    TensorListValue,
    TensorValue,
)
from orchestrator.selection.call import MethodFacts
from tests.cpp.support.native import linked_catalog
from tests.unit.method.recorded_calls import Call, Returned, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.core.operator import Argument, OpSchema
    from orchestrator.program.program import Method, Program
    from orchestrator.program.values import Value

_UNUSED = {
    ("aten::_native_batch_norm_legit_no_training.out", "out1"),
    ("aten::_native_batch_norm_legit_no_training.out", "out2"),
    ("aten::_native_batch_norm_legit.out", "save_mean"),
    ("aten::_native_batch_norm_legit.out", "save_invstd"),
}
"""Outputs of training: kernels leave them empty, whatever they are."""
_NUMBERS = (0, 1, -1, 2, 3, 8, 31, 32, 127, 128, -128, -129, 255, 256, 1 << 31)
_FAR = (-(1 << 31) - 1, (1 << 63) - 1, -(1 << 63))


def variants(call: Call, schema: OpSchema) -> Iterator[Call]:
    """Calls with another fact about an argument, whose kinds still fit the schema."""
    arguments = [*schema.arguments, *([schema.result] if schema.result else [])]
    for place, (value, argument) in enumerate(zip(call.args, arguments, strict=False)):
        if is_scratch(argument) or (call.operator, argument.name) in _UNUSED:
            continue
        for other in _others(value, argument):
            args = (*call.args[:place], other, *call.args[place + 1 :])
            yield Call(call.operator, args)


def _others(value: Any, argument: Argument) -> Iterator[Any]:  # noqa: C901  # kinds
    if isinstance(value, Returned):
        yield from (Returned(kind) for kind in (int, float, bool))
        return
    if value is not None and argument.optional:
        yield None
    match argument.kind:
        case ArgKind.TENSOR:
            yield from _tensors(value)
        case ArgKind.TENSOR_LIST:
            yield from _lists(value, optional=argument.items_optional)
        case ArgKind.INT:
            yield from (*_NUMBERS, *_FAR, *(t.value for t in ScalarType if t in ALL))
        case ArgKind.SCALAR:
            yield from (*_NUMBERS, *_FAR, True, False, 0.0, 2.5, float("nan"), 1e30)
        case ArgKind.BOOL:
            yield not value
        case ArgKind.STRING:
            yield from ("", "none", "tanh", "floor", "trunc", "round")
        case ArgKind.INT_LIST:
            yield from _int_lists(value)
        case ArgKind.FLOAT_LIST:
            yield from ((0.5, 2.0), (1.0,), (0.0, 1.0), (float("nan"), 1.0))
        case _:
            pass


def _int_lists(value: Any) -> Iterator[tuple[int, ...]]:
    items = tuple(value or ())
    yield from ((), (0,), (1,), (-1,), (0, 0), (0, 1), (1, 0), (2, 2), (*items, 1))
    yield items[:-1]
    for place in range(len(items)):
        for number in (-5, -1, 0, 1, 2, 3, 1 << 30, (1 << 30) + 1, 1 << 40):
            yield (*items[:place], number, *items[place + 1 :])


def _tensor(tensor: Tensor, sizes: tuple[int, ...], order: tuple[int, ...]) -> Tensor:
    count = tensor.dtype.item_bytes
    for size in sizes:
        count *= size
    data = (tensor.data * (count // max(len(tensor.data), 1) + 1))[:count]
    return replace(tensor, sizes=sizes, order=order, data=data.ljust(count, b"\0"))


def _tensors(tensor: Tensor | None) -> Iterator[Tensor]:
    if tensor is None:
        return
    sizes, rank = tensor.sizes, len(tensor.sizes)
    for dtype in sorted(ALL):
        other = replace(tensor, dtype=dtype)
        # Bytes that any dtype can have, Bool as well.
        data = bytes(b & 1 for b in tensor.data) or b"\0"
        yield _tensor(replace(other, data=data), sizes, tensor.order)
    if rank > 1:
        yield _tensor(tensor, sizes, tuple(range(rank)))
        yield _tensor(tensor, sizes, (0, *range(2, rank), 1))
        yield _tensor(tensor, sizes, tuple(reversed(range(rank))))
    for other_sizes in {
        (),
        (*sizes, 1),
        (1, *sizes),
        sizes[1:],
        sizes[:-1],
        (0,),
        (1,),
        *((*sizes[:i], n, *sizes[i + 1 :]) for i in range(rank) for n in (0, 1)),
        *((*sizes[:i], sizes[i] + 1, *sizes[i + 1 :]) for i in range(rank)),
    }:
        if len(other_sizes) <= 8:  # what the runtime has
            yield _tensor(tensor, other_sizes, tuple(range(len(other_sizes))))


def _lists(value: Any, *, optional: bool) -> Iterator[Any]:
    items = tuple(value or ())
    if len(items) > 1:
        yield items[:-1]
        yield items[::-1]
    if items and items[0] is not None:
        yield (*items, items[0])
    for place, item in enumerate(items):
        for other in _tensors(item):
            yield (*items[:place], other, *items[place + 1 :])
        if optional and any(x is not None for x in items[:place] + items[place + 1 :]):
            yield (*items[:place], None, *items[place + 1 :])


def calls_of(program: Program) -> Iterator[Call]:
    """The calls of a program whose sizes and numbers are all known.

    Items of tensors that are not constant are 0.
    """
    for method in program.methods:
        facts = MethodFacts.of(method)
        for instruction in method.instructions:
            if isinstance(instruction, KernelCall):
                name = str(method.operators[instruction.operator])
                schema = _schemas().get(name)
                if schema is not None and is_settled(method, instruction, facts):
                    yield Call(name, _arguments(program, method, instruction, schema))


def is_settled(method: Method, call: KernelCall, facts: MethodFacts) -> bool:
    """Whether all sizes and numbers of a call are known before the program runs."""
    values = {i: method.values[i] for i in with_items(method, call.args)}
    if any(isinstance(v, TensorValue) and v.is_dynamic for v in values.values()):
        return False
    numbers = {*call.args[:-1]} - {i for i, v in values.items() if isinstance(v, TensorValue)}
    lists = [v.items for v in values.values() if isinstance(v, IntListValue)]
    tensors = values.keys() - numbers
    return facts.changing.isdisjoint(numbers.union(*lists)) and facts.moved.isdisjoint(tensors)


@cache
def _schemas() -> dict[str, OpSchema]:
    catalog = linked_catalog()
    return {
        str(kernel.operator): kernel.schema
        for _, kernels in catalog.libraries
        for kernel in kernels
    }


def _arguments(
    program: Program, method: Method, call: KernelCall, schema: OpSchema
) -> tuple[Any, ...]:
    outs = [argument.is_out for argument in schema.arguments]
    if schema.result is not None and not any(outs):
        outs.append(True)
    return tuple(
        _argument(program, method.values, index, is_out=is_out)
        for index, is_out in zip(call.args, outs, strict=False)
    )


def _argument(  # noqa: PLR0911  # one kind each
    program: Program, values: tuple[Value, ...], index: int, *, is_out: bool
) -> Any:
    match values[index] if index >= 0 else NoneValue():
        case TensorValue() as tensor:
            data = bytes(program.data_bytes(tensor) if tensor.is_constant else tensor.size_bytes)
            return Tensor(tensor.dtype, tensor.sizes, tensor.dim_order, data, is_out)
        case IntValue() | DoubleValue() | BoolValue() as number:
            return Returned(type(number.value)) if is_out else number.value
        case StringValue(value=text):
            return text
        case IntListValue(items=items):
            return tuple(_argument(program, values, item, is_out=False) for item in items)
        case DoubleListValue(items=items) | BoolListValue(items=items):
            return items
        case TensorListValue(items=items) | OptionalTensorListValue(items=items):
            return tuple(_argument(program, values, item, is_out=is_out) for item in items)
    return None
