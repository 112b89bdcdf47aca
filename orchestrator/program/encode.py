"""Encodes a `Program` as a flatbuffer; the reverse of `decode.py`.

Slots and union numbers are those of ExecuTorch `schema/program.fbs` (ET12).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from orchestrator.core.lazy_bytes import Bytes
from orchestrator.program.program import (
    Delegate,
    DelegateCall,
    Frame,
    Instruction,
    JumpFalseCall,
    KernelCall,
    Method,
    MoveCall,
    Program,
    Segment,
    SubsegmentOffsets,
)
from orchestrator.program.tables import Field, Ref, Tables
from orchestrator.program.values import (
    Allocation,
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    ExtraTensorInfo,
    IntListValue,
    IntValue,
    NoneValue,
    OptionalTensorListValue,
    StringValue,
    TensorListValue,
    TensorValue,
    Value,
)

if TYPE_CHECKING:
    from orchestrator.core.operator import OperatorName

_IDENTIFIER: Final = b"ET12"
_DATA_ALIGNMENT: Final = 16
"""Of constants and data of delegates in the flatbuffer."""


def encode_program(
    program: Program, *, inline_constants: Sequence[Bytes], inline_data: Sequence[Bytes]
) -> bytes:
    """The flatbuffer of a program, without an extended header.

    Args:
        program: Its facts; positions of data in the file are not looked at.
        inline_constants: Constants that lie in the flatbuffer.
        inline_data: Data of delegates that lies there.
    """
    tables = Tables()
    encoder = _Encoder(tables)
    constants = program.constants
    root = tables.table(
        ("Uint32", program.version),
        tables.tables([encoder.method(method) for method in program.methods]),
        tables.tables([encoder.data(data) for data in inline_constants]),
        tables.tables([encoder.data(data) for data in inline_data]),
        tables.tables([encoder.segment(segment) for segment in program.segments]),
        None if constants is None else encoder.subsegments(constants),
        tables.tables([encoder.subsegments(s) for s in program.mutable_segments]),
        tables.tables(
            [
                tables.table(tables.text(d.key), ("Uint32", d.segment_index))
                for d in program.named_data
            ]
        ),
    )
    return tables.finish(root, _IDENTIFIER)


class _Encoder:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def method(self, method: Method) -> Ref:
        tables = self._tables
        container = method.container
        return tables.table(
            tables.text(method.name),
            None
            if container is None
            else tables.table(tables.text(container.inputs), tables.text(container.outputs)),
            tables.tables([encode_value(tables, value) for value in method.values]),
            tables.numbers("Int32", method.inputs),
            tables.numbers("Int32", method.outputs),
            tables.tables([self._chain(method)]),
            tables.tables([self._operator(name) for name in method.operators]),
            tables.tables([self._delegate(found) for found in method.delegates]),
            tables.numbers("Int64", method.arena_bytes),
            tables.tables(
                [
                    tables.table(
                        ("Int32", d.buffer_index), ("Int8", d.device_type), ("Int8", d.device_index)
                    )
                    for d in method.arena_devices
                ]
            )
            if method.arena_devices
            else None,
        )

    def _chain(self, method: Method) -> Ref:
        tables = self._tables
        return tables.table(
            tables.numbers("Int32", ()),
            tables.numbers("Int32", ()),
            tables.tables([self._instruction(i) for i in method.instructions]),
            tables.tables([self._frames(frames) for frames in method.frames])
            if method.frames
            else None,
        )

    def _instruction(self, instruction: Instruction) -> Ref:
        tables = self._tables
        fields: tuple[Field, ...]
        match instruction:
            case KernelCall(operator=index, args=args):
                kind, fields = 1, (("Int32", index), tables.numbers("Int32", args))
            case DelegateCall(delegate=index, args=args):
                kind, fields = 2, (("Int32", index), tables.numbers("Int32", args))
            case MoveCall(source=source, target=target):
                kind, fields = 3, (("Int32", source), ("Int32", target))
            case JumpFalseCall(condition=condition, destination=destination):
                kind, fields = 4, (("Int32", condition), ("Int32", destination))
            case _:
                kind, fields = 5, (("Int32", instruction.value),)
        return tables.table(("Uint8", kind), tables.table(*fields))

    def _frames(self, frames: Sequence[Frame]) -> Ref:
        return self._tables.table(self._tables.tables([self._frame(frame) for frame in frames]))

    def _frame(self, frame: Frame) -> Ref:
        text = self._tables.text
        return self._tables.table(
            text(frame.filename), ("Int32", frame.line), text(frame.name), text(frame.context)
        )

    def _operator(self, operator: OperatorName) -> Ref:
        name, _, overload = str(operator).partition(".")
        text = self._tables.text
        return self._tables.table(text(name), text(overload))

    def _delegate(self, delegate: Delegate) -> Ref:
        tables = self._tables
        location = 0 if delegate.is_inline else 1
        return tables.table(
            tables.text(delegate.backend),
            tables.table(("Int8", location), ("Uint32", delegate.data_index)),
            tables.tables(
                [
                    tables.table(tables.text(spec.key), tables.data(spec.value))
                    for spec in delegate.compile_specs
                ]
            ),
        )

    def data(self, data: Bytes) -> Ref:
        return self._tables.table(self._tables.data(data, alignment=_DATA_ALIGNMENT))

    def segment(self, segment: Segment) -> Ref:
        return self._tables.table(("Uint64", segment.offset), ("Uint64", segment.size_bytes))

    def subsegments(self, offsets: SubsegmentOffsets) -> Ref:
        return self._tables.table(
            ("Uint32", offsets.segment_index), self._tables.numbers("Uint64", offsets.offsets)
        )


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
    return tables.table(("Uint32", allocation.memory_id), ("Uint32", low), ("Uint32", high))


def _extra(tables: Tables, extra: ExtraTensorInfo) -> Ref:
    return tables.table(
        ("Uint64", extra.mutable_segment_index),
        tables.text(extra.qualified_name),
        ("Int8", int(extra.is_external)),
        ("Int8", extra.device_type),
        ("Int8", extra.device_index),
    )
