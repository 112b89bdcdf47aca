"""Outputs over rows of their input that only they still need."""

from __future__ import annotations

import struct
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.packing.kernels import packed_header
from orchestrator.method.rows.network import Layer, Network
from orchestrator.method.rows.plan import Call, RowPlan, plan_rows
from orchestrator.method.rows.segment import segment
from orchestrator.method.rows.verify import problems_of_rows
from orchestrator.method.windows import Axis, Image, OverlapRule, RowTable
from tests.unit.method.rows.networks import by_plan, whole
from tests.unit.method.rows.test_narrow import depthwise, matrix, method_of, strips

if TYPE_CHECKING:
    from collections.abc import Iterator

THREE = Axis(size=25, out=25, kernel=3, padding=1)
ROW = 320
WHOLE = 25 * ROW + 16
"""The input, and the sum, most of which lies over it."""
AT_ONCE = OverlapRule(pixel_bytes=64)
PARTS = OverlapRule(lead_bytes=64, few_bytes=128, pixel_bytes=64, rows=1)


def over_of(
    method: LinkedMethod, call: LinkedCall, source: Image, out: Image
) -> OverlapRule | None:
    """How bands of a call may lie over their input."""
    header = packed_header(method, call)
    assert header is not None
    return header.overlap(source, out)


def chain(over: OverlapRule | None, *, in_place: bool = False) -> Network:
    """A layer, windows of three rows, a layer, and a sum of all rows."""
    one = Axis(size=25, out=25)
    return Network(
        images={
            **{number: Image(rows=25, row_bytes=ROW) for number in range(4)},
            4: Image(rows=1, row_bytes=64),
        },
        layers=(
            Layer(reads=((0, one),), out=1),
            Layer(reads=((1, THREE),), out=2, over=over),
            Layer(reads=((2, one),), out=3, in_place=in_place),
            Layer(reads=((3, Axis(size=25, out=1, kernel=25)),), out=4, accumulates=True),
        ),
        inputs=frozenset({0}),
        outputs=frozenset({4}),
    )


def planned(network: Network, band: int) -> RowPlan:
    one = segment(network, 0, 3, band=band)
    assert one is not None
    plan = plan_rows(network, [one])
    assert plan.arena_bytes == one.peak_bytes
    return plan


def is_right(network: Network, plan: RowPlan) -> bool:
    given = np.random.default_rng(1).integers(0, 256, (25, ROW), np.uint8)
    return np.array_equal(by_plan(network, plan, given)[4], whole(network, given)[4])


@pytest.mark.parametrize(
    ("over", "in_place", "band", "rings"),
    [
        # Rows of windows, of what they give, and of the next layer.
        (None, False, 1, 3 * ROW + ROW + ROW),
        (None, False, 2, 4 * ROW + 2 * ROW + 2 * ROW),
        (AT_ONCE, False, 1, 3 * ROW + ROW),
        (AT_ONCE, False, 2, 4 * ROW + 2 * ROW),
        # The next layer writes over what lies over a ring.
        (AT_ONCE, True, 1, 3 * ROW),
        (AT_ONCE, True, 2, 4 * ROW),
        (PARTS, False, 1, 64 + 3 * ROW + ROW),
        (PARTS, False, 2, 4 * ROW + 2 * ROW + 2 * ROW),
    ],
)
def test_rows_of_windows_lie_over_the_row_that_only_they_need(
    over: OverlapRule | None, band: int, rings: int, *, in_place: bool
) -> None:
    """As many rows stay as windows have, and one more for each more in a band."""
    network = chain(over, in_place=in_place)
    plan = planned(network, band)
    assert plan.arena_bytes == WHOLE + rings
    assert problems_of_rows(network, plan) == ()
    assert is_right(network, plan)


@pytest.mark.parametrize("over", [AT_ONCE, PARTS])
def test_an_output_that_is_too_near_is_refused(over: OverlapRule) -> None:
    network = chain(over)
    plan = planned(network, 1)
    for nearer in (1, 64, over.lead_bytes + 64):
        moves = tuple(
            replace(m, out=m.out + nearer)
            if isinstance(m, Call) and m.step.layer == 1 and m.step.first == 5
            else m
            for m in plan.moves
        )
        damaged = replace(plan, moves=moves)
        assert problems_of_rows(network, damaged)
        assert not is_right(network, damaged)


def test_rows_that_are_read_later_as_well_keep_a_place_of_their_own() -> None:
    """Here by windows of three rows."""
    network = chain(AT_ONCE)
    layers = list(network.layers)
    layers[2] = Layer(reads=((2, THREE),), out=3)
    plan = planned(replace(network, layers=tuple(layers)), 1)
    assert plan.arena_bytes == WHOLE + 3 * ROW + 3 * ROW + ROW


def test_an_output_begins_within_the_row_that_a_call_reads() -> None:
    """Where it lies over an input that is there as a whole: not in front of the row."""
    window = Axis(size=96, out=48, kernel=3, stride=2)
    network = Network(
        images={0: Image(rows=96, row_bytes=288), 1: Image(rows=48, row_bytes=384)},
        layers=(Layer(reads=((0, window),), out=1, over=OverlapRule(lead_bytes=94, rows=1)),),
        inputs=frozenset({0}),
        outputs=frozenset({1}),
    )
    one = segment(network, 0, 0)
    assert one is not None
    assert one.schedules[0].distances == {(0, 1): 94}
    plan = plan_rows(network, [one])
    assert plan.arena_bytes == 96 * 288 + 96
    assert problems_of_rows(network, plan) == ()


def test_an_output_ends_with_what_is_read_at_the_latest() -> None:
    """Where its rows are longer than those that it lies over; a ring has no more."""
    three = Axis(size=11, out=8, stride=2, padding=2)
    network = Network(
        images={
            0: Image(rows=11, row_bytes=9),
            1: Image(rows=11, row_bytes=9),
            2: Image(rows=8, row_bytes=13),
            3: Image(rows=8, row_bytes=24),
        },
        layers=(
            Layer(reads=((0, Axis(size=11, out=11)),), out=1),
            Layer(reads=((1, three),), out=2, over=OverlapRule()),
            Layer(reads=((2, Axis(size=8, out=8)),), out=3),
        ),
        inputs=frozenset({0}),
        outputs=frozenset({3}),
    )
    for band in (1, 2, 3):
        one = segment(network, 0, 2, band=band)
        assert one is not None
        assert problems_of_rows(network, plan_rows(network, [one])) == ()


def test_an_output_may_be_the_end_of_another_one() -> None:
    """Where that lies over the input that is read, too."""
    three = Axis(size=10, out=11, kernel=2, padding=2, dilation=2)
    same = RowTable(size=11, rows=tuple((row, row) for row in range(11)))
    network = Network(
        images={
            0: Image(rows=10, row_bytes=36),
            1: Image(rows=11, row_bytes=56),
            2: Image(rows=11, row_bytes=112),
        },
        layers=(
            Layer(reads=((0, three),), out=1, over=OverlapRule(lead_bytes=25)),
            Layer(reads=((1, same),), out=2, at_end=True),
        ),
        inputs=frozenset({0}),
        outputs=frozenset({2}),
    )
    for band in (1, 2, 8):
        one = segment(network, 0, 1, band=band)
        assert one is not None
        assert one.merged == {1: 2}
        assert problems_of_rows(network, plan_rows(network, [one])) == ()


def parts(random: Random, count: int, *, odd: bool) -> Iterator[tuple[int, int]]:
    """Pixels of a row in parts; `odd` ones too, else a last one begins earlier."""
    begin = 0
    while begin < count:
        size = random.randint(1, count) if odd else 2 * random.randint(1, count)
        end = min(begin + size, count)
        yield (begin if odd or end - begin > 1 else begin - 1), end
        begin = end


def is_lost(columns: Axis, channels: int, distance: int, cuts: list[int]) -> bool:
    """Whether a part reads what one before it has written over."""
    written = 0
    for begin, end in zip(cuts[::2], cuts[1::2], strict=True):
        first = max(begin * columns.stride - columns.padding, 0) * channels
        if begin and distance + first < written:
            return True
        written = end * channels
    return False


@pytest.mark.parametrize("kernel", ["packed_depthwise", "packed_depthwise_strips"])
def test_a_part_reads_nothing_that_is_written(kernel: str) -> None:
    """Whatever parts a row has; with a pixel less something is lost for some."""
    random, seen = Random(3), 0  # noqa: S311  # the same each time
    for _ in range(300):
        count, at_once = random.randint(5, 24), 2 * random.randint(1, 3)
        channels, stride = 64, random.randint(1, 2)
        header = list(strips(count, at_once) if "strips" in kernel else depthwise(1, stride))
        padding = random.randint(0, 2)
        header[6:12] = count * stride, count, 3, stride, padding, 1
        source = Image(rows=9, row_bytes=count * stride * channels)
        out = Image(rows=7, row_bytes=count * channels)
        method = method_of((kernel, tuple(header)))
        (call,) = method.instructions
        assert isinstance(call, LinkedCall)
        data = ((1, struct.pack(f"<{len(header)}i", *header)),)
        over = over_of(replace(method, data=data), call, source, out)
        assert over is not None
        assert over.pixel_bytes == channels
        columns = Axis.of(tuple(header[6:12]))
        odd = "strips" not in kernel
        tried = [[at for part in parts(random, count, odd=odd) for at in part] for _ in range(99)]
        if over.lead_bytes == 0 and "strips" in kernel and count <= at_once:
            continue  # one part
        assert not any(is_lost(columns, channels, over.lead_bytes, c) for c in tried)
        if over.lead_bytes and not count % 2:
            less = over.lead_bytes - channels
            seen += any(is_lost(columns, channels, less, c) for c in tried)
    assert seen > 30


def test_other_kernels_have_no_such_outputs() -> None:
    image = Image(rows=5, row_bytes=5 * 64)
    for name, header in (
        ("packed_matrix", matrix(5)),
        ("packed_lines", matrix(5)),
        ("int4_packed_conv2d", matrix(5)),
    ):
        method = method_of((name, header))
        (call,) = method.instructions
        assert isinstance(call, LinkedCall)
        data = ((1, struct.pack(f"<{len(header)}i", *header)),)
        assert over_of(replace(method, data=data), call, image, image) is None


@pytest.mark.parametrize("band", [1, 2, 3, 4, 8])
def test_bands_end_with_the_row_that_is_needed_also_those_of_a_part(band: int) -> None:
    """Where that lies at the end of the bands of a concatenation."""
    grown = RowTable(size=12, rows=tuple((row // 2, row // 2) for row in range(24)))
    same = RowTable(size=24, rows=tuple((row, row) for row in range(24)))
    network = Network(
        images={
            0: Image(rows=12, row_bytes=64),
            1: Image(rows=24, row_bytes=64),
            2: Image(rows=24, row_bytes=128),
            3: Image(rows=24, row_bytes=32),
            4: Image(rows=24, row_bytes=64),
        },
        layers=(
            Layer(reads=((0, grown),), out=1),
            Layer(reads=((1, same), (4, same)), out=2, at_end=True),
            Layer(reads=((2, Axis(size=24, out=24, kernel=3, padding=1)),), out=3),
        ),
        inputs=frozenset({0, 4}),
        outputs=frozenset({3}),
    )
    one = segment(network, 0, 2, band=band)
    assert one is not None
    assert one.merged == {1: 2}
    assert one.rings == {2: 2 + band}
    assert problems_of_rows(network, plan_rows(network, [one])) == ()
