"""Scales and zero points for the numbers at hand.

Source: kernels/util/choose_affine.h; kernels/quantized/op_choose_qparams.cpp and
op_choose_qparams_per_token_asymmetric.cpp.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from orchestrator.method.passes.arguments import need
from orchestrator.method.passes.evaluate.numbers import Array, Items

if TYPE_CHECKING:
    from orchestrator.method.passes.evaluate.constant_call import ConstantCall
    from orchestrator.program.values import TensorValue

_SMALLEST: Final = np.float32(6.1e-5)
_DEFAULT: Final = np.float64(0.1)
"""In place of a scale of zero, or one whose inverse is infinite."""
_INT32: Final = 1 << 31
_CHAR: Final = (-128, 127)


def _affine(rows: Array, low: int, high: int) -> tuple[Array, Array]:
    """A scale and a zero point for each of [rows, items]."""
    zeros = np.zeros((len(rows), 1), np.float32)
    least = np.concatenate([zeros, rows], axis=1).min(axis=1)
    most = np.concatenate([zeros, rows], axis=1).max(axis=1)
    steps = np.float64(high - low)
    step = (most.astype(np.float64) - least.astype(np.float64)) / steps
    usable = np.isfinite(np.float32(1) / step.astype(np.float32))
    step = np.where(usable, step, _DEFAULT)

    small = step < np.float64(_SMALLEST)
    factor = _SMALLEST / step.astype(np.float32)
    width = _SMALLEST * np.float32(steps)
    only_above, only_below = least == 0, (least != 0) & (most == 0)
    both = small & ~only_above & ~only_below
    most = np.where(small & only_above, width, np.where(both, most * factor, most))
    least = np.where(small & only_below, -width, np.where(both, least * factor, least))
    step = np.where(small, np.float64(_SMALLEST), step)

    below, above = -(least.astype(np.float64) / step), most.astype(np.float64) / step
    # The end that is computed with smaller numbers errs less.
    at_low = abs(low) - below < abs(high) - above
    found = np.where(at_low, low + below, high - above)
    whole = np.rint(found.astype(np.float32)).astype(np.float64)
    whole = np.where(whole < float(_INT32), whole, float(high))
    point = np.where(found > high, high, np.where(found >= low, whole, low))
    return step, point.astype(np.int64)


def _check(items: Items, scale: TensorValue, point: TensorValue) -> None:
    need(items.dtype is ScalarType.Float and scale.dtype is ScalarType.Double)
    need(point.dtype is ScalarType.Long)
    need(np.isfinite(items.numbers).all())


def _given(
    scale: TensorValue, point: TensorValue, found: tuple[Array, Array]
) -> tuple[Items, ...]:
    return (
        Items(scale.dtype, found[0].reshape(scale.sizes)),
        Items(point.dtype, found[1].reshape(point.sizes)),
    )


def _per_tensor(call: ConstantCall) -> tuple[Items, ...]:
    items, scale, point = call.items(0), call.out(5), call.out(6)
    low, high = call.number(1), call.number(2)
    _check(items, scale, point)
    need(-_INT32 <= low < high < _INT32)
    need(items.numbers.size > 0)
    need(np.prod(scale.sizes, dtype=int) == np.prod(point.sizes, dtype=int) == 1)
    return _given(scale, point, _affine(items.numbers.reshape(1, -1), low, high))


def _per_token(call: ConstantCall) -> tuple[Items, ...]:
    """The limits are those of Char, whatever argument 1 says."""
    items, scale, point = call.items(0), call.out(2), call.out(3)
    _check(items, scale, point)
    sizes = items.numbers.shape
    need(sizes and sizes[-1] > 0)
    need(scale.sizes == point.sizes == (*sizes[:-1], 1))
    return _given(scale, point, _affine(items.numbers.reshape(-1, sizes[-1]), *_CHAR))


EVALUATORS: Final = MappingProxyType(
    {
        "orch::quantized::choose_qparams_Tensor_out": _per_tensor,
        "orch::quantized::choose_qparams_per_token_asymmetric_out": _per_token,
    }
)
