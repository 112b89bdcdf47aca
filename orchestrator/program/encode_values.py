"""Encodes the values of a method; the reverse of `decode_values.py`.

Slots and union numbers are those of ExecuTorch `schema/program.fbs` (ET12).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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

if TYPE_CHECKING:
    from orchestrator.program.tables import Ref, Tables
    from orchestrator.program.values import Allocation, ExtraTensorInfo, Value

_WORD: Final = 1 << 32
_NUMBERS: Final[dict[type[Value], tuple[int, str]]] = {
    IntValue: (2, "Int64"),
    BoolValue: (3, "Bool"),
    DoubleValue: (4, "Float64"),
}
"""Union number and type of each kind of number."""
_LISTS: Final[dict[type[Value], tuple[int, str]]] = {
    IntListValue: (7, "Int64"),
    DoubleListValue: (8, "Float64"),
    BoolListValue: (9, "Uint8"),
    TensorListValue: (10, "Int32"),
    OptionalTensorListValue: (11, "Int32"),
}
"""Union number, and type of the items, of each kind of list."""


def encode_value(tables: Tables, value: Value) -> Ref:
    """The `EValue` table of a value."""
    kind, body = _body(tables, value)
    return tables.table(("Uint8", kind), body)


def _body(tables: Tables, value: Value) -> tuple[int, Ref]:
    table = tables.table
    match value:
        case NoneValue():
            return 1, table()
        case IntValue() | BoolValue() | DoubleValue():
            kind, number = _NUMBERS[type(value)]
            return kind, table((number, value.value))
        case TensorValue():
            return 5, _tensor(tables, value)
        case StringValue(text):
            return 6, table(tables.text(text))
        case _:
            kind, items = _LISTS[type(value)]
            return kind, table(tables.numbers(items, value.items))


def _tensor(tables: Tables, value: TensorValue) -> Ref:
    allocation, extra = value.allocation, value.extra
    return tables.table(
        ("Int8", int(value.dtype)),
        None,
        tables.numbers("Int32", value.sizes),
        tables.numbers("Uint8", value.dim_order),
        ("Bool", value.requires_grad),
        ("Uint32", value.data_buffer_index),
        None if allocation is None else _allocation(tables, allocation),
        None,
        ("Int8", int(value.dynamism)),
        None if extra is None else _extra(tables, extra),
    )


def _allocation(tables: Tables, allocation: Allocation) -> Ref:
    high, low = divmod(allocation.offset_bytes, _WORD)
    return tables.table(
        ("Uint32", allocation.memory_id), ("Uint32", low), ("Uint32", high)
    )


def _extra(tables: Tables, extra: ExtraTensorInfo) -> Ref:
    return tables.table(
        ("Uint64", extra.mutable_segment_index),
        tables.text(extra.qualified_name),
        ("Int8", int(extra.is_external)),
        ("Int8", extra.device_type),
        ("Int8", extra.device_index),
    )
