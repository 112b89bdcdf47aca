"""What streams know of operators is what their schemas say."""

from __future__ import annotations

from orchestrator.catalog.scratch_arguments import scratch_arguments
from orchestrator.streams.rules import scratch_of
from tests.unit.schemas import schemas


def test_scratch_memory_comes_before_the_output() -> None:
    found = 0
    for name, schema in schemas().items():
        places = [at for at, _ in scratch_arguments(schema)]
        if name.namespace == "cortex_m":
            out = len(schema.arguments) - 1
            assert places == [*range(out - scratch_of(name), out)], name
            found += bool(places)
    assert found
