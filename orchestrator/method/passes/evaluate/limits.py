"""Floats kept within limits, for tables of islands.

Only tables have these evaluators: programs do not limit constants, and the kernels take
more dtypes than this.

Source: kernels/util/clamp.h; kernels/portable/op_clamp.cpp, op_hardtanh.cpp and
op_relu.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from orchestrator.core.dtype import FLOATING
from orchestrator.method.passes.arguments import need
from orchestrator.method.passes.evaluate.numbers import Array, Items, item_of

if TYPE_CHECKING:
    from orchestrator.method.passes.evaluate.constant_call import ConstantCall


def relu(call: ConstantCall) -> Items:
    """`max(self, 0)`, where -0 stays -0."""
    items = _floats(call, 1)
    return Items(items.dtype, np.where(items.numbers < 0, 0, items.numbers))


def hardtanh(call: ConstantCall) -> Items:
    """`min(max(self, min_val), max_val)`."""
    items = _floats(call, 3)
    return Items(items.dtype, _at_most(call, 2, _at_least(call, 1, items)).numbers)


def clamp(call: ConstantCall) -> Items:
    """The same, where a limit may be None."""
    items = _floats(call, 3)
    if not call.is_none(1):
        items = _at_least(call, 1, items)
    if not call.is_none(2):
        items = _at_most(call, 2, items)
    return items


def _floats(call: ConstantCall, out: int) -> Items:
    """The items to limit; the output has their dtype."""
    items = call.items(0)
    need(items.dtype in FLOATING and call.tensor(out).dtype is items.dtype)
    need(call.tensor(out).sizes == items.numbers.shape)
    need(not np.isnan(items.numbers).any())
    return items


def _limit(call: ConstantCall, position: int, items: Items) -> Array:
    limit = item_of(call.literal(position), items.dtype)
    need(not np.isnan(limit).any())
    return limit


def _at_least(call: ConstantCall, position: int, items: Items) -> Items:
    low = _limit(call, position, items)
    return Items(items.dtype, np.where(items.numbers >= low, items.numbers, low))


def _at_most(call: ConstantCall, position: int, items: Items) -> Items:
    high = _limit(call, position, items)
    return Items(items.dtype, np.where(items.numbers <= high, items.numbers, high))
