"""New scenarios: their inputs fit, and what is written is what is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.program.values import ValueKind
from orchestrator.running.compare import Tolerance
from orchestrator.running.new_scenario import NewCall, random_input, scenario_files
from orchestrator.running.product import Port
from orchestrator.running.scenario import read_scenario
from orchestrator.running.values import NPY_DTYPES, input_misfit
from tests.conftest import CASES
from tests.unit.running.corpus_products import product_of

if TYPE_CHECKING:
    from orchestrator.running.values import RunValue

EXACT = Tolerance(atol=0.0, rtol=0.5)


def _random() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(1))


def _inputs(ports: tuple[Port, ...]) -> tuple[RunValue, ...]:
    random = _random()
    values = [random_input(port, random) for port in ports]
    found = tuple(value for value in values if value is not None)
    assert len(found) == len(values)
    return found


def _outputs(ports: tuple[Port, ...]) -> tuple[RunValue, ...]:
    """Strings come out of methods, but never go in."""
    texts = [port.kind is ValueKind.STRING for port in ports]
    return tuple(
        "text" if is_text else _inputs((port,))[0]
        for port, is_text in zip(ports, texts, strict=True)
    )


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("expects", [True, False])
def test_a_scenario_is_read_as_it_was_made(case: str, *, expects: bool) -> None:
    product = product_of(case)
    calls = [
        NewCall(
            model=method.model,
            method=method.name,
            inputs=_inputs(method.inputs),
            outputs=_outputs(method.outputs) if expects else None,
        )
        for method in product.methods
        for _ in range(2)
    ]
    files = scenario_files("s", calls, EXACT, "what")
    read = read_scenario(
        files["s.json"].decode(),
        file="s.json",
        product=product,
        read_bytes=lambda path: files[path],
    )
    assert read.tolerance == EXACT
    for call, made in zip(read.calls, calls, strict=True):
        assert (call.method.model, call.method.name) == (made.model, made.method)
        assert repr(call.inputs) == repr(made.inputs)
        assert repr(call.expected) == repr(made.outputs)


@pytest.mark.parametrize("dtype", NPY_DTYPES)
@pytest.mark.parametrize("sizes", [(), (3, 4), (2, 0)])
def test_every_dtype_has_inputs(dtype: ScalarType, sizes: tuple[int, ...]) -> None:
    port = Port(kind=ValueKind.TENSOR, dtype=dtype, sizes=sizes, dim_order=tuple(range(len(sizes))))
    value = random_input(port, _random())
    assert value is not None
    assert input_misfit(value, port) is None


def test_what_no_file_can_hold_has_none() -> None:
    port = Port(kind=ValueKind.TENSOR, dtype=ScalarType.QInt8, sizes=(), dim_order=())
    assert random_input(port, _random()) is None
    assert random_input(Port(kind=ValueKind.STRING), _random()) is None
