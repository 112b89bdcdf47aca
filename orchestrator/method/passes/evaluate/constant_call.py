"""Arguments of a call with constant inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from orchestrator.core.lazy_bytes import Bytes, settled
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import Arguments, UnknownCallError, need
from orchestrator.method.passes.evaluate.numbers import Items, read_items, write_items
from orchestrator.program.values import (
    NoneValue,
    OptionalTensorListValue,
    TensorListValue,
    TensorValue,
)


class ConstantCall(Arguments):
    """Arguments of a call, by position in the op schema.

    Every method raises UnknownCallError if the argument has another kind, or may
    differ from run to run.

    Args:
        method: The method of the call.
        call: The call.
        unknown: Values that an instruction writes or moves.
        moved: Values that moves read or write.
    """

    def __init__(
        self,
        method: LinkedMethod,
        call: LinkedCall,
        unknown: frozenset[int],
        moved: Collection[int] = (),
    ) -> None:
        super().__init__(method, call, unknown)
        self._outs = call.outs
        self._moved = moved

    def items(self, position: int) -> Items:
        """Items of a constant tensor."""
        return self._items_at(self.index(position))

    def optional_items(self, position: int) -> Items | None:
        """Items of a constant tensor, or None."""
        return None if self.is_none(position) else self.items(position)

    def optional_tensors(self, position: int) -> tuple[Items | None, ...]:
        """Items of the constant tensors in a list that may hold None."""
        value = self._values[self.index(position)]
        if not isinstance(value, (TensorListValue, OptionalTensorListValue)):
            raise UnknownCallError
        return tuple(
            None
            if index < 0 or isinstance(self._values[index], NoneValue)
            else self._items_at(index)
            for index in value.items
        )

    def static_tensor(self, position: int) -> TensorValue:
        """A tensor of constant sizes; its items may change."""
        need(self.index(position) not in self._moved)
        return self.tensor(position)

    def computed(self, evaluator: Callable[[ConstantCall], Items]) -> dict[int, Bytes]:
        """By value index: the memory of the output, from an evaluator's items."""
        need(len(self._outs) == 1)
        # Overflow and division by 0 give the same as on the device, without warnings.
        with np.errstate(all="ignore"):
            items = evaluator(self)
        (out,) = self._outs
        tensor = self.tensor_at(out)
        need(items.dtype is tensor.dtype)
        return {out: settled(write_items(items.numbers, tensor))}

    def _items_at(self, index: int) -> Items:
        return read_items(self.constant_at(index), self.tensor_at(index))
