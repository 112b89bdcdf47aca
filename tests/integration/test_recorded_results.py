"""What kernels give for recorded calls, held against `error` of functions.yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.core.dtype import COMPLEX
from tests.integration.host_kernels import recorded
from tests.integration.test_conditions import kernels
from tests.opinfo.programs import difference
from tests.unit.method.recorded_calls import reference_calls

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.toolchain
def test_kernels_without_error_give_the_bits_of_pytorch(tmp_path: Path) -> None:
    known = kernels()
    # Products of complex numbers are sums, which PyTorch may round once less.
    calls = [
        c
        for c in reference_calls()
        if known[c.operator].error == ""
        and not (c.rtol and any(t.dtype in COMPLEX for t in c.outs))
    ]
    assert calls
    wrong = []
    for call, results in zip(calls, recorded(calls, tmp_path), strict=True):
        assert results is not None
        outs = [(out.dtype, out.sizes, data) for out, data in zip(call.outs, results, strict=True)]
        fault, is_equal = difference(call, outs)
        if fault or not is_equal:
            wrong.append(f"{call.operator}: {fault or 'other bits'}")
    assert wrong == []
