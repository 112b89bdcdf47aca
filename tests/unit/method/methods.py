"""Prelinked methods of a few values and calls, made by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.core.operator import OperatorName
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.places import Access, accesses, names_of, written_positions
from orchestrator.program.values import (
    Allocation,
    Dynamism,
    IntListValue,
    IntValue,
    TensorListValue,
    TensorValue,
)
from tests.unit.schemas import schemas

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedInstruction
    from orchestrator.program.values import Value

ARENA: Final = 48
GARBAGE: Final = bytes((i * 37 + 11) % 256 for i in range(ARENA))
"""What the arena holds before the first run."""


def tensor(
    sizes: tuple[int, ...], place: int | None, *, dynamic: bool = False, state: bool = False
) -> TensorValue:
    """A tensor of bytes at an offset of arena 1; a constant without one."""
    return TensorValue(
        dtype=ScalarType.Byte,
        sizes=sizes,
        dim_order=tuple(range(len(sizes))),
        dynamism=Dynamism.BOUNDED if dynamic else Dynamism.STATIC,
        data_buffer_index=int(state or place is None),
        allocation=None if place is None else Allocation(memory_id=1, offset_bytes=place),
        extra=None,
        requires_grad=False,
    )


class Builder:
    """Takes values and instructions until a method is requested."""

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
        """Add a call; its last argument is what it writes, unless given.

        Its kernel is nobody's, unless a C++ name is given.
        """
        operator = OperatorName.parse(name)
        outs = args[-1:] if outs is None else outs
        self.code.append(
            LinkedCall(
                operator=operator,
                function=function or operator.identifier,
                args=args,
                accesses=self._accesses(operator, args, outs),
                outs=outs,
                in_place=in_place,
                names=self._names(operator)[: len(args)],
            )
        )

    def _names(self, operator: OperatorName) -> tuple[str, ...]:
        """As the schema has them, and one for an output that is repeated."""
        schema = schemas().get(operator)
        return (*names_of(schema), "result") if schema else ()

    def _accesses(
        self, operator: OperatorName, args: tuple[int, ...], outs: tuple[int, ...]
    ) -> tuple[Access, ...]:
        """As the schema has it, if there is one; other kernels may do anything."""
        schema = schemas().get(operator)
        written = written_positions(schema) if schema else ()
        found = [Access.READS] * len(args)
        for position, arg in enumerate(args):
            value = self.values[arg]
            items = value.items if isinstance(value, TensorListValue) else (arg,)
            # A tensor may be input and output of a call.
            is_input = position if 0 in written else arg in args[position + 1 :]
            if not {*outs}.issuperset(items) or (schema and is_input):
                continue
            if schema is None:
                found[position] = Access.UPDATES
            elif arg in outs[len(written) :]:
                found[position] = Access.SCRATCH
            else:
                found[position] = accesses(schema)[written[0]]
        return tuple(found)

    def method(self, inputs: tuple[int, ...] = (), outputs: tuple[int, ...] = ()) -> LinkedMethod:
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
