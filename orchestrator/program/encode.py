"""Encodes a `Program` as a flatbuffer; the reverse of `decode.py`.

Slots and union numbers are those of ExecuTorch `schema/program.fbs` (ET12).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from orchestrator.program.encode_values import encode_value
from orchestrator.program.program import (
    DelegateCall,
    JumpFalseCall,
    KernelCall,
    MoveCall,
)
from orchestrator.program.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.core.operator import OperatorName
    from orchestrator.program.program import (
        Delegate,
        Frame,
        Instruction,
        Method,
        Program,
        Segment,
        SubsegmentOffsets,
    )
    from orchestrator.program.tables import Field, Ref

Data: TypeAlias = "bytes | memoryview"

_IDENTIFIER: Final = b"ET12"
_DATA_ALIGNMENT: Final = 16
"""Of constants and data of delegates in the flatbuffer."""


def encode_program(
    program: Program, *, inline_constants: Sequence[Data], inline_data: Sequence[Data]
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
            else tables.table(
                tables.text(container.inputs), tables.text(container.outputs)
            ),
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
                        ("Int32", d.buffer_index),
                        ("Int8", d.device_type),
                        ("Int8", d.device_index),
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
        return self._tables.table(
            self._tables.tables([self._frame(frame) for frame in frames])
        )

    def _frame(self, frame: Frame) -> Ref:
        text = self._tables.text
        return self._tables.table(
            text(frame.filename),
            ("Int32", frame.line),
            text(frame.name),
            text(frame.context),
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

    def data(self, data: Data) -> Ref:
        return self._tables.table(self._tables.data(data, alignment=_DATA_ALIGNMENT))

    def segment(self, segment: Segment) -> Ref:
        return self._tables.table(
            ("Uint64", segment.offset), ("Uint64", segment.size_bytes)
        )

    def subsegments(self, offsets: SubsegmentOffsets) -> Ref:
        return self._tables.table(
            ("Uint32", offsets.segment_index),
            self._tables.numbers("Uint64", offsets.offsets),
        )
