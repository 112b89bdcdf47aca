"""int8 kernels that go item by item, pad or permute.

Source: kernels/cortex_m/op_quantized_add.cpp, op_quantized_mul.cpp,
op_quantized_div.cpp, op_quantized_activation.cpp, op_pad.cpp and op_transpose.cpp.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from orchestrator.method.passes.arguments import dim_of, need
from orchestrator.method.passes.evaluate.fixed_point import (
    CHAR,
    CHAR_LIMITS,
    Output,
    between,
    item,
    limits,
    scale,
    wrapped,
)
from orchestrator.method.passes.evaluate.numbers import Array, Items
from orchestrator.method.passes.evaluate.promote import broadcast

if TYPE_CHECKING:
    from orchestrator.method.passes.evaluate.constant_call import ConstantCall
    from orchestrator.program.values import TensorValue

_LEFT_SHIFT: Final = 20
_SHORT: Final = (-(1 << 15), (1 << 15) - 1)
_TABLE: Final = 256
_RANK: Final = 4
_CHANNELS_LAST: Final = (0, 2, 3, 1)


def _need_chars(*tensors: Items | TensorValue) -> None:
    need(all(tensor.dtype is CHAR for tensor in tensors))


def _addend(call: ConstantCall, position: int, items: Items) -> Array:
    """An input brought to the scale of the sum."""
    numbers = items.numbers.astype(np.int64) - item(call, position)
    return scale(call, position + 1).of(wrapped(numbers << _LEFT_SHIFT))


def _add(call: ConstantCall) -> tuple[Items, ...]:
    a, b, out = call.items(0), call.items(4), call.out(13)
    _need_chars(a, b, out)
    need(broadcast(a, b) == out.sizes)
    output = Output(
        scale=scale(call, 9), offset=item(call, 8), limits=limits(call, 11, 12)
    )
    return (Items(CHAR, output.of(_addend(call, 1, a) + _addend(call, 5, b))),)


def _mul(call: ConstantCall) -> tuple[Items, ...]:
    a, b, out = call.items(0), call.items(2), call.out(7)
    _need_chars(a, b, out)
    need(broadcast(a, b) == out.sizes)
    output = Output(scale=scale(call, 5), offset=item(call, 4), limits=CHAR_LIMITS)
    x = a.numbers.astype(np.int64) - item(call, 1)
    y = b.numbers.astype(np.int64) - item(call, 3)
    return (Items(CHAR, output.of(x * y)),)


def _round_away(numbers: Array) -> Array:
    """The nearest whole numbers, ties away from zero."""
    whole = np.trunc(numbers)
    away = np.abs(numbers - whole) >= np.float32(0.5)
    return np.where(away, whole + np.sign(numbers), whole)


def _div(call: ConstantCall) -> tuple[Items, ...]:
    """In floats; 0 where the divisor is."""
    a, b, out = call.items(0), call.items(2), call.out(6)
    need(a.dtype is b.dtype is out.dtype)
    need(out.dtype in (CHAR, ScalarType.Short))
    need(broadcast(a, b) == out.sizes)
    zeros = [between(call, i, *_SHORT) for i in (1, 3, 4)]
    low, high = CHAR_LIMITS if out.dtype is CHAR else _SHORT
    x = a.numbers.astype(np.int32) - np.int32(zeros[0])
    y = b.numbers.astype(np.int32) - np.int32(zeros[1])
    x, y = np.where(y == 0, np.int32(0), x), np.where(y == 0, np.int32(1), y)
    quotient = x.astype(np.float32) / y.astype(np.float32)
    factor = np.asarray(float(call.scalar(5)), np.float64).astype(np.float32)
    value = _round_away(quotient * factor) + np.float32(zeros[2])
    # What is no number gives the upper limit.
    value = np.where(value < high, np.maximum(value, np.float32(low)), high)
    return (Items(out.dtype, value.astype(np.int32).astype(a.numbers.dtype)),)


def _activation(call: ConstantCall) -> tuple[Items, ...]:
    """The table has the result for each item, that for -128 first."""
    items, table, out = call.items(0), call.items(1), call.out(2)
    _need_chars(items, table, out)
    need(table.numbers.size == _TABLE and call.is_contiguous(1))
    places = items.numbers.astype(np.int64) - CHAR_LIMITS[0]
    return (Items(CHAR, table.numbers.reshape(-1)[places]),)


def _is_channels_last(tensor: TensorValue) -> bool:
    """Whether memory is seen as NHWC; where sizes of 1 leave that open, it is."""
    if len(tensor.sizes) != _RANK:
        return False
    plain = tensor.dim_order == tuple(range(_RANK))
    need(plain or tensor.dim_order == _CHANNELS_LAST)
    return not plain or tensor.sizes[1] == 1 or tensor.sizes[2:] == (1, 1)


def _pad(call: ConstantCall) -> tuple[Items, ...]:
    """The lists have four items, outermost dimension of the memory first."""
    items, out = call.items(0), call.out(4)
    before, after, value = call.numbers(1), call.numbers(2), item(call, 3)
    _need_chars(items, out)
    need(0 < items.rank <= _RANK and len(before) == len(after) == _RANK)
    need(all(n >= 0 for n in (*before, *after)))
    missing = _RANK - items.rank
    need(not any((*before[:missing], *after[:missing])))
    last = _is_channels_last(call.tensor(0))
    need(last or call.is_contiguous(0))
    if out.size_bytes:
        need(_is_channels_last(out) if last else call.is_contiguous(4))
    order = _CHANNELS_LAST if last else range(items.rank)
    widths = dict(
        zip(order, zip(before[missing:], after[missing:], strict=True), strict=True)
    )
    pairs = [widths[d] for d in range(items.rank)]
    sizes = zip(items.numbers.shape, pairs, strict=True)
    need(tuple(size + sum(pair) for size, pair in sizes) == out.sizes)
    return (Items(CHAR, np.pad(items.numbers, pairs, constant_values=value)),)


def _transpose(call: ConstantCall) -> tuple[Items, ...]:
    items, out = call.items(0), call.out(2)
    _need_chars(items, out)
    dims = [dim_of(d, items.rank) for d in call.numbers(1)]
    need(len(dims) == items.rank == len({*dims}))
    return (Items(CHAR, items.numbers.transpose(dims)),)


EVALUATORS: Final = MappingProxyType(
    {
        "orch::cortex_m::pad_out": _pad,
        "orch::cortex_m::quantized_activation_out": _activation,
        "orch::cortex_m::quantized_add_out": _add,
        "orch::cortex_m::quantized_div_out": _div,
        "orch::cortex_m::quantized_mul_out": _mul,
        "orch::cortex_m::transpose_out": _transpose,
    }
)
