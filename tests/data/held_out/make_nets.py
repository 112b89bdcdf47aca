"""int8 nets that no kernel was tuned for, written as programs.

    python -m tests.data.held_out.make_nets

writes `NAME.pte` and `NAME.in0.npy` beside this file. Weights are random; scales keep
the items spread. The operators are those that ExecuTorch's exporter for Cortex-M emits.
"""

from __future__ import annotations

from dataclasses import replace
from math import frexp, prod, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from orchestrator.core.lazy_bytes import settled
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes import unlink_program
from orchestrator.method.passes.passes import drop_values
from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import Allocation, TensorListValue, TensorValue
from tests.opinfo.programs import program_of
from tests.unit.method.recorded_calls import Call, Tensor, method_of

if TYPE_CHECKING:
    from collections.abc import Callable

HERE: Final = Path(__file__).parent
_S: Final = ScalarType
_NHWC: Final = (0, 2, 3, 1)
_FORMS: Final = {_S.Char: "i1", _S.Int: "<i4", _S.Byte: "u1"}
_SPREAD: Final = 40.0
"""Standard deviation that items are meant to have."""
_WEIGHT: Final = 45.0
_LIMITS: Final = (-128, 127)
_RELU: Final = (-128, -128, 127)
_ANY: Final = (0, -128, 127)


def _tensor(data: Any, dtype: ScalarType = _S.Char) -> Tensor:
    form = _FORMS[dtype]
    order = tuple(range(data.ndim))
    return Tensor(dtype, data.shape, order, np.ascontiguousarray(data, form).tobytes())


def _planned(sizes: tuple[int, ...], dtype: ScalarType = _S.Char) -> Tensor:
    """An output; of rank 4 it is an image in channels last."""
    order = _NHWC if len(sizes) == len(_NHWC) else tuple(range(len(sizes)))
    data = bytes(prod(sizes) * dtype.item_bytes)
    return Tensor(dtype, sizes, order, data, is_out=True)


def _factor(scale: float) -> tuple[int, int]:
    """Multiplier and shift."""
    mantissa, exponent = frexp(scale)
    return min(round(mantissa * (1 << 31)), (1 << 31) - 1), exponent


class Net:
    """Calls, each of what the ones before it gave.

    Args:
        sizes: Of the input.
        seed: Of weights and input.
    """

    def __init__(self, sizes: tuple[int, ...], seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.x = replace(_planned(sizes), is_out=False)
        self.calls: list[Call] = []
        self.views: list[tuple[Tensor, Tensor]] = []

    def call(self, operator: str, *args: Any) -> Tensor:
        """Adds a call; its last argument is what it gives."""
        self.calls.append(Call(operator, args))
        out: Tensor = args[-1]
        return out

    def view(self, x: Tensor, *sizes: int) -> Tensor:
        """The same memory with other sizes."""
        made = replace(_planned(sizes), is_out=False, data=x.data)
        self.views.append((made, x))
        return made

    def weights(self, *sizes: int) -> Tensor:
        made = self.rng.normal(0, _WEIGHT, sizes).round()
        return _tensor(np.clip(made, -127, 127))

    def _bias(self, outputs: int, depth: int) -> Tensor:
        size = int(sqrt(depth) * _WEIGHT * _SPREAD / 4)
        return _tensor(self.rng.integers(-size, size, outputs), _S.Int)

    def _scales(self, outputs: int, depth: int) -> tuple[Tensor, Tensor]:
        scale = 1 / (sqrt(depth) * _WEIGHT)
        factors = [_factor(scale * s) for s in self.rng.uniform(0.7, 1.4, outputs)]
        columns = np.array(factors).T
        return _tensor(columns[0], _S.Int), _tensor(columns[1], _S.Int)

    def conv(
        self,
        x: Tensor,
        outputs: int,
        kernel: tuple[int, int] = (3, 3),
        *,
        stride: tuple[int, int] = (1, 1),
        padding: tuple[int, int] | None = None,
        dilation: tuple[int, int] = (1, 1),
        groups: int = 1,
        depthwise: bool = False,
        limits: tuple[int, int, int] = _RELU,
    ) -> Tensor:
        """A convolution; its size is that of the input unless padding is given."""
        if padding is None:
            pairs = zip(kernel, dilation, strict=True)
            rows, columns = ((k - 1) * d // 2 for k, d in pairs)
            padding = (rows, columns)
        n, channels, *size = x.sizes
        every = zip(size, kernel, stride, padding, dilation, strict=True)
        out = [(i + 2 * p - (k - 1) * d - 1) // s + 1 for i, k, s, p, d in every]
        inner = 1 if depthwise else channels // groups
        depth = inner * kernel[0] * kernel[1]
        shape = (1, *kernel, outputs) if depthwise else (outputs, *kernel, inner)
        name = "quantized_depthwise_conv2d" if depthwise else "quantized_conv2d"
        multipliers, shifts = self._scales(outputs, depth)
        offset, low, high = limits
        return self.call(
            f"cortex_m::{name}.out",
            *(x, self.weights(*shape), self._bias(outputs, depth)),
            *(stride, padding, dilation),
            *((outputs // channels,) if depthwise else ()),
            *(128 if limits is _RELU else 3, offset, multipliers, shifts, low, high),
            *(_tensor(np.zeros(0), _S.Byte), _planned((n, outputs, *out))),
        )

    def grow(
        self,
        x: Tensor,
        outputs: int,
        kernel: tuple[int, int] = (2, 2),
        *,
        stride: tuple[int, int] = (2, 2),
        padding: tuple[int, int] = (0, 0),
        more: tuple[int, int] = (0, 0),
        dilation: tuple[int, int] = (1, 1),
    ) -> Tensor:
        """A transposed convolution: twice as high and wide if nothing else is said."""
        n, channels, *size = x.sizes
        depth = kernel[0] * kernel[1] * channels
        multipliers, shifts = self._scales(outputs, depth)
        scratch = _tensor(np.zeros(0), _S.Byte)
        every = zip(size, kernel, stride, padding, more, dilation, strict=True)
        out = [(i - 1) * s - 2 * p + d * (k - 1) + m + 1 for i, k, s, p, m, d in every]
        return self.call(
            "cortex_m::quantized_transpose_conv2d.out",
            *(x, self.weights(outputs, *kernel, channels)),
            self._bias(outputs, depth),
            *(stride, padding, more, dilation, 128, -128, multipliers, shifts),
            *(*_LIMITS, scratch, scratch),
            _planned((n, outputs, *out)),
        )

    def nearest(self, x: Tensor, size: tuple[int, int]) -> Tensor:
        """An image of another size, whose items are the nearest ones."""
        out = _planned((*x.sizes[:2], *size))
        return self.call("aten::upsample_nearest2d.vec_out", x, size, None, out)

    def bilinear(self, x: Tensor, size: tuple[int, int], *, corners: bool, floats: bool) -> Tensor:
        """The same, with items between others; `floats`: as exporters leave it."""
        dtype = _S.Float if floats else _S.Char
        affine = (0.05, 3, *_LIMITS, int(_S.Char))
        if floats:
            out = _planned(x.sizes, dtype)
            x = self.call("cortex_m::dequantize_per_tensor.out", x, *affine, out)
        out = _planned((*x.sizes[:2], *size), dtype)
        name = "aten::upsample_bilinear2d.vec_out"
        x = self.call(name, x, size, corners, None, out)
        if floats:
            out = _planned(x.sizes)
            x = self.call("cortex_m::quantize_per_tensor.out", x, *affine, out)
        return x

    def layer(self, depth: int, outputs: int) -> tuple[Tensor, Tensor]:
        """Weights and biases of a linear layer."""
        return self.weights(outputs, depth), self._bias(outputs, depth)

    def linear(
        self,
        x: Tensor,
        outputs: int,
        *,
        layer: tuple[Tensor, Tensor] | None = None,
        limits: tuple[int, int, int] = _ANY,
    ) -> Tensor:
        """A linear layer, of new weights unless some are given."""
        rows, depth = x.sizes
        multiplier, shift = _factor(1 / (sqrt(depth) * _WEIGHT))
        offset, low, high = limits
        return self.call(
            "cortex_m::quantized_linear.out",
            *(x, *(layer or self.layer(depth, outputs)), None),
            *(2, 0, offset, (multiplier,), (shift,), high, low),
            _planned((rows, outputs)),
        )

    def max_pool(self, x: Tensor) -> Tensor:
        n, channels, height, width = x.sizes
        return self.call(
            "cortex_m::quantized_max_pool2d.out",
            *(x, (2, 2), (2, 2), (0, 0), (1, 1), False, 0, 0, *_LIMITS),
            _planned((n, channels, height // 2, width // 2)),
        )

    def pad(self, x: Tensor, before: tuple[int, ...], behind: tuple[int, ...]) -> Tensor:
        """Of an image; the numbers are those of [N, H, W, C]."""
        edges = [sum(both) for both in zip(before, behind, strict=True)]
        sizes = tuple(x.sizes[d] + edges[_NHWC.index(d)] for d in range(len(_NHWC)))
        return self.call("cortex_m::pad.out", x, before, behind, -128, _planned(sizes))

    def average(self, x: Tensor, scratch: ScalarType = _S.Byte) -> Tensor:
        """Of all pixels; with scratch memory of Char it is rounded as PyTorch does."""
        n, channels, *size = x.sizes
        return self.call(
            "cortex_m::quantized_avg_pool2d.out",
            *(x, tuple(size), (1, 1), (0, 0), False, 0, 1 << 30, 1),
            *(_tensor(np.zeros(0), scratch), _planned((n, channels, 1, 1))),
        )

    def to_channels_last(self) -> Tensor:
        """The input, which the caller gives in default layout."""
        self.x = replace(self.x, order=tuple(range(len(_NHWC))))
        args = (self.x, False, _NHWC, _planned(self.x.sizes))
        return self.call("dim_order_ops::_clone_dim_order.out", *args)

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        return self.call(
            "cortex_m::quantized_add.out",
            *(a, 0, 1 << 30, 0, b, 0, 1518500250, 0, 0, 1518500250, -19, *_LIMITS),
            _planned(a.sizes),
        )

    def mul(self, a: Tensor, b: Tensor) -> Tensor:
        args = (a, 0, b, 0, 0, 1 << 30, -5, _planned(a.sizes))
        return self.call("cortex_m::quantized_mul.out", *args)

    def quotient(self, a: Tensor, b: Tensor) -> Tensor:
        args = (a, 0, b, -3, 4, 0.02, _planned(a.sizes))
        return self.call("cortex_m::quantized_div.out", *args)

    def table(self, x: Tensor, function: Callable[[Any], Any]) -> Tensor:
        """A function of each item, whose scale is 1/32."""
        found = function(np.arange(-128, 128) / 32.0) * 127
        table = _tensor(np.clip(np.round(found), *_LIMITS))
        args = (x, table, _planned(x.sizes))
        return self.call("cortex_m::quantized_activation.out", *args)

    def softmax(self, x: Tensor) -> Tensor:
        args = (x, -1, 80, -128, 1099511628, 17, -15872, _planned(x.sizes))
        return self.call("cortex_m::softmax.out", *args)

    def join(self, *parts: Tensor) -> Tensor:
        """Side by side in channels."""
        n, _, *size = parts[0].sizes
        channels = sum(part.sizes[1] for part in parts)
        return self.call("aten::cat.out", parts, 1, _planned((n, channels, *size)))

    def columns(self, x: Tensor, begin: int, count: int) -> Tensor:
        out = _planned((x.sizes[0], count))
        end = begin + count
        return self.call("aten::slice_copy.Tensor_out", x, 1, begin, end, 1, out)

    def turn(self, x: Tensor, *order: int) -> Tensor:
        sizes = tuple(x.sizes[d] for d in order)
        return self.call("cortex_m::transpose.out", x, order, _planned(sizes))

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        """Of rows of a with rows of b."""
        scale = _factor(1 / (sqrt(a.sizes[2]) * _SPREAD))
        scratch = _tensor(np.zeros(0), _S.Byte)
        out = _planned((a.sizes[0], a.sizes[1], b.sizes[1]))
        args = (a, 0, b, 0, 0, *scale, scratch, out)
        return self.call("cortex_m::quantized_batch_matmul.out", *args)

    def write(self, name: str, folder: Path = HERE, outputs: tuple[Tensor, ...] = ()) -> None:
        """Program and input; the result of the last call is an output, too."""
        program = self._program((*outputs, self.calls[-1].args[-1]))
        (folder / f"{name}.pte").write_bytes(program)
        x = np.clip(self.rng.normal(0, _SPREAD, self.x.sizes).round(), *_LIMITS)
        np.save(folder / f"{name}.in0.npy", x.astype("i1"))

    def _program(self, outputs: tuple[Tensor, ...]) -> bytes:
        """Calls as `method_of` has them, joined where tensors are the same object."""
        linked = method_of(self.calls)
        values, places = list(linked.values), dict[int, int]()
        views = {id(made): made for made, _ in self.views} | {id(self.x): self.x}
        ends = [
            v.allocation.offset_bytes + v.size_bytes
            for v in linked.values
            if isinstance(v, TensorValue) and v.allocation is not None
        ]
        end = -(-max(ends) // 16) * 16

        def same(argument: Any, slot: int) -> int:
            """The slot of a tensor that there is already."""
            if isinstance(argument, tuple) and isinstance(value := values[slot], TensorListValue):
                pairs = zip(argument, value.items, strict=True)
                values[slot] = TensorListValue(tuple(same(a, i) for a, i in pairs))
            is_known = isinstance(argument, Tensor) and (argument.is_out or id(argument) in views)
            return places.setdefault(id(argument), slot) if is_known else slot

        code = []
        for call, linked_call in zip(self.calls, linked.instructions, strict=True):
            assert isinstance(linked_call, LinkedCall)
            pairs = zip(call.args, linked_call.args, strict=True)
            args = tuple(same(a, slot) for a, slot in pairs)
            code.append(replace(linked_call, args=args))

        def put(slot: int, place: Allocation | None) -> None:
            value = values[slot]
            assert isinstance(value, TensorValue)
            values[slot] = replace(value, allocation=place, data_buffer_index=0)

        put(places[id(self.x)], Allocation(memory_id=1, offset_bytes=end))
        for made, source in self.views:
            value = values[places[id(source)]]
            assert isinstance(value, TensorValue)
            put(places[id(made)], value.allocation)
        planned = {places[id(made)] for made in views.values()}
        for slot, value in enumerate(values):
            if isinstance(value, TensorValue) and value.dtype is _S.Byte:
                put(slot, Allocation(memory_id=1, offset_bytes=0))
                planned.add(slot)
        method = drop_values(
            replace(
                linked,
                values=tuple(values),
                instructions=tuple(code),
                inputs=(places[id(self.x)],),
                outputs=tuple(places[id(output)] for output in outputs),
                data=tuple((i, settled(d)) for i, d in linked.data if i not in planned),
            )
        )
        calls = [c for c in method.instructions if isinstance(c, LinkedCall)]
        operators = tuple(dict.fromkeys(c.operator for c in calls))
        base = read_program(program_of(self.calls[0], dynamic=False)[0], file="")
        (shell,) = base.methods
        shell = replace(
            shell,
            values=method.values,
            inputs=method.inputs,
            outputs=method.outputs,
            operators=operators,
            instructions=tuple(
                KernelCall(operator=operators.index(c.operator), args=(*c.args, c.args[-1]))
                for c in calls
            ),
            arena_bytes=(0, end + prod(self.x.sizes)),
        )
        program = unlink_program(replace(base, methods=(shell,)), (method,))
        return bytes(program.data)


def unet() -> Net:
    """Encoder and decoder of three levels with joined skips; one mask."""
    net = Net((1, 3, 32, 32), 1)
    skips, x = [], net.x
    for channels in (8, 12):
        x = net.conv(net.conv(x, channels), channels)
        skips.append(x)
        x = net.max_pool(x)
    x = net.conv(net.conv(x, 24), 24)
    for channels, skip in zip((12, 8), reversed(skips), strict=True):
        x = net.join(net.grow(x, channels), skip)
        x = net.conv(net.conv(x, channels), channels)
    net.conv(x, 1, (1, 1), limits=_ANY)
    return net


def head10() -> Net:
    """Ten classes of a small grey image."""
    net = Net((1, 1, 28, 28), 2)
    x = net.conv(net.x, 6, (5, 5), stride=(2, 2))
    x = net.conv(x, 10, stride=(2, 2))
    x = net.conv(x, 22)
    x = net.view(net.average(x), 1, 22)
    net.softmax(net.linear(x, 10))
    return net


def rgb() -> Net:
    """An image becomes an image: three channels in and out."""
    net = Net((1, 3, 24, 24), 3)
    x = net.conv(net.x, 18, (5, 5))
    for _ in range(2):
        x = net.conv(net.conv(x, 18, depthwise=True), 18, (1, 1))
    net.conv(x, 3, limits=_ANY)
    return net


def waves() -> Net:
    """1-D convolutions over time, dilated more and more."""
    net = Net((1, 6, 1, 160), 4)
    x = net.conv(net.x, 20, (1, 5), stride=(1, 2))
    for dilation in (1, 2, 4, 8):
        y = net.conv(x, 20, (1, 3), dilation=(1, dilation))
        x = net.add(x, net.conv(y, 20, (1, 1), limits=_ANY))
    x = net.view(net.average(x), 1, 20)
    net.linear(x, 5)
    return net


def groups() -> Net:
    """Grouped convolutions."""
    net = Net((1, 3, 24, 24), 5)
    x = net.conv(net.x, 16, stride=(2, 2))
    x = net.conv(net.conv(x, 32, groups=4), 24, (1, 1), groups=2)
    x = net.conv(net.conv(x, 24, groups=8, stride=(2, 2)), 40, (1, 1))
    x = net.view(net.average(x), 1, 40)
    net.linear(x, 7)
    return net


def lstm() -> Net:
    """A recurrent layer of 24 cells, ten steps of 14 inputs, as a chain of calls."""
    inputs, cells, steps = 14, 24, 10
    net = Net((steps, inputs), 6)
    first = net.linear(net.x, 4 * cells)
    h = net.columns(first, 0, cells)
    h = net.call("aten::slice_copy.Tensor_out", h, 0, 0, 1, 1, _planned((1, cells)))
    c, layer = h, net.layer(cells, 4 * cells)

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    for step in range(steps):
        row = _planned((1, 4 * cells))
        args = (first, 0, step, step + 1, 1, row)
        x = net.call("aten::slice_copy.Tensor_out", *args)
        gates = net.add(x, net.linear(h, 4 * cells, layer=layer))
        parts = [net.columns(gates, cells * n, cells) for n in range(4)]
        keep, let, out = (net.table(part, sigmoid) for part in parts[:3])
        c = net.add(net.mul(c, keep), net.mul(let, net.table(parts[3], np.tanh)))
        h = net.mul(out, net.table(c, np.tanh))
    net.linear(h, 6)
    return net


def attention() -> Net:
    """A block of a transformer: two heads, 18 tokens of 24 items."""
    tokens, items, heads = 18, 24, 2
    net = Net((tokens, items), 7)
    each = items // heads

    def split(x: Tensor) -> Tensor:
        return net.turn(net.view(x, tokens, heads, each), 1, 0, 2)

    q, k, v = (split(net.linear(net.x, items)) for _ in range(3))
    weights = net.softmax(net.product(q, k))
    found = net.turn(net.product(weights, net.turn(v, 0, 2, 1)), 1, 0, 2)
    x = net.add(net.x, net.linear(net.view(found, tokens, items), items))
    wide = net.linear(x, 3 * items, limits=_RELU)
    net.add(x, net.linear(wide, items))
    return net


NETS: Final = (unet, head10, rgb, waves, groups, lstm, attention)


def main() -> None:
    """Write them."""
    for net in NETS:
        net().write(net.__name__)


if __name__ == "__main__":
    main()
