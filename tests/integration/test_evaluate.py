"""What the build computes from constants has the bits that kernels give."""

from __future__ import annotations

import struct
import subprocess
from collections import Counter
from math import isnan
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.evaluate import (
    evaluated_kernels,
    has_evaluator,
    number_of,
    results_of,
)
from orchestrator.program.values import BoolValue, DoubleValue, IntValue
from tests.cpp.support.suite import build
from tests.integration.random_calls import random_calls
from tests.integration.random_int8 import CALLS as INT8
from tests.integration.random_int8 import int8_calls
from tests.integration.random_networks import MAKERS as NETWORKS
from tests.integration.random_numbers import MAKERS as NUMBERS
from tests.unit.method.recorded_calls import (
    calls_bytes,
    kernel_names,
    method_of,
    read_calls,
)

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.method.linked import LinkedMethod
    from tests.unit.method.recorded_calls import Call, Tensor

_FLOATS = {
    ScalarType.Half: "<f2",
    ScalarType.Float: "<f4",
    ScalarType.Double: "<f8",
}


def has_nan(tensor: Tensor, data: bytes) -> bool:
    """Whether an item is NaN."""
    if tensor.dtype is ScalarType.BFloat16:
        bits = np.frombuffer(data, "<u2").astype(np.uint32) << np.uint32(16)
        return bool(np.isnan(bits.view(np.float32)).any())
    form = _FLOATS.get(tensor.dtype)
    return form is not None and bool(np.isnan(np.frombuffer(data, form)).any())


def recorded(calls: list[Call], folder: Path) -> list[tuple[bytes, ...] | None]:
    """What the kernels give, None where they fail.

    The memory of the outputs, or the number that is returned.
    """
    program = build()["all_dtypes"]
    (folder / "calls.bin").write_bytes(calls_bytes(calls))
    done = subprocess.run(
        [program, "--no-version", "--test-case=what kernels give is recorded"],
        env={
            "ORCH_CALLS": str(folder / "calls.bin"),
            "ORCH_RECORD": str(folder / "outs.bin"),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    data = (folder / "outs.bin").read_bytes()
    found: list[tuple[bytes, ...] | None] = []
    at = 0
    for call in calls:
        passed, at = data[at], at + 1
        outs = []
        for out in call.outs:
            outs.append(data[at : at + len(out.data)])
            at += len(out.data)
        if call.returned:
            outs.append(data[at : at + 8])
            at += 8
        found.append(tuple(outs) if passed else None)
    assert at == len(data)
    return found


def is_nan(call: Call, data: tuple[bytes, ...]) -> bool:
    """Whether an item of an output, or the number that is returned, is NaN."""
    if call.returned:
        return call.returned.kind is float and isnan(struct.unpack("<d", data[0])[0])
    return any(map(has_nan, call.outs, data))


def computed(method: LinkedMethod, call: LinkedCall) -> tuple[bytes, ...] | None:
    """What the build computes, as `recorded` has it."""
    number = number_of(method, call, frozenset(call.outs), ())
    match number:
        case IntValue() | BoolValue():
            return (struct.pack("<q", number.value),)
        case DoubleValue():
            return (struct.pack("<d", number.value),)
    found = results_of(method, call, frozenset())
    return None if found is None else tuple(found[out] for out in call.outs)


@pytest.mark.toolchain
@pytest.mark.slow
def test_every_evaluator_gives_the_bits_of_its_kernel(tmp_path: Path) -> None:
    """Where it declines the kernel fails, or gives NaN."""
    known = [
        call
        for call in read_calls()
        if kernel_names().get(call.operator) in evaluated_kernels()
    ]
    calls = [
        *known,
        *read_calls(INT8),
        *int8_calls(),
        *random_calls(150),
        *random_calls(100, makers=NETWORKS),
        *random_calls(150, makers=NUMBERS),
    ]
    same: Counter[str] = Counter()
    wrong: list[tuple[str, Call, object]] = []
    for call, wants in zip(calls, recorded(calls, tmp_path), strict=True):
        method = method_of([call])
        (linked,) = method.instructions
        assert isinstance(linked, LinkedCall)
        assert has_evaluator(linked), call.operator
        got = computed(method, linked)
        if got is None:
            if wants is not None and not is_nan(call, wants):
                wrong.append(("declined", call, wants))
        elif wants is None:
            wrong.append(("failed", call, got))
        elif got != wants:
            wrong.append(("differs", call, (got, wants)))
        else:
            same[linked.function] += 1
    assert not wrong, (
        len(wrong),
        Counter((w[0], w[1].operator) for w in wrong),
        wrong[0],
    )
    assert {*same} == {*evaluated_kernels()}
    assert min(same.values()) >= 20, same
