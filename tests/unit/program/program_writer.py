"""Writes `.pte` programs with the `flatbuffers` package.

The input has the shape of the corpus' `program.json`, which makes it easy to change
one fact of a real program. A field that is missing or None is left out of its table.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Final

import flatbuffers

from tests.conftest import CORPUS

Json = dict[str, Any]

_VALUES: Final = (
    "Null",
    "Int",
    "Bool",
    "Double",
    "Tensor",
    "String",
    "IntList",
    "DoubleList",
    "BoolList",
    "TensorList",
    "OptionalTensorList",
)
_CALLS: Final = ("KernelCall", "DelegateCall", "MoveCall", "JumpFalseCall", "FreeCall")

# Per table (name, type) in the order of the schema. A type is a struct code, `str`,
# the name of a table, a list of one of these, or a tuple: the tables of a union.
_SCHEMA: Final[dict[str, list[tuple[str, Any]]]] = {
    "Program": [
        ("version", "I"),
        ("execution_plan", ["ExecutionPlan"]),
        ("constant_buffer", ["Buffer"]),
        ("backend_delegate_data", ["BackendDelegateInlineData"]),
        ("segments", ["DataSegment"]),
        ("constant_segment", "SubsegmentOffsets"),
        ("mutable_data_segments", ["SubsegmentOffsets"]),
        ("named_data", ["NamedData"]),
    ],
    "Buffer": [("data", ["B"])],
    "BackendDelegateInlineData": [("data", ["B"])],
    "DataSegment": [("offset", "Q"), ("size", "Q")],
    "SubsegmentOffsets": [("segment_index", "I"), ("offsets", ["Q"])],
    "NamedData": [("key", "str"), ("segment_index", "I")],
    "ExecutionPlan": [
        ("name", "str"),
        ("container_meta_type", "ContainerMetadata"),
        ("values", ["EValue"]),
        ("inputs", ["i"]),
        ("outputs", ["i"]),
        ("chains", ["Chain"]),
        ("operators", ["Operator"]),
        ("delegates", ["BackendDelegate"]),
        ("non_const_buffer_sizes", ["q"]),
        ("non_const_buffer_device", ["NonConstBufferDevice"]),
    ],
    "ContainerMetadata": [("encoded_inp_str", "str"), ("encoded_out_str", "str")],
    "Operator": [("name", "str"), ("overload", "str")],
    "NonConstBufferDevice": [("buffer_idx", "i"), ("device_type", "b"), ("device_index", "b")],
    "BackendDelegate": [
        ("id", "str"),
        ("processed", "BackendDelegateDataReference"),
        ("compile_specs", ["CompileSpec"]),
    ],
    "BackendDelegateDataReference": [("location", "b"), ("index", "I")],
    "CompileSpec": [("key", "str"), ("value", ["B"])],
    "Chain": [
        ("inputs", ["i"]),
        ("outputs", ["i"]),
        ("instructions", ["Instruction"]),
        ("stacktrace", ["FrameList"]),
    ],
    "FrameList": [("items", ["Frame"])],
    "Frame": [("filename", "str"), ("lineno", "i"), ("name", "str"), ("context", "str")],
    "Instruction": [("instr_args", _CALLS)],
    "KernelCall": [("op_index", "i"), ("args", ["i"])],
    "DelegateCall": [("delegate_index", "i"), ("args", ["i"]), ("scratch", ["DelegateScratch"])],
    "DelegateScratch": [("size", "Q"), ("allocation", "AllocationDetails")],
    "MoveCall": [("move_from", "i"), ("move_to", "i")],
    "JumpFalseCall": [("cond_value_index", "i"), ("destination_instruction", "i")],
    "FreeCall": [("value_index", "i")],
    "EValue": [("val", _VALUES)],
    "Null": [],
    "Int": [("int_val", "q")],
    "Bool": [("bool_val", "?")],
    "Double": [("double_val", "d")],
    "String": [("string_val", "str")],
    "IntList": [("items", ["q"])],
    "DoubleList": [("items", ["d"])],
    "BoolList": [("items", ["?"])],
    "TensorList": [("items", ["i"])],
    "OptionalTensorList": [("items", ["i"])],
    "Tensor": [
        ("scalar_type", "b"),
        ("storage_offset", "i"),
        ("sizes", ["i"]),
        ("dim_order", ["B"]),
        ("requires_grad", "?"),
        ("data_buffer_idx", "I"),
        ("allocation_info", "AllocationDetails"),
        ("layout", "b"),
        ("shape_dynamism", "b"),
        ("extra_tensor_info", "ExtraTensorInfo"),
    ],
    "AllocationDetails": [
        ("memory_id", "I"),
        ("memory_offset_low", "I"),
        ("memory_offset_high", "I"),
    ],
    "ExtraTensorInfo": [
        ("mutable_data_segments_idx", "Q"),
        ("fully_qualified_name", "str"),
        ("location", "b"),
        ("device_type", "b"),
        ("device_index", "b"),
    ],
}
_SCALARS: Final = {
    "?": "Bool",
    "b": "Int8",
    "B": "Uint8",
    "i": "Int32",
    "I": "Uint32",
    "q": "Int64",
    "Q": "Uint64",
    "d": "Float64",
}


def program_json(case: str) -> Json:
    """`program.json` of a case of the corpus: the facts ExecuTorch's reader finds."""
    found: Json = json.loads((CORPUS / case / "program.json").read_text())
    return found


def write_program(
    program: Json,
    segment_data: bytes | None = None,
    *,
    newer: str = "",
    gap: int = 0,
    turned: bool = False,
) -> bytes:
    """The file of a program; with an extended header if there is segment data.

    Args:
        program: Its facts.
        segment_data: Behind the flatbuffer.
        newer: Name of the tables that get a field more than the schema has.
        gap: Fields that the schema of the future has before that one, at their default.
        turned: Scratch memory of delegates has its place before its size.
    """
    builder = _Builder(1024)
    builder.ForceDefaults(True)  # noqa: FBT003
    builder.more_fields = {newer: gap + 1} if newer else {}
    builder.turned = turned
    builder.Finish(_table(builder, "Program", program), file_identifier=b"ET12")
    flatbuffer = bytes(builder.Output())
    if segment_data is None:
        return flatbuffer
    size = len(flatbuffer) + 32
    base = (size + 127) // 128 * 128
    (root,) = struct.unpack_from("<I", flatbuffer)
    header = struct.pack("<4sIQQQ", b"eh00", 32, size, base, len(segment_data))
    head = struct.pack("<I", root + 32) + flatbuffer[4:8] + header
    return (head + flatbuffer[8:]).ljust(base, b"\0") + segment_data


class _Builder(flatbuffers.Builder):  # type: ignore[misc]  # has no types
    more_fields: dict[str, int]
    turned: bool


def _table(builder: Any, name: str, fields: Json) -> int:
    schema = _SCHEMA[name]
    if name == "DelegateScratch" and builder.turned:
        schema = [("allocation", "AllocationDetails"), ("size", "I")]
    children = {}
    for field, kind in schema:
        value = fields.get(field)
        if value is not None and not _is_scalar(kind):
            member = fields.get(f"{field}_type") if isinstance(kind, tuple) else kind
            children[field] = _child(builder, member, value)
    more = builder.more_fields.get(name, 0)
    builder.StartObject(slots_of(name) + more)
    slot = 0
    for field, kind in schema:
        if isinstance(kind, tuple):
            member = fields.get(f"{field}_type")
            number = kind.index(member) + 1 if member in kind else member or 0
            builder.PrependUint8Slot(slot, number, 0)
            slot += 1
        if field in children:
            builder.PrependUOffsetTRelativeSlot(slot, children[field], 0)
        elif fields.get(field) is not None:
            getattr(builder, f"Prepend{_SCALARS[kind]}Slot")(slot, fields[field], 0)
        slot += 1
    if more:
        builder.PrependInt32Slot(slot + more - 1, 1, 0)
    return int(builder.EndObject())


def slots_of(name: str) -> int:
    """How many slots a table has: two per union."""
    return sum(1 + isinstance(kind, tuple) for _, kind in _SCHEMA[name])


def _is_scalar(kind: Any) -> bool:
    return isinstance(kind, str) and kind in _SCALARS


def _child(builder: Any, kind: Any, value: Any) -> int:
    if isinstance(kind, list):
        return _vector(builder, kind[0], value)
    if kind == "str":
        return int(builder.CreateString(value))
    return _table(builder, kind if kind in _SCHEMA else "Null", value)


def _vector(builder: Any, kind: str, items: list[Any]) -> int:
    if _is_scalar(kind):
        width = struct.calcsize(f"<{kind}")
        builder.StartVector(width, len(items), width)
        for item in reversed(items):
            getattr(builder, f"Prepend{_SCALARS[kind]}")(item)
    else:
        tables = [_table(builder, kind, item) for item in items]
        builder.StartVector(4, len(tables), 4)
        for table in reversed(tables):
            builder.PrependUOffsetTRelative(table)
    return int(builder.EndVector())
