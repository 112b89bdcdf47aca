"""Calls of kernels in the format of tests/data/kernels: read, written, and as methods.

What is special about the format is in tests/data/kernels/reference_format.py. Calls
for the kernels may besides have arguments of kind 11, the number that a call returns:
a u8, which is the kind of argument that such a number is; and of kind 13, an output in
the memory of an argument: a u8, the argument's index.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestrator.catalog import read_library
from orchestrator.core.dtype import ScalarType
from orchestrator.core.operator import OperatorName
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.places import accesses, names_of
from orchestrator.program.values import (
    Allocation,
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    Dynamism,
    IntListValue,
    IntValue,
    NoneValue,
    OptionalTensorListValue,
    StringValue,
    TensorListValue,
    TensorValue,
)
from tests.unit.schemas import schemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from orchestrator.program.values import Value

KERNELS: Final = Path(__file__).parents[3] / "kernels"
RECORDED: Final = Path(__file__).parents[2] / "data" / "kernels"
"""Files of calls that PyTorch answered."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor among the arguments: the input, or the result to expect.

    Where firmware makes the call, an output can lie in an argument before it.
    """

    dtype: ScalarType
    sizes: tuple[int, ...]
    order: tuple[int, ...]
    data: bytes
    is_out: bool = False
    in_place_of: int | None = None


@dataclass(frozen=True, slots=True)
class Returned:
    """The number that a call returns, its last argument: an int, a double or a bool."""

    kind: type[int | float | bool]


@dataclass(frozen=True, slots=True)
class Call:
    """A call.

    Args:
        operator: Its name.
        args: None, numbers, strings, tensors, and lists (tuples) of those.
        atol: Absolute error that is allowed.
        rtol: Relative error that is allowed.
    """

    operator: str
    args: tuple[Any, ...]
    atol: float = 0
    rtol: float = 0

    @property
    def returned(self) -> Returned | None:
        """The number that it returns, if it does."""
        last = self.args[-1]
        return last if isinstance(last, Returned) else None

    @property
    def outs(self) -> tuple[Tensor, ...]:
        """Outputs with the results to expect."""
        tensors = (t for a in self.args for t in (a if isinstance(a, tuple) else (a,)))
        return tuple(t for t in tensors if isinstance(t, Tensor) and t.is_out)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        self.at += count
        return self._data[self.at - count : self.at]

    def get(self, form: str) -> Any:
        size = struct.calcsize(f"<{form}")
        found = struct.unpack(f"<{form}", self.take(size))
        return found[0] if len(found) == 1 else found

    def many(self, form: str, count: int) -> tuple[Any, ...]:
        size = struct.calcsize(f"<{count}{form}")
        return struct.unpack(f"<{count}{form}", self.take(size))

    def tensor(self, *, is_out: bool) -> Tensor:
        dtype, rank = ScalarType(self.get("B")), self.get("B")
        sizes, order = self.many("i", rank), self.many("B", rank)
        count = dtype.item_bytes
        for size in sizes:
            count *= size
        return Tensor(dtype, sizes, order, self.take(count), is_out)

    def argument(self) -> Any:  # noqa: C901, PLR0911  # one kind each
        match self.get("B"):
            case 0:
                return None
            case 1:
                return self.tensor(is_out=False)
            case 2:
                return self.get("q")
            case 3:
                return self.get("d")
            case 4:
                return bool(self.get("B"))
            case 5:
                return self.many("q", self.get("I"))
            case 6:
                return self.tensor(is_out=True)
            case 7:
                return self.take(self.get("I")).decode()
            case 8:
                count = self.get("I")
                return tuple(
                    self.tensor(is_out=False) if self.get("B") else None for _ in range(count)
                )
            case 9:
                return tuple(self.tensor(is_out=True) for _ in range(self.get("I")))
            case 12:
                return tuple(map(bool, self.many("B", self.get("I"))))
            case _:
                return self.many("d", self.get("I"))


def reference_calls() -> tuple[Call, ...]:
    """All calls that PyTorch answered."""
    files = sorted(RECORDED.glob("*.bin"))
    return tuple(call for file in files for call in read_calls(file))


def reference_file() -> Path:
    """All of them in one file, for programs."""
    parts = [file.read_bytes() for file in sorted(RECORDED.glob("*.bin"))]
    count = sum(struct.unpack_from("<I", part, 8)[0] for part in parts)
    data = b"ORCHREF1" + struct.pack("<I", count) + b"".join(p[12:] for p in parts)
    path = Path(__file__).parents[3] / "build" / "reference.bin"
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}")
        new.write_bytes(data)
        new.replace(path)
    return path


@cache
def read_calls(path: Path) -> tuple[Call, ...]:
    """The calls in a file."""
    reader = _Reader(path.read_bytes())
    assert reader.take(8) == b"ORCHREF1"
    calls = []
    for _ in range(reader.get("I")):
        name = reader.take(reader.get("B")).decode()
        atol, rtol = reader.get("dd")
        args = tuple(reader.argument() for _ in range(reader.get("B")))
        calls.append(Call(name, args, atol, rtol))
    return tuple(calls)


def _tensor_bytes(tensor: Tensor) -> bytes:
    rank = len(tensor.sizes)
    head = struct.pack(f"<BB{rank}i", tensor.dtype, rank, *tensor.sizes)
    return head + bytes(tensor.order) + tensor.data


def _argument_bytes(argument: Any) -> bytes:  # noqa: C901, PLR0911  # one kind each
    match argument:
        case None:
            return b"\0"
        case Tensor(in_place_of=int(index)):
            return bytes([13, index])
        case Tensor():
            return bytes([6 if argument.is_out else 1]) + _tensor_bytes(argument)
        case Returned():
            return struct.pack("<BB", 11, {int: 2, float: 3, bool: 4}[argument.kind])
        case bool():
            return struct.pack("<BB", 4, argument)
        case int():
            return struct.pack("<Bq", 2, argument)
        case float():
            return struct.pack("<Bd", 3, argument)
        case str():
            return struct.pack("<BI", 7, len(argument)) + argument.encode()
    count = struct.pack("<I", len(argument))
    if any(isinstance(item, bool) for item in argument):
        return b"\x0c" + count + bytes(argument)
    if any(isinstance(item, float) for item in argument):
        return b"\x0a" + count + struct.pack(f"<{len(argument)}d", *argument)
    if any(isinstance(item, Tensor) and item.is_out for item in argument):
        return b"\x09" + count + b"".join(map(_tensor_bytes, argument))
    if any(isinstance(item, Tensor) for item in argument):
        items = (b"\0" if t is None else b"\1" + _tensor_bytes(t) for t in argument)
        return b"\x08" + count + b"".join(items)
    return b"\x05" + count + struct.pack(f"<{len(argument)}q", *argument)


def calls_bytes(calls: Sequence[Call]) -> bytes:
    """A file of calls."""
    parts = [b"ORCHREF1", struct.pack("<I", len(calls))]
    for call in calls:
        name = call.operator.encode()
        parts.append(bytes([len(name)]) + name)
        parts.append(struct.pack("<ddB", call.atol, call.rtol, len(call.args)))
        parts += map(_argument_bytes, call.args)
    return b"".join(parts)


@cache
def kernel_names() -> dict[str, str]:
    """The C++ name of our kernel of each operator."""
    found = {}
    for library in ("cortex_m", "portable", "prim_ops", "quantized"):
        file = KERNELS / library / "functions.yaml"
        text = file.read_text(encoding="utf-8")
        for kernel in read_library(text, library=library, file=str(file)):
            found[str(kernel.operator)] = kernel.function
    return found


class _Slots:
    """Takes the arguments of a call into slots."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.data: list[tuple[int, bytes]] = []
        self.outs: list[int] = []
        self._end = 0

    def slot(self, argument: Any) -> int:
        value = self._value(argument)
        self.values.append(value)
        index = len(self.values) - 1
        if isinstance(argument, Tensor):
            if argument.is_out:
                self.outs.append(index)
            else:
                self.data.append((index, argument.data))
        elif isinstance(argument, Returned):
            self.outs.append(index)
        return index

    def _value(self, argument: Any) -> Value:  # noqa: C901, PLR0911  # one kind each
        match argument:
            case None:
                return NoneValue()
            case Tensor():
                return self._tensor(argument)
            case Returned():
                return self._value(argument.kind())
            case bool():
                return BoolValue(argument)
            case int():
                return IntValue(argument)
            case float():
                return DoubleValue(argument)
            case str():
                return StringValue(argument)
        if any(isinstance(item, Tensor) for item in argument):
            items = tuple(-1 if t is None else self.slot(t) for t in argument)
            kind = OptionalTensorListValue if None in argument else TensorListValue
            return kind(items)
        if any(isinstance(item, bool) for item in argument):
            return BoolListValue(argument)
        if any(isinstance(item, float) for item in argument):
            return DoubleListValue(argument)
        return IntListValue(tuple(self.slot(item) for item in argument))

    def _tensor(self, tensor: Tensor) -> TensorValue:
        made = TensorValue(
            dtype=tensor.dtype,
            sizes=tensor.sizes,
            dim_order=tensor.order,
            dynamism=Dynamism.STATIC,
            data_buffer_index=int(not tensor.is_out),
            allocation=None,
            extra=None,
            requires_grad=False,
        )
        if not tensor.is_out:
            return made
        place = Allocation(memory_id=1, offset_bytes=self._end)
        self._end += -(-made.size_bytes // 16) * 16
        return replace(made, allocation=place)


def method_of(calls: Iterable[Call]) -> LinkedMethod:
    """A method of these calls, whose inputs are constants; it returns nothing."""
    slots = _Slots()
    code = []
    for call in calls:
        first = len(slots.outs)
        args = tuple(slots.slot(argument) for argument in call.args)
        operator = OperatorName.parse(call.operator)
        code.append(
            LinkedCall(
                operator=operator,
                function=kernel_names()[call.operator],
                args=args,
                accesses=accesses(schemas()[operator]),
                names=names_of(schemas()[operator]),
                outs=tuple(slots.outs[first:]),
            )
        )
    return LinkedMethod(
        model="m",
        name="forward",
        values=tuple(slots.values),
        instructions=tuple(code),
        inputs=(),
        outputs=(),
        data=tuple(slots.data),
        origins=tuple(range(len(code))),
    )
