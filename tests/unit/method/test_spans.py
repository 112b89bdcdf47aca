"""Sets of numbers as ranges, against sets of numbers."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

from orchestrator.method.sets import cut, join, meet, touches

if TYPE_CHECKING:
    from orchestrator.method.sets import Spans


def _random(random: Random) -> Spans:
    ends = sorted(random.sample(range(40), 2 * random.randint(0, 6)))
    return tuple(zip(ends[::2], ends[1::2], strict=True))


def _numbers(spans: Spans) -> set[int]:
    assert all(low < high for low, high in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    return {number for low, high in spans for number in range(low, high)}


def test_sets_of_ranges_are_those_of_numbers() -> None:
    random = Random(1)  # noqa: S311  # the same in every run
    for _ in range(3000):
        one, other = _random(random), _random(random)
        begin, end = sorted(random.sample(range(40), 2))
        here, there = _numbers(one), _numbers(other)
        assert _numbers(meet(one, other)) == here & there
        assert _numbers(join(one, other)) == here | there
        assert _numbers(cut(one, begin, end)) == here - {*range(begin, end)}
        assert touches(one, begin, end) == bool(here & {*range(begin, end)})
