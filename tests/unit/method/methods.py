"""Prelinked methods of a few values and calls, made by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.core.operator import OperatorName
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.program.values import (
    Allocation,
    Dynamism,
    IntListValue,
    IntValue,
    TensorValue,
)

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedInstruction
    from orchestrator.program.values import Value

ARENA: Final = 48
GARBAGE: Final = bytes((i * 37 + 11) % 256 for i in range(ARENA))
"""What the arena holds before the first run."""


def tensor(
    sizes: tuple[int, ...],
    place: int | None,
    *,
    dynamic: bool = False,
    state: bool = False,
) -> TensorValue:
    """A tensor of bytes at an offset of arena 1; a constant without one."""
    return TensorValue(
        dtype=ScalarType.Byte,
        sizes=sizes,
        dim_order=tuple(range(len(sizes))),
        dynamism=Dynamism.BOUNDED if dynamic else Dynamism.STATIC,
        data_buffer_index=int(state or place is None),
        allocation=None
        if place is None
        else Allocation(memory_id=1, offset_bytes=place),
        extra=None,
        requires_grad=False,
    )


class Builder:
    """Takes values and instructions until a method is asked for."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.data: list[tuple[int, bytes]] = []
        self.code: list[LinkedInstruction] = []

    def value(self, value: Value) -> int:
        """The slot of a value."""
        self.values.append(value)
        return len(self.values) - 1

    def numbers(self, *numbers: int) -> int:
        """The slot of a list of integers."""
        return self.value(IntListValue(tuple(self.value(IntValue(n)) for n in numbers)))

    def tensor(self, sizes: tuple[int, ...], place: int | None, **how: bool) -> int:
        """The slot of a tensor; constants and state get some data."""
        found = tensor(sizes, place, **how)
        index = self.value(found)
        if found.data_buffer_index:
            # State may overlap with others here: it begins as the arena does.
            at = 5 if place is None else place
            data = GARBAGE[at : at + found.size_bytes]
            self.data.append((index, data))
        return index

    def call(
        self,
        name: str,
        *args: int,
        outs: tuple[int, ...] | None = None,
        in_place: tuple[int, ...] = (),
        function: str = "",
    ) -> None:
        """Add a call; its last argument is what it writes, unless told.

        Its kernel is nobody's, unless a C++ name is given.
        """
        operator = OperatorName.parse(name)
        self.code.append(
            LinkedCall(
                operator=operator,
                function=function or operator.identifier,
                args=args,
                outs=args[-1:] if outs is None else outs,
                in_place=in_place,
            )
        )

    def method(
        self, inputs: tuple[int, ...] = (), outputs: tuple[int, ...] = ()
    ) -> LinkedMethod:
        """The method."""
        return LinkedMethod(
            model="m",
            name="forward",
            values=tuple(self.values),
            instructions=tuple(self.code),
            inputs=inputs,
            outputs=outputs,
            data=tuple(self.data),
            origins=tuple(range(len(self.code))),
        )
