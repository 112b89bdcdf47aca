"""Nets of float convolutions with relu, and with what is like it."""

from __future__ import annotations

from typing import Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from tests.integration.joined_nets import NHWC, Net, Random, T

_FLOAT: Final = ScalarType.Float
_RARE: Final = (np.nan, np.inf, -np.inf, -0.0, 1e-42, -1e-42, 3e38, -3e38)


class ReluNets(Random):
    """Convolutions of every path, whose biases and weights are also rare numbers."""

    def net(self, name: str) -> Net:
        net = Net(name=name)
        order = NHWC if self.maybe(2) else (0, 1, 2, 3)
        size = [self.one(1, 2), self.one(1, 6), self.one(2, 7), self.one(2, 7)]
        x = net.given(size, _FLOAT, order)
        for _ in range(self.one(1, 3)):
            y = self.convolution_of_floats(net, x)
            x = self.limited(net, y)
            if self.maybe(12):
                net.returns(y)
        if self.maybe(10):
            x = self.convolution_of_floats(net, x)
        return net.returns(x)

    def limited(self, net: Net, y: T) -> T:
        if self.maybe(9):
            return y
        z = net.tensor(y.sizes, _FLOAT, y.order)
        if self.maybe(4):
            low = self.rng.choice([0.0, -0.0, -1.0, -np.inf, -1e-42, 0.5])
            high = self.rng.choice([6.0, 1.0, np.inf, 0.0, 1e-42, -0.5])
            return net.call("aten::hardtanh.out", y, float(low), float(high), z)
        if self.maybe(6):
            low = None if self.maybe(3) else float(self.rng.choice([0.0, -2.0, 0.25]))
            high = 2.0 if low is None or self.maybe(2) else None
            return net.call("aten::clamp.out", y, low, high, z)
        return net.call("aten::relu.out", y, z)

    def convolution_of_floats(self, net: Net, x: T) -> T:
        batch, inputs, *image = x.sizes
        depthwise = self.maybe(3)
        outputs = inputs if depthwise else self.one(1, 9)
        kernel = [self.one(1, 3), self.one(1, 3)]
        stride, padding = ([self.one(low, 2) for _ in image] for low in (1, 1))
        sizes = [
            (n + 2 * p - k) // s + 1
            for n, p, k, s in zip(image, padding, kernel, stride, strict=True)
        ]
        weights = self.rng.standard_normal(
            (outputs, *((*kernel, 1) if depthwise else (*kernel, inputs)))
            if x.order == NHWC
            else (outputs, 1 if depthwise else inputs, *kernel)
        )
        if self.maybe(3):
            weights[self.rng.random(weights.shape) < 0.1] = self.rng.choice(_RARE)
        bias = self.rng.standard_normal(outputs)
        rare = self.rng.random(outputs) < 0.2
        bias[rare] = self.rng.choice(_RARE, int(rare.sum()))
        return net.call(
            "aten::convolution.out",
            *(x, net.constant(weights, _FLOAT, x.order)),
            None if self.maybe(8) else net.constant(bias, _FLOAT),
            *(stride, padding, [1, 1], False, [0, 0], inputs if depthwise else 1),
            net.tensor((batch, outputs, *sizes), _FLOAT, x.order),
        )


def relu_nets(count: int) -> list[Net]:
    """Nets, of which most have a relu after each convolution."""
    random = ReluNets(17)
    return [random.net(f"relus{n}") for n in range(count)]
