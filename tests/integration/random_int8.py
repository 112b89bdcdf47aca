"""Recorded calls of int8 kernels with other items and factors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from tests.unit.method.recorded_calls import Call, Tensor, read_calls

CALLS: Final = Path(__file__).parents[1] / "data" / "cortex_m" / "calls.bin"
_TOP: Final = (1 << 31) - 1
_ITEMS: Final = np.array([-128, -127, -1, 0, 1, 127], "i1")
_MULTIPLIERS: Final = (_TOP, -_TOP, 1 << 30, (1 << 30) + 1, -1, 0, 1)
"""Not the lowest: with it vectors may differ from plain code."""
_SHIFTS: Final = (-31, -30, -8, -1, 0, 1, 7, 30, 31)
_LARGEST_ITEM: Final = 255


def int8_calls(seed: int = 9) -> list[Call]:
    """For each recorded call another one of its kind, without its result.

    Windows, sizes, zero points and limits stay; items, multipliers, shifts and biases
    are edges, or anything.
    """
    rng = np.random.default_rng(seed)
    return [_other(rng, call) for call in read_calls(CALLS)]


def _other(rng: np.random.Generator, call: Call) -> Call:
    return replace(call, args=tuple(_argument(rng, a) for a in call.args))


def _argument(rng: np.random.Generator, argument: Any) -> Any:
    if isinstance(argument, Tensor) and not argument.is_out:
        return replace(argument, data=_items(rng, argument))
    is_factor = type(argument) is int and abs(argument) > _LARGEST_ITEM
    if is_factor and rng.random() < 0.5:
        return int(rng.choice(_MULTIPLIERS))
    return argument


def _items(rng: np.random.Generator, tensor: Tensor) -> bytes:
    if tensor.dtype is ScalarType.Char:
        count = len(tensor.data)
        anything = rng.integers(-128, 128, count).astype("i1")
        edges = rng.choice(_ITEMS, count)
        return np.where(rng.random(count) < 0.5, edges, anything).tobytes()
    if tensor.dtype is not ScalarType.Int:
        return tensor.data
    own = np.frombuffer(tensor.data, "<i4")
    is_shifts = bool((np.abs(own) <= max(map(abs, _SHIFTS))).all())
    others = rng.choice(_SHIFTS if is_shifts else _MULTIPLIERS, own.size)
    return np.where(rng.random(own.size) < 0.3, others, own).astype("<i4").tobytes()
