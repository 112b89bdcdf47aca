"""Arguments of a call that is given constants only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from orchestrator.method.passes.arguments import Arguments, UnknownCallError, need
from orchestrator.method.passes.evaluate.numbers import (
    Items,
    Scalar,
    read_items,
    write_items,
)
from orchestrator.program.values import (
    BoolValue,
    DoubleListValue,
    DoubleValue,
    IntValue,
    NoneValue,
    OptionalTensorListValue,
    StringValue,
    TensorListValue,
    TensorValue,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from orchestrator.method.linked import LinkedCall, LinkedMethod


class ConstantCall(Arguments):
    """Arguments of a call; positions count as the kernel counts them.

    Everything raises UnknownCallError where an argument is of another kind.

    Args:
        method: Has the call.
        call: The call.
        unknown: Values that something writes or moves.
        data: By value index: bytes of constants.
        moved: Values that moves read or write.
    """

    def __init__(
        self,
        method: LinkedMethod,
        call: LinkedCall,
        unknown: frozenset[int],
        data: Mapping[int, bytes],
        moved: Collection[int] = (),
    ) -> None:
        super().__init__(method, call, unknown)
        self._outs = call.outs
        self._data = data
        self._unknown = unknown
        self._moved = moved
        self._scratch: set[int] = set()

    def items_at(self, index: int) -> Items:
        """Items of a value that is a constant tensor."""
        tensor = self.tensor_at(index)
        need(index in self._data and tensor.allocation is None)
        return read_items(self._data[index], tensor)

    def items(self, position: int) -> Items:
        """Items of an argument."""
        return self.items_at(self.index(position))

    def optional_items(self, position: int) -> Items | None:
        """Items of an argument that may be None."""
        return None if self.is_none(position) else self.items(position)

    def lists(self, position: int) -> tuple[Items | None, ...]:
        """Items of every tensor in a list, whose tensors may be None."""
        value = self._values[self.index(position)]
        if not isinstance(value, (TensorListValue, OptionalTensorListValue)):
            raise UnknownCallError
        return tuple(
            None
            if index < 0 or isinstance(self._values[index], NoneValue)
            else self.items_at(index)
            for index in value.items
        )

    def scalar(self, position: int) -> Scalar:
        """A number or truth value that nobody writes."""
        index = self.index(position)
        value = self._values[index]
        if (
            not isinstance(value, (IntValue, DoubleValue, BoolValue))
            or index in self._unknown
        ):
            raise UnknownCallError
        return value.value

    def optional_scalar(self, position: int) -> Scalar | None:
        """A number that may be None."""
        return None if self.is_none(position) else self.scalar(position)

    def truth(self, position: int) -> bool:
        """A truth value that nobody writes."""
        value = self.scalar(position)
        if not isinstance(value, bool):
            raise UnknownCallError
        return value

    def text(self, position: int) -> str:
        """A string."""
        value = self._values[self.index(position)]
        if not isinstance(value, StringValue):
            raise UnknownCallError
        return value.value

    def reals(self, position: int) -> tuple[float, ...]:
        """A list of doubles."""
        value = self._values[self.index(position)]
        if not isinstance(value, DoubleListValue):
            raise UnknownCallError
        return value.items

    def out(self, position: int) -> TensorValue:
        """The tensor that the call writes."""
        return self.tensor(position)

    def steady_tensor(self, position: int) -> TensorValue:
        """A tensor of which the sizes stay, whatever its items are."""
        need(self.index(position) not in self._moved)
        return self.tensor(position)

    def is_contiguous(self, position: int) -> bool:
        """Whether the memory of a tensor is in the order of its dimensions."""
        tensor = self.tensor(position)
        return tensor.dim_order == tuple(range(len(tensor.sizes)))

    def scratch(self, position: int) -> None:
        """Say that an argument is scratch: the call leaves no result there."""
        self._scratch.add(self.index(position))

    def stored(self, results: tuple[Items, ...]) -> dict[int, bytes]:
        """By value index: the memory of the outputs, in schema order."""
        outs = [out for out in self._outs if out not in self._scratch]
        need(len(results) == len(outs))
        found = {}
        for index, items in zip(outs, results, strict=True):
            tensor = self.tensor_at(index)
            need(items.dtype is tensor.dtype)
            found[index] = write_items(np.asarray(items.numbers), tensor)
        return found


def evaluated(
    evaluator: Callable[[ConstantCall], tuple[Items, ...]], call: ConstantCall
) -> dict[int, bytes]:
    """By value index: the memory of the outputs.

    Raises:
        UnknownCallError: The evaluator declines.
    """
    # What overflows or is divided by 0 does so on the device as well.
    with np.errstate(all="ignore"):
        return call.stored(evaluator(call))
