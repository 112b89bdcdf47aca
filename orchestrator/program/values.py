"""Values of a method: what its slots hold when it is loaded.

Source: ExecuTorch `schema/program.fbs` (ET12), union `KernelTypes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestrator.core.dtype import ScalarType


class Dynamism(IntEnum):
    """How a tensor's sizes may change; the values are the codes of the format.

    The runtime treats UNBOUNDED like BOUNDED: memory for the stored sizes is all a
    tensor ever gets.
    """

    STATIC = 0
    BOUNDED = 1
    UNBOUNDED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Place of a planned tensor: an offset in the arena with this memory id (>= 1)."""

    memory_id: int
    offset_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraTensorInfo:
    """What is said of few tensors only.

    Args:
        mutable_segment_index: Of `Program.mutable_segments`: holds the initial state.
        qualified_name: Such as `encoder.weight`; "" if there is none.
        is_external: The data lies outside the program, under `qualified_name`.
        device_type: 0 is the CPU; the reader accepts nothing else.
        device_index: Of the device of that type.
    """

    mutable_segment_index: int
    qualified_name: str
    is_external: bool
    device_type: int
    device_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorValue:
    """A tensor.

    Args:
        dtype: Element type.
        sizes: Outermost dimension first; upper bounds unless the tensor is static.
        dim_order: Dimensions from outermost to innermost in memory.
        dynamism: Whether the sizes may change.
        data_buffer_index: Into the offsets of the constant segment, or of a mutable
            segment if the tensor is planned; 0 means no data.
        allocation: Place in an arena; None for constants, and for tensors that get
            their memory when the method runs.
        extra: See `ExtraTensorInfo`.
        requires_grad: Set by the exporter; means nothing here.
        is_kept: Bytes of it outlive a run (`method/state.py`); not in the file.
    """

    dtype: ScalarType
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]
    dynamism: Dynamism
    data_buffer_index: int
    allocation: Allocation | None
    extra: ExtraTensorInfo | None
    requires_grad: bool
    # Set by method/state.py alone; not in the file, so not part of equality.
    is_kept: bool = field(default=False, repr=False, compare=False)

    @property
    def numel(self) -> int:
        """Number of elements; the upper bound of it unless the tensor is static."""
        return prod(self.sizes)

    @property
    def size_bytes(self) -> int:
        """Size of the data; the upper bound of it unless the tensor is static."""
        return prod(self.sizes) * self.dtype.item_bytes

    @property
    def is_dynamic(self) -> bool:
        """Its sizes may change when the method runs."""
        return self.dynamism is not Dynamism.STATIC

    @property
    def is_contiguous(self) -> bool:
        """Its dim order is 0, 1, 2, ..."""
        return self.dim_order == tuple(range(len(self.dim_order)))

    @property
    def is_planned(self) -> bool:
        """It has a place in an arena."""
        return self.allocation is not None

    @property
    def is_external(self) -> bool:
        """Its data, or its initial state, lies outside the program."""
        return self.extra is not None and self.extra.is_external

    @property
    def is_constant(self) -> bool:
        """Its data lies in the program's constant segment."""
        # The format has no flag for it: data index and place say together what a tensor
        # is (program.fbs, `Tensor`).
        return self.data_buffer_index > 0 and self.allocation is None and not self.is_external

    @property
    def is_mutable_state(self) -> bool:
        """It lies in an arena and starts with data from the program."""
        return self.data_buffer_index > 0 and self.allocation is not None and not self.is_external

    @property
    def is_state(self) -> bool:
        """Bytes of it outlive a run, with initial data or without."""
        return self.is_kept or self.is_mutable_state


@dataclass(frozen=True, slots=True)
class NoneValue:
    """No value: a missing optional argument."""


@dataclass(frozen=True, slots=True)
class UnknownValue(NoneValue):
    """In the place of a value that cannot be decoded, which is noted elsewhere."""


@dataclass(frozen=True, slots=True)
class IntValue:
    """A signed 64-bit integer; also dtypes, layouts and memory formats."""

    value: int


@dataclass(frozen=True, slots=True)
class BoolValue:
    """A truth value."""

    value: bool


class _Doubles:
    """Equal where all numbers are: NaN and NaN are, and zeros of another sign not."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        # repr of a float names it exactly, with its sign, and NaN as nan.
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


@dataclass(frozen=True, slots=True, eq=False)
class DoubleValue(_Doubles):
    """A double."""

    value: float


@dataclass(frozen=True, slots=True)
class StringValue:
    """A string."""

    value: str


@dataclass(frozen=True, slots=True)
class IntListValue:
    """A list of integers; `items` are indices of the values that hold them."""

    items: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class DoubleListValue(_Doubles):
    """A list of doubles."""

    items: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class BoolListValue:
    """A list of truth values."""

    items: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class TensorListValue:
    """A list of tensors; `items` are their value indices."""

    items: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OptionalTensorListValue:
    """A list of tensors or None; `items` are value indices, -1 is None as well."""

    items: tuple[int, ...]


Value = (
    NoneValue
    | IntValue
    | BoolValue
    | DoubleValue
    | TensorValue
    | StringValue
    | IntListValue
    | DoubleListValue
    | BoolListValue
    | TensorListValue
    | OptionalTensorListValue
)


class ValueKind(IntEnum):
    """What a value holds; the codes are those of `orch::Tag`."""

    # Must change with runtime/include/orch/value.h; the runner's protocol has the same
    # numbers.
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
        """As files name it: `tensor`, `int_list`."""
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


def kind_name(kind: type[Value]) -> str:
    """A kind of value as messages name it: `tensor`, `int list`."""
    if kind is NoneValue:
        return "None"
    if kind is UnknownValue:
        return "unknown"
    if kind is OptionalTensorListValue:
        return "list of optional tensors"
    return VALUE_KINDS[kind].label.replace("_", " ")
