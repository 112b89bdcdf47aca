"""Whether an operator call fits an op schema, and whether a kernel takes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Self

from orchestrator.catalog.expressions.reader import RESULT
from orchestrator.catalog.expressions.values import Changing, Number, Range, TensorFacts, Value
from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import Kernel, KernelKey, TensorMeta
from orchestrator.core.layout import FORMATS, logical_items
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.core.operator import NONE, OPTIONAL_ITEMS, ArgKind, Argument, OpSchema
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
from orchestrator.selection.op_info import CallPattern

if TYPE_CHECKING:
    from orchestrator.selection.resolution import TableEntry

_KIND_NAMES = {
    ArgKind.TENSOR: "a tensor",
    ArgKind.TENSOR_LIST: "a tensor list",
    ArgKind.INT: "an int",
    ArgKind.FLOAT: "a float",
    ArgKind.BOOL: "a bool",
    ArgKind.SCALAR: "an int, float or bool",
    ArgKind.STRING: "a string",
    ArgKind.INT_LIST: "an int list",
    ArgKind.FLOAT_LIST: "a float list",
    ArgKind.BOOL_LIST: "a bool list",
}

_OTHER_NAMES = {NONE: "None", OPTIONAL_ITEMS: "a tensor list with None in it"}


def misfit(schema: OpSchema, kinds: str) -> str:
    """Why a call with arguments of these kinds does not fit a schema; "" if it does.

    The rules are the device loader's: kinds are equal, a Scalar is an int, float or
    bool, and only an optional argument or item may be None. Over and above them the
    result is checked, which the loader does not read.

    Args:
        schema: Of the operator called.
        kinds: `CallPattern.kinds`.
    """
    given = len(schema.arguments)
    if len(kinds) < given:
        return f"{_count(len(kinds))}, the schema has {given}"
    for index, (argument, kind) in enumerate(zip(schema.arguments, kinds, strict=False)):
        if not _takes(argument, kind):
            return (
                f'argument {index + 1} "{argument.name}" is {_kind_name(kind)},'
                f" not {_kind_name(argument.kind)}"
            )
    result = schema.result
    rest = kinds[given:]
    if result is None and rest:
        return f"{_count(len(kinds))}, the schema has {given} and no result"
    if result is not None and (len(rest) != 1 or not _takes(result, rest)):
        found = " and ".join(map(_kind_name, rest)) or "missing"
        return f"the result is {found}, not {_kind_name(result.kind)}"
    return ""


def _takes(argument: Argument, kind: str) -> bool:
    if kind == NONE:
        return argument.optional
    if kind == OPTIONAL_ITEMS:
        return argument.kind is ArgKind.TENSOR_LIST and argument.items_optional
    if argument.kind is ArgKind.SCALAR:
        return kind in (ArgKind.INT, ArgKind.FLOAT, ArgKind.BOOL)
    return kind == argument.kind


def _kind_name(kind: str) -> str:
    return _OTHER_NAMES.get(kind) or _KIND_NAMES[ArgKind(kind)]


def _count(arguments: int) -> str:
    return f"{arguments} argument" + "s" * (arguments != 1)


def table_refusal(entry: TableEntry, call: CallPattern, written: frozenset[int]) -> str:
    """Why an entry of the kernel table does not serve a call; "" if it does.

    The rules of the device, which sees only the kernel's entry.

    Args:
        entry: For the operator that is called.
        call: With the kinds that results have once they are settled.
        written: Positions of arguments that must not be written.

    Source: runtime/src/find_kernel.cpp.
    """
    letters = [
        (letter, after == "?")
        # `OpSchema.signature`: a question mark belongs to the letter before it.
        for letter, after in zip(entry.signature, f"{entry.signature[1:]} ", strict=True)
        if letter not in ">?"
    ]
    if len(call.kinds) < len(letters):
        return f"{_count(len(call.kinds))}, the kernel has {len(letters)}"
    for position, ((letter, optional), kind) in enumerate(zip(letters, call.kinds, strict=False)):
        if optional and kind == NONE:
            continue
        if not _accepts(letter.upper(), kind):
            return f"argument {position + 1} is {_kind_name(kind)}"
        if letter.islower() and position in written:
            return f"argument {position + 1} is written and must not change"
    refused = sorted(
        {
            meta.dtype.name
            for position, meta in (*call.tensors, *call.list_items)
            if position < len(letters) and meta.dtype not in entry.dtypes
        }
    )
    if refused:
        return f"dtype {', '.join(refused)} is not selected"
    if entry.key is not None and entry.key != call.key:
        return f"kernel key {call.key} is not {entry.key}"
    return ""


def _accepts(letter: str, kind: str) -> bool:
    """Whether a kind fits a letter of a kernel signature."""
    if letter == ArgKind.SCALAR:
        return kind in (ArgKind.INT, ArgKind.FLOAT, ArgKind.BOOL)
    if letter == OPTIONAL_ITEMS:
        return kind in (OPTIONAL_ITEMS, ArgKind.TENSOR_LIST)
    return kind == letter


def calls_of_key(schema: OpSchema, key: KernelKey) -> tuple[CallPattern, ...]:
    """Every way to assign the entries of a kernel key to the arguments of a schema.

    A key has no entry for an optional tensor that is None or a tensor list that is
    empty, so it can stand for several calls. Without any way the key does
    not fit this operator. The `kinds` of the patterns are empty.
    """
    slots = list(enumerate(schema.arguments))
    if schema.result is not None:
        slots.append((len(slots), schema.result))
    tensors = {ArgKind.TENSOR, ArgKind.TENSOR_LIST}
    slots = [s for s in slots if s[1].kind in tensors]
    free = [
        position
        for position, a in slots
        if a.optional or (a.kind is ArgKind.TENSOR_LIST and not a.is_out)
    ]
    # Each choice of arguments without an entry is a call that the key can stand for.
    surplus = len(slots) - len(key.tensors)
    if surplus < 0:
        return ()
    positions = [position for position, _ in slots]
    return tuple(
        CallPattern(
            kinds="",
            tensors=tuple(
                zip((p for p in positions if p not in dropped), key.tensors, strict=True)
            ),
        )
        for dropped in combinations(free, surplus)
    )


def tensor_names(schema: OpSchema, call: CallPattern) -> Iterator[tuple[str, TensorMeta]]:
    """(argument name, meta) of the tensors a call passes to a kernel, items included.

    The result is left out: it is an out argument once more.
    """
    for position, meta in (*call.tensors, *call.list_items):
        if position < len(schema.arguments):
            yield schema.arguments[position].name, meta


def refused_dtypes(kernel: Kernel, call: CallPattern) -> tuple[tuple[str, ScalarType], ...]:
    """(argument, dtype) that a kernel does not take, in order of the arguments."""
    taken = dict(kernel.dtypes)
    return tuple(
        dict.fromkeys(
            (name, meta.dtype)
            for name, meta in tensor_names(kernel.schema, call)
            if meta.dtype not in taken[name]
        )
    )


def takes_dim_orders(kernel: Kernel, call: CallPattern) -> bool:
    """Whether the dim orders of a call are among those a fallback kernel takes."""
    if kernel.dim_orders == "any":
        return True
    orders = {m.dim_order for _, m in (*call.tensors, *call.list_items)}
    if kernel.dim_orders == "contiguous":
        return all(order == tuple(range(len(order))) for order in orders)
    # "same": two orders of one rank would be different ones.
    return len({len(order) for order in orders}) == len(orders)


def takes(kernel: Kernel, call: CallPattern) -> bool:
    """Whether a kernel serves a call that fits its schema.

    A specialised kernel serves the calls of its kernel keys, a fallback kernel those
    of its dtypes and dim orders.
    """
    if refused_dtypes(kernel, call):
        return False
    return call.key in kernel.keys if kernel.keys else takes_dim_orders(kernel, call)


# Facts about the arguments of a call that hold before the program runs.

_ANY_INT = Range(-(1 << 63), (1 << 63) - 1)
# Sizes of tensors are 32-bit integers in programs.
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
            # A size that is computed in a run: scratch memory may not depend on it.
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
            # A move may put a tensor of any size there; the rank is that of the kernel key.
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
    # The upper half of a float of 32 bits; NumPy has no such dtype.
    if tensor.dtype is ScalarType.BFloat16:
        found = (found.astype("<u4") << 16).view("<f4")
    return tuple(found.tolist())
