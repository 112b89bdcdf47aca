"""Encodes a `Program` as a flatbuffer; the reverse of `decode.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from struct import Struct, pack
from typing import Any, Final, NewType

from orchestrator.core.layout import ALIGNMENT
from orchestrator.core.lazy_bytes import Bytes, joined, part_of
from orchestrator.program.decode import FIELDS, RECORDS
from orchestrator.program.flatbuffer import NUMBERS, PROGRAM, UNIONS, Kind
from orchestrator.program.program import (
    Delegate,
    DelegateCall,
    Instruction,
    Method,
    Program,
    Segment,
    SubsegmentOffsets,
)
from orchestrator.program.values import Allocation, TensorValue, Value

# Writes the tables, vectors and texts of a flatbuffer.
#
# Not built on the `flatbuffers` package: its versions lay tables out differently, and a program's
# bytes are in locks. The tests hold both to the same content.
#
# Source: flatbuffers `docs/source/internals.md` (binary encoding).

Ref = NewType("Ref", int)
"""A table, vector or text that was written: where it begins, in bytes from the end."""
_OFFSET_BYTES: Final = 4


class Tables:
    """A flatbuffer, written from its end: offsets lead to what was written before.

    Vectors of numbers and texts that are equal are written once.

    Args:
        kinds: Of its tables, by name.
    """

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds
        self._parts: list[bytes] = []
        self._size = 0
        self._known: dict[tuple[str, bytes], Ref] = {}

    def table(self, kind: str, fields: Iterable[object]) -> Ref:
        """A table.

        Args:
            kind: Its kind.
            fields: By slot, as the reader gives them; a table has its own fields in turn.
                Zeros and None are left out.
        """
        written: list[bytes | Ref] = []
        before: Any = 0
        for type_, field in zip(self._kinds[kind].types.values(), fields, strict=True):
            # Defaults are left out, as flatbuffers' builders do: a field that is
            # present counts as new to older readers.
            if number := NUMBERS.get(type_):
                # A double is always written: -0.0 is not the default, but equal to it.
                written.append(number.pack(field) if field or type_ == "double" else b"")
            elif field is None:
                written.append(b"")
            else:
                # The type of a union is the field before it.
                # flatbuffers puts the type of a union into the field before it, and
                # schemas list it so.
                member = UNIONS[type_][before - 1] if type_ in UNIONS else type_
                written.append(self._written(member, field))
            before = field
        return self._table(written)

    def _written(self, type_: str, field: Any) -> Ref:  # noqa: ANN401  # as the type says
        """What an offset leads to, from its type."""
        if type_ == "string":
            text = field.encode()
            # A string ends with a zero that its length does not count.
            return self._shared(type_, text + b"\0", len(text), 1)
        if type_ in self._kinds:
            return self.table(type_, field)
        if type_[1:-1] in self._kinds:
            return self._tables([self.table(type_[1:-1], item) for item in field])
        if type_ == "data" or isinstance(field, bytes):
            return self._data(field, ALIGNMENT if type_ == "data" else _OFFSET_BYTES)
        number = NUMBERS[type_[1:-1]]
        numbers = b"".join(number.pack(item) for item in field)
        return self._shared(type_, numbers, len(field), number.size)

    def _table(self, fields: Sequence[bytes | Ref]) -> Ref:
        """A table of numbers and of what offsets lead to, by slot; b"" is left out."""
        widths = [len(f) if isinstance(f, bytes) else _OFFSET_BYTES for f in fields]
        places, table_bytes = _places(widths)
        # Fields are aligned, not the offset before them.
        # A table with a field of eight bytes has it at a multiple of eight; the offset
        # to the vtable stands before.
        fields_bytes = table_bytes - _OFFSET_BYTES
        alignment = max([*widths, _OFFSET_BYTES])
        start = self._padded(fields_bytes, alignment) + _OFFSET_BYTES
        body = bytearray(table_bytes)
        for field, width, at in zip(fields, widths, places, strict=True):
            body[at : at + width] = (
                field if isinstance(field, bytes) else pack("<I", start - at - field)
            )
        # A vtable ends with the last field that is there: equal ones are then shared
        # more often.
        while places and not places[-1]:
            places.pop()
        slots = pack(f"<{len(places)}H", *places)
        # Keyed with the size of the table, as it is in these bytes.
        vtable = pack("<HH", 4 + len(slots), table_bytes) + slots
        known = self._known.get(("vtable", vtable))
        where = known or Ref(start + len(vtable))
        body[:_OFFSET_BYTES] = pack("<i", where - start)
        self._prepend(bytes(body))
        if known is None:
            self._prepend(vtable)
            self._known["vtable", vtable] = where
        return Ref(start)

    def _tables(self, tables: Sequence[Ref]) -> Ref:
        """A vector of tables."""
        start = self._padded(_OFFSET_BYTES * len(tables), _OFFSET_BYTES)
        offsets = [start - _OFFSET_BYTES * number - table for number, table in enumerate(tables)]
        self._prepend(pack(f"<{len(tables)}I", *offsets))
        return self._counted(len(tables))

    def _data(self, data: Bytes, alignment: int) -> Ref:
        """A vector of bytes that begins at a multiple of the alignment, up to 16."""
        self._padded(len(data), alignment)
        self._prepend(bytes(data))
        return self._counted(len(data))

    def finish(self, root: Ref, identifier: bytes) -> bytes:
        """All of it."""
        # From the end all positions are fixed; the front is padded so that they are
        # aligned from the start as well, by the largest alignment.
        start = self._padded(_OFFSET_BYTES + len(identifier), ALIGNMENT)
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


def _places(widths: Sequence[int]) -> tuple[list[int], int]:
    """Offset of each field, 0 for those left out, and the bytes of the table.

    The widest come first, so that there is no gap.
    """
    places, end = [0] * len(widths), _OFFSET_BYTES
    # Widest first, so that no field needs padding before it; sorted() is stable, so
    # equal programs have equal bytes.
    for slot in sorted(range(len(widths)), key=lambda s: -widths[s]):
        if widths[slot]:
            places[slot] = end
            end += widths[slot]
    return places, end


_IDENTIFIER: Final = b"ET12"


def encode_program(
    program: Program, *, inline_constants: Sequence[Bytes], inline_data: Sequence[Bytes]
) -> bytes:
    """The flatbuffer of a program, without an extended header.

    Args:
        program: Its facts; positions of data in the file are not looked at.
        inline_constants: Constants that lie in the flatbuffer.
        inline_data: Data of delegates that lies there.
    """
    tables = Tables(PROGRAM)
    root = (
        program.version,
        [_method(method) for method in program.methods],
        [(data,) for data in inline_constants],
        [(data,) for data in inline_data],
        _each(program.segments),
        program.constants and _fields(program.constants),
        _each(program.mutable_segments),
        _each(program.named_data),
    )
    return tables.finish(tables.table("Program", root), _IDENTIFIER)


_Fields = tuple[object, ...]
"""Fields of a table by slot."""
# One table for both directions: what `decode.py` reads this writes.
_KINDS: Final = {record: kind for kind, record in RECORDS.items()}


def _fields(record: object) -> _Fields:
    """Fields of an instance of a class of `FIELDS`."""
    return tuple(getattr(record, name) for name in FIELDS[type(record)])


def _each(records: Iterable[object]) -> list[_Fields]:
    return [_fields(record) for record in records]


def _method(method: Method) -> _Fields:
    chain = (
        (),
        (),
        [_instruction(i) for i in method.instructions],
        # Absent, not empty: exporters leave it out where no stack traces were kept.
        [(_each(frames),) for frames in method.frames] or None,
    )
    return (
        method.name,
        method.container and _fields(method.container),
        [_value(value) for value in method.values],
        method.inputs,
        method.outputs,
        [chain],
        [
            (name, overload)
            for name, _, overload in (str(o).partition(".") for o in method.operators)
        ],
        [_delegate(found) for found in method.delegates],
        method.arena_bytes,
        _each(method.arena_devices) or None,
    )


def _member(union: str, kind: str, fields: _Fields) -> _Fields:
    """A table with a union and its type."""
    return UNIONS[union].index(kind) + 1, fields


def _instruction(instruction: Instruction) -> _Fields:
    if isinstance(instruction, DelegateCall):
        # Without `scratch`: its tensors are arguments now, which every loader knows.
        fields = (instruction.delegate, instruction.args, None)
        return _member("InstructionArguments", "DelegateCall", fields)
    return _member("InstructionArguments", _KINDS[type(instruction)], _fields(instruction))


def _delegate(delegate: Delegate) -> _Fields:
    location = 0 if delegate.is_inline else 1
    return delegate.backend, (location, delegate.data_index), _each(delegate.compile_specs)


def _value(value: Value) -> _Fields:
    if isinstance(value, TensorValue):
        return _member("KernelTypes", "Tensor", _tensor(value))
    return _member("KernelTypes", _KINDS[type(value)], _fields(value))


def _tensor(value: TensorValue) -> _Fields:
    return (
        value.dtype,
        0,
        value.sizes,
        value.dim_order,
        value.requires_grad,
        value.data_buffer_index,
        value.allocation and _allocation(value.allocation),
        0,
        value.dynamism,
        value.extra and _fields(value.extra),
    )


def _allocation(allocation: Allocation) -> _Fields:
    high, low = divmod(allocation.offset_bytes, 1 << 32)
    return allocation.memory_id, low, high


# Writes `.pte` programs: the reverse of `reader.py`.
#
# Source: ExecuTorch `schema/program.fbs` and `extended_header.h` (ET12).

_HEADER_AT: Final = 8
"""After the root offset and the file identifier."""
_HEADER: Final = Struct("<4sIQQQ")
_ROOT: Final = Struct("<I")
# `segment_alignment` of ExecutorchBackendConfig (exir/capture/_config.py, ExecuTorch
# 1.5.1).
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
    alignment = max((a for _, a in contents.segments), default=ALIGNMENT)
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
                (program.segment_bytes(i), segment_alignment(program.segment_offset(i)))
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
            # Entry 0 is reserved in ExecuTorch's tables: index 0 means that a tensor
            # has no data.
            return replace(self, inline_constants=(b"", *constants))
        data, offsets = _joined(constants)
        index = len(self.segments)
        if program.constants is not None:
            index = min(program.constants.segment_index, index)
        # Another segment then: what something else names must keep its offsets.
        if index in _named(program):
            index = len(self.segments)
        segments = dict(enumerate(self.segments))
        _, alignment = segments.get(index, (b"", ALIGNMENT))
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


def segment_alignment(position: int) -> int:
    """The largest power of two up to the most that a position is a multiple of."""
    # The lowest bit that is set. What a segment needs is not written down, so what it
    # has is kept, up to what exporters give.
    own = position & -position or _MOST_SEGMENT_ALIGNMENT
    return min(max(own, ALIGNMENT), _MOST_SEGMENT_ALIGNMENT)


def _joined(constants: Sequence[Bytes]) -> tuple[Bytes, tuple[int, ...]]:
    """All constants, and where each begins."""
    parts: list[Bytes] = []
    offsets, end = [], 0
    for constant in constants:
        padding = -end % ALIGNMENT
        offsets.append(end + padding)
        parts += (bytes(padding), constant)
        end += padding + len(constant)
    return joined(parts), tuple(offsets)


def _laid_out(contents: _Contents) -> tuple[tuple[Segment, ...], Bytes]:
    """Segments with their places, and what stands there."""
    parts: list[Bytes] = []
    segments, end = [], 0
    for block, alignment in contents.segments:
        # Empty segments need no place: 0 is where readers expect them.
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
    # The header is put between identifier and tables: all offsets are relative but the
    # one to the root.
    head = _ROOT.pack(root + _HEADER.size) + flatbuffer[_ROOT.size : _HEADER_AT]
    start = (head + header + flatbuffer[_HEADER_AT:]).ljust(base, b"\0")
    return joined((start, data))
