"""Nets of float calls that compute sums, with limits after them, and with others."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from tests.integration.joined_nets import NHWC, Net, Random, T

_FLOAT: Final = ScalarType.Float
_RARE: Final = (np.nan, np.inf, -np.inf, -0.0, 1e-42, -1e-42, 3e38, -3e38)
_LOW: Final = (0.0, 0.0, -0.0, -1.0, -np.inf, -1e-42, 0.5)
_HIGH: Final = (6.0, 6.0, 1.0, np.inf, 0.0, 1e-42, -0.5)
"""0 lies between most of them."""


class LimitedNets(Random):
    """Calls of every path, whose biases and weights are also rare numbers."""

    def relus(self, name: str) -> Net:
        """Convolutions, of which most have a relu."""
        return self._net(name, most="relu")

    def clamps(self, name: str) -> Net:
        """Convolutions, of which most have other limits."""
        return self._net(name, most="limits")

    def _net(self, name: str, *, most: str) -> Net:
        net = Net(name=name)
        order = NHWC if self.maybe(2) else (0, 1, 2, 3)
        size = [self.one(1, 2), self.one(1, 6), self.one(2, 7), self.one(2, 7)]
        x = net.given(size, _FLOAT, order)
        for _ in range(self.one(1, 3)):
            y = self._convolution(net, x)
            rare = self.maybe(12)
            x = self._limited(net, y, relu=(most == "relu") != rare)
            if self.maybe(12):
                net.returns(y)
        if self.maybe(10):
            x = self._convolution(net, x)
        return net.returns(x)

    def products(self, name: str) -> Net:
        """Products of matrices with limits of all kinds, and without."""
        net = Net(name=name)
        x = net.given([self.one(1, 5), self.one(1, 40)], _FLOAT)
        for _ in range(self.one(1, 3)):
            y = self._product(net, x)
            if self.maybe(6):
                x = y
                continue
            x = self._limited(net, y, relu=self.maybe(2))
            if self.maybe(12):
                net.returns(y)
        return net.returns(x)

    def _limited(self, net: Net, y: T, *, relu: bool) -> T:
        z = net.tensor(y.sizes, _FLOAT, y.order)
        if relu:
            return net.call("aten::relu.out", y, z)
        low, high = (float(self.rng.choice(limits)) for limits in (_LOW, _HIGH))
        if self.maybe(2):
            return net.call("aten::hardtanh.out", y, low, high, z)
        kept = [(low, high), (low, None), (None, high)][self.one(0, 2)]
        return net.call("aten::clamp.out", y, *kept, z)

    def _rare(self, items: Any, share: float) -> Any:
        """Items, of which some are rare numbers."""
        rare = self.rng.random(items.shape) < share
        items[rare] = self.rng.choice(_RARE, int(rare.sum()))
        return items

    def _product(self, net: Net, x: T) -> T:
        rows, inner = x.sizes
        columns = self.one(1, 20)
        weights = self.rng.standard_normal((inner, columns))
        if self.maybe(3):
            weights = self._rare(weights, 0.05)
        y = net.tensor((rows, columns), _FLOAT)
        if self.maybe(4):
            bias = self._rare(self.rng.standard_normal(columns), 0.2)
            given = None if self.maybe(3) else net.constant(bias, _FLOAT)
            w = net.constant(weights.T, _FLOAT)
            return net.call("aten::linear.out", x, w, given, y)
        by_columns = self.maybe(3)
        w = net.constant(weights.T if by_columns else weights, _FLOAT, (1, 0) if by_columns else ())
        if self.maybe(4):
            return net.call("aten::mm.out", x, w, y)
        sizes = [(columns,), (1, columns), (1,), (rows, 1), (rows, columns)]
        size = sizes[0 if self.maybe(2) else self.one(1, 4)]
        bias = net.constant(self._rare(self.rng.standard_normal(size), 0.2), _FLOAT)
        scale = 2.0 if self.maybe(8) else 1
        return net.call("aten::addmm.out", bias, x, w, 1, scale, y)

    def _convolution(self, net: Net, x: T) -> T:
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
        bias = self._rare(self.rng.standard_normal(outputs), 0.2)
        return net.call(
            "aten::convolution.out",
            *(x, net.constant(weights, _FLOAT, x.order)),
            None if self.maybe(8) else net.constant(bias, _FLOAT),
            *(stride, padding, [1, 1], False, [0, 0], inputs if depthwise else 1),
            net.tensor((batch, outputs, *sizes), _FLOAT, x.order),
        )


def limited_nets(count: int) -> list[Net]:
    """Nets of three kinds, as many of each."""
    random = LimitedNets(17)
    kinds = (random.relus, random.clamps, random.products)
    return [kinds[n % 3](f"limits{n}") for n in range(count)]
