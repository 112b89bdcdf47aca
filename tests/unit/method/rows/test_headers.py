"""Headers as most bands have them: steps are the same calls, and change fewer words."""

from __future__ import annotations

from collections import Counter, defaultdict
from random import Random

import pytest

from orchestrator.method.linked import LinkedCall
from orchestrator.method.rows.write import with_common_headers
from orchestrator.method.steps import step_table
from tests.unit.method.test_steps import Made, carried_out, places, words_of


@pytest.mark.parametrize("seed", range(40))
def test_steps_are_the_same_calls(seed: int) -> None:
    method = Made(Random(seed)).method  # noqa: S311  # the same each time
    made = with_common_headers(method)
    found = [*carried_out(made, step_table(made))]
    assert found == [
        (call.function, places(method, call), words_of(method, call, changed=True))
        for call in method.instructions
        if isinstance(call, LinkedCall)
    ]


def test_most_calls_of_a_layer_have_the_header_in_memory() -> None:
    layers: dict[tuple[int, int], Counter[tuple[int, ...]]] = defaultdict(Counter)
    for seed in range(40):
        made = with_common_headers(Made(Random(seed)).method)  # noqa: S311  # the same
        for call, origin in zip(made.instructions, made.origins, strict=True):
            assert isinstance(call, LinkedCall)
            assert call.prepared is not None
            if not call.prepared.numbers:
                layers[seed, origin][call.prepared.header] += 1
    assert layers
    for headers in layers.values():
        assert headers[()] == max(headers.values())
