"""Random numbers for calls, and what collects these."""
# mypy: ignore-errors
# (torch and the modules beside this are not there when the project is checked)

from __future__ import annotations

from typing import Any

import numpy as np
from file_format import Calls, Stored
from oracle import Oracle

LAST = (0, 2, 3, 1)
NONE = np.zeros(0, np.uint8)  # scratch: our kernels need none
DEPTHS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 31, 32, 33, 37, 64, 67]

rng = np.random.default_rng(20250317)


def pick(*items: Any) -> Any:
    return items[rng.integers(len(items))]


def any_int8(*shape: int) -> Any:
    """Over the whole range, the ends often."""
    values = rng.integers(-128, 128, shape)
    ends = rng.choice([-128, 127], shape)
    return np.where(rng.random(shape) < 0.1, ends, values).astype(np.int8)


def any_zero() -> int:
    return int(pick(-128, 127, 0, rng.integers(-128, 128)))


def any_limits() -> tuple[int, int]:
    low, high = sorted(int(v) for v in rng.integers(-128, 128, 2))
    return pick((-128, 127), (-128, 127), (0, 127), (low, high))


def any_scales(count: int, sums: Any) -> tuple[Any, Any]:
    """Multipliers and shifts that bring these sums to about the range of int8."""
    largest = max(1.0, float(np.abs(sums).max(initial=1)))
    shift = np.ceil(np.log2(200 / largest)) + rng.integers(-1, 2, count)
    multipliers = rng.integers(1 << 30, 1 << 31, count)
    multipliers[rng.random(count) < 0.1] = (1 << 31) - 1
    return multipliers.astype(np.int32), np.clip(shift, -31, 30).astype(np.int32)


def any_bias(count: int) -> Any:
    kind = pick("none", "small", "small", "large")
    if kind == "none":
        return None
    span = 3000 if kind == "small" else 1 << 20
    return rng.integers(-span, span, count).astype(np.int32)


class Maker:
    """Adds calls, each in both forms where there are two."""

    def __init__(self) -> None:
        """Begin without calls."""
        self.calls = Calls()
        self.oracle = Oracle()

    def call(self, name: str, args: list[Any], want: Any, *, same: bool = True) -> None:
        """One call; `same`: ExecuTorch's Python operator computes that, too."""
        self.calls.add(name, args, want)
        if same:
            self.oracle.check(name, args, want)

    def image(self, name: str, args: list[Any], want: Any, *, same: bool = True) -> None:
        """The same images as [N, C, H, W], channels last, and as [N, H, W, C]."""
        nchw = Stored(args[0].transpose(0, 3, 1, 2), LAST)
        out = Stored(want.transpose(0, 3, 1, 2), LAST)
        self.call(name, [nchw, *args[1:]], out, same=same)
        self.call(f"{name}_nhwc", args, want, same=False)
