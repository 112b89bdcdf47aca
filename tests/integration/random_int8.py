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

    def product_of(self) -> Call:
        a, b, out = self.pair()
        usual = self.one(0, 2) != 0
        zeros = [
            self.item()
            if usual
            else int(self.rng.choice([-32768, 32640, 32641, 255, self.one(-999, 999)]))
            for _ in range(2)
        ]
        shift = int(self.rng.choice([self.one(-17, 0), self.one(-31, 31), 1, 7, 8]))
        factor = self.multiplier(usual=usual), self.one(-9, -3) if usual else shift
        args = (a, zeros[0], b, zeros[1], self.item(), *factor, out)
        return Call("cortex_m::quantized_mul.out", args)

    def quotient_of(self) -> Call:
        a, b, out = self.pair()
        zeros = [self.item() if self.one(0, 1) else self.one(-32768, 32767) for _ in range(2)]
        scale = float(np.float32(10 ** self.rng.uniform(-3, 3)))
        if self.one(0, 9) == 0:
            scale = self.rng.choice([np.nan, np.inf, -np.inf, 1e-39, -2.5, 0.0])
        args = (a, zeros[0], b, zeros[1], self.item(), float(scale), out)
        return Call("cortex_m::quantized_div.out", args)

    def looked_up(self) -> Call:
        a, _, _ = self.pair()
        out = replace(a, data=bytes(len(a.data)), is_out=True)
        args = (a, self.tensor(256), out)
        return Call("cortex_m::quantized_activation.out", args)


def elementwise_calls(seed: int = 4, *, count: int = 300) -> Iterator[Call]:
    """Random calls of each operator, without their results."""
    random = _Elementwise(seed)
    makers = random.sum_of, random.product_of, random.quotient_of, random.looked_up
    for make in makers:
        for _ in range(count):
            yield make()


def pool_calls(seed: int, count: int) -> Iterator[Call]:
    """Random averages, half of them of whole images, and largest items."""
    random = _Elementwise(seed)
    for number in range(count):
        channels = random.one(1, 8) if number % 3 else random.one(9, 33)
        batch, height, width = (random.one(1, 7) for _ in range(3))
        kernel, stride, padding = (height, width), (1, 1), (0, 0)
        if number % 2:
            kernel = random.one(1, height), random.one(1, width)
            stride = random.one(1, 3), random.one(1, 3)
            padding = random.one(0, kernel[0] // 2), random.one(0, kernel[1] // 2)
        out = [
            (n + 2 * p - k) // s + 1
            for n, k, s, p in zip((height, width), kernel, stride, padding, strict=True)
        ]
        x = random.tensor(batch, channels, height, width, order=_NHWC)
        if number % 3 == 0:
            # Sums that often lie in the middle of two steps.
            near = random.rng.integers(-2, 3, len(x.data)).astype("i1")
            x = replace(x, data=near.tobytes())
        y = random.tensor(batch, channels, *out, order=_NHWC)
        y = replace(y, data=bytes(len(y.data)), is_out=True)
        window = x, kernel, stride, padding
        if number % 5 == 0:
            zero = random.item()
            largest = (*window, (1, 1), False, zero, zero, *random.limits(), y)
            yield Call("cortex_m::quantized_max_pool2d.out", largest)
            continue
        ties = ScalarType.Char if number % 4 < 2 else ScalarType.Byte
        scratch = Tensor(ties, (0,), (0,), b"")
        factor = random.one(1 << 30, _TOP), random.one(-12, 0)
        average = (*window, False, random.item(), *factor, scratch, y)
        yield Call("cortex_m::quantized_avg_pool2d.out", average)


def transposed_calls(seed: int, count: int) -> Iterator[Call]:
    """Random transposed convolutions, of up to 33 channels."""
    random = _Elementwise(seed)
    while count > 0:
        size, kernel, stride, dilation, padding, added = (
            (random.one(low, high), random.one(low, high))
            for low, high in ((1, 6), (1, 5), (1, 4), (1, 3), (0, 2), (0, 1))
        )
        parts = zip(size, kernel, stride, dilation, padding, added, strict=True)
        out = [(n - 1) * s - 2 * p + d * (k - 1) + more + 1 for n, k, s, d, p, more in parts]
        if min(out) < 1:
            continue
        count -= 1
        batch, channels, outputs = random.one(1, 2), random.one(1, 33), random.one(1, 9)
        x = random.tensor(batch, channels, *size, order=_NHWC)
        y = random.tensor(batch, outputs, *out, order=_NHWC)
        scales = (
            random.rng.integers(low, high, outputs).astype("<i4")
            for low, high in ((-20000, 20000), (1 << 30, _TOP), (-11, random.one(-8, 2)))
        )
        bias, multipliers, shifts = (
            Tensor(ScalarType.Int, (outputs,), (0,), data.tobytes()) for data in scales
        )
        scratch = Tensor(ScalarType.Byte, (0,), (0,), b"")
        windows = stride, padding, added, dilation
        scaling = random.one(-128, 128), random.item(), multipliers, shifts
        args = (
            *(x, random.tensor(outputs, *kernel, channels), bias, *windows, *scaling),
            *(*random.limits(), scratch, scratch),
            replace(y, data=bytes(len(y.data)), is_out=True),
        )
        yield Call("cortex_m::quantized_transpose_conv2d.out", args)


def in_place(call: Call) -> Iterator[Call]:
    """The call with its result in the memory of an input, for each that is as large."""
    *inputs, out = call.args
    for index, argument in enumerate(inputs):
        if isinstance(argument, Tensor) and argument.sizes == out.sizes:
            yield replace(call, args=(*inputs, replace(out, in_place_of=index)))
