"""Bounds-checked access to an untrusted flatbuffer.

Built on `struct` and not on the `flatbuffers` package: that one trusts every offset,
and importing it imports numpy where it is installed, which takes longer than reading
the largest program. The tests hold both to the same bytes.

Source: flatbuffers `docs/source/internals.md` (binary encoding).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from struct import Struct, unpack_from
from typing import Any, Final

from orchestrator.program.problems import DecodeError, NewerError

# Known fields of each table: the one list of them.
#
# What a newer ExecuTorch adds is appended to a table, under the same file identifier; a reader
# that ignores it may run a program that means something else. So every table is compared with
# this list where it is read. The counts in runtime/src/flatbuffer.h are held equal by a test.
#
# Source: ExecuTorch `schema/program.fbs` (ET12), with the scratch memory of delegates of
# ExecuTorch 1.6, and `extension/flat_tensor/serialize/flat_tensor.fbs` (FT01).


# Order is the format: a new member comes at the end, and readers that do not know it
# must refuse it.
UNIONS: Final = {
    "KernelTypes": (
        *("Null", "Int", "Bool", "Double", "Tensor", "String", "IntList"),
        *("DoubleList", "BoolList", "TensorList", "OptionalTensorList"),
    ),
    "InstructionArguments": (
        *("KernelCall", "DelegateCall", "MoveCall", "JumpFalseCall", "FreeCall"),
    ),
}
"""Members by union; they are numbered from 1, in the field before that of the union."""

_IN_A_UNION: Final = {"KernelTypes": "a value", "InstructionArguments": "an instruction"}
"""What a member is, for messages."""

NUMBERS: Final = {
    "bool": Struct("<?"),
    "byte": Struct("<b"),
    "ubyte": Struct("<B"),
    "int": Struct("<i"),
    "uint": Struct("<I"),
    "long": Struct("<q"),
    "ulong": Struct("<Q"),
    "double": Struct("<d"),
}
"""Types of numbers, by the names that schemas have for them."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of table.

    Args:
        name: In the schema.
        types: Type of each field by its name, in the order of their slots: of `NUMBERS`,
            `string`, `data` (bytes that stay in the file), a kind of table, a union, or
            in brackets a vector of numbers or tables. A union takes two slots, its type
            and its value.
    """

    name: str
    types: Mapping[str, str]
    # Computed once per kind: a program has thousands of tables of some thirty kinds.
    layout: Mapping[str, tuple[int, str, Struct | None]] = field(init=False)
    """By name of a field: its slot, its type, and how a number is stored."""

    def __post_init__(self) -> None:
        layout = {n: (at, t, NUMBERS.get(t)) for at, (n, t) in enumerate(self.types.items())}
        object.__setattr__(self, "layout", layout)


def _kinds(text: str) -> dict[str, Kind]:
    """Kinds of lines `name: field:type ...`."""
    found = {}
    for line in text.strip().splitlines():
        name, _, fields = line.strip().partition(":")
        pairs = [field.partition(":") for field in fields.split()]
        found[name] = Kind(name, {field: type_ for field, _, type_ in pairs})
    return found


PROGRAM: Final = _kinds("""
    Program: version:uint execution_plan:[ExecutionPlan] constant_buffer:[Buffer]\
 backend_delegate_data:[BackendDelegateInlineData] segments:[DataSegment]\
 constant_segment:SubsegmentOffsets mutable_data_segments:[SubsegmentOffsets]\
 named_data:[NamedData]
    ExecutionPlan: name:string container_meta_type:ContainerMetadata values:[EValue]\
 inputs:[int] outputs:[int] chains:[Chain] operators:[Operator]\
 delegates:[BackendDelegate] non_const_buffer_sizes:[long]\
 non_const_buffer_device:[NonConstBufferDevice]
    ContainerMetadata: encoded_inp_str:string encoded_out_str:string
    NonConstBufferDevice: buffer_idx:int device_type:byte device_index:byte
    Chain: inputs:[int] outputs:[int] instructions:[Instruction] stacktrace:[FrameList]
    FrameList: items:[Frame]
    Frame: filename:string lineno:int name:string context:string
    Operator: name:string overload:string
    BackendDelegate: id:string processed:BackendDelegateDataReference\
 compile_specs:[CompileSpec]
    BackendDelegateDataReference: location:byte index:uint
    CompileSpec: key:string value:[ubyte]
    Instruction: instr_args_type:ubyte instr_args:InstructionArguments
    KernelCall: op_index:int args:[int]
    DelegateCall: delegate_index:int args:[int] scratch:[DelegateScratch]
    DelegateScratch: size:uint allocation:AllocationDetails
    MoveCall: move_from:int move_to:int
    JumpFalseCall: cond_value_index:int destination_instruction:int
    FreeCall: value_index:int
    EValue: val_type:ubyte val:KernelTypes
    Null:
    Int: int_val:long
    Bool: bool_val:bool
    Double: double_val:double
    String: string_val:string
    IntList: items:[long]
    DoubleList: items:[double]
    BoolList: items:[ubyte]
    TensorList: items:[int]
    OptionalTensorList: items:[int]
    Tensor: scalar_type:byte storage_offset:int sizes:[int] dim_order:[ubyte]\
 requires_grad:bool data_buffer_idx:uint allocation_info:AllocationDetails layout:byte\
 shape_dynamism:byte extra_tensor_info:ExtraTensorInfo
    AllocationDetails: memory_id:uint memory_offset_low:uint memory_offset_high:uint
    ExtraTensorInfo: mutable_data_segments_idx:ulong fully_qualified_name:string\
 location:byte device_type:byte device_index:byte
    Buffer: storage:data
    BackendDelegateInlineData: data:data
    DataSegment: offset:ulong size:ulong
    SubsegmentOffsets: segment_index:uint offsets:[ulong]
    NamedData: key:string segment_index:uint
""")
"""Tables of programs, by name.

Of the two fields of `DelegateScratch` the other may come first, see `decode.py`.
"""

DATA_FILE: Final = _kinds("""
    FlatTensor: version:uint segments:[DataSegment] named_data:[NamedData]
    DataSegment: offset:ulong size:ulong
    NamedData: key:string segment_index:uint tensor_layout:TensorLayout
    TensorLayout: scalar_type:byte sizes:[int] dim_order:[ubyte]
""")
"""Tables of data files, by name."""

_REQUIRED: Final = {
    "ExecutionPlan.name": "the name of a method",
    "ExecutionPlan.values": "the list of values",
    "ExecutionPlan.inputs": "the list of inputs",
    "ExecutionPlan.outputs": "the list of outputs",
    "ExecutionPlan.operators": "the list of operators",
    "ExecutionPlan.non_const_buffer_sizes": "the list of arena sizes",
    "Chain.instructions": "the list of instructions",
    "Operator.name": "the name of an operator",
    "BackendDelegate.id": "the backend of a delegate",
    "BackendDelegate.processed": "the data of a delegate",
    "CompileSpec.key": "the key of a compile spec",
    "NamedData.key": "the key of named data",
    "Instruction.instr_args": "the content of an instruction",
    "KernelCall.args": "the list of arguments",
    "DelegateCall.args": "the list of arguments",
    "EValue.val": "the content of a value",
    "String.string_val": "the text of a string",
    "IntList.items": "the list of items of an int list",
    "DoubleList.items": "the list of items of a double list",
    "BoolList.items": "the list of items of a bool list",
    "TensorList.items": "the list of items of a tensor list",
    "OptionalTensorList.items": "the list of items of a list of optional tensors",
    "Tensor.sizes": "the list of sizes of a tensor",
    "Tensor.dim_order": "the dim order of a tensor",
}
"""Fields that every program has, as messages name them."""

_INT32: Final = NUMBERS["int"]
_UINT16X2: Final = Struct("<HH")
_UINT32: Final = NUMBERS["uint"]

_VTABLE_HEAD: Final = 4
"""Bytes of a vtable before its entries, and of a table before its fields."""

# Its time to read on the device is bounded so (decision 0015).
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

    __slots__ = ("_budget", "_numbers", "_strings", "_vtables", "data", "kinds", "size")

    def __init__(self, data: bytes, size: int, kinds: Mapping[str, Kind]) -> None:
        self.data = data
        self.size = min(size, len(data))
        self.kinds = kinds
        # The constant lets tiny programs share: an empty method has more offsets than
        # content.
        self._budget = _MOST_READS * self.size + 4096
        # Shared offsets are decoded once, by position.
        self._strings: dict[int, str] = {}
        self._numbers: dict[tuple[int, str], tuple[int, ...]] = {}
        self._vtables: dict[int, tuple[int, ...]] = {}

    def root(self) -> Table:
        """The root table, which is of the first kind.

        Raises:
            DecodeError: Its offset points outside the buffer.
        """
        return self.table_at(self.target(0), next(iter(self.kinds)))

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
        # About what a table costs that is all defaults.
        self.charge(8)
        found = self.kinds[kind]
        # Longer vtables are written by newer schemas, but also by builders that share
        # one between kinds: only a field that is there counts.
        if len(known) > len(found.types):
            self._reject_newer(known, found)
        return Table(self, position, known, found)

    def _reject_newer(self, slots: tuple[int, ...], kind: Kind) -> None:
        """Refuse fields behind those of a kind.

        Writers leave out defaults, so a field that is present means something, and its
        type is unknown.
        """
        for slot in range(len(kind.types), len(slots)):
            if slots[slot]:
                names = ", ".join(kind.types)
                raise NewerError(
                    "the file has a field that this version does not know",
                    found=f"field {slot} of table {kind.name}",
                    expected=f"fields 0 to {len(kind.types) - 1} ({names})"
                    if kind.types
                    else "no fields",
                )

    def _read_vtable(self, position: int) -> tuple[int, ...]:
        if position < 0 or position + 4 > self.size:
            raise _outside("a vtable", position)
        # Where the reader were more patient than the device, a build would accept what
        # does not load.
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
        # Empty vectors are never read: exporters put them anywhere.
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

    def vector_at(self, position: int, type_: str) -> Any:  # noqa: ANN401  # as the type says
        """The text, bytes, numbers or places of tables at a byte position.

        Raises:
            DecodeError: It leaves the buffer, or is not aligned to its items.
        """
        if type_ == "string":
            return self._string_at(position)
        if type_ == "data":
            return self.vector(position, 1)
        number = NUMBERS.get(type_[1:-1])
        if type_ == "[ubyte]" or number is None:
            width = 1 if number else 4
            start, count = self.vector(position, width)
            self.charge(count * width)
            return (
                self.data[start : start + count] if number else range(start, start + 4 * count, 4)
            )
        known = self._numbers.get((position, type_))
        if known is None:
            start, count = self.vector(position, number.size)
            self.charge(count * number.size)
            known = unpack_from(f"<{count}{number.format[1:]}", self.data, start)
            self._numbers[position, type_] = known
        return known

    def _string_at(self, position: int) -> str:
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
    """One table; fields are named as in the schema.

    Every method raises DecodeError if the field does not lie inside the buffer.
    """

    __slots__ = ("_buffer", "_fields", "_kind", "position")

    def __init__(self, buffer: Buffer, position: int, fields: tuple[int, ...], kind: Kind) -> None:
        self._buffer = buffer
        self.position = position
        self._fields = fields
        self._kind = kind

    @property
    def kind(self) -> str:
        """Name of its kind."""
        return self._kind.name

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  # what the schema says
        """A field: a number, a text, bytes, a tuple of numbers or a table.

        Of bytes that stay in the file it is (position, count), and of a vector of tables
        where their offsets lie, for `entry`: one damaged table does not hide the others.
        What is missing is 0, empty, or None for a table.

        Raises:
            DecodeError: Every program has the field, and it is missing here.
        """
        slot, type_, number = self._kind.layout[name]
        if number is not None:
            at = self._place(slot, number)
            return number.unpack_from(self._buffer.data, at)[0] if at else _ABSENT.get(type_, 0)
        member = self._member(name) if type_ in UNIONS else type_
        at = self._place(slot, _UINT32)
        # Absent counts as the default of the schema; a field that has its default may
        # also be written.
        if at:
            target = self._buffer.target(at)
            if member in self._buffer.kinds:
                return self._buffer.table_at(target, member)
            return self._buffer.vector_at(target, member)
        if required := _REQUIRED.get(f"{self.kind}.{name}"):
            raise DecodeError(f"{required} is missing", found="nothing")
        return None if member in self._buffer.kinds else _ABSENT.get(member, ())

    def values(self) -> list[Any]:
        """All fields, in the order of the schema."""
        return [self[name] for name in self._kind.types]

    def seen_as(self, kind: Kind) -> Table:
        """The table, read as one of another kind."""
        return Table(self._buffer, self.position, self._fields, kind)

    def place(self, name: str) -> int:
        """Byte position of a field; 0 if it is missing."""
        slot, _, number = self._kind.layout[name]
        return self._place(slot, number or _UINT32)

    def _place(self, slot: int, number: Struct) -> int:
        offset = self._fields[slot] if slot < len(self._fields) else 0
        if offset == 0:
            return 0
        most = self._buffer.size - self.position - number.size
        # Inside of the file is enough: a field that lies beyond its own table is odd,
        # and read as it is.
        if offset < _VTABLE_HEAD or offset > most:
            raise DecodeError(
                "a field lies outside the program",
                found=f"offset {offset} in the table at byte {self.position}",
                expected=f"4 to {most}",
            )
        return self.position + offset

    def entry(self, name: str, position: int) -> Table:
        """A table of a vector of tables: the one the offset at a position leads to."""
        buffer = self._buffer
        return buffer.table_at(buffer.target(position), self._kind.types[name][1:-1])

    def _member(self, name: str) -> str:
        """The kind of the table that a union is."""
        union = self._kind.types[name]
        number: int = self[f"{name}_type"]
        members = UNIONS[union]
        if not 1 <= number <= len(members):
            raise NewerError(
                f"{_IN_A_UNION[union]} is of an unknown kind",
                found=f"kind {number}",
                expected=f"1 to {len(members)}",
            )
        return members[number - 1]


_ABSENT: Final = {"bool": False, "double": 0.0, "string": "", "[ubyte]": b"", "data": (0, 0)}
"""What is missing, by type; other numbers are 0, other vectors ()."""


def _outside(what: str, position: int) -> DecodeError:
    return DecodeError(f"{what} lies outside the program", found=f"byte {position}")
