"""Skips computed again: the same numbers in less memory, and nothing for nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import inf
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator.method.rows.adapt import choices_in
from orchestrator.method.rows.again import (
    RecomputedNetwork,
    computed_again,
    plan_of,
    skips,
    with_skips_again,
)
from orchestrator.method.rows.extracted import Segments
from orchestrator.method.rows.network import Layer, Network
from orchestrator.method.rows.verify import problems_of_rows, problems_of_twins
from orchestrator.method.windows import Axis, Cost, Image, RowTable, Window
from tests.unit.method.rows.networks import by_plan, random_network, whole

if TYPE_CHECKING:
    from orchestrator.method.rows.plan import RowPlan

SEEDS = 36
SIDE = 32


def u_net(*, first: int = 4, inner: int = 32, output: int | None = None) -> Network:
    """An image, a large skip of it, a deep path of small images, and their sum.

    Args:
        first: Bytes of a row of the input.
        inner: Of the image between input and skip.
        output: An image that is needed after the run as well.
    """
    same = Axis(size=SIDE, out=SIDE, kernel=3, padding=1)
    half = Axis(size=SIDE, out=SIDE // 2, kernel=2, stride=2)
    low = Axis(size=SIDE // 2, out=SIDE // 2, kernel=SIDE // 2)
    copy = Axis(size=SIDE, out=SIDE)
    grow = Axis(size=SIDE // 2, out=SIDE, kernel=SIDE // 2)
    reads: list[tuple[tuple[int, Window], ...]] = [
        ((0, same),),
        ((1, same),),
        ((2, half),),
        ((3, low),),
        ((4, grow),),
        ((5, copy), (2, copy)),
    ]
    sizes = [first, inner, 32, 4, 60, 4, 4]
    return Network(
        images={
            i: Image(rows=SIDE // 2 if i in (3, 4) else SIDE, row_bytes=size)
            for i, size in enumerate(sizes)
        },
        layers=tuple(
            Layer(
                reads=of,
                out=out,
                by_rows=out not in (4, 5),
                costs=(Cost(tile=100),),
                whole=100 * SIDE,
            )
            for out, of in enumerate(reads, 1)
        ),
        inputs=frozenset({0}),
        outputs=frozenset({6} if output is None else {6, output}),
    )


def random_u_net(random: Random) -> Network:
    """The same of random sizes: with more layers, some of which need whole images."""
    half = random.randint(3, 8)
    rows = 2 * half
    images = [Image(rows=rows, row_bytes=random.randint(1, 30))]
    layers: list[Layer] = []

    def add(size: int, *reads: tuple[int, Window]) -> int:
        by_rows = random.random() < 0.8
        images.append(Image(rows=reads[0][1].out, row_bytes=size))
        cost = Cost(setup=random.randint(0, 90), tile=random.randint(1, 90))
        layers.append(
            Layer(
                reads=reads
                if by_rows
                else tuple((i, Axis(size=w.size, out=w.out, kernel=w.size)) for i, w in reads),
                out=len(images) - 1,
                by_rows=by_rows,
                scratch_bytes=random.choice([0, 0, random.randint(1, 40)]),
                whole_scratch_bytes=random.choice([0, 0, random.randint(1, 40)]),
                costs=(cost,),
                whole=cost.of(reads[0][1].out),
            )
        )
        return len(images) - 1

    def same(source: int) -> Window:
        count = images[source].rows
        return Axis(size=count, out=count, kernel=3, padding=1)

    x = 0
    for _ in range(random.randint(1, 3)):
        x = add(random.randint(1, 60), (x, same(x)))
    skip = x
    x = add(random.randint(1, 60), (x, Axis(size=rows, out=half, kernel=2, stride=2)))
    for _ in range(random.randint(1, 3)):
        x = add(random.randint(1, 120), (x, same(x)))
    up = RowTable(size=half, rows=tuple((row // 2, row // 2) for row in range(rows)))
    x = add(random.randint(1, 30), (x, up))
    copy = Axis(size=rows, out=rows)
    x = add(images[x].row_bytes + images[skip].row_bytes, (x, copy), (skip, copy))
    x = add(random.randint(1, 30), (x, same(x)))
    return Network(
        images=dict(enumerate(images)),
        layers=tuple(layers),
        inputs=frozenset({0}),
        outputs=frozenset({x, *random.sample(range(1, x), random.choice([0, 0, 1]))}),
    )


def smallest(network: Network) -> RowPlan:
    plan = plan_of(Segments(network), inf)
    assert plan is not None
    return plan


def chosen(
    network: Network, most_setup: float = inf, most_again: float = inf
) -> list[tuple[RecomputedNetwork, RowPlan]]:
    plan = plan_of(Segments(network), most_setup)
    assert plan is not None
    found = with_skips_again(network, plan, most_setup=most_setup, most_again=most_again)
    return [*found]


def given_to(network: Network, seed: int) -> np.ndarray[tuple[int, int], np.dtype]:
    size = network.images[0].rows, network.images[0].row_bytes
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


def test_a_long_skip_is_computed_again() -> None:
    """From the input, which is smaller: both layers, before the sum."""
    network = u_net()
    before = smallest(network)
    ((recomputed, plan),) = chosen(network)
    assert recomputed.twins == (0, 1, 2, 3, 4, 0, 1, 5)
    assert [layer.again for layer in recomputed.network.layers] == [
        *[False] * 5,
        *[True] * 2,
        False,
    ]
    skip, given, deep = SIDE * 32, SIDE * 4, SIDE // 2 * (4 + 60)
    assert before.arena_bytes == skip + deep + 64  # beside the deep path
    assert plan.arena_bytes == given + deep + 64
    assert plan.setup >= before.setup + 2 * 100 * SIDE


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_skip_computed_again_gives_the_same(seed: int) -> None:
    random = Random(seed)  # noqa: S311  # the same each time
    for network in (random_network(random), random_u_net(random)):
        given = given_to(network, seed)
        expected = whole(network, given)
        for skip in skips(network):
            made = computed_again(RecomputedNetwork.of(network), skip)
            assert problems_of_twins(network, made.network, made.twins) == ()
            found = whole(made.network, given, made.twins)
            assert all(np.array_equal(found[i], expected[i]) for i in expected)
            assert made.calls == len(skip.layers)


def test_plans_with_skips_again_are_smaller_and_give_the_same() -> None:
    seen = 0
    for seed in range(SEEDS):
        network = random_u_net(Random(seed))  # noqa: S311  # the same each time
        given = given_to(network, seed)
        expected = whole(network, given)
        plans = [smallest(network)]
        for recomputed, plan in chosen(network):
            assert problems_of_rows(recomputed.network, plan) == ()
            found = by_plan(recomputed.network, plan, given, recomputed.twins)
            assert all(np.array_equal(found[i], expected[i]) for i in network.outputs)
            plans.append(plan)
            seen += 1
        assert all(b.arena_bytes < a.arena_bytes for a, b in pairwise(plans))
    assert seen > SEEDS / 20


@pytest.mark.parametrize(
    "network",
    [
        pytest.param(u_net(first=40, inner=40), id="from what is larger"),
        pytest.param(u_net(output=2), id="what is an output"),
        pytest.param(
            replace(u_net(), layers=u_net().layers[:-2], outputs=frozenset({4})), id="no skip"
        ),
    ],
)
def test_nothing_is_computed_again(network: Network) -> None:
    assert chosen(network) == []


def test_what_computes_again_keeps_to_its_cost() -> None:
    network = u_net()
    both = 2 * 100 * SIDE
    assert chosen(network, most_again=both)
    assert chosen(network, most_again=both - 1) == []
    for most in (0, both - 1, both, 2 * both):
        assert all(plan.setup <= most for _, plan in chosen(network, most_setup=most))


def test_rows_that_the_caller_gives_do_not_come_again() -> None:
    network = u_net()
    rows = Layer(reads=(), out=0, given=1)
    given = replace(network, layers=(rows, *network.layers), inputs=frozenset())
    assert all(0 not in skip.layers for skip in skips(given))
    again = [of for recomputed, _ in chosen(given) for of in recomputed.network.layers if of.again]
    assert not any(layer.given for layer in again)


def test_an_average_of_a_whole_image_is_not_computed_again() -> None:
    network = u_net()
    layers = [
        replace(layer, accumulates=number in (0, 1)) for number, layer in enumerate(network.layers)
    ]
    assert [*skips(replace(network, layers=tuple(layers)))] == []


def test_damaged_twins_are_refused() -> None:
    network = u_net()
    ((recomputed, _),) = chosen(network)
    made, twins = recomputed.network, recomputed.twins
    layers = [*made.layers]
    other = [*layers[:5], replace(layers[5], reads=layers[1].reads), *layers[6:]]
    swapped = [*layers[:5], layers[6], layers[5], layers[7]]
    again = [replace(layer, again=False) for layer in layers]
    late = [*layers[:7], replace(layers[7], reads=layers[7].reads[:1])]
    for damaged in (other, swapped, again, late, layers[:-1]):
        network_ = replace(made, layers=tuple(damaged))
        assert problems_of_twins(network, network_, twins)
    outputs = replace(made, outputs=frozenset({5}))
    assert problems_of_twins(network, outputs, twins) == ("other inputs or outputs",)
    assert problems_of_twins(network, made, (*twins[:5], 1, 0, 5))
    assert problems_of_twins(network, made, twins) == ()


def test_choices_with_skips_again() -> None:
    network = u_net()
    plain, more = choices_in(network), choices_in(network, 0.5)
    assert more[-1].arena_bytes < plain[-1].arena_bytes
    assert more[-1].again == 2
    assert {choice.again for choice in plain} == {0}
    assert choices_in(network, 0.01) == plain
