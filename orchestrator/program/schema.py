"""Known fields of each table: the one list of them.

What a newer ExecuTorch adds is appended to a table, under the same file identifier; a
reader that ignores it may run a program that means something else. So every table is
compared with this list where it is read. The counts in runtime/src/flatbuffer.h are
held equal by a test.

Source: ExecuTorch `schema/program.fbs` (ET12), with the scratch memory of delegates of
ExecuTorch 1.6, and `extension/flat_tensor/serialize/flat_tensor.fbs` (FT01).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


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
