"""One rounding gives what CMSIS-NN's two give, wherever the build says that it does."""

from __future__ import annotations

import random
from typing import Final

import numpy as np

from orchestrator.method.passes.packing.convolution import Convolution
from orchestrator.method.passes.packing.scaling import Scale, scales
from orchestrator.method.windows import Axis

COUNT: Final = 4000
SHIFTS: Final = ({"right": 13}, {"left": 8}, {"right": 11}, {"left": 2})
LOWEST, HIGHEST = -128, 127


def _expected(value: int, multiplier: int, shift: int, offset: int) -> int:
    """Rounded to nearest, ties up; divided, ties away from zero; plus the offset."""
    product = (value * multiplier + (1 << 30)) >> 31
    size, half = abs(product), (1 << shift) >> 1
    rounded = (size + half) >> shift
    return min(max((rounded if product >= 0 else -rounded) + offset, LOWEST), HIGHEST)


def _computed(value: int, scale: Scale) -> int:
    """As the assembly does, in 32 bits."""
    shifted = value << scale.left
    assert -(1 << 31) <= shifted < 1 << 31
    result = (shifted * scale.multiplier >> 32) + scale.added
    assert -(1 << 31) <= result < 1 << 31
    if result < scale.added:
        result -= scale.ties
    return min(max(result >> scale.right, LOWEST), HIGHEST)


def test_one_rounding_is_two() -> None:
    rng = random.Random(18)  # noqa: S311  # no secret
    found = 0
    for _ in range(COUNT):
        multiplier = rng.choice(
            (
                *(rng.randrange(1 << 30, 1 << 31), rng.randrange(1 << 20, 1 << 31)),
                *(1 << 30, (1 << 31) - 1, 0, rng.randrange(1, 100)),
            )
        )
        shift, largest = rng.randrange(16), rng.randrange(1, 1 << rng.randrange(4, 29))
        offset = rng.choice([LOWEST, 0, rng.randrange(LOWEST, HIGHEST + 1)])
        conv = Convolution(
            batch=1,
            channels=1,
            rows=Axis(size=1, out=1),
            columns=Axis(size=1, out=1),
            weights=np.array([[0]]),
            sums=np.array([largest]),
            x_offset=0,
            multipliers=np.array([multiplier]),
            shifts=np.array([-shift]),
            offset=offset,
            low=LOWEST,
            high=HIGHEST,
        )
        for given in SHIFTS:
            (scale,) = scales(conv, **given)
            if scale is None:
                continue
            found += 1
            # Sums around ties, and some others.
            step = max(multiplier, 1)
            near = [(rng.randrange(-300, 300) << shift + 30) // step for _ in range(4)]
            for value in (*near, 0, -1, 1, largest, -largest):
                for v in (value - 1, value, value + 1):
                    if abs(v) <= largest:
                        expected = _expected(v, multiplier, shift, offset)
                        assert _computed(v, scale) == expected
    assert found > COUNT
