"""Nets with transposes in a row, and in front of matrix products."""

from __future__ import annotations

import numpy as np

from orchestrator.core.dtype import ScalarType
from tests.integration.joined_nets import NHWC, Net, Random, T

_S = ScalarType


class TransposeNets(Random):
    """Transposes, most of which others undo."""

    def moved(self, net: Net, x: T, dims: list[int]) -> T:
        """A transpose of any kind."""
        sizes = [x.sizes[d] for d in dims]
        if x.dtype is _S.Char and self.maybe(2):
            y = net.tensor(sizes, x.dtype)
            return net.call("cortex_m::transpose.out", x, dims, y)
        swapped = [d for d, other in enumerate(dims) if d != other]
        if len(swapped) == 2 and self.maybe(2):
            y = net.tensor(sizes, x.dtype)
            return net.call("aten::transpose_copy.int_out", x, *swapped, y)
        y = net.tensor(sizes, x.dtype)
        return net.call("aten::permute_copy.out", x, dims, y)

    def function(self, net: Net, x: T) -> T:
        """Something that needs its input."""
        if x.dtype is _S.Char:
            return self.table(net, x, self.rng.integers(-128, 128, 256))
        return net.call("aten::sigmoid.out", x, net.tensor(x.sizes, x.dtype, x.order))

    def pair(self, name: str) -> Net:
        net = Net(name=name)
        rank = self.one(2, 4)
        dtype = _S.Char if self.one(0, 1) else _S.Float
        x = net.given([self.one(1, 5) for _ in range(rank)], dtype)
        if self.one(0, 2):
            x = self.function(net, x)
        dims = [int(d) for d in self.rng.permutation(rank)]
        back = [dims.index(d) for d in range(rank)]
        if self.maybe(6):
            back = [int(d) for d in self.rng.permutation(rank)]
        y = self.moved(net, x, dims)
        z = self.moved(net, y, back)
        if self.one(0, 3):
            z = self.function(net, z)
        net.returns(z)
        if self.maybe(5):
            net.returns(self.function(net, y))
        if self.maybe(5):
            net.returns(self.function(net, x))
        return net

    def flattened(self, name: str) -> Net:
        """An image that lies as NHWC, in a matrix product as NCHW."""
        net = Net(name=name)
        x = self.image(net, nhwc=False)
        x = self.table(net, x, self.rng.integers(-128, 128, 256))
        batch, *image = x.sizes
        y = net.tensor(x.sizes)
        net.call("dim_order_ops::_clone_dim_order.out", x, *(False, [0, 1, 2, 3], y))
        depth, outputs = int(np.prod(image)), self.one(1, 9)
        flat = net.tensor((batch, depth))
        net.call("aten::view_copy.out", y, [batch, depth], flat)
        offset, low, high = self.limits()
        bias = net.constant(self.rng.integers(-900, 900, outputs), _S.Int)
        weights = np.clip(self.rng.normal(0, 40, (outputs, depth)), -127, 127)
        z = net.call(
            "cortex_m::quantized_linear.out",
            *(flat, net.constant(weights.round(), _S.Char)),
            *((bias, None) if self.maybe(2) else (None, bias)),
            *(self.one(-127, 128), 0, offset, (1 << 30,), (-7,), high, low),
            net.tensor((batch, outputs)),
        )
        net.returns(z)
        if self.maybe(5):
            net.returns(self.function(net, y))
        return net


def transpose_nets(count: int) -> list[Net]:
    """Nets with transposes."""
    random = TransposeNets(11)
    kinds = (random.pair, random.pair, random.flattened)
    return [kinds[n % 3](f"transposes{n}") for n in range(count)]


def norm_nets(count: int) -> list[Net]:
    """Nets with batch normalization, after layers that most often can take it."""
    random, found = NormNets(13), list[Net]()
    for number in range(count):
        found.append(random.net(f"norms{number}"))
    return found


class NormNets(Random):
    """Batch normalization of floats."""

    def floats(self, net: Net, *sizes: int) -> T:
        return net.constant(self.rng.standard_normal(sizes), _S.Float)

    def net(self, name: str) -> Net:
        net = Net(name=name)
        channels = self.one(1, 9)
        x = self.layer(net, channels)
        if self.maybe(8):
            y = net.tensor(x.sizes, _S.Float, x.order)
            x = net.call("aten::relu.out", x, y)
        y = net.tensor(x.sizes, _S.Float, x.order)
        var = self.rng.uniform(0.2, 2, channels)
        rest = (net.tensor((0,), _S.Float), net.tensor((0,), _S.Float))
        weight = self.floats(net, channels) if self.one(0, 3) else None
        bias = self.floats(net, channels) if self.one(0, 3) else None
        net.call(
            "aten::_native_batch_norm_legit_no_training.out",
            *(x, weight, bias, self.floats(net, channels)),
            *(net.constant(var, _S.Float), 0.1, 1e-5, y, *rest),
        )
        if self.maybe(2):
            z = net.tensor(y.sizes, _S.Float, y.order)
            y = net.call("aten::relu.out", y, z)
        net.returns(y)
        if self.maybe(5):
            z = net.tensor(x.sizes, _S.Float, x.order)
            net.returns(net.call("aten::relu.out", x, z))
        return net

    def layer(self, net: Net, channels: int) -> T:
        if self.maybe(3):
            rows, depth = self.one(1, 4), self.one(1, 9)
            return net.call(
                "aten::addmm.out",
                *(self.floats(net, channels), net.given((rows, depth), _S.Float)),
                *(self.floats(net, depth, channels), 1, self.one(1, 2) // 2 or 1),
                net.tensor((rows, channels), _S.Float),
            )
        order = NHWC if self.maybe(2) else ()
        inputs, size, kernel = self.one(1, 5), self.one(3, 6), self.one(1, 3)
        out = size - kernel + 1
        return net.call(
            "aten::convolution.out",
            *(net.given((1, inputs, size, size), _S.Float, order),),
            self.floats(net, channels, inputs, kernel, kernel),
            self.floats(net, channels) if self.maybe(2) else None,
            *((1, 1), (0, 0), (1, 1), False, (0, 0), 1),
            net.tensor((1, channels, out, out), _S.Float, order),
        )
