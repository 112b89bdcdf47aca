"""Facts about the arguments of a call that hold before the program runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

from orchestrator.catalog.expressions.reader import RESULT
from orchestrator.catalog.expressions.values import Changing, Number, Range, TensorFacts, Value
from orchestrator.core.dtype import ScalarType
from orchestrator.core.layout import FORMATS, logical_items
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.core.operator import OpSchema
from orchestrator.program import values as pte
from orchestrator.program.interface import with_items
from orchestrator.program.program import DelegateCall, FreeCall, KernelCall, Method, MoveCall
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

_ANY_INT = Range(-(1 << 63), (1 << 63) - 1)
_ANY_SIZE = Range(0, (1 << 31) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodFacts:
    """What all calls of a method have in common.

    Args:
        uses: How often each value is named by instructions, lists, inputs and outputs.
        changing: Inputs, targets of moves, and values computed by the method.
        moved: Targets of moves: other tensors take their place.
    """

    uses: Counter[int]
    changing: frozenset[int]
    moved: frozenset[int]

    @classmethod
    def of(cls, method: Method) -> Self:
        """The facts of a method."""
        uses = Counter(with_items(method, (*method.inputs, *method.outputs)))
        changing = set(method.inputs)
        moved = set()
        for instruction in method.instructions:
            match instruction:
                case KernelCall(args=args) | DelegateCall(args=args):
                    uses.update(with_items(method, args))
                    changing.update(args[-1:])
                case MoveCall(source=source, target=target):
                    uses.update(with_items(method, (source, target)))
                    moved.add(target)
                case FreeCall(value=value):
                    uses.update((value,))
        return cls(uses=uses, changing=frozenset(changing | moved), moved=frozenset(moved))


def call_arguments(
    method: Method, call: KernelCall, schema: OpSchema, facts: MethodFacts
) -> dict[str, Value]:
    """Arguments of a call by name, as far as scratch sizes may depend on them.

    Tensors have their upper bounds; values that the program computes are left out.
    """
    found: dict[str, Value] = {}
    for argument, index in zip(schema.arguments, call.args, strict=False):
        match method.values[index]:
            case TensorValue(sizes=sizes, dtype=dtype):
                found[argument.name] = TensorFacts(sizes=sizes, dtype=dtype)
            case IntListValue(items=items) if not facts.changing.isdisjoint(items):
                pass
            case IntValue() | BoolValue() | IntListValue() | NoneValue():
                if index not in facts.changing:
                    found[argument.name] = _ValueFacts(method.values, facts).of(index)
    return found


def argument_facts(
    values: Sequence[pte.Value],
    args: tuple[int, ...],
    schema: OpSchema,
    facts: MethodFacts,
    constant: Callable[[TensorValue], Bytes],
) -> dict[str, Value]:
    """Arguments of a call by name, and its `result`, as conditions see them.

    What the program computes has its bounds.

    Args:
        values: Of the method.
        args: Of the call, value indices; they fit the schema.
        schema: Of the operator.
        facts: `MethodFacts.of(method)`.
        constant: Gives the data of a constant tensor.
    """
    found = _ValueFacts(values, facts, constant)
    names = [*(argument.name for argument in schema.arguments), RESULT]
    pairs = [*zip(names, args, strict=False)]
    # An argument of that name is meant before the result.
    return {name: found.of(index) for name, index in reversed(pairs)}


class _ValueFacts:
    """Facts about the values of a method."""

    def __init__(
        self,
        values: Sequence[pte.Value],
        facts: MethodFacts,
        constant: Callable[[TensorValue], Bytes] | None = None,
    ) -> None:
        self._values = values
        self._facts = facts
        self._constant = constant

    def of(self, index: int) -> Value:  # noqa: PLR0911  # one kind each
        """Facts about one value."""
        changes = index in self._facts.changing
        match self._values[index]:
            case TensorValue() as tensor:
                return self._tensor(tensor, moved=index in self._facts.moved)
            case IntValue(value=number):
                return _ANY_INT if changes else number
            case BoolValue(value=truth):
                return Changing(bool) if changes else truth
            case DoubleValue(value=real):
                return Changing(float) if changes else real
            case StringValue(value=text):
                return text
            case IntListValue(items=items):
                return tuple(self._number(item) for item in items)
            case DoubleListValue(items=items) | BoolListValue(items=items):
                return items
            case TensorListValue(items=items) | OptionalTensorListValue(items=items):
                return tuple(self._item(item) for item in items)
        return None

    def _number(self, index: int) -> Number:
        found = self.of(index)
        return found if isinstance(found, int | Range) else _ANY_INT

    def _item(self, index: int) -> TensorFacts | None:
        found = self.of(index) if index >= 0 else None
        return found if isinstance(found, TensorFacts) else None

    def _tensor(self, tensor: TensorValue, *, moved: bool) -> TensorFacts:
        constant = self._constant
        is_known = (
            constant is not None and tensor.is_constant and not moved and tensor.dtype in FORMATS
        )
        sizes: tuple[Number, ...] = tensor.sizes
        if moved:
            sizes = (_ANY_SIZE,) * len(sizes)
        elif tensor.is_dynamic:
            sizes = tuple(Range(0, size) for size in tensor.sizes)
        return TensorFacts(
            dtype=tensor.dtype,
            sizes=sizes,
            dim_order=tensor.dim_order,
            capacity_bytes=(
                _ANY_SIZE.high if moved else tensor.size_bytes if tensor.is_dynamic else None
            ),
            items=partial(_items, tensor, constant)
            if constant is not None and is_known
            else _no_items,
        )


def _no_items() -> None:
    """The items of a tensor that is not constant, or of complex numbers."""


def _items(
    tensor: pte.TensorValue, constant: Callable[[pte.TensorValue], Bytes]
) -> tuple[float, ...]:
    found = logical_items(
        constant(tensor), FORMATS[tensor.dtype], tensor.sizes, tensor.dim_order
    ).flatten()
    if tensor.dtype is ScalarType.BFloat16:
        found = (found.astype("<u4") << 16).view("<f4")
    return tuple(found.tolist())
