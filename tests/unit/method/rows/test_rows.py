"""Networks by rows: right on tagged bytes and on numbers, never above whole images."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator.method.rows.extracted import Segments
from orchestrator.method.rows.network import Layer, Network
from orchestrator.method.rows.plan import Call, RowPlan, Slide, plan_rows
from orchestrator.method.rows.segment import narrowed, segment
from orchestrator.method.rows.verify import problems_of_rows
from orchestrator.method.windows import Axis, Cost, Image, ScratchSavingVariant
from tests.unit.method.rows.networks import by_plan, grown, random_network, random_window, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.method.rows.schedules import Schedule

SEEDS = 90
ALIGNMENT = 16
"""Of all that has a place in an arena."""
DAMAGES = 4
"""Per network."""


def planned(network: Network) -> RowPlan:
    segments = Segments(network)
    return segments.plan(segments.least_peak())


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_network_by_rows_computes_the_same(seed: int) -> None:
    """Whatever its cuts are."""
    network = random_network(Random(seed))  # noqa: S311  # the same each time
    segments = Segments(network)
    every = [segments.cuts(limit) for limit in segments.limits()]
    different = {tuple(s.schedules[0].steps for s in cuts): cuts for cuts in every}
    for cuts in different.values():
        plan = plan_rows(network, cuts)
        assert problems_of_rows(network, plan) == ()
        assert is_right(network, plan, seed)


def given_networks() -> Iterator[tuple[int, Network, RowPlan]]:
    """Networks whose input comes by rows, as far as that can be."""
    for seed in range(SEEDS):
        network = random_network(Random(seed), is_given=True)  # noqa: S311  # the same
        segments = Segments(network)
        limit = segments.least_peak()
        if limit < inf:
            yield seed, network, plan_rows(network, segments.cuts(limit))


def test_rows_that_the_caller_gives() -> None:
    """They come in order, as many at a time as was said, and are never all there."""
    seen = 0
    for seed, network, plan in given_networks():
        assert problems_of_rows(network, plan) == ()
        assert is_right(network, plan, seed)
        steps = [m.step for m in plan.moves if isinstance(m, Call)]
        came = [(s.first, s.last) for s in steps if network.layers[s.layer].given]
        rows, by = network.images[0].rows, network.layers[0].given
        assert came == [(row, min(row + by, rows) - 1) for row in range(0, rows, by)]
        seen += 1
    assert seen > SEEDS / 2


def test_rows_in_another_order_are_refused() -> None:
    """Also where all of them are there before one is needed."""
    window = Axis(size=4, out=1, kernel=4)
    network = Network(
        images={0: Image(rows=4, row_bytes=16), 1: Image(rows=1, row_bytes=16)},
        layers=(Layer(reads=(), out=0, given=1), Layer(reads=((0, window),), out=1)),
        inputs=frozenset(),
        outputs=frozenset({1}),
    )
    plan = planned(network)
    one, other, *moves = plan.moves
    swapped = replace(plan, moves=(other, one, *moves))
    assert problems_of_rows(network, plan) == ()
    assert problems_of_rows(network, swapped) == ("step 0: the caller gives row 0 first",)


def test_an_input_that_is_needed_as_a_whole_cannot_come_by_rows() -> None:
    whole_input = Layer(reads=((0, Axis(size=9, out=1, kernel=9)),), out=1, by_rows=False)
    network = Network(
        images={0: Image(rows=9, row_bytes=4), 1: Image(rows=1, row_bytes=4)},
        layers=(Layer(reads=(), out=0, given=3), whole_input),
        inputs=frozenset(),
        outputs=frozenset({1}),
    )
    assert Segments(network).least_peak() == inf


def test_a_ring_of_given_rows_is_as_long_as_windows_and_rows_that_come() -> None:
    window = Axis(size=48, out=24, kernel=3, stride=2, padding=1)
    network = Network(
        images={0: Image(rows=48, row_bytes=64), 1: Image(rows=24, row_bytes=16)},
        layers=(Layer(reads=(), out=0, given=8), Layer(reads=((0, window),), out=1)),
        inputs=frozenset(),
        outputs=frozenset({1}),
    )
    plan = planned(network)
    # Eight rows, and one before them that the next window begins with.
    assert plan.arena_bytes == 9 * 64 + 24 * 16
    assert problems_of_rows(network, plan) == ()


def is_right(network: Network, plan: RowPlan, seed: int) -> bool:
    """On numbers, without the verifier."""
    image = network.images[0]
    given = np.random.default_rng(seed).integers(0, 256, (image.rows, image.row_bytes), np.uint8)
    expected = whole(network, given)
    found = by_plan(network, plan, given)
    return all(np.array_equal(found[i], expected[i]) for i in network.outputs)


def is_right_at_all(network: Network, plan: RowPlan, seed: int) -> bool:
    """The same of a plan that may leave the arena."""
    try:
        return is_right(network, plan, seed)
    except ValueError:
        return False


def test_plans_run_in_the_bytes_that_they_use_and_in_no_byte_less() -> None:
    for seed in range(SEEDS):
        network = random_network(Random(seed))  # noqa: S311  # the same each time
        plan = planned(network)
        used = plan.arena_bytes
        while problems_of_rows(network, replace(plan, arena_bytes=used - 1)) == ():
            used -= 1
        assert plan.arena_bytes - used < ALIGNMENT
        assert is_right(network, replace(plan, arena_bytes=used), seed)
        less = replace(plan, arena_bytes=used - 1)
        assert not is_right_at_all(network, less, seed)


def test_an_output_lies_at_the_least_distance_from_its_input() -> None:
    """One byte less is wrong: a row is written over that a later band reads."""
    seen = wrong = 0
    for seed in range(SEEDS):
        random = Random(seed)  # noqa: S311  # the same each time
        rows, out = random.randint(1, 12), random.randint(1, 60)
        window = random_window(random, rows) or grown(random, rows)
        network = Network(
            images={
                0: Image(rows=rows, row_bytes=random.randint(1, 60)),
                1: Image(rows=window.out, row_bytes=out),
            },
            layers=(Layer(reads=((0, window),), out=1),),
            inputs=frozenset({0}),
            outputs=frozenset({1}),
        )
        one = segment(network, 0, 0, band=random.randint(1, 3), descends=True)
        assert one is not None
        for schedule, distances in (
            (schedule, schedule.distances.items()) for schedule in one.schedules
        ):
            if not distances:  # its windows see padding only
                continue
            (((above, _), distance),) = distances
            plan = in_place(network, schedule, above, distance)
            assert problems_of_rows(network, plan) == ()
            assert is_right(network, plan, seed)
            if distance > 1:  # else none is too small
                nearer = in_place(network, schedule, above, distance - 1)
                assert problems_of_rows(network, nearer)
                wrong += not is_right(network, nearer, seed)
                seen += 1
    # Rows between the taps of a window are kept as well.
    assert seen > SEEDS
    assert wrong > 0.85 * seen


def in_place(network: Network, schedule: Schedule, above: int, distance: int) -> RowPlan:
    """The steps of the only layer, with one of its images behind the other one."""
    where = {above: distance, 1 - above: 0}
    images = network.images
    return RowPlan(
        moves=tuple(
            Call(
                step=step,
                reads=tuple(where[0] + low * images[0].row_bytes for low, _ in reads),
                out=where[1] + step.first * images[1].row_bytes,
                scratch=0,
            )
            for step in schedule.steps
            for reads in (step.reads,)
        ),
        offsets=where,
        arena_bytes=max(where[i] + images[i].size_bytes for i in where),
        least_bytes=0,
        setup=0,
    )


def test_damaged_plans_are_refused() -> None:
    """Where the verifier says nothing, the numbers are right as well."""
    refused = wrong = 0
    plain = [random_network(Random(seed)) for seed in range(SEEDS)]  # noqa: S311
    made = [*((seed, n, planned(n)) for seed, n in enumerate(plain))]
    for seed, network, plan in (*made, *given_networks()):
        random = Random(seed)  # noqa: S311  # the same each time
        for _ in range(DAMAGES):
            damaged = damage(plan, random)
            problems = problems_of_rows(network, damaged)
            refused += bool(problems)
            right = is_right_at_all(network, damaged, seed)
            wrong += not right
            assert problems or right, damaged
    # Some plans are wrong for other kernels only, which go over rows in another order.
    assert wrong > SEEDS
    assert refused < 1.4 * wrong


def damage(plan: RowPlan, random: Random) -> RowPlan:
    """The plan with one offset, one step or one slide changed."""
    moves = [*plan.moves]
    number = random.randrange(len(moves))
    move = moves[number]
    by = random.choice([-16, -1, 1, 16, 32])
    if isinstance(move, Slide):
        kind = random.choice(["leave out", "source", "target", "size"])
        if kind == "leave out":
            del moves[number]
        elif kind == "size":
            moves[number] = replace(move, size_bytes=max(move.size_bytes + by, 0))
        elif kind == "source":
            moves[number] = replace(move, source=move.source + by)
        else:
            moves[number] = replace(move, target=move.target + by)
        return replace(plan, moves=tuple(moves))
    assert isinstance(move, Call)
    kind = random.choice(["leave out", "again", "out", "read", "scratch", "arena"])
    if kind == "leave out":
        del moves[number]
    elif kind == "again":
        moves.insert(random.randrange(len(moves)), move)
    elif kind == "out":
        moves[number] = replace(move, out=move.out + by)
    elif kind == "read":
        moves[number] = replace(move, reads=tuple(r + by for r in move.reads))
    elif kind == "scratch":
        moves[number] = replace(move, scratch=max(move.scratch + 8 * by, 0))
    else:
        return replace(plan, arena_bytes=plan.arena_bytes - 1)
    return replace(plan, moves=tuple(moves))


def test_rows_take_less_than_whole_images() -> None:
    """A growing and a shrinking layer: a few rows between them."""
    rows = Axis(size=48, out=48)
    half = Axis(size=48, out=24, kernel=3, stride=2, padding=1)
    network = Network(
        images={
            0: Image(rows=48, row_bytes=384),
            1: Image(rows=48, row_bytes=768),
            2: Image(rows=24, row_bytes=384),
        },
        layers=(Layer(reads=((0, rows),), out=1), Layer(reads=((1, half),), out=2)),
        inputs=frozenset({0}),
        outputs=frozenset({2}),
    )
    segments = Segments(network)
    plan = planned(network)
    assert segments.whole_bytes == 48 * 384 + 48 * 768
    # The input, a ring of three rows; the output lies over what was read.
    assert plan.arena_bytes == 48 * 384 + 3 * 768
    assert problems_of_rows(network, plan) == ()


def test_an_input_of_a_sum_has_no_memory_of_its_own() -> None:
    """Its rows come where those of the sum are; a skip has a ring as before."""
    rows, three = Axis(size=16, out=16), Axis(size=16, out=16, kernel=3, padding=1)
    network = Network(
        images={i: Image(rows=16, row_bytes=32) for i in range(5)},
        layers=(
            Layer(reads=((0, rows),), out=1),
            Layer(reads=((1, three),), out=2),
            Layer(reads=((2, rows), (1, rows)), out=3, in_place=True),
            Layer(reads=((3, three),), out=4),
        ),
        inputs=frozenset({0}),
        outputs=frozenset({4}),
    )
    for in_place in (True, False):
        layers = [*network.layers]
        layers[2] = replace(layers[2], in_place=in_place)
        made = replace(network, layers=tuple(layers))
        one = segment(made, 0, 3)
        assert one is not None
        assert one.merged == ({2: 3} if in_place else {})
        assert one.rings == {1: 3, 3: 3} | ({} if in_place else {2: 1})
        plan = plan_rows(made, [one])
        assert problems_of_rows(made, plan) == ()
        assert is_right(made, plan, 1)
        kept = replace(plan, moves=tuple(m for m in plan.moves if isinstance(m, Call)))
        assert problems_of_rows(made, kept)


def test_the_first_part_of_a_concatenation_is_the_end_of_it() -> None:
    """Its rows come at the end of a band, also where the last one is shorter."""
    rows, three = Axis(size=15, out=15), Axis(size=15, out=15, kernel=3, padding=1)
    sizes = (32, 16, 48, 32)
    network = Network(
        images={i: Image(rows=15, row_bytes=size) for i, size in enumerate(sizes)},
        layers=(
            Layer(reads=((0, rows),), out=1),
            Layer(reads=((1, rows), (0, rows)), out=2, at_end=True),
            Layer(reads=((2, three),), out=3),
        ),
        inputs=frozenset({0}),
        outputs=frozenset({3}),
    )
    for band in (1, 2, 4):
        one = segment(network, 0, 2, band=band, descends=True)
        assert one is not None
        assert one.merged == {1: 2}
        for schedule in one.schedules:
            plan = plan_rows(network, [replace(one, schedules=(schedule,))])
            assert problems_of_rows(network, plan) == ()
            assert is_right(network, plan, band)
    less = replace(network.images[1], row_bytes=20)
    other = replace(network, images={**network.images, 1: less})
    uneven = segment(other, 0, 2)
    assert uneven is not None
    assert uneven.merged == {}


def test_what_others_read_is_not_written_over() -> None:
    """Neither is a band of other rows, or an input of another size."""
    rows, two = Axis(size=8, out=8), Axis(size=9, out=8, kernel=2)
    images = {i: Image(rows=8, row_bytes=32) for i in range(5)}
    add = Layer(reads=((1, rows), (2, rows)), out=3, in_place=True)
    first = Layer(reads=((0, rows),), out=1)
    second = Layer(reads=((1, rows),), out=2)
    third = Layer(reads=((3, rows), (2, rows)), out=4)
    last = Layer(reads=((3, rows),), out=4)
    taller = replace(first, reads=((0, Axis(size=8, out=9, kernel=2, padding=1)),))
    for layers, sizes in (
        ((first, second, add, third), images),
        (
            (taller, replace(add, reads=((1, two),)), last),
            images | {1: Image(rows=9, row_bytes=32)},
        ),
        (
            (first, replace(add, reads=((1, rows),)), last),
            images | {1: Image(rows=8, row_bytes=16)},
        ),
    ):
        network = Network(
            images=sizes, layers=layers, inputs=frozenset({0}), outputs=frozenset({4})
        )
        one = segment(network, 0, len(layers) - 1)
        assert one is not None
        assert one.merged == {}


def scarce(few_cost: int) -> Network:
    """Three layers of which one needs much scratch memory, or less for more."""
    rows, three = Axis(size=64, out=64), Axis(size=64, out=64, kernel=3, padding=1)
    cost = Cost(tile=1000)
    few = ScratchSavingVariant(scratch_bytes=320, costs=(Cost(tile=few_cost),))
    other = ScratchSavingVariant(scratch_bytes=128, costs=(Cost(tile=9000),))
    layers = (
        Layer(reads=((0, rows),), out=1, scratch_bytes=256, scratch_saving=other),
        Layer(reads=((1, three),), out=2, scratch_bytes=640, scratch_saving=few),
        Layer(reads=((2, rows),), out=3, scratch_bytes=16),
    )
    return Network(
        images={i: Image(rows=64, row_bytes=64) for i in range(4)},
        layers=tuple(replace(a, costs=(cost,), whole=cost.of(64)) for a in layers),
        inputs=frozenset({0}),
        outputs=frozenset({3}),
    )


def test_fewer_pixels_at_once_where_scratch_memory_is_scarce() -> None:
    """Only where a call needs more than the others do in the least memory."""
    network = scarce(1010)
    one = segment(network, 0, 2)
    assert one is not None
    less = narrowed(network, one)
    assert less is not None
    assert (one.scratch_bytes, less.scratch_bytes) == (640, 320)
    assert one.peak_bytes - less.peak_bytes == 320
    assert less.setup - one.setup == 64 * 10
    assert [network.scratch_saving_of(n, 1, 320) is None for n in range(3)] == [True, False, True]
    assert network.scratch_saving_of(1, 64, 0) is None  # whole calls have no other way
    plan = plan_rows(network, [less])
    assert plan.rooms == {0: 320, 1: 320, 2: 320}
    assert problems_of_rows(network, plan) == ()
    assert is_right(network, plan, 1)
    wide = replace(plan, rooms=dict.fromkeys(range(3), 640))
    assert problems_of_rows(network, wide)


@pytest.mark.parametrize(("few_cost", "pays"), [(1000, True), (1100, True), (1500, False)])
def test_memory_that_costs_too_much_is_not_saved(few_cost: int, pays: bool) -> None:  # noqa: FBT001  # a parameter
    """A greater part of the run than of the memory."""
    network = scarce(few_cost)
    one = segment(network, 0, 2)
    assert one is not None
    assert (narrowed(network, one) is not None) == pays
    assert planned(network).rooms[1] == (320 if pays else 640)


def test_calls_for_all_rows_without_scratch_memory() -> None:
    """Where that is scarce: the largest one alone."""
    row, cost = Axis(size=1, out=1), Cost(tile=1000)
    few = ScratchSavingVariant(scratch_bytes=0, costs=(Cost(tile=1040),), whole=True)
    layer = Layer(
        reads=((0, row),), out=1, whole_scratch_bytes=1284, scratch_saving=few, whole=1000
    )
    small = Layer(reads=((1, row),), out=2, whole_scratch_bytes=260, whole=1000)
    network = Network(
        images={i: Image(rows=1, row_bytes=n) for i, n in enumerate((640, 128, 128))},
        layers=tuple(
            replace(a, costs=(cost,), scratch_saving=few, by_rows=False) for a in (layer, small)
        ),
        inputs=frozenset({0}),
        outputs=frozenset({2}),
    )
    plan = planned(network)
    assert plan.arena_bytes == 640 + 128
    assert plan.rooms == {0: 0, 1: 260}
    assert plan.setup == 40
    assert problems_of_rows(network, plan) == ()
    assert is_right(network, plan, 1)
    # With pairs of inputs the same calls have no room.
    assert problems_of_rows(network, replace(plan, rooms={0: 1284, 1: 260}))
    banded = replace(few, whole=False)
    layers = tuple(replace(a, scratch_saving=banded) for a in network.layers)
    assert planned(replace(network, layers=layers)).arena_bytes > 640 + 1284


@pytest.mark.parametrize(("few", "steps"), [((300,), 64), ((), 4)])
def test_single_rows_stay_where_kernels_for_them_take_less(
    few: tuple[int, ...], steps: int
) -> None:
    rows = Axis(size=32, out=32)
    cost = Cost(setup=500, tile=1000, together=2, first_rows=few)
    network = Network(
        images={i: Image(rows=32, row_bytes=256 if i == 1 else 64) for i in range(3)},
        layers=tuple(
            Layer(reads=((i, rows),), out=i + 1, costs=(cost,), whole=cost.of(32)) for i in range(2)
        ),
        inputs=frozenset({0}),
        outputs=frozenset({2}),
    )
    segments = Segments(network)
    # Room for bands of up to 16 rows.
    (found,) = segments.cuts(segments.least_peak() + 16 * 256)
    assert len(found.schedules[0].steps) == steps


def test_rows_that_the_next_step_reads_take_turns_in_one_place() -> None:
    """As between windows of three rows and of one: rings of three rows stay apart."""
    three, one = Axis(size=25, out=25, kernel=3, padding=1), Axis(size=25, out=25)
    windows = [three, one] * 3
    network = Network(
        images={number: Image(rows=25, row_bytes=320) for number in range(6)}
        | {6: Image(rows=25, row_bytes=16)},
        layers=tuple(
            Layer(reads=((number, window),), out=number + 1)
            for number, window in enumerate(windows)
        ),
        inputs=frozenset({0}),
        outputs=frozenset({6}),
    )
    found = segment(network, 0, 5)
    assert found is not None
    assert found.rings == {1: 1, 2: 3, 3: 1, 4: 3, 5: 1}
    assert set(found.places) == {(1, 3, 5), (2,), (4,)}
    plan = plan_rows(network, [found])
    # The output lies over what was read of the input, but for its first row.
    assert plan.arena_bytes == found.peak_bytes == 25 * 320 + 16 + (3 + 3 + 1) * 320
    assert problems_of_rows(network, plan) == ()
    assert is_right(network, plan, 1)


def test_rows_that_a_step_reads_and_fills_have_places_of_their_own() -> None:
    """So have rows that another step reads, too, and sums."""
    one = Axis(size=9, out=9)
    network = Network(
        images={number: Image(rows=9, row_bytes=16 + number) for number in range(5)}
        | {5: Image(rows=1, row_bytes=64), 6: Image(rows=1, row_bytes=16)},
        layers=(
            Layer(reads=((0, one),), out=1),
            Layer(reads=((1, one),), out=2),
            Layer(reads=((2, one),), out=3),
            Layer(reads=((2, one), (3, one)), out=4),
            Layer(reads=((4, Axis(size=9, out=1, kernel=9)),), out=5, accumulates=True),
            Layer(reads=((5, Axis(size=1, out=1)),), out=6),
        ),
        inputs=frozenset({0}),
        outputs=frozenset({6}),
    )
    found = segment(network, 0, 5)
    assert found is not None
    assert set(found.places) == {(4, 1), (3,), (2,), (5,)}
    plan = plan_rows(network, [found])
    assert problems_of_rows(network, plan) == ()
    assert is_right(network, plan, 1)


@pytest.mark.parametrize("is_fused", [True, False])
@pytest.mark.parametrize("seed", range(SEEDS // 3))
def test_calls_within_a_limit(seed: int, *, is_fused: bool) -> None:
    """Every call that can be is that short, and the network computes the same."""
    random = Random(seed)  # noqa: S311  # the same each time
    free = random_network(random)
    most = random.randint(0, 1 + max(layer.whole for layer in free.layers))
    network = free.within(most)
    segments = Segments(network, is_fused=is_fused)
    for limit in segments.limits():
        cuts = segments.cuts(limit)
        assert is_fused or len(cuts) == len(network.layers)
        plan = plan_rows(network, cuts)
        assert problems_of_rows(network, plan) == ()
        assert is_right(network, plan, seed)
        for move in plan.moves:
            if isinstance(move, Call):
                assert is_short(network, move, plan, most), (move, most)


def is_short(network: Network, call: Call, plan: RowPlan, most: int) -> bool:
    """Whether a call takes no more instructions than that, or cannot be split."""
    layer, step = network.layers[call.step.layer], call.step
    rows, count = step.last - step.first + 1, network.images[layer.out].rows
    room = plan.rooms[step.layer]
    few = network.scratch_saving_of(step.layer, rows, room)
    if layer.accumulates:
        ((low, high),) = step.reads
        rows, count = high - low + 1, network.images[layer.reads[0][0]].rows
    cost = sum(c.of(rows) for c in (few.costs if few else layer.costs))
    if rows == count and few is None and not layer.accumulates:
        cost = layer.whole
    return cost <= most or rows == 1 or not layer.by_rows


def test_a_limit_that_all_calls_keep_changes_nothing() -> None:
    network = random_network(Random(1))  # noqa: S311  # the same each time
    assert network.within(inf) == network
    assert network.within(0) != network
