"""What values hold, by the codes of `orch::Tag` in the runtime."""

from __future__ import annotations

from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.program.values import (
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    IntListValue,
    IntValue,
    NoneValue,
    OptionalTensorListValue,
    StringValue,
    TensorListValue,
    TensorValue,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.program.values import Value


class ValueKind(IntEnum):
    """What a value holds; the codes are those of `orch::Tag`."""

    NONE = 0
    TENSOR = 1
    INT = 2
    DOUBLE = 3
    BOOL = 4
    STRING = 5
    INT_LIST = 6
    DOUBLE_LIST = 7
    BOOL_LIST = 8
    TENSOR_LIST = 9

    @property
    def label(self) -> str:
        """As messages and files name it: `tensor`, `int_list`."""
        return self.name.lower()

    @property
    def tag(self) -> str:
        """As C++ names it: `orch::Tag::IntList`."""
        return f"orch::Tag::{self.name.title().replace('_', '')}"


VALUE_KINDS: Final[Mapping[type[Value], ValueKind]] = MappingProxyType(
    {
        NoneValue: ValueKind.NONE,
        TensorValue: ValueKind.TENSOR,
        IntValue: ValueKind.INT,
        DoubleValue: ValueKind.DOUBLE,
        BoolValue: ValueKind.BOOL,
        StringValue: ValueKind.STRING,
        IntListValue: ValueKind.INT_LIST,
        DoubleListValue: ValueKind.DOUBLE_LIST,
        BoolListValue: ValueKind.BOOL_LIST,
        TensorListValue: ValueKind.TENSOR_LIST,
        OptionalTensorListValue: ValueKind.TENSOR_LIST,
    }
)
"""By kind of value in the program."""
