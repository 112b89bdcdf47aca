"""What the build says of a call is what its kernel answers, for facts of all kinds."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.catalog import read_library
from orchestrator.catalog.expressions.condition import refusal
from orchestrator.core.dtype import ScalarType
from orchestrator.method.linked import LinkedCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import Dynamism, TensorValue
from orchestrator.selection.call import MethodFacts, argument_facts, misfit, takes
from orchestrator.selection.extract import call_pattern
from tests.integration.argument_facts import calls_of, variants
from tests.integration.host_kernels import recorded
from tests.integration.random_calls import random_calls
from tests.integration.random_int8 import CALLS as INT8
from tests.integration.random_int8 import int8_calls
from tests.integration.random_networks import MAKERS as NETWORKS
from tests.integration.random_numbers import MAKERS as NUMBERS
from tests.unit.method.recorded_calls import (
    KERNELS,
    Call,
    Tensor,
    method_of,
    read_calls,
    reference_calls,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.catalog.expressions.condition import Refusal
    from orchestrator.core.kernel import Kernel
    from orchestrator.method.linked import LinkedMethod
    from orchestrator.program.values import Value

LIBRARIES = ("cortex_m", "portable", "prim_ops", "quantized")
CORPUS = Path(__file__).parents[1] / "data" / "corpus"
SMALL_BYTES = 20_000
EACH = 50
"""Variants of the calls of each operator."""


def kernels() -> dict[str, Kernel]:
    """Our kernels by operator."""
    found = {}
    for name in LIBRARIES:
        file = KERNELS / name / "functions.yaml"
        text = file.read_text(encoding="utf-8")
        for kernel in read_library(text, library=name, file=str(file)):
            found[str(kernel.operator)] = kernel
    return found


def verdict(call: Call, kernel: Kernel) -> str | None:
    """Why the build refuses a call, "" if it does not; None if the loader does."""
    method = method_of([call])
    pattern = call_pattern(method.values, arguments_of(method))
    kinds, result = pattern.kinds, kernel.schema.result
    if result is not None and len(kinds) == len(kernel.schema.arguments):
        kinds += result.kind  # in a program the outputs follow once more
    if misfit(kernel.schema, kinds):
        return None
    if not takes(kernel, pattern):
        return "dtypes or dim orders"
    found = refused(method, method.values, kernel)
    return f"{found.condition}: {found.reason}" if found else ""


def arguments_of(method: LinkedMethod) -> tuple[int, ...]:
    """Of its only call."""
    (call,) = method.instructions
    assert isinstance(call, LinkedCall)
    return call.args


def refused(
    method: LinkedMethod,
    values: tuple[Value, ...],
    kernel: Kernel,
    changing: frozenset[int] = frozenset(),
) -> Refusal | None:
    """What conditions say of the only call of a method, with these values."""
    facts = MethodFacts(uses=Counter(), changing=changing, moved=frozenset())
    data = {id(values[index]): items for index, items in method.data}
    arguments = argument_facts(
        values, arguments_of(method), kernel.schema, facts, lambda tensor: data[id(tensor)]
    )
    return refusal(kernel.requires, kernel.schema, arguments)


def moves() -> Iterator[Call]:
    """Calls of the prim ops that only move bytes, which no other list has."""
    for sizes, view in (((2, 3), (6,)), ((2, 3), (3, -1)), ((4,), (2, 1, 2))):
        data = bytes(4 * prod(sizes))
        order = tuple(range(len(sizes)))
        base = Tensor(ScalarType.Float, sizes, order, data)
        shape = tuple(prod(sizes) // 3 if n == -1 else n for n in view)
        seen = replace(base, sizes=shape, order=tuple(range(len(shape))), is_out=True)
        yield Call("executorch_prim::et_view.default", (base, view, seen))
        rows = replace(
            base, sizes=(3, *sizes), order=tuple(range(len(sizes) + 1)), data=3 * data, is_out=True
        )
        yield Call("executorch_prim::et_copy_index.tensor", (rows, base, 1))


def unrecorded() -> Iterator[Call]:
    """Calls of operators whose results depend on something else than their inputs."""
    for dtype in (ScalarType.Float, ScalarType.Half):
        data = bytes(6 * dtype.item_bytes)
        out = Tensor(dtype, (2, 3), (0, 1), data, is_out=True)
        yield Call("aten::empty.out", ((2, 3), None, out))
        yield Call("dim_order_ops::_empty_dim_order.out", ((2, 3), None, out))
        yield Call("aten::rand.out", ((2, 3), out))
        yield Call("aten::randn.out", ((2, 3), out))
        rows = Tensor(ScalarType.Long, (1,), (0,), bytes(8))
        values = Tensor(dtype, (1, 3), (0, 1), bytes(3 * dtype.item_bytes))
        yield Call("aten::index_put_", (out, (rows,), values, False))


def base_calls() -> list[Call]:
    """Calls that kernels take, of every operator."""
    return [
        *moves(),
        *unrecorded(),
        *reference_calls(),
        *read_calls(INT8),
        *int8_calls(),
        *random_calls(20),
        *random_calls(20, makers=NETWORKS),
        *random_calls(20, makers=NUMBERS),
    ]


def corpus_calls() -> list[Call]:
    """Calls of real programs, less those of large tensors."""
    found = []
    for case in sorted(CORPUS.glob("*/model.pte")):
        program = read_program(case.read_bytes(), file=case.name)
        found += [call for call in calls_of(program) if size_of(call) < SMALL_BYTES]
    return found


def size_of(call: Call) -> int:
    """Bytes of all tensors."""
    items = [a for a in call.args for a in (a if isinstance(a, tuple) else (a,))]
    return sum(len(item.data) for item in items if isinstance(item, Tensor))


def drawn(given: list[Call], each: int, seed: int = 5) -> list[Call]:
    """Calls as they are, and `each` variants per operator."""
    rng = random.Random(seed)  # noqa: S311  # a test
    of_operator: dict[str, list[Call]] = {}
    for call in given:
        of_operator.setdefault(call.operator, []).append(call)
    found = []
    known = kernels()
    for operator, calls in sorted(of_operator.items()):
        schema = known[operator].schema
        found += rng.sample(calls, min(len(calls), each))
        several = rng.sample(calls, min(len(calls), 12))
        others = [v for call in several for v in variants(call, schema)]
        found += rng.sample(others, min(len(others), each))
    return found


def differences(calls: list[Call], folder: Path) -> list[tuple[str, str | None, Call]]:
    """Calls of which build and kernel say different things."""
    known = kernels()
    said = [(call, verdict(call, known[call.operator])) for call in calls]
    asked = [
        (call, reason)
        for call, reason in said
        # Whether inputs are finite is seen when the program runs.
        if reason is not None and "choose_qparams" not in call.operator
    ]
    given = recorded([call for call, _ in asked], folder)
    return [
        ("taken" if done is not None else "refused", reason, call)
        for (call, reason), done in zip(asked, given, strict=True)
        if (done is not None) != (reason == "")
    ]


@pytest.mark.toolchain
@pytest.mark.slow
def test_the_build_says_what_kernels_answer(tmp_path: Path) -> None:
    calls = drawn(base_calls(), EACH)
    assert {c.operator for c in calls} == set(kernels())
    assert differences(calls, tmp_path) == []
    known = kernels()
    refused = {
        call.operator: reason
        for call in calls
        if (reason := verdict(call, known[call.operator])) and ": " in reason
    }
    conditional = {name for name, kernel in known.items() if kernel.requires}
    assert set(refused) == conditional, "every operator has calls that it refuses"


@pytest.mark.toolchain
@pytest.mark.slow
def test_the_build_says_the_same_of_programs(tmp_path: Path) -> None:
    calls = corpus_calls()
    assert len({call.operator for call in calls}) > 60
    known = kernels()
    # Items that a program computes are 0 here: divisors may be.
    refused = {verdict(c, known[c.operator]) or "" for c in calls} - {""}
    assert [reason for reason in refused if "divisible" not in reason] == []
    assert differences(drawn(calls, EACH), tmp_path) == []


def test_what_is_refused_within_bounds_is_refused_for_each_value() -> None:
    """Nothing that may turn out well is refused; plenty is refused all the same."""
    rng = random.Random(3)  # noqa: S311  # a test
    known = kernels()
    decided = 0
    for call in drawn(base_calls(), 8):
        kernel = known[call.operator]
        if verdict(call, kernel) is None:
            continue
        method = method_of([call])
        tensors = {
            index: replace(value, dynamism=Dynamism.BOUNDED)
            for index, value in enumerate(method.values)
            if isinstance(value, TensorValue) and rng.random() < 0.5
        }
        values = tuple(tensors.get(i, v) for i, v in enumerate(method.values))
        numbers = frozenset(i for i in range(len(values)) if rng.random() < 0.2)
        vague = refused(method, values, kernel, numbers)
        exact = refused(method, method.values, kernel)
        assert vague is None or exact is not None, (call, vague)
        decided += vague is not None
    assert decided > 100
