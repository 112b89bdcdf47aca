"""Nets with functions of single items: activations, and islands of floats."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from tests.integration.joined_nets import Net, Random, T

_S = ScalarType
_ITEMS: Final = np.arange(-128, 128)


class FunctionNets(Random):
    """Functions, most of which are limits, after calls that have limits."""

    def limited(self) -> Any:
        """The table of a function."""
        low, high = sorted((self.one(-128, 127), self.one(-128, 127)))
        kind = self.one(0, 7)
        if kind == 0:
            return _ITEMS[::-1]
        items = np.clip(_ITEMS, low, high)
        if kind == 1:
            items[self.one(0, 255)] ^= 1
        if kind == 2:
            return np.full(256, low)
        return items

    def producer(self, net: Net) -> T | None:
        """A call that most often has limits."""
        kind = self.one(0, 5)
        if kind < 2:
            nhwc = self.maybe(2)
            x = self.image(net, nhwc=nhwc)
            if kind == 0:
                return self.convolution(net, x, self.one(-128, 127), nhwc=nhwc)
            return self.pool(net, x, nhwc=nhwc, lowest=-128, padding=(0, 0))
        if kind == 2:
            return self.linear(net)
        if kind == 3:
            return self.sum(net)
        x = net.given((4, 64))
        if kind == 4:
            return self.table(net, x, self.rng.integers(-128, 128, 256))
        return x

    def linear(self, net: Net) -> T:
        rows, depth, outputs = (self.one(1, n) for n in (3, 20, 9))
        offset, low, high = self.limits()
        weights = np.clip(self.rng.normal(0, 40, (outputs, depth)), -127, 127)
        return net.call(
            "cortex_m::quantized_linear.out",
            *(net.given((rows, depth)), net.constant(weights.round(), _S.Char)),
            net.constant(self.rng.integers(-900, 900, outputs), _S.Int),
            *(None, self.one(-127, 128), 0, offset, (1 << 30,), (-6,), high, low),
            net.tensor((rows, outputs)),
        )

    def sum(self, net: Net) -> T:
        a, b = net.given((2, 37)), net.given((2, 37))
        offset, low, high = self.limits()
        scale = (1 << 30, 0)
        return net.call(
            "cortex_m::quantized_add.out",
            *(a, self.one(-128, 127), *scale, b, self.one(-128, 127), 1 << 30, -1),
            *(offset, 1 << 30, -18, low, high, net.tensor(a.sizes)),
        )

    def limit(self, net: Net, x: T) -> T:
        """A function of items."""
        kind = self.one(0, 3)
        if kind == 0:
            y = net.tensor(x.sizes, x.dtype, x.order)
            items = [self.one(-128, 127)] * self.one(1, 2)
            limit = net.constant(items[:1], _S.Char)
            pair = (x, limit) if self.maybe(2) else (limit, x)
            name = "minimum" if self.maybe(2) else "maximum"
            return net.call(f"cortex_m::{name}.out", *pair, y)
        if kind == 1:
            return self.island(net, x)
        return self.table(net, x, self.limited())

    def island(self, net: Net, x: T) -> T:
        """Floats between int8 tensors; often with the same scale on both sides."""
        library = "cortex_m" if self.one(0, 3) else "quantized_decomposed"
        scale, zero_point = (float(np.float32(self.rng.uniform(0.01, 2))), self.one(-128, 127))
        extra = (None,) if library == "quantized_decomposed" else ()
        f = net.tensor(x.sizes, _S.Float, x.order)
        net.call(
            f"{library}::dequantize_per_tensor.out",
            *(x, scale, zero_point, -128, 127, int(_S.Char), *extra, f),
        )
        for _ in range(self.one(0, 2)):
            f = self.function(net, f)
        if self.maybe(3):
            scale, zero_point = scale * self.rng.uniform(0.5, 2), self.one(-128, 127)
        y = net.tensor(x.sizes, x.dtype, x.order)
        net.call(
            f"{library}::quantize_per_tensor.out",
            *(f, float(scale), zero_point, -128, 127, int(_S.Char), y),
        )
        if self.maybe(8):
            z = net.tensor(f.sizes, _S.Float, f.order)
            net.returns(net.call("aten::relu.out", f, z))
        return y

    def function(self, net: Net, f: T) -> T:
        """A function of floats."""
        kind = self.one(0, 7)
        g = net.tensor(f.sizes, _S.Float, f.order)
        if kind < 3:
            return net.call("aten::relu.out", f, g)
        if kind == 3:
            return net.call("aten::hardtanh.out", f, self.one(-2, 0), 6.0, g)
        if kind == 4:
            low = (None, -1.5, -3.0)[self.one(0, 2)]
            return net.call("aten::clamp.out", f, low, 5.5, g)
        if kind == 5:
            other = net.constant([1.25], _S.Float)
            return net.call("aten::mul.out", f, other, g)
        if kind == 6:
            return net.call("aten::sub.out", f, f, 0.5, g)
        return net.call("aten::sigmoid.out", f, g)

    def net(self, name: str, *, islands: bool) -> Net | None:
        net = Net(name=name)
        x = self.producer(net)
        if x is None:
            return None
        y = self.island(net, x) if islands else self.limit(net, x)
        if self.maybe(4):
            y = self.limit(net, y)
        if self.maybe(3):
            y = self.table(net, y, self.rng.integers(-128, 128, 256))
        net.returns(y)
        if self.maybe(6):
            net.returns(x)
        elif self.maybe(6):
            net.returns(self.table(net, x, self.rng.integers(-128, 128, 256)))
        return net


def _nets(count: int, *, islands: bool) -> list[Net]:
    random, found = FunctionNets(5 + islands), list[Net]()
    while len(found) < count:
        net = random.net(f"functions{len(found)}", islands=islands)
        if net is not None:
            found.append(net)
    return found


def activation_nets(count: int) -> list[Net]:
    """Nets with limits after calls."""
    return _nets(count, islands=False)


def island_nets(count: int) -> list[Net]:
    """Nets with islands of floats."""
    return _nets(count, islands=True)
