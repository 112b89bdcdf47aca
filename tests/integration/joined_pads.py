"""Nets whose layers pad their inputs, in front of them or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from orchestrator.core.dtype import ScalarType
from tests.integration.joined_nets import NHWC, Net, Random, T

if TYPE_CHECKING:
    from collections.abc import Sequence

_S = ScalarType


class PadNets(Random):
    """Pads, most of which fit what reads them."""

    def around(self, *, rank: int, nhwc: bool) -> tuple[list[int], list[int]]:
        """Items before and after, by dimension."""
        before, after = [0] * rank, [0] * rank
        for d in (1, 2) if nhwc else range(2, rank):
            before[d] = after[d] = self.one(0, 2)
            if self.maybe(3):
                before[d], after[d] = self.one(0, 1), self.one(0, 2)
        if self.maybe(12):
            after[0 if self.maybe(2) else 1] += 1
        return before, after

    def padded(self, net: Net, x: T, *, nhwc: bool, value: int, contiguous: bool) -> T:
        before, after = self.around(rank=4, nhwc=nhwc)
        sizes = [b + n + a for b, n, a in zip(before, x.sizes, after, strict=True)]
        y = net.tensor(sizes, x.dtype, x.order)
        if self.maybe(4):
            pairs = [p for d in range(3, -1, -1) for p in (before[d], after[d])]
            return net.call("aten::constant_pad_nd.out", x, pairs, value, y)
        # A kernel looks at the memory, which sizes of 1 leave open.
        is_open = sum(n > 1 for n in x.sizes[1:]) < 2 or 1 in x.sizes[1:]
        if is_open:
            pairs = [p for d in range(3, -1, -1) for p in (before[d], after[d])]
            return net.call("aten::constant_pad_nd.out", x, pairs, value, y)
        lists: Sequence[Sequence[int]] = (before, after)
        if not nhwc:
            lists = [[given[d] for d in NHWC] for given in lists]
        name = "pad_contiguous" if contiguous else "pad"
        return net.call(f"cortex_m::{name}.out", x, *lists, value, y)

    def int8(self, name: str) -> Net | None:
        net = Net(name=name)
        nhwc, pools = self.maybe(2), self.maybe(3)
        x = self.image(net, nhwc=nhwc)
        if self.one(0, 1):
            x = self.table(net, x, self.rng.integers(-128, 128, 256))
        value = -128 if pools and self.one(0, 2) else self.one(-127, 127)
        padded = x
        for _ in range(2 if self.maybe(5) else 1):
            padded = self.padded(
                net, padded, nhwc=nhwc, value=value, contiguous=nhwc and self.maybe(2)
            )
        padding = [self.one(0, 1), self.one(0, 1)]
        if pools:
            lowest = -128 if self.one(0, 2) else self.one(-128, 100)
            y = self.pool(net, padded, nhwc=nhwc, lowest=lowest, padding=padding)
        else:
            zero_point = self.one(-128, 127) if self.maybe(5) else value
            y = self.convolution(net, padded, zero_point, nhwc=nhwc, padding=padding)
        if y is None:
            return None
        if self.maybe(3):
            y = self.table(net, y, self.rng.integers(-128, 128, 256))
        net.returns(y)
        if self.maybe(6):
            net.returns(self.table(net, padded, self.rng.integers(-128, 128, 256)))
        elif self.maybe(6):
            net.returns(self.table(net, x, self.rng.integers(-128, 128, 256)))
        elif self.maybe(8):
            net.returns(padded)
        return net

    def same(self, name: str) -> Net | None:
        """Pads behind the image, as TensorFlow's for a stride of two and even sizes."""
        net = Net(name=f"same_{name}")
        channels = 4 * self.one(2, 4) if self.one(0, 2) else self.one(1, 5)
        height, width = (2 * self.one(8, 10) for _ in "hw")
        x = net.given((1, height, width, channels))
        y = net.tensor((1, height + 1, width + 1, channels))
        value = self.one(-127, 127)
        net.call("cortex_m::pad.out", x, (0,) * 4, (0, 1, 1, 0), value, y)
        z = self.convolution(net, y, value, nhwc=True, stride=(2, 2))
        return None if z is None else net.returns(z)

    def floats(self, name: str) -> Net | None:
        net = Net(name=name)
        rank = self.one(3, 5)
        channels, outputs = self.one(1, 3), self.one(1, 5)
        order = NHWC if rank == 4 and self.maybe(2) else ()
        sizes = [1, channels, *(self.one(1, 6) for _ in range(rank - 2))]
        x = net.given(sizes, _S.Float, order)
        if self.one(0, 1):
            y = net.tensor(x.sizes, _S.Float, order)
            x = net.call("aten::relu.out", x, y)
        before, after = self.around(rank=rank, nhwc=False)
        size = [b + n + a for b, n, a in zip(before, sizes, after, strict=True)]
        pairs = [p for d in range(rank - 1, -1, -1) for p in (before[d], after[d])]
        value = 0.5 if self.maybe(6) else 0.0
        y = net.tensor(size, _S.Float, order)
        y = net.call("aten::constant_pad_nd.out", x, pairs, value, y)
        if size[1] != channels:
            return None
        kernel = [self.one(1, 3) for _ in size[2:]]
        stride = [self.one(1, 2) for _ in kernel]
        axes = zip(size[2:], kernel, stride, strict=True)
        out = [(n - k) // s + 1 for n, k, s in axes]
        if min(out) <= 0:
            return None
        weights = self.rng.standard_normal((outputs, channels, *kernel))
        bias = self.rng.standard_normal(outputs)
        if self.maybe(6):
            bias[0] = -0.0
        if self.maybe(6):
            weights.reshape(-1)[0] = np.inf
        zeros = [0] * len(kernel)
        z = net.call(
            "aten::convolution.out",
            *(y, net.constant(weights, _S.Float)),
            net.constant(bias, _S.Float) if self.one(0, 2) else None,
            *(stride, zeros, [1] * len(kernel), False, zeros, 1),
            net.tensor((size[0], outputs, *out), _S.Float, order),
        )
        return net.returns(z)


def pad_nets(count: int) -> list[Net]:
    """Nets with pads."""
    random, found = PadNets(7), list[Net]()
    while len(found) < count:
        kinds = (random.int8, random.same, random.int8, random.floats)
        net = kinds[len(found) % len(kinds)](f"pads{len(found)}")
        if net is not None:
            found.append(net)
    return found
