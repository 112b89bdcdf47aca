"""Decodes a flatbuffer into a `Program`; its meaning is checked later.

Slots and union numbers are those of ExecuTorch `schema/program.fbs` (ET12).

ExecuTorch 1.6 plans scratch memory for calls of delegates beside the values of a
method: bytes of an arena that one call has for itself. Here it becomes values, tensors
of bytes that the call names last, so that everything that follows what calls touch sees
it too. Source: ExecuTorch pull request 21985, `DelegateCall.scratch` and
`DelegateScratch`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from orchestrator.core.dtype import ScalarType
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.core.operator import OperatorName
from orchestrator.program.problems import (
    DecodeError,
    NewerError,
    Problems,
    UnsupportedError,
    method_place,
)
from orchestrator.program.program import (
    BufferDevice,
    CompileSpec,
    ContainerMetadata,
    Delegate,
    DelegateCall,
    ExtendedHeader,
    Frame,
    FreeCall,
    Instruction,
    JumpFalseCall,
    KernelCall,
    Method,
    MoveCall,
    NamedData,
    Program,
    Segment,
    SubsegmentOffsets,
    UnknownInstruction,
)
from orchestrator.program.values import (
    Allocation,
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    Dynamism,
    ExtraTensorInfo,
    IntListValue,
    IntValue,
    NoneValue,
    OptionalTensorListValue,
    StringValue,
    TensorListValue,
    TensorValue,
    UnknownValue,
    Value,
)

if TYPE_CHECKING:
    from orchestrator.program.flatbuffer import Buffer, Table

T = TypeVar("T")


def decode_program(
    buffer: Buffer, data: Bytes, *, header: ExtendedHeader | None, problems: Problems
) -> Program:
    """Decode the flatbuffer at the start of a file.

    Everything is decoded, also what no method uses. What cannot be decoded is noted
    in `problems`. In the place of a value or an instruction is then an unknown one, so
    that the rest can be checked; everything else is left out. Either way the result
    must not be used if there are problems.

    Args:
        buffer: The flatbuffer.
        data: The file.
        header: Its header.
        problems: Get what cannot be decoded.

    Raises:
        DecodeError: The root table is damaged.
    """
    return _Decoder(buffer, data, problems).program(buffer.root(), header)


class _Decoder:
    def __init__(self, buffer: Buffer, data: Bytes, problems: Problems) -> None:
        self._buffer = buffer
        self._data = data
        self._problems = problems
        self._has_scratch = False

    def program(self, root: Table, header: ExtendedHeader | None) -> Program:
        constants = root.table(5)
        methods = self._each(root, 1, "method", self._method)
        return Program(
            version=root.uint32(0),
            header=header,
            methods=methods,
            inline_constants=self._each(root, 2, "constant", _inline_data),
            inline_data=self._each(root, 3, "delegate data", _inline_data),
            segments=self._each(root, 4, "segment", _segment),
            constants=None if constants is None else _subsegments(constants),
            mutable_segments=self._each(root, 6, "mutable segment", _subsegments),
            named_data=self._each(root, 7, "named data", _named_data),
            data=self._data,
            original=self._data if self._has_scratch else None,
        )

    def _each(
        self,
        table: Table,
        slot: int,
        place: str,
        decode: Callable[[Table], T],
        *,
        instead: Callable[[], T] | None = None,
    ) -> tuple[T, ...]:
        """Decode a vector of tables, noting the damaged ones."""
        entries = table.entries(slot)
        if entries is None:
            return ()
        decoded = []
        for index, entry in enumerate(entries):
            try:
                decoded.append(decode(table.entry(slot, entry)))
            except DecodeError as error:
                self._problems.undecodable(error, f"{place} {index}")
                if instead is None:
                    self._problems.has_gaps = True
                else:
                    decoded.append(instead())
        return tuple(decoded)

    def _method(self, table: Table) -> Method:
        name = required(table.string(0), "the name of a method")
        self._buffer.charge(len(name))
        place = method_place(name)
        try:
            return self._method_body(table, name, place)
        except DecodeError as error:
            self._problems.undecodable(error, place)
            self._problems.has_gaps = True
        return Method(
            name=name,
            values=(),
            inputs=(),
            outputs=(),
            instructions=(),
            operators=(),
            delegates=(),
            arena_bytes=(),
        )

    def _method_body(self, table: Table, name: str, place: str) -> Method:
        required(table.entries(2), "the list of values")
        required(table.entries(6), "the list of operators")

        def delegate(found: Table) -> Delegate:
            return self._delegate(found, place)

        def frames(found: Table) -> tuple[Frame, ...]:
            return self._each(found, 0, f"{place}, frame", _frame)

        container, chain = table.table(1), self._chain(table)
        arena_bytes = required(table.int64s(8), "the list of arena sizes")
        values: list[Value] = [
            *self._each(table, 2, f"{place}, value", decode_value, instead=_unknown_value)
        ]
        count = len(values)
        # These add scratch memory of delegates behind the values of the file.
        instructions = self._each(
            chain,
            2,
            f"{place}, instruction",
            lambda found: _instruction(found, arena_bytes, values),
            instead=_unknown_instruction,
        )
        self._has_scratch |= len(values) > count
        return Method(
            name=name,
            container=None if container is None else _container(container),
            values=tuple(values),
            inputs=required(table.int32s(3), "the list of inputs"),
            outputs=required(table.int32s(4), "the list of outputs"),
            instructions=instructions,
            operators=self._each(table, 6, f"{place}, operator", self._operator),
            delegates=self._each(table, 7, f"{place}, delegate", delegate),
            arena_bytes=arena_bytes,
            arena_devices=self._each(table, 9, f"{place}, arena device", _device),
            frames=self._each(chain, 3, f"{place}, frames", frames),
        )

    def _chain(self, table: Table) -> Table:
        """The only chain of a method; its own inputs and outputs mean nothing."""
        chains = table.entries(5) or ()
        if len(chains) != 1:
            raise UnsupportedError(
                "a method has not exactly one chain of instructions",
                found=f"{len(chains)} chains",
                expected="1 chain",
                hint="export the model again with ExecuTorch's own exporter",
            )
        chain = table.entry(5, chains[0])
        required(chain.entries(2), "the list of instructions")
        return chain

    def _operator(self, table: Table) -> OperatorName:
        name = required(table.string(0), "the name of an operator")
        overload = table.string(1) or ""
        # Texts are remembered, so that many operators may share a long one.
        self._buffer.charge(len(name) + len(overload))
        return _operator(f"{name}.{overload}" if overload else name)

    def _delegate(self, table: Table, place: str) -> Delegate:
        data = required(table.table(1), "the data of a delegate")
        location = data.int8(0)
        if location not in (0, 1):
            raise DecodeError(
                "the data of a delegate is at an unknown location",
                found=f"location {location}",
                expected="0 (inline) or 1 (segment)",
            )
        return Delegate(
            backend=required(table.string(0), "the backend of a delegate"),
            is_inline=location == 0,
            data_index=data.uint32(1),
            compile_specs=self._each(table, 2, f"{place}, compile spec", _compile_spec),
        )


def _unknown_value() -> Value:
    return UnknownValue()


def _unknown_instruction() -> Instruction:
    return UnknownInstruction(value=-1)


def _instruction(table: Table, arena_bytes: Sequence[int], values: list[Value]) -> Instruction:
    kind = table.uint8(0)
    if not 1 <= kind <= _INSTRUCTION_KINDS:
        raise NewerError(
            "an instruction is of an unknown kind",
            found=f"kind {kind}",
            expected=f"1 to {_INSTRUCTION_KINDS}",
        )
    body = required(table.table(1), "the content of an instruction")
    match kind:
        case 1:
            args = required(body.int32s(1), "the list of arguments")
            return KernelCall(operator=body.int32(0), args=args)
        case 2:
            args = required(body.int32s(1), "the list of arguments")
            first = len(values)
            values += scratch_tensors(body, arena_bytes)
            return DelegateCall(
                delegate=body.int32(0),
                args=(*args, *range(first, len(values))),
                scratch_count=len(values) - first,
            )
        case 3:
            return MoveCall(source=body.int32(0), target=body.int32(1))
        case 4:
            return JumpFalseCall(condition=body.int32(0), destination=body.int32(1))
        case _:
            return FreeCall(value=body.int32(0))


_INSTRUCTION_KINDS: Final = 5


def _operator(text: str) -> OperatorName:
    try:
        operator = OperatorName.parse(text)
    except ValueError as error:
        raise _bad_operator(text) from error
    if str(operator) != text:  # no namespace, or a dot too many
        raise _bad_operator(text)
    return operator


def _bad_operator(text: str) -> DecodeError:
    return DecodeError(
        "an operator has an impossible name",
        found=f'"{text}"',
        expected="namespace::name or namespace::name.overload",
    )


def _frame(table: Table) -> Frame:
    return Frame(
        filename=table.string(0) or "",
        line=table.int32(1),
        name=table.string(2) or "",
        context=table.string(3) or "",
    )


def _container(table: Table) -> ContainerMetadata:
    return ContainerMetadata(inputs=table.string(0) or "", outputs=table.string(1) or "")


def _device(table: Table) -> BufferDevice:
    return BufferDevice(
        buffer_index=table.int32(0), device_type=table.int8(1), device_index=table.int8(2)
    )


def _compile_spec(table: Table) -> CompileSpec:
    return CompileSpec(
        key=required(table.string(0), "the key of a compile spec"), value=table.uint8s(1) or b""
    )


def _inline_data(table: Table) -> tuple[int, int]:
    return table.span(0) or (0, 0)


def _segment(table: Table) -> Segment:
    return Segment(offset=table.uint64(0), size_bytes=table.uint64(1))


def _subsegments(table: Table) -> SubsegmentOffsets:
    return SubsegmentOffsets(segment_index=table.uint32(0), offsets=table.uint64s(1) or ())


def _named_data(table: Table) -> NamedData:
    return NamedData(
        key=required(table.string(0), "the key of named data"), segment_index=table.uint32(1)
    )


_NONE: Final = NoneValue()
_DTYPES: Final = {int(dtype): dtype for dtype in ScalarType}
_DYNAMISMS: Final = {int(dynamism): dynamism for dynamism in Dynamism}


def required(field: T | None, what: str) -> T:
    """A field that every program has.

    Raises:
        DecodeError: It is missing.
    """
    if field is None:
        raise DecodeError(f"{what} is missing", found="nothing")
    return field


def decode_value(evalue: Table) -> Value:
    """The value in an `EValue` table.

    Raises:
        DecodeError: It is damaged, or of a kind, dtype or layout unknown here.
    """
    kind = evalue.uint8(0)
    decode = _DECODERS.get(kind)
    if decode is None:
        raise NewerError("a value is of an unknown kind", found=f"kind {kind}", expected="1 to 11")
    return decode(required(evalue.table(1), "the content of a value"))


def _tensor(body: Table) -> TensorValue:
    code, dynamism = body.int8(0), body.int8(8)
    if code not in _DTYPES:
        raise DecodeError("a tensor has an unknown dtype", found=f"dtype {code}")
    dtype = _DTYPES[code]
    storage_offset, layout = body.int32(1), body.int8(7)
    if storage_offset != 0 or layout != 0:
        raise UnsupportedError(
            "a tensor is not stored densely from the start of its buffer",
            found=f"storage offset {storage_offset}, layout {layout}",
            expected="storage offset 0, layout 0 (strided)",
            hint="make the tensor contiguous before exporting the model",
        )
    if dynamism not in _DYNAMISMS:
        raise DecodeError(
            "a tensor has an unknown dynamism", found=f"dynamism {dynamism}", expected="0, 1 or 2"
        )
    allocation, extra = body.table(6), body.table(9)
    return TensorValue(
        dtype=dtype,
        sizes=required(body.int32s(2), "the list of sizes of a tensor"),
        dim_order=tuple(required(body.uint8s(3), "the dim order of a tensor")),
        requires_grad=body.boolean(4),
        data_buffer_index=body.uint32(5),
        allocation=None if allocation is None else allocation_of(allocation),
        dynamism=_DYNAMISMS[dynamism],
        extra=None if extra is None else _extra(extra),
    )


def allocation_of(body: Table) -> Allocation:
    """The place in an `AllocationDetails` table."""
    return Allocation(memory_id=body.uint32(0), offset_bytes=body.uint32(2) << 32 | body.uint32(1))


def _extra(body: Table) -> ExtraTensorInfo:
    location = body.int8(2)
    if location not in (0, 1):
        raise DecodeError(
            "a tensor is stored at an unknown location",
            found=f"location {location}",
            expected="0 (segment) or 1 (external)",
        )
    return ExtraTensorInfo(
        mutable_segment_index=body.uint64(0),
        qualified_name=body.string(1) or "",
        is_external=location == 1,
        device_type=body.int8(3),
        device_index=body.int8(4),
    )


def _bool_list(body: Table) -> BoolListValue:
    items = required(body.uint8s(0), "the list of items of a bool list")
    return BoolListValue(tuple(item != 0 for item in items))


_DECODERS: Final[dict[int, Callable[[Table], Value]]] = {
    1: lambda _: _NONE,
    2: lambda body: IntValue(body.int64(0)),
    3: lambda body: BoolValue(body.boolean(0)),
    4: lambda body: DoubleValue(body.float64(0)),
    5: _tensor,
    6: lambda body: StringValue(required(body.string(0), "the text of a string")),
    7: lambda body: IntListValue(required(body.int64s(0), "the list of items of an int list")),
    8: lambda body: DoubleListValue(
        required(body.float64s(0), "the list of items of a double list")
    ),
    9: _bool_list,
    10: lambda body: TensorListValue(
        required(body.int32s(0), "the list of items of a tensor list")
    ),
    11: lambda body: OptionalTensorListValue(
        required(body.int32s(0), "the list of items of a list of optional tensors")
    ),
}


SCRATCH: Final = 2
"""Slot of `DelegateCall`."""


def scratch_tensors(call: Table, arena_bytes: Sequence[int]) -> tuple[TensorValue, ...]:
    """Scratch memory of a call, as tensors, in the order of the file.

    Args:
        call: The `DelegateCall`.
        arena_bytes: Size of the arena of each memory id.

    Raises:
        DecodeError: Some of it is damaged, or does not lie inside an arena.
    """
    return tuple(
        _scratch_tensor(call.entry(SCRATCH, at), arena_bytes) for at in call.entries(SCRATCH) or ()
    )


def _scratch_tensor(scratch: Table, arena_bytes: Sequence[int]) -> TensorValue:
    """The one way to read a table that gives bytes of an arena.

    The table has a size and a place. Which of them comes first is not known from what
    is published so far, so both orders are tried, and a table that can be read in both
    is refused.
    """
    found = []
    newer: DecodeError | None = None
    for size_slot, place_slot in ((0, 1), (1, 0)):
        try:
            place = scratch.table(place_slot)
            allocation = None if place is None else allocation_of(place)
            size = scratch.uint32(size_slot)
        except NewerError as error:
            newer = error
            continue
        except DecodeError:
            continue
        if allocation is None or not 1 <= allocation.memory_id < len(arena_bytes):
            continue
        if allocation.offset_bytes + size <= arena_bytes[allocation.memory_id]:
            found.append((size, allocation))
    if len(found) != 1:
        raise newer or DecodeError(
            "scratch memory of a delegate does not lie inside an arena",
            found=f"the table at byte {scratch.position}",
            expected="a size, and a place in an arena that has so many bytes there",
        )
    (size, allocation) = found[0]
    return TensorValue(
        dtype=ScalarType.Byte,
        sizes=(size,),
        dim_order=(0,),
        requires_grad=False,
        data_buffer_index=0,
        allocation=allocation,
        dynamism=Dynamism.STATIC,
        extra=None,
    )
