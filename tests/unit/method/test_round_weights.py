"""Weights rounded to 4 bits: nearest numbers, sums that stay, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from orchestrator.core.rounding import WeightRounding
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes import ledger_lines, ledger_of, run_passes
from orchestrator.method.passes.pack_weights import rounded_weights
from orchestrator.method.passes.packing.convolution import convolutions
from orchestrator.method.passes.packing.int4 import int4_of
from tests.unit.method.test_prelink_unlink import _linked

MOST: Final = 1 << 30


def _kernel(outputs: int, taps: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return np.clip(rng.normal(0, 40, (outputs, taps)).round(), -127, 127).astype("i8")


@pytest.mark.parametrize("group", [200, 64, 32])
def test_weights_become_numbers_of_4_bits_near_them(group: int) -> None:
    weights = _kernel(9, 200)
    weights[3] //= 20
    rounded = rounded_weights(weights, group)
    for was, now in zip(weights, rounded, strict=True):
        least, most = 0, 0
        for first in range(0, 200, group):
            part = slice(first, first + group)
            least += min(_least_error(was[part], step) for step in range(1, 17))
            found = [s for s in range(1, 17) if _is_made_of(now[part], s)]
            most = max(most, *found)
        # Of all steps, those with the least error, but for what the sum costs.
        assert least <= int(((was - now) ** 2).sum()) <= 1.2 * least + 1
        assert abs(int((was - now).sum())) <= most / 2


def _is_made_of(weights: Any, step: int) -> bool:
    numbers = weights // step
    exact = bool((numbers * step == weights).all())
    return exact and int(numbers.min()) >= -8 and int(numbers.max()) <= 7


def _least_error(weights: Any, step: int) -> int:
    numbers = np.clip((weights / step).round(), -8, 7)
    return int(((weights - numbers * step) ** 2).sum())


def test_weights_that_have_4_bits_stay() -> None:
    rng = np.random.default_rng(1)
    steps = rng.integers(1, 17, (6, 4)).repeat(32, axis=1)
    weights = rng.integers(-8, 8, (6, 128)) * steps
    assert (rounded_weights(weights, 32) == weights).all()


def _rounded(name: str, group: int | None = None) -> tuple[LinkedMethod, LinkedMethod]:
    before = replace(_linked(name)[0], rounding=WeightRounding(group=group))
    return before, run_passes(before, ["round_weights"], replans=True)


def test_only_weights_change() -> None:
    before, after = _rounded("kws_dscnn_int8_m4")
    rounded = 0
    for old, new in zip(before.instructions, after.instructions, strict=True):
        assert isinstance(old, LinkedCall)
        assert isinstance(new, LinkedCall)
        pairs = zip(old.args, new.args, strict=True)
        changed = [n for n, (a, b) in enumerate(pairs) if a != b]
        assert changed in ([], [1])
        assert replace(new, args=old.args) == old
        rounded += len(changed)
    # All but the depthwise ones.
    assert rounded == 6
    for _, _, conv in convolutions(after, MOST):
        assert conv.depthwise is (int4_of(conv) is None)


def test_sums_of_weights_follow_them() -> None:
    """Programs for MVE have sums of weights times the input offset."""
    before, after = _rounded("ad_autoencoder_int8_m55", group=32)
    pairs = zip(convolutions(before, MOST), convolutions(after, MOST), strict=True)
    checked = 0
    for (_, call, was), (_, new_call, now) in pairs:
        offset: Any = before.values[call.args[4]]
        added = (now.weights - was.weights).sum(axis=1)
        assert (now.sums - was.sums == offset.value * added).all()
        checked += call.args[3] != new_call.args[3]
    assert checked == 10


def test_the_ledger_says_what_became_of_each_call() -> None:
    _, after = _rounded("kws_dscnn_int8_m4")
    lines = [*ledger_lines(ledger_of([after]))]
    at = next(n for n, line in enumerate(lines) if "round_weights" in line)
    notes = [line.strip() for line in lines[at + 1 : at + 11]]
    of_one_channel = "instruction 1, cortex_m::quantized_depthwise_conv2d.out"
    assert notes[0] == f"{of_one_channel}: 4 bits, SQNR of the weights 20.8 dB"
    assert notes[1] == (
        "instruction 2, cortex_m::quantized_depthwise_conv2d.out: int8, as most bytes"
        " of a depthwise channel are its scale"
    )


def test_without_the_table_nothing_is_rounded() -> None:
    before = _linked("kws_dscnn_int8_m4")[0]
    after = run_passes(before, ["round_weights"], replans=True)
    (record,) = [p for p in after.passes if p.name == "round_weights"]
    assert record.skipped == "changes bits: no models.weights"
    assert after.instructions == before.instructions
