"""What the build computes from constants has the bits that kernels give."""

from __future__ import annotations

import struct
from collections import Counter
from math import isnan
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator.core.dtype import COMPLEX, ScalarType
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.evaluate import evaluated_kernels, number_of, results_of
from orchestrator.program.values import BoolValue, DoubleValue, IntValue
from tests.integration.host_kernels import recorded
from tests.integration.random_calls import random_calls
from tests.integration.random_numbers import MAKERS as NUMBERS
from tests.unit.method.recorded_calls import kernel_names, method_of, reference_calls

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.method.linked import LinkedMethod
    from tests.unit.method.recorded_calls import Call, Tensor

_FLOATS = {ScalarType.Half: "<f2", ScalarType.Float: "<f4", ScalarType.Double: "<f8"}


def has_nan(tensor: Tensor, data: bytes) -> bool:
    """Whether an item is NaN."""
    if tensor.dtype is ScalarType.BFloat16:
        bits = np.frombuffer(data, "<u2").astype(np.uint32) << np.uint32(16)
        return bool(np.isnan(bits.view(np.float32)).any())
    form = _FLOATS.get(tensor.dtype)
    return form is not None and bool(np.isnan(np.frombuffer(data, form)).any())


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
    return None if found is None else tuple(bytes(found[out]) for out in call.outs)


@pytest.mark.toolchain
@pytest.mark.slow
def test_every_evaluator_gives_the_bits_of_its_kernel(tmp_path: Path) -> None:
    """It declines only where the kernel fails, gives NaN or a complex number."""
    calls = [
        call
        for call in (*reference_calls(), *random_calls(150), *random_calls(150, makers=NUMBERS))
        if kernel_names().get(call.operator) in evaluated_kernels()
    ]
    same: Counter[str] = Counter()
    wrong: list[tuple[str, Call, object]] = []
    for call, wants in zip(calls, recorded(calls, tmp_path), strict=True):
        method = method_of([call])
        (linked,) = method.instructions
        assert isinstance(linked, LinkedCall)
        got = computed(method, linked)
        if got is None:
            is_complex = any(out.dtype in COMPLEX for out in call.outs)
            if wants is not None and not is_complex and not is_nan(call, wants):
                wrong.append(("declined", call, wants))
        elif wants is None:
            wrong.append(("failed", call, got))
        elif got != wants:
            wrong.append(("differs", call, (got, wants)))
        else:
            same[linked.function] += 1
    assert not wrong, (len(wrong), Counter((w[0], w[1].operator) for w in wrong), wrong[0])
    assert {*same} == evaluated_kernels()
    assert min(same.values()) >= 20, same
