"""Random calls of the kernels of int8 nets, and calls of float kernels.

Shapes are those of nets: a few pixels to a few hundred, 1 to 33 channels, windows of 1
to 5 taps. Each call has a name that says its shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from tests.speeds.calls import timed_calls
from tests.unit.method.recorded_calls import Call, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

_S: Final = ScalarType
_NHWC: Final = (0, 2, 3, 1)
_FORMS: Final = {_S.Char: "i1", _S.Int: "<i4", _S.Float: "<f4", _S.Byte: "u1"}
_TOP: Final = (1 << 31) - 1
_MOST_ITEMS: Final = 2400
"""Of an input: the emulator has hundreds of calls to run."""
_MOST_WEIGHTS: Final = 2400
"""Of a convolution: all calls are in one image."""
FLOATS: Final = (
    *("aten::convolution.out", "aten::addmm.out", "aten::mm.out", "aten::bmm.out"),
    *("aten::_softmax.out", "aten::relu.out", "aten::hardtanh.out", "aten::gelu.out"),
    *("aten::add.out", "aten::mul.out", "aten::sigmoid.out", "aten::tanh.out"),
    *("aten::avg_pool2d.out", "aten::mean.out", "aten::permute_copy.out"),
    *("aten::sqrt.out", "aten::exp.out", "aten::upsample_nearest2d.vec_out"),
)
"""Kernels of nets in floats; calls have one output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A call with a name."""

    name: str
    call: Call

    @property
    def has_weights(self) -> bool:
        """Whether builds may pack its weights."""
        return self.name.split()[0] in ("conv", "depthwise", "linear")


def _tensor(data: Any, dtype: ScalarType = _S.Char, *, image: bool = False) -> Tensor:
    """A tensor of these items; images are given as they lie in memory."""
    sizes = data.shape
    if image:
        sizes = (sizes[0], sizes[3], sizes[1], sizes[2])
    order = _NHWC if image else tuple(range(data.ndim))
    form = _FORMS[dtype]
    return Tensor(dtype, sizes, order, np.ascontiguousarray(data, form).tobytes())


def _result(*sizes: int, dtype: ScalarType = _S.Char, image: bool = False) -> Tensor:
    made = _tensor(np.zeros(sizes), dtype, image=image)
    return Tensor(made.dtype, made.sizes, made.order, made.data, is_out=True)


def _scratch() -> Tensor:
    return _tensor(np.zeros(0), _S.Byte)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """Of a convolution."""

    batch: int
    size: tuple[int, int]
    channels: int
    outputs: int
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    @property
    def out(self) -> tuple[int, int]:
        every = zip(
            *(self.size, self.kernel, self.stride, self.padding, self.dilation), strict=True
        )
        h, w = ((n + 2 * p - (k - 1) * d - 1) // s + 1 for n, k, s, p, d in every)
        return h, w

    def __str__(self) -> str:
        def pair(values: tuple[int, int]) -> str:
            return f"{values[0]}x{values[1]}"

        text = f"{pair(self.kernel)} {self.channels}->{self.outputs}"
        text += f" on {pair(self.size)}"
        for name, values, usual in (
            ("stride", self.stride, (1, 1)),
            ("padding", self.padding, (0, 0)),
            ("dilation", self.dilation, (1, 1)),
        ):
            text += f" {name} {pair(values)}" if values != usual else ""
        text += f" groups {self.groups}" if self.groups > 1 else ""
        return text + (f" batch {self.batch}" if self.batch > 1 else "")


class _Random:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def pick(self, *values: int) -> int:
        return int(self.rng.choice(values))

    def channels(self) -> int:
        """1 to 33: many multiples of 4 and 8, the first few, anything."""
        kinds = (4 * self.one(1, 8), self.one(1, 4), self.one(1, 33), 8 * self.one(1, 4))
        return kinds[self.one(0, 3)]

    def items(self, *sizes: int) -> Any:
        return self.rng.integers(-128, 128, sizes)

    def weights(self, *sizes: int) -> Any:
        return np.clip(self.rng.normal(0, 45, sizes).round(), -127, 127)

    def scales(self, outputs: int) -> tuple[Tensor, Tensor, Tensor]:
        """Biases, multipliers, shifts."""
        return (
            _tensor(self.rng.integers(-20000, 20000, outputs), _S.Int),
            _tensor(self.rng.integers(1 << 30, 1 << 31, outputs), _S.Int),
            _tensor(-self.rng.integers(6, 11, outputs), _S.Int),
        )

    def limits(self) -> tuple[int, int, int]:
        """Offset, lowest and highest: after a ReLU, or none."""
        return (-128, -128, 127) if self.one(0, 2) else (self.one(-20, 20), -128, 127)

    def size(self, kernel: tuple[int, int], channels: int) -> tuple[int, int]:
        """At least the window, not too many items."""
        most = max(_MOST_ITEMS // channels, 1)
        height = kernel[0] + self.one(0, 12)
        width = kernel[1] + self.one(0, 12)
        while height * width > most and height > kernel[0] + 1:
            height -= 1
        while height * width > most and width > kernel[1] + 1:
            width -= 1
        return height, width

    def convolution(self) -> Named:
        k = (self.pick(1, 1, 3, 3, 5, 2), self.pick(1, 1, 3, 3, 5, 4))
        if self.one(0, 1):
            k = (k[0], k[0])
        groups = self.pick(1, 1, 1, 1, 1, 2, 4)
        channels, outputs = self.channels(), self.channels()
        if groups > 1:
            channels, outputs = self.one(1, 8) * groups, self.one(1, 8) * groups
        while channels * outputs * k[0] * k[1] > _MOST_WEIGHTS * groups:
            k = (min(k[0], 3), min(k[1], 3))
            outputs = -(-outputs // 2 // groups) * groups
        shape = _Shape(
            batch=self.pick(1, 1, 1, 2),
            size=self.size(k, channels),
            channels=channels,
            outputs=outputs,
            kernel=k,
            stride=(self.pick(1, 1, 2), self.pick(1, 1, 2)),
            padding=(self.one(0, (k[0] - 1) // 2), self.one(0, (k[1] - 1) // 2)),
            groups=groups,
        )
        w = self.weights(outputs, *k, channels // groups)
        return self._windowed("conv", "quantized_conv2d", shape, _tensor(w))

    def depthwise(self) -> Named:
        k = (3, 3) if self.one(0, 2) else (self.one(1, 5), self.one(1, 5))
        channels, multiplier = self.channels(), 1
        if self.one(0, 4) == 0:
            channels, multiplier = self.one(1, 3), self.one(2, 9)
        dilation = (2, 2) if self.one(0, 5) == 0 else (1, 1)
        reach = ((k[0] - 1) * dilation[0] + 1, (k[1] - 1) * dilation[1] + 1)
        shape = _Shape(
            batch=self.pick(1, 1, 1, 2),
            size=self.size(reach, channels),
            channels=channels,
            outputs=channels * multiplier,
            kernel=k,
            stride=(self.pick(1, 1, 2),) * 2,
            padding=(self.one(0, reach[0] // 2), self.one(0, reach[1] // 2)),
            dilation=dilation,
        )
        w = _tensor(self.weights(1, *k, shape.outputs))
        return self._windowed("depthwise", "quantized_depthwise_conv2d", shape, w)

    def _windowed(self, kind: str, operator: str, shape: _Shape, w: Tensor) -> Named:
        bias, multipliers, shifts = self.scales(shape.outputs)
        offset, low, high = self.limits()
        windows = (shape.stride, shape.padding, shape.dilation)
        last: tuple[int, ...] = (shape.groups,)
        if kind == "depthwise":
            last = (shape.outputs // shape.channels,)
        if kind == "conv":
            last = ()
        x = self.items(shape.batch, *shape.size, shape.channels)
        y = _result(shape.batch, *shape.out, shape.outputs, image=True)
        head = (_tensor(x, image=True), w, bias, *windows, *last)
        scaling = (self.one(-127, 128), offset, multipliers, shifts, low, high)
        call = Call(f"cortex_m::{operator}.out", (*head, *scaling, _scratch(), y))
        return Named(name=f"{kind} {shape}", call=call)

    def transposed(self) -> Named:
        k, channels, outputs = self.pick(2, 3, 4), self.channels(), self.channels()
        stride, padding = self.pick(1, 2, 2), self.one(0, 1)
        height, width = self.one(1, 6), self.one(1, 6)
        out = [(n - 1) * stride - 2 * padding + k for n in (height, width)]
        if min(out) < 1:
            return self.transposed()
        bias, multipliers, shifts = self.scales(outputs)
        offset, low, high = self.limits()
        x = _tensor(self.items(1, height, width, channels), image=True)
        w = _tensor(self.weights(outputs, k, k, channels))
        windows = ((stride,) * 2, (padding,) * 2, (0, 0), (1, 1))
        scaling = (self.one(-127, 128), offset, multipliers, shifts, low, high)
        y = _result(1, *out, outputs, image=True)
        args = (x, w, bias, *windows, *scaling, _scratch(), _scratch(), y)
        return Named(
            name=f"transposed {k}x{k} {channels}->{outputs} on {height}x{width}"
            f" stride {stride} padding {padding}",
            call=Call("cortex_m::quantized_transpose_conv2d.out", args),
        )

    def linear(self) -> Named:
        rows, depth, outputs = (self.pick(1, 1, 1, 2, 5), self.one(1, 90), self.channels())
        if self.one(0, 1):
            depth = 4 * self.one(1, 32)
        bias, multipliers, _ = self.scales(outputs)
        offset, low, high = self.limits()
        first = int(np.frombuffer(multipliers.data, "<i4")[0])
        args = (
            *(_tensor(self.items(rows, depth)), _tensor(self.weights(outputs, depth))),
            *(bias, None, self.one(-127, 128), 0, offset, (first,)),
            *((-self.one(6, 10),), high, low, _result(rows, outputs)),
        )
        return Named(
            name=f"linear {rows}x{depth}->{outputs}",
            call=Call("cortex_m::quantized_linear.out", args),
        )

    def product(self) -> Named:
        batch, m, k, n = self.one(1, 3), self.one(1, 9), self.one(1, 40), self.one(1, 9)
        args = (
            *(_tensor(self.items(batch, m, k)), self.one(-20, 20)),
            *(_tensor(self.items(batch, n, k)), self.one(-20, 20), self.one(-20, 20)),
            *(self.one(1 << 30, _TOP), -8, _scratch(), _result(batch, m, n)),
        )
        return Named(
            name=f"product {batch} of {m}x{k}->{n}",
            call=Call("cortex_m::quantized_batch_matmul.out", args),
        )

    def pool(self) -> Named:
        kernel, channels = (self.one(1, 4), self.one(1, 4)), self.channels()
        if self.one(0, 2) == 0:
            kernel = (self.one(3, 8), self.one(3, 8))  # of all pixels
            size, stride, padding = kernel, (1, 1), (0, 0)
        else:
            stride = (self.one(1, 2),) * 2
            padding = (self.one(0, kernel[0] // 2), self.one(0, kernel[1] // 2))
            size = self.size(kernel, channels)
        shape = _Shape(
            batch=1,
            size=size,
            channels=channels,
            outputs=channels,
            kernel=kernel,
            stride=stride,
            padding=padding,
        )
        x = _tensor(self.items(1, *size, channels), image=True)
        y = _result(1, *shape.out, channels, image=True)
        head = (x, kernel, stride, padding)
        if self.one(0, 1):
            averaged = (*head, False, 0, 1 << 30, 1, _scratch(), y)
            call = Call("cortex_m::quantized_avg_pool2d.out", averaged)
            return Named(name=f"average {shape}", call=call)
        args = (*head, (1, 1), False, 0, 0, -128, 127, y)
        call = Call("cortex_m::quantized_max_pool2d.out", args)
        return Named(name=f"max {shape}", call=call)

    def elementwise(self) -> Iterator[Named]:
        """Two tensors, one, and lines."""
        count = self.pick(self.one(1, 40), self.one(40, 2000), 16 * self.one(1, 60))
        a, b, y = _tensor(self.items(count)), _tensor(self.items(count)), _result(count)
        zero, factor = self.one(-20, 20), self.one(1 << 30, _TOP)
        both: tuple[Any, ...]
        parts = (a, zero, 1 << 30, 0, b, 3, factor, -self.one(0, 3))
        both = (*parts, -4, factor, -18, *self.limits()[1:], y)
        yield Named(name=f"add {count}", call=Call("cortex_m::quantized_add.out", both))
        both = (a, zero, b, 4, -4, factor, -6, y)
        yield Named(name=f"mul {count}", call=Call("cortex_m::quantized_mul.out", both))
        for name in ("maximum", "minimum"):
            call = Call(f"cortex_m::{name}.out", (a, b, y))
            yield Named(name=f"{name} {count}", call=call)
        table = _tensor(self.items(256))
        call = Call("cortex_m::quantized_activation.out", (a, table, y))
        yield Named(name=f"activation {count}", call=call)
        x = _tensor(self.rng.normal(0, 2, count), _S.Float)
        limits = (0.05, zero, -128, 127, int(_S.Char))
        call = Call("cortex_m::quantize_per_tensor.out", (x, *limits, y))
        yield Named(name=f"quantize {count}", call=call)
        z = _result(count, dtype=_S.Float)
        call = Call("cortex_m::dequantize_per_tensor.out", (a, *limits, z))
        yield Named(name=f"dequantize {count}", call=call)
        rows, columns = self.one(1, 4), self.one(1, 40)
        line, out = _tensor(self.items(rows, columns)), _result(rows, columns)
        both = (line, -1, 80, -128, 1099511628, 17, -15872, out)
        call = Call("cortex_m::softmax.out", both)
        yield Named(name=f"softmax {rows}x{columns}", call=call)


def random_calls(seed: int = 18) -> tuple[Named, ...]:
    """A few hundred calls, each of another name."""
    random = _Random(seed)
    found = [random.convolution() for _ in range(110)]
    found += [random.depthwise() for _ in range(60)]
    found += [random.linear() for _ in range(30)]
    found += [random.transposed() for _ in range(15)]
    found += [random.product() for _ in range(10)]
    found += [random.pool() for _ in range(30)]
    for _ in range(8):
        found += random.elementwise()
    for timed in timed_calls():
        if timed.call.operator in FLOATS:
            found.append(Named(name=timed.call.operator, call=timed.call))
    return tuple({named.name: named for named in found}.values())
