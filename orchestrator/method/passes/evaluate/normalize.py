"""Items less their mean, in steps of their deviation.

Source: kernels/portable/op_native_layer_norm.cpp and
op__native_batch_norm_legit_no_training.cpp.
"""

from __future__ import annotations

from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.dtype import FLOATING, ScalarType
from orchestrator.method.passes.arguments import need
from orchestrator.method.passes.evaluate.numbers import (
    Array,
    Items,
    computed,
    computed_number,
    converted,
)
from orchestrator.method.passes.evaluate.reduce import sums_of

if TYPE_CHECKING:
    from orchestrator.method.passes.evaluate.constant_call import ConstantCall

_HALVES: Final = (ScalarType.Half, ScalarType.BFloat16)
_CHANNELS_RANK: Final = 2  # [N, C, ...] at least


def _layer_norm(call: ConstantCall) -> tuple[Items, ...]:
    """Groups are the last dimensions, summed in the order of their indices."""
    items, weight, bias = call.items(0), call.optional_items(2), call.optional_items(3)
    outs = [call.out(i) for i in (5, 6, 7)]
    dtype, sizes = items.dtype, call.numbers(1)
    first = items.rank - len(sizes)
    need(dtype in FLOATING and all(out.dtype is dtype for out in outs))
    need(sizes and first >= 0 and items.numbers.shape[first:] == sizes)
    need(outs[0].dim_order == call.tensor(0).dim_order)
    need(outs[1].dim_order == outs[2].dim_order)
    for parameter in (weight, bias):
        if parameter is not None:
            need(parameter.dtype is dtype and parameter.numbers.shape == sizes)

    numbers = computed(items.numbers, dtype)
    around = numbers.shape[:first]
    # One line of items for each of the groups, side by side.
    lines = numbers.reshape(prod(around), prod(sizes)).T
    count = numbers.dtype.type(len(lines))
    one = numbers.dtype.type(1)
    mean = sums_of(lines) / count
    apart = lines - mean
    variance = sums_of(apart * apart) / count
    rstd = one / np.sqrt(variance + computed_number(call.scalar(4), dtype))
    found = (apart * rstd).T.reshape(numbers.shape)
    if weight is not None:
        found = found * computed(weight.numbers, dtype)
    if bias is not None:
        found = found + computed(bias.numbers, dtype)
    groups = (*around, *(1 for _ in sizes))
    results = (found, mean.reshape(groups), rstd.reshape(groups))
    return tuple(Items(dtype, converted(r, dtype)) for r in results)


def _parameter(found: Items, items: Items) -> Array:
    """One number per channel, of the dtype of the input or, beside halves, Float."""
    need(found.numbers.shape == items.numbers.shape[1:2])
    single = items.dtype in _HALVES and found.dtype is ScalarType.Float
    need(found.dtype is items.dtype or single)
    return computed(found.numbers, items.dtype)


def _batch_norm(call: ConstantCall) -> tuple[Items, ...]:
    """Input * scale + shift; the other two outputs stay empty."""
    items, out = call.items(0), call.out(7)
    need(items.dtype in FLOATING and out.dtype is items.dtype)
    need(items.rank >= _CHANNELS_RANK)
    weight, bias, mean, var = (
        None if call.is_none(i) else _parameter(call.items(i), items)
        for i in (1, 2, 3, 4)
    )
    need(mean is not None and var is not None)
    eps = computed_number(call.scalar(6), items.dtype)
    numbers = computed(items.numbers, items.dtype)
    number = numbers.dtype.type
    scale = number(1) / np.sqrt(var + eps)
    if weight is not None:
        scale = weight * scale
    shift = (number(0) if bias is None else bias) - mean * scale
    sizes = [-1 if d == 1 else 1 for d in range(items.rank)]
    found = numbers * scale.reshape(sizes) + shift.reshape(sizes)
    statistics = [call.out(i) for i in (8, 9)]
    need(all(out.sizes == (0,) for out in statistics))
    return (
        Items(out.dtype, converted(found, out.dtype)),
        *(
            Items(t.dtype, converted(np.zeros(0, np.uint8), t.dtype))
            for t in statistics
        ),
    )


EVALUATORS: Final = MappingProxyType(
    {
        "orch::portable::_native_batch_norm_legit_no_training_out": _batch_norm,
        "orch::portable::native_layer_norm_out": _layer_norm,
    }
)
