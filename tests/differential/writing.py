"""Programs of values, calls, moves and jumps, with places for everything."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orchestrator.core.operator import OperatorName
from orchestrator.program import program as p
from orchestrator.program.encode import write_program
from orchestrator.program.values import (
    Allocation,
    BoolValue,
    DoubleValue,
    Dynamism,
    ExtraTensorInfo,
    IntListValue,
    IntValue,
    NoneValue,
    OptionalTensorListValue,
    TensorListValue,
    TensorValue,
)
from tests.differential.program import Value
from tests.unit.schemas import schemas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.program.values import Value as Slot

ALIGNMENT = 16


class Data:
    """Constants and initial data of a program, each once.

    Args:
        has_names: Whether buffers have their names in the program.
    """

    def __init__(self, *, has_names: bool = False) -> None:
        self.has_names = has_names
        self.constants: list[bytes] = []
        self.initial: list[bytes] = []

    def index(self, value: Value) -> int:
        assert value.data is not None
        known = self.initial if value.buffer else self.constants
        if value.buffer or value.data not in known:
            known.append(value.data)
            return len(known)
        return known.index(value.data) + 1

    def program(self, methods: Sequence[p.Method]) -> bytes:
        """The file of these methods."""
        blob, offsets = b"", [0]
        for data in self.initial:
            blob += bytes(-len(blob) % ALIGNMENT)
            offsets.append(len(blob))
            blob += data
        has_initial = bool(self.initial)
        table = p.SubsegmentOffsets(segment_index=0, offsets=tuple(offsets))
        program = p.Program(
            version=0,
            header=p.ExtendedHeader(
                length=32, program_bytes=0, segment_base=0, segment_data_bytes=None
            )
            if has_initial
            else None,
            methods=tuple(methods),
            segments=(p.Segment(offset=0, size_bytes=len(blob)),) if has_initial else (),
            constants=None,
            mutable_segments=(table,) if has_initial else (),
            named_data=(),
            inline_constants=() if has_initial else ((0, 0),),
            inline_data=(),
            data=blob,
        )
        return bytes(write_program(program, constants=self.constants))


class Writer:
    """A method while instructions are added."""

    def __init__(self, data: Data) -> None:
        self.slots: list[Slot] = []
        self.code: list[p.Instruction] = []
        self.operators: list[OperatorName] = []
        self.touched: list[tuple[int, ...]] = []
        """By instruction: slots of tensors."""
        self._data = data
        self._known: dict[Value, int] = {}

    def slot(self, value: Slot) -> int:
        self.slots.append(value)
        return len(self.slots) - 1

    def tensor(self, value: Value) -> int:
        """The slot of a tensor."""
        if value not in self._known:
            extra = None
            if self._data.has_names and value.buffer and value.data is not None:
                extra = ExtraTensorInfo(
                    mutable_segment_index=0,
                    qualified_name=value.buffer,
                    is_external=False,
                    device_type=0,
                    device_index=0,
                )
            self._known[value] = self.slot(
                TensorValue(
                    dtype=value.dtype,
                    sizes=value.sizes,
                    dim_order=value.order,
                    dynamism=Dynamism.STATIC,
                    data_buffer_index=0 if value.data is None else self._data.index(value),
                    allocation=None,
                    extra=extra,
                    requires_grad=False,
                )
            )
        return self._known[value]

    def argument(self, given: Any) -> int:  # noqa: PLR0911  # one per kind
        match given:
            case Value():
                return self.tensor(given)
            case None:
                return self.slot(NoneValue())
            case bool():
                return self.slot(BoolValue(value=given))
            case float():
                return self.slot(DoubleValue(given))
            case int():
                return self.slot(IntValue(given))
            case list():  # optional tensors
                items = tuple(self.tensor(item) for item in given)
                return self.slot(OptionalTensorListValue(items))
        if given and isinstance(given[0], Value):
            return self.slot(TensorListValue(tuple(map(self.tensor, given))))
        return self.slot(IntListValue(tuple(map(self.argument, given))))

    def call(self, operator: str, *args: Any, slots: Sequence[int] = ()) -> None:
        """Add a call; `slots` stand for arguments that have one, at the end."""
        name = OperatorName.parse(operator)
        schema = schemas().get(name)
        found = [*map(self.argument, args), *slots]
        outs = sum(a.is_out for a in schema.arguments) if schema else 0
        if name.base.endswith("_"):
            found.append(found[0])  # in place: the result is the first argument
        elif (outs and ".out" in operator) or "_out" in operator:
            results = found[-outs:]
            if outs > 1:
                results = [self.slot(TensorListValue(tuple(results)))]
            found += results
        if name not in self.operators:
            self.operators.append(name)
        index = self.operators.index(name)
        self.add(p.KernelCall(operator=index, args=tuple(found)), found)

    def add(self, instruction: p.Instruction, slots: Sequence[int]) -> None:
        tensors = [i for i in slots if isinstance(self.slots[i], TensorValue)]
        for index in slots:
            items = getattr(self.slots[index], "items", ())
            tensors += [i for i in items if isinstance(self.slots[i], TensorValue)]
        self.code.append(instruction)
        self.touched.append(tuple(tensors))

    def place(self, index: int, memory_id: int, offset: int) -> int:
        """Give a tensor a place; its end."""
        value = self.slots[index]
        assert isinstance(value, TensorValue)
        place = Allocation(memory_id=memory_id, offset_bytes=offset)
        self.slots[index] = replace(value, allocation=place)
        return offset + value.size_bytes

    def method(
        self, name: str, inputs: Sequence[int], outputs: Sequence[int], arenas: tuple[int, ...]
    ) -> p.Method:
        return p.Method(
            name=name,
            values=tuple(self.slots),
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            instructions=tuple(self.code),
            operators=tuple(self.operators),
            delegates=(),
            arena_bytes=arenas,
        )
