"""Plans between the fastest and the smallest: none is worse than another."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from random import Random
from xml.etree import ElementTree as ET

import pytest

from orchestrator.method.rows.adapt import Choice, choices_in
from orchestrator.method.rows.extracted import Segments
from orchestrator.method.rows.network import Layer, Network
from orchestrator.method.rows.plan import plan_rows
from orchestrator.method.windows import Axis, Image
from orchestrator.report.pictures import choices_svg
from tests.unit.method.rows.networks import random_network


@pytest.mark.parametrize("seed", range(12))
def test_less_memory_is_slower(seed: int) -> None:
    network = random_network(Random(seed))  # noqa: S311  # the same each time
    choices = choices_in(network)
    assert choices
    for fast, slow in pairwise(choices):
        assert fast.arena_bytes > slow.arena_bytes
        assert fast.slowdown < slow.slowdown
    segments = Segments(network)
    smallest = plan_rows(network, segments.cuts(segments.least_peak()))
    assert choices[-1].arena_bytes <= smallest.arena_bytes
    assert choices[0].slowdown <= 0


def test_a_picture_has_a_dot_for_each() -> None:
    choices = [
        Choice(arena_bytes=4000, slowdown=0.0, calls=9),
        Choice(arena_bytes=1000, slowdown=0.125, calls=70),
    ]
    root = ET.fromstring(choices_svg("net <forward>", choices))  # noqa: S314
    titles = [e.text for e in root.iter() if e.tag.endswith("title")]
    assert titles == ["4,000 bytes, +0.0 %, 9 calls", "1,000 bytes, +12.5 %, 70 calls"]
    assert "net <forward>" in [e.text for e in root.iter()]


@pytest.mark.parametrize("seed", range(40))
def test_rows_cost_no_more_than_they_may(seed: int) -> None:
    """The least limit for a cost keeps to it, unless nothing is as cheap."""
    segments = Segments(random_network(Random(seed)))  # noqa: S311  # the same
    limits = segments.limits()
    last = limits[0]
    for most in (5000, 1000, 300, 0):
        limit = segments.least_limit(most)
        cost = sum(one.setup for one in segments.cuts(limit))
        assert cost <= most or limit == limits[-1]
        assert limits[0] <= last <= limit
        last = limit


def test_no_limit_suits_rows_that_a_layer_needs_at_once() -> None:
    network = Network(
        images={0: Image(rows=4, row_bytes=8), 1: Image(rows=1, row_bytes=8)},
        layers=(
            Layer(reads=(), out=0, given=2),
            Layer(reads=((0, Axis(size=4, out=1, kernel=4)),), out=1, by_rows=False),
        ),
        inputs=frozenset(),
        outputs=frozenset({1}),
    )
    assert Segments(network).least_limit(inf) == inf
    assert not choices_in(network)
