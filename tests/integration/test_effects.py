"""Kernels read and write what the build takes them to.

Each call runs twice on the host, between guards, with outputs and scratch memory that
hold other bytes each time.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.catalog.scratch_arguments import is_scratch
from orchestrator.core.operator import OperatorName
from orchestrator.method.effects import Effect, effects_of_linked
from orchestrator.method.places import Access, accesses
from orchestrator.program.values import TensorValue
from tests.cpp.support.suite import build
from tests.integration.test_conditions import base_calls, kernels
from tests.unit.method.recorded_calls import Tensor, calls_bytes, method_of
from tests.unit.schemas import schemas

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.method.recorded_calls import Call

INFERENCE = {"aten::_native_batch_norm_legit.out"}
"""Operators that update statistics, which kernels for inference do not."""
PATTERNS = (0x5A, 0xA5)  # they differ in every bit

Memory = dict[int, tuple[bytes, bytes]]
"""Bytes of the tensors of a call, before it and after it, by value index."""


def tensors(call: Call) -> list[Tensor]:
    """Of a call, those in lists as well."""
    items = (i for a in call.args for i in (a if isinstance(a, tuple) else (a,)))
    return [item for item in items if isinstance(item, Tensor)]


def prefilled(call: Call, pattern: int) -> Call:
    """The call with memory for its outputs and scratch that holds one byte."""
    schema = schemas()[OperatorName.parse(call.operator)]
    scratch = [is_scratch(argument) for argument in schema.arguments]

    def fill(argument: object, *, all_of_it: bool) -> object:
        if isinstance(argument, tuple):
            return tuple(fill(item, all_of_it=all_of_it) for item in argument)
        if isinstance(argument, Tensor) and (argument.is_out or all_of_it):
            return replace(argument, data=bytes([pattern]) * len(argument.data))
        return argument

    args = zip(call.args, (*scratch, False), strict=False)
    return replace(call, args=tuple(fill(a, all_of_it=s) for a, s in args))


def touched(calls: list[Call], pattern: int, folder: Path) -> list[Memory | None]:
    """What each call finds in its tensors and leaves there; None if it fails."""
    given = [prefilled(call, pattern) for call in calls]
    (folder / "calls.bin").write_bytes(calls_bytes(given))
    done = subprocess.run(
        [build()["all_dtypes"], "--test-case=what kernels touch is recorded"],
        env={
            "ORCH_CALLS": str(folder / "calls.bin"),
            "ORCH_TOUCH": str(folder / "touched.bin"),
            "ORCH_PATTERN": str(pattern),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    data = memoryview((folder / "touched.bin").read_bytes())
    found: list[Memory | None] = []
    for call in given:
        passed, data = data[0], data[1:]
        values = method_of([call]).values
        indices = [i for i, v in enumerate(values) if isinstance(v, TensorValue)]
        memory = {}
        for index, tensor in zip(indices, tensors(call), strict=True):
            size = len(tensor.data)
            memory[index] = (tensor.data, bytes(data[:size]))
            data = data[size:]
        found.append(memory if passed else None)
    assert not data
    return found


def difference(effect: Effect, one: Memory, other: Memory) -> str:
    """What a call did otherwise than its effect says in two runs; "" if nothing."""
    for index, (before, after) in one.items():
        before_too, after_too = other[index]
        if index not in effect.writes:
            if (before, before_too) != (after, after_too):
                return f"value {index} is written"
        elif index in effect.fills and ((before and before == before_too) or after != after_too):
            return f"value {index} is not filled, or depends on what was there"
        elif index in effect.updates and index not in effect.reads:
            rows = zip(before, after, before_too, after_too, strict=True)
            if any(a != c and (b, d) != (a, c) for b, a, d, c in rows):
                return f"value {index} depends on what was there"
    return ""


@pytest.mark.toolchain
@pytest.mark.slow
def test_kernels_touch_what_the_build_takes_them_to(tmp_path: Path) -> None:
    calls = base_calls()
    one, other = (touched(calls, pattern, tmp_path) for pattern in PATTERNS)
    seen: Counter[str] = Counter()
    partial: set[str] = set()
    for call, first, second in zip(calls, one, other, strict=True):
        assert (first is None) is (second is None), call
        if first is None or second is None:
            continue
        (effect,) = effects_of_linked(method_of([call])).at
        assert difference(effect, first, second) == "", call
        seen[call.operator] += 1
        if any(first[v][1] != second[v][1] for v in effect.updates):
            partial.add(call.operator)
        # Had the build taken the outputs for inputs, it would show.
        none = replace(effect, fills=(), updates=())
        written = any(first[v][0] for v in effect.fills) or any(
            first[v][0] != first[v][1] for v in effect.updates
        )
        assert bool(difference(none, first, second)) == written, call
    assert {*seen} == {*kernels()}
    # What leaves bytes as they were is what is taken to do so.
    assert partial == {
        name
        for name, kernel in kernels().items()
        if not {Access.WRITES, Access.UPDATES}.isdisjoint(accesses(kernel.schema))
        and name not in INFERENCE
    }
