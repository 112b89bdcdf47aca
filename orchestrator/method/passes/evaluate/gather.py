"""Items selected by tensors of indices.

Source: kernels/util/indexing.h and kernels/portable/op_embedding.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from orchestrator.method.passes.arguments import UnknownCallError, need
from orchestrator.method.passes.evaluate.numbers import Items

if TYPE_CHECKING:
    from orchestrator.method.passes.evaluate.constant_call import ConstantCall

_INDICES: Final = (ScalarType.Int, ScalarType.Long)
_MATRIX: Final = 2


def embedding(call: ConstantCall) -> Items:
    """Rows of a matrix; unlike in `index`, indices must not be negative."""
    weight, indices, out = call.items(0), call.items(1), call.tensor(5)
    need(weight.dtype is out.dtype and indices.dtype in _INDICES)
    need(weight.rank == _MATRIX)
    rows = indices.numbers
    need(((rows >= 0) & (rows < len(weight.numbers))).all())
    return Items(out.dtype, weight.numbers[rows])


def index(call: ConstantCall) -> Items:
    """self[indices]; None selects a whole dimension."""
    items, indices, out = call.items(0), call.optional_tensors(1), call.tensor(2)
    need(items.dtype is out.dtype and len(indices) <= items.rank)
    selected: list[Any] = []  # slices and arrays
    for tensor in indices:
        need(tensor is None or tensor.dtype in _INDICES)
        selected.append(slice(None) if tensor is None else tensor.numbers)
    try:
        return Items(out.dtype, np.asarray(items.numbers[tuple(selected)]))
    except IndexError:
        raise UnknownCallError from None
