"""Whether an operator call fits an op schema, and whether a kernel takes it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import Kernel, KernelKey, TensorMeta
from orchestrator.core.operator import OPTIONAL_ITEMS, ArgKind, Argument, OpSchema
from orchestrator.selection.op_info import CallPattern

if TYPE_CHECKING:
    from orchestrator.selection.resolution import TableEntry

NONE = "N"
"""Letter of a call argument that is None."""

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
    return len({len(order) for order in orders}) == len(orders)


def takes(kernel: Kernel, call: CallPattern) -> bool:
    """Whether a kernel serves a call that fits its schema.

    A specialised kernel serves the calls of its kernel keys, a fallback kernel those
    of its dtypes and dim orders.
    """
    if refused_dtypes(kernel, call):
        return False
    return call.key in kernel.keys if kernel.keys else takes_dim_orders(kernel, call)
