"""What dynamic sizes cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.core.bounds import SizeBound
from orchestrator.memory.estimate import dynamic_costs
from orchestrator.method.effects import effects_of_method
from orchestrator.method.lifetimes import peak_live_bytes
from orchestrator.program.values import TensorValue
from tests.conftest import CASES
from tests.unit.products import program_of

if TYPE_CHECKING:
    from orchestrator.program.program import Method


def costs(method: Method, *bounds: SizeBound) -> list[str]:
    return [*dynamic_costs(effects_of_method(method, {}), bounds)]


def _at(method: Method, batch: int) -> Method:
    """The method for another batch."""
    values = [
        replace(v, sizes=(batch, *v.sizes[1:]))
        if isinstance(v, TensorValue) and v.is_dynamic
        else v
        for v in method.values
    ]
    return replace(method, values=tuple(values))


def test_a_batch_is_a_factor_of_everything() -> None:
    (method,) = program_of("dynamic_batch").methods
    (value,) = (method.values[i] for i in method.inputs)
    assert isinstance(value, TensorValue)
    assert value.sizes == (8, 6)  # 6 is no factor of the output, [8, 4]
    whole, some, one = (peak_live_bytes(_at(method, n), 1) for n in (8, 4, 1))
    text = "input 0: if dimension 0 is dynamic, up to 8 there costs"
    assert costs(method) == [f"{text} {whole - one:,} bytes: with 1, {one:,} are live"]
    bound = SizeBound(input=0, dim=0, least=4, step=4)
    assert costs(method, bound) == [f"{text} {whole - some:,} bytes: with 4, {some:,} are live"]
    assert costs(method, replace(bound, least=8)) == []
    assert costs(method, replace(bound, input=1)) == costs(method)
    assert costs(method, replace(bound, dim=1)) == costs(method)


def test_a_sequence_is_a_factor_too() -> None:
    (method,) = program_of("dynamic_sequence").methods
    (text,) = costs(method)
    assert text.startswith("input 0: if dimension 1 is dynamic, up to 24 there costs ")


@pytest.mark.parametrize("case", CASES)
def test_methods_of_static_sizes_cost_nothing_more(case: str) -> None:
    for method in program_of(case).methods:
        inputs = [method.values[i] for i in method.inputs]
        if not any(isinstance(v, TensorValue) and v.is_dynamic for v in inputs):
            assert costs(method) == []
