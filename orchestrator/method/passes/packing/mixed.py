"""Weights of float products in 4 bits, two in a byte."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from orchestrator.core.layout import logical_items
from orchestrator.core.lazy_bytes import settled
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.joining import with_call, with_slots
from orchestrator.program.values import TensorValue

MIXED: Final = "orch::quantized::mixed_linear_out"
INT4_MIXED: Final = "orch::quantized::int4_mixed_linear_out"
_WEIGHT: Final = 1
"""The argument of both."""
_LOWEST, _HIGHEST = -8, 7


def pack_pairs(method: LinkedMethod) -> LinkedMethod:
    """Store int8 weights of float products in 4 bits, where they are numbers of 4 bits.

    Source of the format: kernels/quantized/op_mixed_linear.cpp.
    """
    calls = [
        (number, call)
        for number, call in enumerate(method.instructions)
        if isinstance(call, LinkedCall) and call.function == MIXED
    ]
    if not calls:
        return method
    import numpy as np  # noqa: PLC0415

    data = method.contents
    for number, call in calls:
        index = call.args[_WEIGHT]
        value, items = method.values[index], data.get(index)
        if (
            items is None
            or not isinstance(value, TensorValue)
            # The kernel reads rows of the weights as they are, and values that nothing changes.
            or value.dim_order != (0, 1)
            or index in method.written
        ):
            continue
        weights = logical_items(items, "i1", value.sizes, value.dim_order)
        if not weights.size or weights.min() < _LOWEST or weights.max() > _HIGHEST:
            continue
        rows, columns = value.sizes
        # Each row begins with a byte of its own.
        even = np.zeros((rows, columns + columns % 2), np.uint8)
        even[:, :columns] = weights.view(np.uint8) & 15
        pairs = even[:, ::2] | even[:, 1::2] << 4
        packed = replace(value, sizes=pairs.shape, data_buffer_index=1, allocation=None, extra=None)
        method, (slot,) = with_slots(method, (packed, settled(pairs.tobytes())))
        args = (*call.args[:_WEIGHT], slot, *call.args[_WEIGHT + 1 :])
        changed = replace(call, function=INT4_MIXED, args=args)
        method = with_call(method, number, changed)
    return method
