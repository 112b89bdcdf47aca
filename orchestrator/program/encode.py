"""Encodes a `Program` as a flatbuffer; the reverse of `decode.py`.

Slots and union numbers are those of ExecuTorch `schema/program.fbs` (ET12).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from struct import Struct, pack
from typing import TYPE_CHECKING, Final, NewType, TypeAlias

from orchestrator.core.lazy_bytes import Bytes, joined, part_of
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

# Writes the tables, vectors and texts of a flatbuffer.
#
# Not built on the `flatbuffers` package: its versions lay tables out differently, and a program's
# bytes are in locks. The tests hold both to the same content.
#
# Source: flatbuffers `docs/source/internals.md` (binary encoding).

Ref = NewType("Ref", int)
"""A table, vector or text that was written: where it begins, in bytes from the end."""
Field: TypeAlias = "tuple[str, int | float] | Ref | None"
"""A number with its type, what an offset leads to, or nothing."""

_STRUCTS: Final = {
    "Bool": Struct("<?"),
    "Int8": Struct("<b"),
    "Uint8": Struct("<B"),
    "Int32": Struct("<i"),
    "Uint32": Struct("<I"),
    "Int64": Struct("<q"),
    "Uint64": Struct("<Q"),
    "Float64": Struct("<d"),
}
_OFFSET_BYTES: Final = 4
_MOST_ALIGNMENT: Final = 16
"""Largest alignment in a flatbuffer, whose size is a multiple of it."""


class Tables:
    """A flatbuffer, written from its end: offsets lead to what was written before.

    Vectors of numbers and texts that are equal are written once.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._known: dict[tuple[str, bytes], Ref] = {}

    def table(self, *fields: Field) -> Ref:
        """A table with these fields, by slot; zeros are left out."""
        widths = [_width(field) for field in fields]
        places, table_bytes = _places(widths)
        # Fields are aligned, not the offset before them.
        fields_bytes = table_bytes - _OFFSET_BYTES
        alignment = max([*widths, _OFFSET_BYTES])
        start = self._padded(fields_bytes, alignment) + _OFFSET_BYTES
        body = bytearray(table_bytes)
        for field, at in zip(fields, places, strict=True):
            if at and isinstance(field, tuple):
                kind, number = field
                _STRUCTS[kind].pack_into(body, at, number)
            elif at and not isinstance(field, tuple) and field is not None:
                body[at : at + _OFFSET_BYTES] = pack("<I", start - at - field)
        while places and not places[-1]:
            places.pop()
        slots = pack(f"<{len(places)}H", *places)
        vtable = pack("<HH", 4 + len(slots), table_bytes) + slots
        known = self._known.get(("vtable", vtable))
        where = known or Ref(start + len(vtable))
        body[:_OFFSET_BYTES] = pack("<i", where - start)
        self._prepend(bytes(body))
        if known is None:
            self._prepend(vtable)
            self._known["vtable", vtable] = where
        return Ref(start)

    def tables(self, tables: Sequence[Ref]) -> Ref:
        """A vector of tables."""
        start = self._padded(_OFFSET_BYTES * len(tables), _OFFSET_BYTES)
        offsets = [start - _OFFSET_BYTES * number - table for number, table in enumerate(tables)]
        self._prepend(pack(f"<{len(tables)}I", *offsets))
        return self._counted(len(tables))

    def numbers(self, kind: str, numbers: Sequence[float]) -> Ref:
        """A vector of numbers of a type."""
        packer = _STRUCTS[kind]
        data = b"".join(packer.pack(number) for number in numbers)
        return self._shared(kind, data, len(numbers), packer.size)

    def text(self, text: str) -> Ref:
        """A text."""
        data = text.encode()
        return self._shared("text", data + b"\0", len(data), 1)

    def data(self, data: Bytes, *, alignment: int = 1) -> Ref:
        """A vector of bytes that begins at a multiple of the alignment, up to 16."""
        self._padded(len(data), max(alignment, _OFFSET_BYTES))
        self._prepend(bytes(data))
        return self._counted(len(data))

    def finish(self, root: Ref, identifier: bytes) -> bytes:
        """All of it."""
        start = self._padded(_OFFSET_BYTES + len(identifier), _MOST_ALIGNMENT)
        self._prepend(pack("<I", start - root) + identifier)
        return b"".join(reversed(self._parts))

    def _shared(self, kind: str, data: bytes, items: int, width: int) -> Ref:
        """A vector that is written once."""
        known = self._known.get((kind, data))
        if known is None:
            self._padded(len(data), max(width, _OFFSET_BYTES))
            self._prepend(data)
            known = self._known[kind, data] = self._counted(items)
        return known

    def _counted(self, items: int) -> Ref:
        """The vector whose items were written last, with their count before them."""
        self._prepend(pack("<I", items))
        return Ref(self._size)

    def _padded(self, size_bytes: int, alignment: int) -> int:
        """Where something begins that is written next, aligned, from the end."""
        self._prepend(bytes(-(self._size + size_bytes) % alignment))
        return self._size + size_bytes

    def _prepend(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)


def _width(field: Field) -> int:
    """Bytes of a field in its table; 0 if it is left out."""
    if field is None:
        return 0
    if not isinstance(field, tuple):
        return _OFFSET_BYTES
    kind, number = field
    # A double is always written: -0.0 is not the default, but equal to it.
    return _STRUCTS[kind].size if number or kind == "Float64" else 0


def _places(widths: Sequence[int]) -> tuple[list[int], int]:
    """Offset of each field, 0 for those left out, and the bytes of the table.

    The widest come first, so that there is no gap.
    """
    places, end = [0] * len(widths), _OFFSET_BYTES
    for slot in sorted(range(len(widths)), key=lambda s: -widths[s]):
        if widths[slot]:
            places[slot] = end
            end += widths[slot]
    return places, end


_IDENTIFIER: Final = b"ET12"
_DATA_ALIGNMENT: Final = 16
"""Alignment of constants and data of delegates in the flatbuffer."""


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


# Writes `.pte` programs: the reverse of `reader.py`.
#
# Source: ExecuTorch `schema/program.fbs` and `extended_header.h` (ET12).

_HEADER_AT: Final = 8
"""After the root offset and the file identifier."""
_HEADER: Final = Struct("<4sIQQQ")
_ROOT: Final = Struct("<I")
_ALIGNMENT: Final = 16
_MOST_SEGMENT_ALIGNMENT: Final = 128
"""Alignment of segments, by default of exporters."""


def write_program(program: Program, *, constants: Sequence[Bytes] | None = None) -> Bytes:
    """The file of a program.

    The same program gives the same bytes. Constants begin at multiples of 16, segments
    at multiples of what they began at in the program's own bytes, from 16 to 128.

    Args:
        program: Any that the reader gives, or one with other methods.
        constants: Data of its constant tensors, by data buffer index, the reserved
            first one left out; None: that of the program.

    Returns:
        A file from which the reader gives an equal program, but for where data lies.
    """
    contents = _Contents.of(program)
    if constants is not None:
        contents = contents.with_constants(program, constants)
    segments, data = _laid_out(contents)
    written = replace(program, segments=segments, constants=contents.constants)
    flatbuffer = encode_program(
        written, inline_constants=contents.inline_constants, inline_data=contents.inline_data
    )
    if program.header is None and not len(data):
        return flatbuffer
    alignment = max((a for _, a in contents.segments), default=_ALIGNMENT)
    return _with_header(flatbuffer, data, alignment)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contents:
    """What a file has besides its facts.

    Args:
        segments: (data, alignment) of each.
        constants: Where constant tensors lie in one.
        inline_constants: Constants that lie in the flatbuffer.
        inline_data: Data of delegates that lies there.
    """

    segments: tuple[tuple[Bytes, int], ...]
    constants: SubsegmentOffsets | None
    inline_constants: tuple[Bytes, ...]
    inline_data: tuple[Bytes, ...]

    @staticmethod
    def of(program: Program) -> _Contents:
        """Those of a program as it was read."""
        return _Contents(
            segments=tuple(
                (program.segment_bytes(i), _alignment(program.segment_offset(i)))
                for i in range(len(program.segments))
            ),
            constants=program.constants,
            inline_constants=tuple(
                part_of(program.data, at, size) for at, size in program.inline_constants
            ),
            inline_data=tuple(part_of(program.data, at, size) for at, size in program.inline_data),
        )

    def with_constants(self, program: Program, constants: Sequence[Bytes]) -> _Contents:
        """These contents with other constants, in the segment that had them."""
        if program.has_inline_constants:
            return replace(self, inline_constants=(b"", *constants))
        data, offsets = _joined(constants)
        index = len(self.segments)
        if program.constants is not None:
            index = min(program.constants.segment_index, index)
        if index in _named(program):
            index = len(self.segments)
        segments = dict(enumerate(self.segments))
        _, alignment = segments.get(index, (b"", _ALIGNMENT))
        segments[index] = (data, alignment)
        return replace(
            self,
            segments=tuple(segments.values()),
            constants=SubsegmentOffsets(segment_index=index, offsets=(0, *offsets)),
        )


def _named(program: Program) -> set[int]:
    """Segments that something else than constants lies in."""
    found = {s.segment_index for s in program.mutable_segments}
    found.update(d.segment_index for d in program.named_data)
    delegates = (d for method in program.methods for d in method.delegates)
    return found | {d.data_index for d in delegates if not d.is_inline}


def _alignment(position: int) -> int:
    """The largest power of two up to the most that a position is a multiple of."""
    own = position & -position or _MOST_SEGMENT_ALIGNMENT
    return min(max(own, _ALIGNMENT), _MOST_SEGMENT_ALIGNMENT)


def _joined(constants: Sequence[Bytes]) -> tuple[Bytes, tuple[int, ...]]:
    """All constants, and where each begins."""
    parts: list[Bytes] = []
    offsets, end = [], 0
    for constant in constants:
        padding = -end % _ALIGNMENT
        offsets.append(end + padding)
        parts += (bytes(padding), constant)
        end += padding + len(constant)
    return joined(parts), tuple(offsets)


def _laid_out(contents: _Contents) -> tuple[tuple[Segment, ...], Bytes]:
    """Segments with their places, and what stands there."""
    parts: list[Bytes] = []
    segments, end = [], 0
    for block, alignment in contents.segments:
        if len(block):
            parts.append(bytes(-end % alignment))
            end += len(parts[-1])
        segments.append(Segment(offset=end if len(block) else 0, size_bytes=len(block)))
        parts.append(block)
        end += len(block)
    return tuple(segments), joined(parts)


def _with_header(flatbuffer: bytes, data: Bytes, alignment: int) -> Bytes:
    """The file: an extended header behind the identifier, segments at the end."""
    size = len(flatbuffer) + _HEADER.size
    base = -(-size // alignment) * alignment if data else 0
    (root,) = _ROOT.unpack_from(flatbuffer)
    header = _HEADER.pack(b"eh00", _HEADER.size, size, base, len(data))
    head = _ROOT.pack(root + _HEADER.size) + flatbuffer[_ROOT.size : _HEADER_AT]
    start = (head + header + flatbuffer[_HEADER_AT:]).ljust(base, b"\0")
    return joined((start, data))
