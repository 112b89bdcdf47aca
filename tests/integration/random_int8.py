"""Calls of int8 kernels: recorded ones with other items and factors, random ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from tests.unit.method.recorded_calls import Call, Tensor, read_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

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


_NHWC: Final = (0, 2, 3, 1)


class _Elementwise:
    """Random calls of operators on two tensors, which may broadcast.

    Half of them are as exporters write them, the others have anything that kernels
    take.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def tensor(self, *sizes: int, order: tuple[int, ...] = ()) -> Tensor:
        """Anything, and often the limits."""
        count = int(np.prod(sizes, dtype=int))
        anything = self.rng.integers(-128, 128, count).astype("i1")
        edges = self.rng.choice(_ITEMS, count)
        data = np.where(self.rng.random(count) < 0.2, edges, anything).astype("i1")
        order = order or tuple(range(len(sizes)))
        return Tensor(ScalarType.Char, sizes, order, data.tobytes())

    def pair(self) -> tuple[Tensor, Tensor, Tensor]:
        """Two inputs and the output."""
        kind = self.one(0, 7)
        if kind == 0:
            rows, columns = self.one(1, 5), self.one(1, 40)
            a, b = self.tensor(rows, columns), self.tensor(columns)
        elif kind == 1:
            rows, columns = self.one(2, 5), self.one(2, 20)
            a, b = self.tensor(rows, 1), self.tensor(1, columns)
        elif kind == 2:
            sizes = tuple(self.one(1, 6) for _ in range(4))
            a = self.tensor(*sizes, order=_NHWC)
            b = self.tensor(1, sizes[1], 1, 1, order=_NHWC)
        else:
            count = self.one(0, 40)
            a, b = self.tensor(count), self.tensor(count)
        if self.one(0, 1):
            a, b = b, a
        sizes = np.broadcast_shapes(a.sizes, b.sizes)
        order = a.order if a.sizes == sizes else b.order
        if len(order) != len(sizes):
            order = tuple(range(len(sizes)))
        data = bytes(int(np.prod(sizes, dtype=int)))
        return a, b, Tensor(ScalarType.Char, sizes, order, data, is_out=True)

    def multiplier(self, *, usual: bool) -> int:
        if usual or self.one(0, 1):
            return self.one(1 << 30, _TOP)
        return int(self.rng.choice(_MULTIPLIERS))

    def shift(self, low: int, high: int, *, usual: bool) -> int:
        return self.one(low, high) if usual or self.one(0, 1) else self.one(-31, 31)

    def item(self) -> int:
        return int(self.rng.choice([-128, 127, 0, self.one(-128, 127)]))

    def zero_point(self, most: int, *, usual: bool) -> int:
        if usual:
            return self.item()
        return int(self.rng.choice([-most, most, -384, -383, 383, 384, self.item()]))

    def limits(self) -> tuple[int, int]:
        if self.one(0, 1):
            return -128, 127
        low, high = sorted((self.item(), self.item()))
        return low, high

    def sum_of(self) -> Call:
        a, b, out = self.pair()
        usual = self.one(0, 2) != 0
        addends = []
        for first in (True, False):
            half = first and (usual or self.one(0, 1) == 1)
            factor = (
                self.zero_point(1920, usual=usual),
                1 << 30 if half else self.multiplier(usual=usual),
                0 if half else self.shift(-10, 0, usual=usual),
            )
            addends.append(factor)
        if self.one(0, 1):
            addends.reverse()
        total = self.multiplier(usual=usual), self.shift(-21, -14, usual=usual)
        if self.one(0, 2) == 0:
            # Factors so small that the lowest bits of sums show.
            low, high = 1 << 9, 1 << 13
            addends = [(self.item(), self.one(low, high), s) for s in (0, -1, 0, 0)]
            addends = addends[self.one(0, 2) :][:2]
            total = self.multiplier(usual=True), self.one(-2, 0)
        args = (a, *addends[0], b, *addends[1], self.item(), *total, *self.limits())
        return Call("cortex_m::quantized_add.out", (*args, out))


def elementwise_calls(seed: int = 4, *, count: int = 300) -> Iterator[Call]:
    """Random calls of each operator, without their results."""
    random = _Elementwise(seed)
    for make in (random.sum_of,):
        for _ in range(count):
            yield make()


def in_place(call: Call) -> Iterator[Call]:
    """The call with its result in the memory of an input, for each that is as large."""
    *inputs, out = call.args
    for index, argument in enumerate(inputs):
        if isinstance(argument, Tensor) and argument.sizes == out.sizes:
            yield replace(call, args=(*inputs, replace(out, in_place_of=index)))
