"""The calls whose cost is measured are of every kernel, and fit the board."""

from __future__ import annotations

from typing import Final

from tests.opinfo.programs import tensors
from tests.speeds.calls import timed_calls
from tests.unit.method.recorded_calls import kernel_names

MEMORY_BYTES: Final = 150 * 1024
"""Of a call in kernel_calls.cpp, without guards."""


def test_every_kernel_has_a_call() -> None:
    kernels = {n for n, f in kernel_names().items() if "prim_ops" not in f}
    measured = [timed.call.operator for timed in timed_calls()]
    assert len(set(measured)) == len(measured)
    assert set(measured) == kernels, "tests/speeds/calls.py has a call of each"


def test_calls_fit_the_board() -> None:
    for timed in timed_calls():
        used = sum(len(t.data) * (1 + t.is_out) for t in tensors(timed.call))
        assert used < MEMORY_BYTES, timed.call.operator


def test_more_rows_are_more_work() -> None:
    for few, many in zip(timed_calls(4), timed_calls(8), strict=True):
        assert few.call.operator == many.call.operator
        assert few.units < many.units or few.units == 1, few.call.operator
