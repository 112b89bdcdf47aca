"""int8 matrix products, and softmax in fixed point.

Source: kernels/cortex_m/op_quantized_linear.cpp, op_quantized_batch_matmul.cpp and
op_softmax.cpp.
"""

from __future__ import annotations

from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.method.passes.arguments import dim_of, need
from orchestrator.method.passes.evaluate.fixed_point import (
    CHAR,
    CHAR_LIMITS,
    Output,
    Scale,
    between,
    divide_by_power,
    high_multiply,
    ints,
    item,
    limited,
    limits,
    offset,
    scale,
    wrapped,
)
from orchestrator.method.passes.evaluate.numbers import Array, Items

if TYPE_CHECKING:
    from orchestrator.method.passes.evaluate.constant_call import ConstantCall

_MATRIX: Final = 2
_BATCH: Final = 3
_INT32: Final = 1 << 31
_ZERO_POINT: Final = -128


def _moved(items: Items, by: int) -> Array:
    """Items and what is added to them, as doubles: sums of products stay exact."""
    return items.numbers.astype(np.float64) + by


def _need_contiguous(call: ConstantCall, *positions: int) -> None:
    """Tensors of int8 whose memory is in the order of their dimensions."""
    need(all(call.tensor(p).dtype is CHAR for p in positions))
    need(all(call.is_contiguous(p) for p in positions))


def _first(call: ConstantCall, position: int) -> Array:
    """The first of a list, which must fit 32 bits."""
    found = call.numbers(position)
    need(found and -_INT32 <= found[0] < _INT32)
    return np.asarray(found[0], np.int64)


def _linear(call: ConstantCall) -> tuple[Items, ...]:
    """A kernel sum holds the bias and the part of the input offset in every sum."""
    items, weights = call.items(0), call.items(1)
    bias, kernel_sum = call.optional_items(2), call.optional_items(3)
    _need_contiguous(call, 0, 1, 11)
    need(items.rank > 0 and weights.rank == _MATRIX)
    outputs, depth = weights.numbers.shape
    sizes = items.numbers.shape
    need(sizes[-1] == depth > 0)
    need(call.out(11).sizes == (*sizes[:-1], outputs))
    added = bias if kernel_sum is None else kernel_sum
    x_offset, w_offset = offset(call, 4), offset(call, 5)
    output = Output(
        scale=Scale(multiplier=_first(call, 7), shift=_first(call, 8)),
        offset=item(call, 6),
        limits=limits(call, 10, 9),
    )
    x = _moved(items, x_offset if kernel_sum is None else 0)
    rows = x.reshape(prod(sizes[:-1]), depth)
    sums = np.matmul(rows, _moved(weights, w_offset).T).astype(np.int64)
    if added is not None:
        sums += ints(added, outputs)
    return (Items(CHAR, output.of(sums).reshape(*sizes[:-1], outputs)),)


def _batch_matmul(call: ConstantCall) -> tuple[Items, ...]:
    """[batch, rows, depth] and [batch, columns, depth]."""
    a, b = call.items(0), call.items(2)
    _need_contiguous(call, 0, 2, 8)
    need(a.rank == b.rank == _BATCH)
    need(len(a.numbers) == len(b.numbers))
    need(a.numbers.shape[-1] == b.numbers.shape[-1] > 0)
    need(call.out(8).sizes == (*a.numbers.shape[:2], b.numbers.shape[1]))
    call.scratch(7)
    x, y = _moved(a, offset(call, 1)), _moved(b, offset(call, 3))
    output = Output(scale=scale(call, 5), offset=item(call, 4), limits=CHAR_LIMITS)
    sums = np.matmul(x, y.swapaxes(1, 2)).astype(np.int64)
    return (Items(CHAR, output.of(sums)),)


_FRACTION_BITS: Final = 26  # of an exponent, Q5.26
_QUARTER: Final = 1 << (_FRACTION_BITS - 2)
_EXP_EIGHTH: Final = 1895147668  # exp(-1/8)
_THIRD: Final = 715827883
_POWERS: Final = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""exp(-1/4), exp(-1/2), exp(-1), ... exp(-16)."""
_SUM_BITS: Final = 12
_SHARE_BITS: Final = 35  # 31, and those of sums, less 8 of the output
_MAX_SUM: Final = 1 << 28
"""From here on every share is less than half a step of the output."""


def _constant(value: int) -> Array:
    return np.asarray(value, np.int64)


def _exponential(numbers: Array) -> Array:
    """Exponentials of Q5.26 as Q0.31, by four terms of the series around -1/8."""
    bits = numbers & 0xFFFFFFFF
    rest = (bits & (_QUARTER - 1)) - _QUARTER
    steps = ((rest - bits) & 0xFFFFFFFF) // _QUARTER
    x = wrapped((rest << (31 - _FRACTION_BITS)) + (1 << 28))
    x2 = high_multiply(x, x)
    x3, x4 = high_multiply(x2, x), high_multiply(x2, x2)
    third = high_multiply(divide_by_power(x4, _constant(2)) + x3, _constant(_THIRD))
    higher = divide_by_power(third + x2, _constant(1))
    eighth = _constant(_EXP_EIGHTH)
    result = eighth + high_multiply(eighth, x + higher)
    for i, power in enumerate(_POWERS):
        smaller = high_multiply(result, _constant(power))
        result = np.where((steps >> i) & 1 != 0, smaller, result)
    return np.where(numbers == 0, _INT32 - 1, result)


def _saturated(numbers: Array) -> Array:
    return np.clip(numbers, -_INT32, _INT32 - 1)


def _reciprocal(numbers: Array) -> Array:
    """1 / (1 + number) as Q0.31, of numbers from 0 to 1, by three steps of Newton."""
    half = (numbers + _INT32) >> 1
    x = 1515870810 + high_multiply(half, _constant(-1010580540))  # 48/17, -32/17
    for _ in range(3):
        error = (1 << 29) - high_multiply(half, x)
        x += _saturated(high_multiply(x, error) << 2)
    return _saturated(x << 1)


def _softmax(call: ConstantCall) -> tuple[Items, ...]:
    """Shares in steps of 1/256, less 128."""
    items, out = call.items(0), call.out(7)
    need(items.dtype is out.dtype is CHAR and call.number(3) == _ZERO_POINT)
    dim = dim_of(call.number(1), max(items.rank, 1))
    multiplier = between(call, 4, -_INT32, _INT32 - 1)
    shift = between(call, 5, 0, 31)
    least = between(call, 6, -_INT32, _INT32 - 1)
    if items.numbers.size == 0:
        return (Items(CHAR, items.numbers),)
    rows = np.moveaxis(np.atleast_1d(items.numbers).astype(np.int64), dim, -1)
    distances = rows - rows.max(axis=-1, keepdims=True)
    inputs = high_multiply(wrapped(distances << shift), _constant(multiplier))
    powers = np.where(distances >= least, _exponential(inputs), 0)
    total = divide_by_power(powers, _constant(_SUM_BITS)).sum(axis=-1, keepdims=True)
    nothing = (total == 0) | (total >= _MAX_SUM)
    total = np.where(nothing, 1, total)
    # The exponent of a number is how many bits it has.
    headroom = 32 - np.frexp(total.astype(np.float64))[1]
    factor = _reciprocal((total << headroom) - _INT32)
    shares = divide_by_power(high_multiply(factor, powers), _SHARE_BITS - headroom)
    found = limited(np.where(nothing, 0, shares) + _ZERO_POINT, CHAR_LIMITS)
    return (Items(CHAR, np.moveaxis(found, -1, dim).reshape(out.sizes)),)


EVALUATORS: Final = MappingProxyType(
    {
        "orch::cortex_m::quantized_batch_matmul_out": _batch_matmul,
        "orch::cortex_m::quantized_linear_out": _linear,
        "orch::cortex_m::softmax_out": _softmax,
    }
)
