"""Decodes a flatbuffer into a `Program`; its meaning is checked later.

ExecuTorch 1.6 plans scratch memory for calls of delegates beside the values of a
method: bytes of an arena that one call has for itself. Here it becomes values, tensors
of bytes that the call names last, so that everything that follows what calls touch sees
it too. Source: ExecuTorch pull request 21985, `DelegateCall.scratch` and
`DelegateScratch`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

from orchestrator.core.dtype import ScalarType
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.core.operator import OperatorName
from orchestrator.program.flatbuffer import Kind
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

RECORDS: Final[Mapping[str, type[Any]]] = {
    "ContainerMetadata": ContainerMetadata,
    "NonConstBufferDevice": BufferDevice,
    "Frame": Frame,
    "CompileSpec": CompileSpec,
    "DataSegment": Segment,
    "SubsegmentOffsets": SubsegmentOffsets,
    "NamedData": NamedData,
    "KernelCall": KernelCall,
    "MoveCall": MoveCall,
    "JumpFalseCall": JumpFalseCall,
    "FreeCall": FreeCall,
    "Null": NoneValue,
    "Int": IntValue,
    "Bool": BoolValue,
    "Double": DoubleValue,
    "String": StringValue,
    "IntList": IntListValue,
    "DoubleList": DoubleListValue,
    "BoolList": BoolListValue,
    "TensorList": TensorListValue,
    "OptionalTensorList": OptionalTensorListValue,
}
"""Classes whose fields are those of a kind of table, in its order."""


FIELDS: Final[Mapping[type[Any], tuple[str, ...]]] = {
    record: tuple(field.name for field in fields(record))
    for record in (*RECORDS.values(), ExtraTensorInfo)
}
"""Names of their fields; those of `ExtraTensorInfo` have the order of its table, too."""


def _record(table: Table) -> Any:  # noqa: ANN401  # of the class of its kind
    """A table as an instance of its class."""
    # Most tables are read as they are; those that need more have a function of their
    # own below.
    record = RECORDS[table.kind]
    return record(**dict(zip(FIELDS[record], table.values(), strict=True)))


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
        # The order of reading is that of problems: what every program has comes first.
        constants = root["constant_segment"]
        methods = self._each(root, "execution_plan", "method", self._method)
        return Program(
            version=root["version"],
            header=header,
            methods=methods,
            inline_constants=self._each(root, "constant_buffer", "constant", _inline_data),
            inline_data=self._each(root, "backend_delegate_data", "delegate data", _inline_data),
            segments=self._each(root, "segments", "segment", _record),
            constants=constants and _record(constants),
            mutable_segments=self._each(root, "mutable_data_segments", "mutable segment", _record),
            named_data=self._each(root, "named_data", "named data", _record),
            data=self._data,
            original=self._data if self._has_scratch else None,
        )

    def _each(
        self,
        table: Table,
        field: str,
        place: str,
        decode: Callable[[Table], T],
        *,
        instead: Callable[[], T] | None = None,
    ) -> tuple[T, ...]:
        """Decode a vector of tables, noting the damaged ones."""
        decoded = []
        for index, entry in enumerate(table[field]):
            try:
                decoded.append(decode(table.entry(field, entry)))
            except DecodeError as error:
                self._problems.undecodable(error, f"{place} {index}")
                if instead is None:
                    self._problems.has_gaps = True
                else:
                    # Something in the place of each damaged value, so that indices of
                    # the others stay right and their problems are found in the same
                    # run.
                    decoded.append(instead())
        return tuple(decoded)

    def _method(self, table: Table) -> Method:
        name = table["name"]
        # A name is part of a message for each of its method's values: it counts again
        # for each method that shares it.
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
        # A method without them is an error of its own, before those of what else it has.
        for field in ("values", "operators"):
            table[field]

        def delegate(found: Table) -> Delegate:
            return self._delegate(found, place)

        def frames(found: Table) -> tuple[Frame, ...]:
            return self._each(found, "items", f"{place}, frame", _record)

        # A missing chain before all values: damaged values would hide it behind
        # thousands of problems.
        container, chain = table["container_meta_type"], self._chain(table)
        arena_bytes = table["non_const_buffer_sizes"]
        values: list[Value] = [
            *self._each(table, "values", f"{place}, value", decode_value, instead=UnknownValue)
        ]
        count = len(values)
        # These add scratch memory of delegates behind the values of the file.
        instructions = self._each(
            chain,
            "instructions",
            f"{place}, instruction",
            lambda found: _instruction(found, arena_bytes, values),
            instead=lambda: UnknownInstruction(value=-1),
        )
        self._has_scratch |= len(values) > count
        return Method(
            name=name,
            container=container and _record(container),
            values=tuple(values),
            inputs=table["inputs"],
            outputs=table["outputs"],
            instructions=instructions,
            operators=self._each(table, "operators", f"{place}, operator", self._operator),
            delegates=self._each(table, "delegates", f"{place}, delegate", delegate),
            arena_bytes=arena_bytes,
            arena_devices=self._each(
                table, "non_const_buffer_device", f"{place}, arena device", _record
            ),
            frames=self._each(chain, "stacktrace", f"{place}, frames", frames),
        )

    def _chain(self, table: Table) -> Table:
        """The only chain of a method; its own inputs and outputs mean nothing."""
        chains = table["chains"]
        # ExecuTorch's exporter (exir/emit) writes one; its own runtime runs several in
        # turn.
        if len(chains) != 1:
            raise UnsupportedError(
                "a method has not exactly one chain of instructions",
                found=f"{len(chains)} chains",
                expected="1 chain",
                hint="export the model again with ExecuTorch's own exporter",
            )
        chain = table.entry("chains", chains[0])
        chain["instructions"]  # an error if it is missing
        return chain

    def _operator(self, table: Table) -> OperatorName:
        name, overload = table["name"], table["overload"]
        # Texts are remembered, so that many operators may share a long one.
        self._buffer.charge(len(name) + len(overload))
        return _operator(f"{name}.{overload}" if overload else name)

    def _delegate(self, table: Table, place: str) -> Delegate:
        data = table["processed"]
        location = data["location"]
        if location not in (0, 1):
            raise DecodeError(
                "the data of a delegate is at an unknown location",
                found=f"location {location}",
                expected="0 (inline) or 1 (segment)",
            )
        return Delegate(
            backend=table["id"],
            is_inline=location == 0,
            data_index=data["index"],
            compile_specs=self._each(table, "compile_specs", f"{place}, compile spec", _record),
        )


def _instruction(table: Table, arena_bytes: Sequence[int], values: list[Value]) -> Instruction:
    body = table["instr_args"]
    if body.kind != "DelegateCall":
        found: Instruction = _record(body)
        return found
    args, first = body["args"], len(values)
    values += [_scratch_tensor(body.entry("scratch", at), arena_bytes) for at in body["scratch"]]
    return DelegateCall(
        delegate=body["delegate_index"],
        args=(*args, *range(first, len(values))),
        scratch_count=len(values) - first,
    )


def _operator(text: str) -> OperatorName:
    try:
        operator = OperatorName.parse(text)
    except ValueError as error:
        raise _bad_operator(text) from error
    # "add.out" without a namespace would be read as aten's, which the device does not
    # do.
    if str(operator) != text:  # no namespace, or a dot too many
        raise _bad_operator(text)
    return operator


def _bad_operator(text: str) -> DecodeError:
    return DecodeError(
        "an operator has an impossible name",
        found=f'"{text}"',
        expected="namespace::name or namespace::name.overload",
    )


def _inline_data(table: Table) -> tuple[int, int]:
    """Where data lies in the file: the only field of both kinds that have some."""
    span: tuple[int, int]
    (span,) = table.values()
    return span


_NONE: Final = NoneValue()
_DTYPES: Final = {int(dtype): dtype for dtype in ScalarType}
_DYNAMISMS: Final = {int(dynamism): dynamism for dynamism in Dynamism}


def decode_value(evalue: Table) -> Value:
    """The value in an `EValue` table.

    Raises:
        DecodeError: It is damaged, or of a kind, dtype or layout unknown here.
    """
    body = evalue["val"]
    match body.kind:
        case "Null":
            return _NONE
        case "Tensor":
            return _tensor(body)
        case "BoolList":
            return BoolListValue(tuple(map(bool, body["items"])))
    value: Value = _record(body)
    return value


def _tensor(body: Table) -> TensorValue:
    code, dynamism = body["scalar_type"], body["shape_dynamism"]
    if code not in _DTYPES:
        raise DecodeError("a tensor has an unknown dtype", found=f"dtype {code}")
    dtype = _DTYPES[code]
    storage_offset, layout = body["storage_offset"], body["layout"]
    # ExecuTorch has these fields and writes 0: views and sparse tensors are copies when
    # a program is made.
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
    allocation, extra = body["allocation_info"], body["extra_tensor_info"]
    return TensorValue(
        dtype=dtype,
        sizes=body["sizes"],
        dim_order=tuple(body["dim_order"]),
        requires_grad=body["requires_grad"],
        data_buffer_index=body["data_buffer_idx"],
        allocation=allocation and _allocation(allocation),
        dynamism=_DYNAMISMS[dynamism],
        extra=extra and _extra(extra),
    )


def _allocation(body: Table) -> Allocation:
    # The format's own split of 64 bits: `memory_offset_high` came later.
    memory_id, low, high = body.values()
    return Allocation(memory_id=memory_id, offset_bytes=high << 32 | low)


def _extra(body: Table) -> ExtraTensorInfo:
    index, name, location, device_type, device_index = body.values()
    if location not in (0, 1):
        raise DecodeError(
            "a tensor is stored at an unknown location",
            found=f"location {location}",
            expected="0 (segment) or 1 (external)",
        )
    return ExtraTensorInfo(
        mutable_segment_index=index,
        qualified_name=name,
        is_external=location == 1,
        device_type=device_type,
        device_index=device_index,
    )


# The schema of `DelegateScratch` was not published in full when this was written: both
# orders of its fields are tried, and a table that fits both, or neither, is refused
# (decision 0015).
_TURNED: Final = Kind("DelegateScratch", {"allocation": "AllocationDetails", "size": "uint"})


def _scratch_tensor(scratch: Table, arena_bytes: Sequence[int]) -> TensorValue:
    """The one way to read a table that gives bytes of an arena.

    The table has a size and a place. Which of them comes first is not known from what
    is published so far, so both orders are tried, and a table that can be read in both
    is refused.
    """
    found = []
    newer: DecodeError | None = None
    # A size is no offset to a table, and an offset mostly no place in an arena: one of
    # the two readings fails.
    for table in (scratch, scratch.seen_as(_TURNED)):
        try:
            place = table["allocation"]
            allocation = place and _allocation(place)
            size = table["size"]
        except NewerError as error:
            newer = error
            continue
        except DecodeError:
            continue
        if allocation is None or not 1 <= allocation.memory_id < len(arena_bytes):
            continue
        if allocation.offset_bytes + size <= arena_bytes[allocation.memory_id]:
            found.append((size, allocation))
    # Guessed memory would be laid over another tensor's: rather no program than that.
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
