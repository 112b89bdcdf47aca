"""Decodes the values of a method.

Slots and union numbers are those of ExecuTorch `schema/program.fbs` (ET12).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.core.dtype import ScalarType
from orchestrator.pte.flatbuffer import FlatbufferError
from orchestrator.pte.values import (
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

    from orchestrator.pte.flatbuffer import Table
    from orchestrator.pte.values import Value

_NONE = NoneValue()
_DTYPES = {int(dtype): dtype for dtype in ScalarType}
_DYNAMISMS = {int(dynamism): dynamism for dynamism in Dynamism}


def required[T](value: T | None, what: str) -> T:
    return value


def decode_value(evalue: Table) -> Value:
    """The value in an `EValue` table.

    Raises:
        FlatbufferError: It is damaged, or of a kind, dtype or layout unknown here.
    """
    kind = evalue.uint8(0)
    decode = _DECODERS.get(kind)
    if decode is None:
        raise FlatbufferError(
            "a value is of an unknown kind", found=f"kind {kind}", expected="1 to 11"
        )
    body = evalue.table(1)
    if body is None:
        raise missing("the contents of a value")
    return decode(body)


def missing(what: str) -> FlatbufferError:
    """The error for a field that every program has."""
    return FlatbufferError(f"{what} is missing", found="nothing")


def _string(body: Table) -> StringValue:
    text = body.string(0)
    if text is None:
        raise missing("the text of a string")
    return StringValue(text)
