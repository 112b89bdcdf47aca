"""Layers: results in memory of their own, matched with those of a float model."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from orchestrator.evaluation.layers import MOST_ELEMENTS, Probe, match_layers, probed, signal
from orchestrator.method.effects import effects_of_method
from orchestrator.method.places import place_of
from orchestrator.method.separate import plan_faults
from orchestrator.method.state import with_state
from orchestrator.program.encode import write_program
from orchestrator.program.reader import read_program
from tests.conftest import CASES, CORPUS
from tests.unit.schemas import schemas

if TYPE_CHECKING:
    import numpy.typing as npt

    from orchestrator.program.program import Program

SCALE = 0.05
RANDOM = np.random.default_rng(0)


def probe(operator: str, *sizes: int, at: int = 0) -> Probe:
    return Probe(instruction=at, operator=operator, sizes=sizes, output=at)


def quantized(values: npt.NDArray[Any], scale: float) -> npt.NDArray[Any]:
    found: npt.NDArray[Any] = np.clip(np.rint(values / scale) - 5, -128, 127)
    return found


def program(case: str) -> Program:
    return read_program((CORPUS / case / "model.pte").read_bytes(), file="model.pte")


def test_layers_match_up_to_a_scale_and_an_offset() -> None:
    conv = RANDOM.normal(size=400)
    relu = np.maximum(conv, 0)
    last = RANDOM.normal(size=40)
    mine = [
        (probe("q::conv", 1, 400), quantized(relu, SCALE)),
        (probe("q::pad", 7), RANDOM.normal(size=7)),
        (probe("q::linear", 1, 40), quantized(last, SCALE)),
    ]
    others = [
        (probe("conv", 1, 400), conv),
        (probe("relu", 400), relu),
        (probe("linear", 40), last),
    ]
    found = match_layers(mine, others, samples=3)
    names = [layer.reference and layer.reference.operator for layer in found.layers]
    assert names == ["relu", None, "linear"]
    for layer, values in ((found.layers[0], relu), (found.layers[2], last)):
        # With the scale known; the fit is a little better.
        back = (quantized(values, SCALE) + 5) * SCALE
        expected = np.std(back - values) / values.std()
        assert layer.error == pytest.approx(expected, rel=0.05)
        assert layer.error is not None
        assert layer.sqnr_db == pytest.approx(-20 * np.log10(layer.error))
    assert found.first_large is None
    assert found.layers[1].error is None


def test_the_first_large_error_and_the_largest_step() -> None:
    layers = [RANDOM.normal(size=2000) for _ in range(4)]
    noise = [0.01, 0.05, 0.5, 0.6]
    mine = [
        (probe(f"q{i}", 2000), x + RANDOM.normal(size=2000) * n)
        for i, (x, n) in enumerate(zip(layers, noise, strict=True))
    ]
    others = [(probe(f"f{i}", 2000), x) for i, x in enumerate(layers)]
    found = match_layers(mine, others, samples=1)
    assert found.first_large == 2
    assert found.largest_step == 2
    errors = [layer.error for layer in found.layers]
    assert errors == pytest.approx([n / np.sqrt(1 + n * n) for n in noise], rel=0.1)


def test_layers_stay_in_order() -> None:
    one, two = RANDOM.normal(size=50), RANDOM.normal(size=50)
    mine = [(probe("a", 50), one), (probe("b", 50), two)]
    others = [(probe("second", 50), two), (probe("first", 50), one)]
    found = match_layers(mine, others, samples=1)
    matched = [layer.reference for layer in found.layers if layer.reference]
    assert len(matched) == 1


def test_results_that_say_nothing_match_nothing() -> None:
    values = RANDOM.normal(size=10)
    for other in (np.zeros(10), -values, np.full(10, np.nan), RANDOM.normal(size=9)):
        found = match_layers(
            [(probe("a", 10), values)], [(probe("b", other.size), other)], samples=1
        )
        assert found.layers[0].reference is None
        assert (found.first_large, found.largest_step) == (None, None)
    assert match_layers([], [], samples=1).layers == ()


def test_of_large_results_some_elements_are_compared() -> None:
    large = np.arange(10 * MOST_ELEMENTS + 1, dtype=np.float32)
    assert signal([large, large]).size <= 2 * MOST_ELEMENTS
    assert list(signal([np.arange(3), np.arange(2)])) == [0, 1, 2, 0, 1]


@pytest.mark.parametrize("case", CASES)
def test_results_share_no_memory(case: str) -> None:
    """Of every program of the corpus; a view lies where its base does."""
    original = with_state(program(case), schemas())
    for method in original.methods:
        changed, probes = probed(original, method.name, schemas())
        (made,) = changed.methods
        found = read_program(bytes(write_program(changed)), file="probed.pte")
        assert found.methods[0].values == made.values
        (built,) = with_state(found, schemas()).methods
        assert plan_faults(built, schemas()) == ()
        outputs = made.outputs
        assert outputs[: len(method.outputs)] == method.outputs
        indices = [outputs[one.output] for one in probes]
        effects = effects_of_method(method, schemas())
        views = {index for effect in effects.at for index in effect.views}
        places = [place_of(made.values[i], i) for i in indices if i not in views]
        for one, other in combinations([p for p in places if p is not None], 2):
            assert not one.overlaps(other)
        assert len(probes) == len(set(indices))
        written = {index for effect in effects_of_method(method, {}).at for index in effect.writes}
        assert set(indices) <= written
