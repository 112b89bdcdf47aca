"""Bounds-checked access to an untrusted flatbuffer.

Built on `struct` and not on the `flatbuffers` package: that one trusts every offset,
and importing it imports numpy where it is installed, which takes longer than reading
the largest program. The tests hold both to the same bytes.

Source: flatbuffers `docs/source/internals.md` (binary encoding).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct, unpack_from
from typing import Final

from orchestrator.program.problems import DecodeError, NewerError

# Known fields of each table: the one list of them.
#
# What a newer ExecuTorch adds is appended to a table, under the same file identifier; a reader
# that ignores it may run a program that means something else. So every table is compared with
# this list where it is read. The counts in runtime/src/flatbuffer.h are held equal by a test.
#
# Source: ExecuTorch `schema/program.fbs` (ET12), with the scratch memory of delegates of
# ExecuTorch 1.6, and `extension/flat_tensor/serialize/flat_tensor.fbs` (FT01).


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What kind of table it is.

    Args:
        name: In the schema.
        fields: By slot; a union takes two, its type and its value.
        tables: Name of the table, or of the union, that a slot leads to, or a vector
            of them.
    """

    name: str
    fields: tuple[str, ...]
    tables: Mapping[int, str]


def _kinds(text: str) -> dict[str, Kind]:
    """Kinds of lines `name: field field=Table ...`."""
    found = {}
    for line in text.strip().splitlines():
        name, _, fields = line.strip().partition(":")
        pairs = [field.partition("=") for field in fields.split()]
        found[name] = Kind(
            name=name,
            fields=tuple(field for field, _, _ in pairs),
            tables={slot: table for slot, (_, _, table) in enumerate(pairs) if table},
        )
    return found


UNIONS: Final = {
    "KernelTypes": (
        *("Null", "Int", "Bool", "Double", "Tensor", "String", "IntList"),
        *("DoubleList", "BoolList", "TensorList", "OptionalTensorList"),
    ),
    "InstructionArguments": (
        *("KernelCall", "DelegateCall", "MoveCall", "JumpFalseCall", "FreeCall"),
    ),
}
"""Members by union; they are numbered from 1."""

PROGRAM: Final = _kinds("""
    Program: version execution_plan=ExecutionPlan constant_buffer=Buffer\
 backend_delegate_data=BackendDelegateInlineData segments=DataSegment\
 constant_segment=SubsegmentOffsets mutable_data_segments=SubsegmentOffsets\
 named_data=NamedData
    ExecutionPlan: name container_meta_type=ContainerMetadata values=EValue inputs\
 outputs chains=Chain operators=Operator delegates=BackendDelegate\
 non_const_buffer_sizes non_const_buffer_device=NonConstBufferDevice
    ContainerMetadata: encoded_inp_str encoded_out_str
    NonConstBufferDevice: buffer_idx device_type device_index
    Chain: inputs outputs instructions=Instruction stacktrace=FrameList
    FrameList: items=Frame
    Frame: filename lineno name context
    Operator: name overload
    BackendDelegate: id processed=BackendDelegateDataReference\
 compile_specs=CompileSpec
    BackendDelegateDataReference: location index
    CompileSpec: key value
    Instruction: instr_args_type instr_args=InstructionArguments
    KernelCall: op_index args
    DelegateCall: delegate_index args scratch=DelegateScratch
    DelegateScratch: size=AllocationDetails allocation=AllocationDetails
    MoveCall: move_from move_to
    JumpFalseCall: cond_value_index destination_instruction
    FreeCall: value_index
    EValue: val_type val=KernelTypes
    Null:
    Int: int_val
    Bool: bool_val
    Double: double_val
    String: string_val
    IntList: items
    DoubleList: items
    BoolList: items
    TensorList: items
    OptionalTensorList: items
    Tensor: scalar_type storage_offset sizes dim_order requires_grad data_buffer_idx\
 allocation_info=AllocationDetails layout shape_dynamism\
 extra_tensor_info=ExtraTensorInfo
    AllocationDetails: memory_id memory_offset_low memory_offset_high
    ExtraTensorInfo: mutable_data_segments_idx fully_qualified_name location\
 device_type device_index
    Buffer: storage
    BackendDelegateInlineData: data
    DataSegment: offset size
    SubsegmentOffsets: segment_index offsets
    NamedData: key segment_index
""")
"""Tables of programs, by name.

Of the two fields of `DelegateScratch` either may come first, see `decode.py`.
"""

DATA_FILE: Final = _kinds("""
    FlatTensor: version segments=DataSegment named_data=NamedData
    DataSegment: offset size
    NamedData: key segment_index tensor_layout=TensorLayout
    TensorLayout: scalar_type sizes dim_order
""")
"""Tables of data files, by name."""


_INT8: Final = Struct("<b")
_UINT16X2: Final = Struct("<HH")
_INT32: Final = Struct("<i")
_UINT32: Final = Struct("<I")
_INT64: Final = Struct("<q")
_UINT64: Final = Struct("<Q")
_FLOAT64: Final = Struct("<d")

_VTABLE_HEAD: Final = 4
"""Bytes of a vtable before its entries, and of a table before its fields."""

_MOST_VTABLE: Final = 256
"""Bytes of a vtable; no table of the schema has a quarter of the fields.

The device looks at all of it for each table.
"""

_MOST_READS: Final = 40
"""How often, on average, a byte may be read again through shared offsets.

Offsets may share what they point to, so that a small file could otherwise describe
more tables and lists than memory can hold. Of values and instructions the device has a
bound of its own, which is reached first: `check.py`.
"""


class Buffer:
    """A flatbuffer: the first `size` bytes of `data`; nothing after is touched.

    No table of it is given out that has a field which its kind does not have.

    Args:
        data: The file.
        size: Bytes of it that are the flatbuffer.
        kinds: Of its tables, by name.
    """

    __slots__ = (*("_budget", "_kinds", "_numbers", "_strings", "_vtables"), *("data", "size"))

    def __init__(self, data: bytes, size: int, kinds: Mapping[str, Kind]) -> None:
        self.data = data
        self.size = min(size, len(data))
        self._kinds = kinds
        self._budget = _MOST_READS * self.size + 4096
        self._strings: dict[int, str] = {}
        self._numbers: dict[tuple[int, str], tuple[int, ...]] = {}
        self._vtables: dict[int, tuple[int, ...]] = {}

    def root(self) -> Table:
        """The root table, which is of the first kind.

        Raises:
            DecodeError: Its offset points outside the buffer.
        """
        return self.table_at(self.target(0), next(iter(self._kinds)))

    def table_at(self, position: int, kind: str) -> Table:
        """The table at a byte position.

        Raises:
            DecodeError: The table or its vtable is not inside the buffer.
            NewerError: It has a field that the kind does not have.
        """
        end = self.size
        if position + 4 > end:
            raise _outside("a table", position)
        vtable = position - _INT32.unpack_from(self.data, position)[0]
        known = self._vtables.get(vtable)
        if known is None:
            known = self._vtables[vtable] = self._read_vtable(vtable)
        self.charge(8)
        found = self._kinds[kind]
        if len(known) > len(found.fields):
            self._reject_newer(known, found)
        return Table(self, position, known, found)

    def _reject_newer(self, slots: tuple[int, ...], kind: Kind) -> None:
        """Refuse fields behind those of a kind.

        Writers leave out defaults, so a field that is present means something, and its
        type is unknown.
        """
        for slot in range(len(kind.fields), len(slots)):
            if slots[slot]:
                names = ", ".join(kind.fields)
                raise NewerError(
                    "the file has a field that this version does not know",
                    found=f"field {slot} of table {kind.name}",
                    expected=f"fields 0 to {len(kind.fields) - 1} ({names})"
                    if kind.fields
                    else "no fields",
                )

    def _read_vtable(self, position: int) -> tuple[int, ...]:
        if position < 0 or position + 4 > self.size:
            raise _outside("a vtable", position)
        if position % 2:
            # The device reads its entries in place.
            raise DecodeError("a vtable is not aligned", found=f"at byte {position}")
        # The size of the table says nothing: the builder in Python shares vtables
        # between tables of different sizes.
        vtable_bytes, _ = _UINT16X2.unpack_from(self.data, position)
        if (
            not _VTABLE_HEAD <= vtable_bytes <= _MOST_VTABLE
            or vtable_bytes % 2
            or position + vtable_bytes > self.size
        ):
            raise DecodeError(
                "a vtable has an impossible size", found=f"{vtable_bytes} bytes at byte {position}"
            )
        self.charge(vtable_bytes)
        slots = (vtable_bytes - _VTABLE_HEAD) // 2
        return unpack_from(f"<{slots}H", self.data, position + _VTABLE_HEAD)

    def target(self, position: int) -> int:
        """Where the offset at a byte position leads.

        Raises:
            DecodeError: The offset is zero or leads outside the buffer.
        """
        if position + 4 > self.size:
            raise _outside("an offset", position)
        offset: int = _UINT32.unpack_from(self.data, position)[0]
        if offset == 0 or position + offset >= self.size:
            raise DecodeError(
                "an offset points outside the program",
                found=f"offset {offset} at byte {position}",
                expected=f"1 to {self.size - position - 1}",
            )
        return position + offset

    def vector(self, position: int, item_bytes: int) -> tuple[int, int]:
        """(position of the first item, count of items) of the vector at `position`.

        Raises:
            DecodeError: It leaves the buffer, or is not aligned to its items.
        """
        start = position + 4
        if start > self.size:
            raise _outside("a vector", position)
        count: int = _UINT32.unpack_from(self.data, position)[0]
        if count > (self.size - start) // item_bytes:
            raise DecodeError(
                "a vector runs past the end of the program",
                found=f"{count} items of {item_bytes} bytes at byte {position}",
                expected=f"at most {(self.size - start) // item_bytes} items",
            )
        if start % item_bytes and count:
            # The device reads vectors in place.
            raise DecodeError(
                "a vector is not aligned to its items",
                found=f"{item_bytes}-byte items at byte {start}",
            )
        return start, count

    def charge(self, size_bytes: int) -> None:
        """Count bytes as decoded.

        Raises:
            DecodeError: Far more was decoded than the buffer is long.
        """
        self._budget -= size_bytes
        if self._budget < 0:
            raise DecodeError(
                "the program refers to the same bytes over and over",
                found=f"more than {_MOST_READS} reads per byte",
            )

    def numbers_at(self, position: int, code: str, width: int) -> tuple[int, ...]:
        """The vector of numbers at a byte position.

        Raises:
            DecodeError: It leaves the buffer, or is not aligned to its items.
        """
        known = self._numbers.get((position, code))
        if known is not None:
            return known
        start, count = self.vector(position, width)
        self.charge(count * width)
        found = unpack_from(f"<{count}{code}", self.data, start)
        self._numbers[position, code] = found
        return found

    def string_at(self, position: int) -> str:
        """The string at a byte position.

        Raises:
            DecodeError: It leaves the buffer or is not UTF-8.
        """
        known = self._strings.get(position)
        if known is not None:
            return known
        start, count = self.vector(position, 1)
        self.charge(count)
        try:
            text = self.data[start : start + count].decode()
        except UnicodeDecodeError as error:
            raise DecodeError(
                "a string is not UTF-8", found=f"{error.reason} at byte {position}"
            ) from error
        self._strings[position] = text
        return text


class Table:
    """One table; fields are named by their slot, the position in the schema.

    A union takes two slots: its type, then its value. Every method raises
    DecodeError if the field does not lie inside the buffer. A missing scalar is
    its default; a missing table, vector or string is None.
    """

    __slots__ = ("_buffer", "_fields", "_kind", "position")

    def __init__(self, buffer: Buffer, position: int, fields: tuple[int, ...], kind: Kind) -> None:
        self._buffer = buffer
        self.position = position
        self._fields = fields
        self._kind = kind

    def _field(self, slot: int, width: int) -> int:
        """Byte position of a field; 0 if it is missing."""
        if slot >= len(self._fields):
            return 0
        offset = self._fields[slot]
        if offset == 0:
            return 0
        most = self._buffer.size - self.position - width
        if offset < _VTABLE_HEAD or offset > most:
            raise DecodeError(
                "a field lies outside the program",
                found=f"offset {offset} in the table at byte {self.position}",
                expected=f"4 to {most}",
            )
        return self.position + offset

    def _target(self, slot: int) -> int:
        """Byte position a reference leads to; 0 if it is missing."""
        at = self._field(slot, 4)
        return self._buffer.target(at) if at else 0

    def place(self, slot: int, width: int) -> int:
        """Byte position of a field of so many bytes; 0 if it is missing."""
        return self._field(slot, width)

    def uint8(self, slot: int) -> int:
        """An unsigned byte, or an enum stored as one."""
        at = self._field(slot, 1)
        return self._buffer.data[at] if at else 0

    def int8(self, slot: int) -> int:
        """A signed byte."""
        at = self._field(slot, 1)
        return int(_INT8.unpack_from(self._buffer.data, at)[0]) if at else 0

    def boolean(self, slot: int) -> bool:
        """A truth value; every byte but zero is true."""
        return self.uint8(slot) != 0

    def int32(self, slot: int) -> int:
        """A signed 32-bit integer."""
        at = self._field(slot, 4)
        return int(_INT32.unpack_from(self._buffer.data, at)[0]) if at else 0

    def uint32(self, slot: int) -> int:
        """An unsigned 32-bit integer."""
        at = self._field(slot, 4)
        return int(_UINT32.unpack_from(self._buffer.data, at)[0]) if at else 0

    def int64(self, slot: int) -> int:
        """A signed 64-bit integer."""
        at = self._field(slot, 8)
        return int(_INT64.unpack_from(self._buffer.data, at)[0]) if at else 0

    def uint64(self, slot: int) -> int:
        """An unsigned 64-bit integer."""
        at = self._field(slot, 8)
        return int(_UINT64.unpack_from(self._buffer.data, at)[0]) if at else 0

    def float64(self, slot: int) -> float:
        """A double."""
        at = self._field(slot, 8)
        return float(_FLOAT64.unpack_from(self._buffer.data, at)[0]) if at else 0.0

    def string(self, slot: int) -> str | None:
        """A string."""
        at = self._target(slot)
        return self._buffer.string_at(at) if at else None

    def table(self, slot: int) -> Table | None:
        """A table."""
        at = self._target(slot)
        return self._buffer.table_at(at, self._kind_at(slot)) if at else None

    def entry(self, slot: int, position: int) -> Table:
        """A table of a vector of tables: the one the offset at a position leads to."""
        buffer = self._buffer
        return buffer.table_at(buffer.target(position), self._kind_at(slot))

    def _kind_at(self, slot: int) -> str:
        name = self._kind.tables[slot]
        members = UNIONS.get(name)
        if members is None:
            return name
        number = self.uint8(slot - 1)
        if not 1 <= number <= len(members):
            raise DecodeError(
                f"the {name} of a table are of an unknown kind",
                found=f"kind {number}",
                expected=f"1 to {len(members)}",
            )
        return members[number - 1]

    def _numbers(self, slot: int, code: str, width: int) -> tuple[int, ...] | None:
        at = self._target(slot)
        if not at:
            return None
        return self._buffer.numbers_at(at, code, width)

    def int32s(self, slot: int) -> tuple[int, ...] | None:
        """A vector of signed 32-bit integers."""
        return self._numbers(slot, "i", 4)

    def int64s(self, slot: int) -> tuple[int, ...] | None:
        """A vector of signed 64-bit integers."""
        return self._numbers(slot, "q", 8)

    def uint64s(self, slot: int) -> tuple[int, ...] | None:
        """A vector of unsigned 64-bit integers."""
        return self._numbers(slot, "Q", 8)

    def float64s(self, slot: int) -> tuple[float, ...] | None:
        """A vector of doubles."""
        return self._numbers(slot, "d", 8)

    def uint8s(self, slot: int) -> bytes | None:
        """A vector of bytes, copied."""
        span = self.span(slot)
        if span is None:
            return None
        start, count = span
        self._buffer.charge(count)
        return self._buffer.data[start : start + count]

    def span(self, slot: int) -> tuple[int, int] | None:
        """(position of the first byte, count) of a vector of bytes, not copied."""
        at = self._target(slot)
        return self._buffer.vector(at, 1) if at else None

    def entries(self, slot: int) -> range | None:
        """Where the offsets of a vector of tables lie, for `entry`.

        The tables are not looked at, so that one damaged table does not hide the
        others.
        """
        at = self._target(slot)
        if not at:
            return None
        start, count = self._buffer.vector(at, 4)
        self._buffer.charge(count * 4)
        return range(start, start + 4 * count, 4)


def _outside(what: str, position: int) -> DecodeError:
    return DecodeError(f"{what} lies outside the program", found=f"byte {position}")
