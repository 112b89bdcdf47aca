"""Which weights are numbers of 4 bits, and how many of them are int8 at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from orchestrator.method.passes.packing.convolution import Convolution
from orchestrator.method.passes.packing.int4 import block_bytes, int4_of
from orchestrator.method.windows import Axis


def _conv(weights: Any, *, kernel: int = 1, **others: Any) -> Convolution:
    outputs = len(weights)
    keys = {
        "batch": 1,
        "channels": weights.shape[1] // kernel,
        "rows": Axis(size=1, out=1),
        "columns": Axis(size=kernel, out=1, kernel=kernel),
        "weights": weights,
        "sums": np.zeros(outputs, np.int64),
        "x_offset": 0,
        "multipliers": np.full(outputs, 1 << 30),
        "shifts": np.zeros(outputs, np.int64),
        "offset": 0,
        "low": -128,
        "high": 127,
    }
    return Convolution(**{**keys, **others})


def _weights(outputs: int, taps: int, group: int) -> Any:
    rng = np.random.default_rng(5)
    steps = rng.integers(1, 17, (outputs, -(-taps // group))).repeat(group, axis=1)
    numbers = rng.integers(-8, 8, (outputs, taps))
    # Both limits in each group, so that no larger step would do.
    numbers[:, ::16], numbers[:, 1::16] = -8, 7
    return numbers * steps[:, :taps]


@pytest.mark.parametrize("group", [300, 128, 64, 32])
def test_steps_of_the_largest_groups_are_found(group: int) -> None:
    weights = _weights(3, 300, group)
    found = int4_of(_conv(weights))
    assert found is not None
    assert found.group == group
    assert found.steps.shape == (3, -(-300 // group))
    each = found.steps.repeat(group, axis=1)[:, :300]
    assert (found.numbers * each == weights).all()
    assert -8 <= found.numbers.min() < found.numbers.max() <= 7


def test_one_weight_that_is_no_number_of_4_bits_is_enough() -> None:
    weights = _weights(3, 90, 90)
    assert int4_of(_conv(weights)) is not None
    weights[1, 40] = 127
    assert int4_of(_conv(weights)) is None


def test_windows_have_one_step_for_each_output() -> None:
    weights = _weights(4, 96, 32)
    assert int4_of(_conv(weights)) is not None
    assert int4_of(_conv(weights, kernel=3)) is None
    assert int4_of(_conv(_weights(4, 96, 96), kernel=3)) is not None


def test_what_stays_int8() -> None:
    weights = _weights(4, 96, 96)
    assert int4_of(_conv(weights, depthwise=True)) is None
    assert int4_of(_conv(weights, groups=2)) is None
    assert int4_of(_conv(_weights(4, 31, 31))) is None
    assert int4_of(_conv(_weights(4, 32, 32))) is not None


def test_blocks_take_what_is_spare_or_a_part_of_the_arena() -> None:
    assert block_bytes(100_000, 0) == 1536
    assert block_bytes(4000, 0) == 500
    assert block_bytes(4000, -300) == 500
    assert block_bytes(4000, 2000) == 2000
