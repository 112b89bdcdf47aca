"""Decodes the values of a method.

Slots and union numbers are those of ExecuTorch `schema/program.fbs` (ET12).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from orchestrator.core.dtype import ALL, ScalarType, dtype_names
from orchestrator.program.problems import DecodeError, NewerError, UnsupportedError
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
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.program.flatbuffer import Table
    from orchestrator.program.values import Value

T = TypeVar("T")

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
        raise NewerError(
            "a value is of an unknown kind", found=f"kind {kind}", expected="1 to 11"
        )
    return decode(required(evalue.table(1), "the content of a value"))


def _tensor(body: Table) -> TensorValue:
    code, dynamism = body.int8(0), body.int8(8)
    if code not in _DTYPES:
        raise DecodeError("a tensor has an unknown dtype", found=f"dtype {code}")
    dtype = _DTYPES[code]
    if dtype not in ALL:
        raise UnsupportedError(
            "a tensor has a dtype that the runtime does not have",
            found=dtype.name,
            expected=dtype_names(ALL),
            hint="convert the tensor to another dtype before exporting the model",
        )
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
            "a tensor has an unknown dynamism",
            found=f"dynamism {dynamism}",
            expected="0, 1 or 2",
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
    return Allocation(
        memory_id=body.uint32(0), offset_bytes=body.uint32(2) << 32 | body.uint32(1)
    )


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
    7: lambda body: IntListValue(
        required(body.int64s(0), "the list of items of an int list")
    ),
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
