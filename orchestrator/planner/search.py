"""An exact search: whether blocks fit a capacity, section by section from below.

Time is cut into sections, the maximal sets of blocks that are live together. Each
section has a floor: all below it is taken or given up. The search picks a section whose
floor lies no higher than its neighbours' and asks what comes next there: one of the
blocks that reach no higher floor, or nothing, which gives bytes up. Every plan in which
no block can be moved down alone is met, in one way, and if any plan fits, such a one
does.

A branch ends when a section has given up more than it can spare, or when the same
floors with the same blocks left have failed before. Where no remaining block spans
two sections, both sides are solved on their own. Work is counted in nodes, so that
results are the same on every machine.

Source: sections, canonical plans and decomposition are ideas of MiniMalloc,
doi 10.1145/3623278.3624752; filling the lowest place is that of strip packing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Final

from orchestrator.planner.blocks import Sections, indices

if TYPE_CHECKING:
    from orchestrator.planner.blocks import Block

    _Steps = Generator["_Steps", bool | None, bool]
    """Asks for steps, gets what they come to, and comes to whether all blocks fit."""

_FAR = 1 << 62
"""Higher than any floor; the slack of a section with nothing left."""


class Outcome(StrEnum):
    """How a search ended."""

    FOUND = "found"
    IMPOSSIBLE = "impossible"
    GAVE_UP = "gave up"


class Pick(StrEnum):
    """Which section is looked at next."""

    FEWEST = "fewest choices"
    FAILED = "fewest choices, by how often it failed"
    LOWEST = "lowest floor, then earliest"
    TIGHT = "least slack"


class First(StrEnum):
    """Which block is tried first."""

    LARGE = "large"
    LONG = "long-lived"
    SHORT = "short-lived"
    AREA = "large and long-lived"


@dataclass(frozen=True, slots=True)
class Strategy:
    """An order of looking; the plans that exist are the same for all.

    Args:
        pick: Which section is next.
        first: Which block is tried first.
        seed: Of chance, by which blocks may come earlier or later; None: they do not.
    """

    pick: Pick
    first: First
    seed: int | None = None

    @property
    def name(self) -> str:
        """For people."""
        chance = "" if self.seed is None else f"; chance {self.seed}"
        return f"search ({self.pick}; {self.first} first{chance})"


STRATEGIES = (
    Strategy(Pick.TIGHT, First.LARGE),
    Strategy(Pick.FEWEST, First.LARGE),
    Strategy(Pick.LOWEST, First.LONG),
    Strategy(Pick.FAILED, First.SHORT),
    Strategy(Pick.FEWEST, First.LONG),
)
"""Those that together solve the public hard instances soonest; see docs/planner.md."""
# 4 times 2 times 4: 32 orders, each with a seed of its own.
RESTARTS: Final = tuple(
    Strategy(pick, first, seed)
    for seed, (_, first, pick) in enumerate(product(range(4), (First.LARGE, First.AREA), Pick))
)
"""Others, for blocks that leave room: there are many plans then, and an order that does
not soon lead to one mostly never does."""
# Chosen by hand: less stays near the orders above, which have failed by then.
_SPREAD: Final = 4
"""How much larger chance may make a block than it is, for its place in the order."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search came to; offsets are in the order of the blocks."""

    outcome: Outcome
    nodes: int
    offsets: tuple[int, ...] = ()


class _OutOfNodesError(Exception):
    pass


def search(
    blocks: Sequence[Block], *, capacity_bytes: int, strategy: Strategy, nodes: int
) -> SearchResult:
    """Look for a plan that fits a capacity.

    Args:
        blocks: Of a size above 0, in an order that does not depend on the caller's.
        capacity_bytes: What the plan may take.
        strategy: In which order to look.
        nodes: After how many states to give up.

    Returns:
        With differing alignments never `IMPOSSIBLE`: only multiples of the greatest are
        tried.
    """
    unit = max((b.alignment for b in blocks), default=1)
    run = _Search(blocks, capacity_bytes, unit, strategy, nodes)
    try:
        found = run.everything()
    except _OutOfNodesError:
        return SearchResult(Outcome.GAVE_UP, run.nodes)
    if found:
        offsets = [0] * len(blocks)
        for rank, index in enumerate(run.order):
            offsets[index] = run.offsets[rank]
        return SearchResult(Outcome.FOUND, run.nodes, tuple(offsets))
    same = all(b.alignment == unit for b in blocks)
    return SearchResult(Outcome.IMPOSSIBLE if same else Outcome.GAVE_UP, run.nodes)


def _finished(steps: _Steps) -> bool:
    """What steps come to that wait for others.

    Each block is a few steps deeper: more than Python's own stack may take.
    """
    waiting, answer = [steps], None
    while waiting:
        try:
            waiting.append(waiting[-1].send(answer))
            answer = None
        except StopIteration as end:
            waiting.pop()
            answer = end.value
    return bool(answer)


class _Search:
    """One search. Blocks are known by rank: bit `r` of a mask is the r-th to try."""

    def __init__(
        self,
        blocks: Sequence[Block],
        capacity_bytes: int,
        unit: int,
        strategy: Strategy,
        limit: int,
    ) -> None:
        spans = Sections(blocks)
        keys = [
            _key(strategy.first, last - first, blocks[i].size_bytes)
            for i, (first, last) in enumerate(spans.spans)
        ]
        if strategy.seed is not None:
            chance = Random(strategy.seed)  # noqa: S311  # not for secrets
            keys = [(k * (1 + _SPREAD * chance.random()), other) for k, other in keys]
        self.order = sorted(range(len(blocks)), key=lambda i: (keys[i], i))
        self.exact = [blocks[i].size_bytes for i in self.order]
        self.size = [-(-size // unit) * unit for size in self.exact]
        self.first = [spans.spans[i][0] for i in self.order]
        self.last = [spans.spans[i][1] for i in self.order]
        self.capacity = capacity_bytes
        self.room = -(-capacity_bytes // unit) * unit
        self.count = spans.count
        self.live, self.begin_from, self.end_by = _masks(self.first, self.last, self.count)
        self.spanning = [
            here & after for here, after in zip(self.live, self.live[1:], strict=False)
        ]
        self.offsets = [0] * len(blocks)
        # From 1 on, as they divide: the weights of constraint solvers (dom/wdeg).
        self.failures = [1] * self.count
        self.dead: set[tuple[int, int, tuple[int, ...]]] = set()
        self.nodes, self.limit = 0, limit
        self.preference = self._preference(strategy.pick)

    def everything(self) -> bool:
        """Whether all blocks fit."""
        slack = [self.room - sum(self.size[r] for r in indices(live)) for live in self.live]
        if any(free < 0 for free in slack):
            return False
        floor = [0] * self.count
        return _finished(self._solve_parts(0, (1 << len(self.size)) - 1, floor, slack))

    def _preference(self, pick: Pick) -> Callable[[int, int, int, int], tuple[float, int]]:
        """Key of a section by index, number of candidates, floor and slack."""
        failures = self.failures
        match pick:
            # Among sections with as many choices, one that may give up nothing comes first: its
            # next place is forced.
            case Pick.FEWEST:
                return lambda _t, few, _floor, slack: (2 * few + (slack > 0), 0)
            case Pick.FAILED:
                return lambda t, few, floor, _slack: (few / failures[t], floor)
            case Pick.LOWEST:
                return lambda t, _few, floor, _slack: (floor, t)
            case _:
                return lambda _t, few, _floor, slack: (slack, few)

    def _solve_parts(self, low: int, remaining: int, floor: list[int], slack: list[int]) -> _Steps:
        """Solve a range of sections, in parts between which no block is left.

        Args:
            low: First section of the range.
            remaining: Blocks that have no place yet.
            floor: Of each section of the range; taken over.
            slack: Bytes that each section can still give up; taken over.
        """
        high = low + len(floor) - 1
        spanning, parts, begin = self.spanning, [], low
        for t in range(low, high + 1):
            if t == high or not spanning[t] & remaining:
                own = remaining & self.begin_from[begin] & self.end_by[t]
                if own:
                    parts.append((begin - low, t + 1 - low, own))
                begin = t + 1
        if len(parts) == 1 and parts[0][1] - parts[0][0] == len(floor):
            return bool((yield self._solve(low, remaining, floor, slack)))
        # The tightest part is the likeliest to fail.
        parts.sort(key=lambda part: min(slack[part[0] : part[1]]))
        for begin, end, own in parts:
            part = self._solve(low + begin, own, floor[begin:end], slack[begin:end])
            if not (yield part):
                return False
        return True

    def _solve(self, low: int, remaining: int, floor: list[int], slack: list[int]) -> _Steps:
        """Solve a range of sections that hang together; see `_solve_parts`."""
        states = []
        while (found := self._pick_section(low, remaining, floor, slack)) is not None:
            state = (low, remaining, tuple(floor))
            # Slack need not be in the state: it follows from floors and blocks that are left.
            if state in self.dead:
                break
            states.append(state)
            self.nodes += 1
            if self.nodes > self.limit:
                raise _OutOfNodesError
            at, candidates, near = found
            if (yield self._place(low, remaining, floor, slack, (at, candidates))):
                return True
            # None of them: give up the bytes up to where another block can lie.
            following = self._next_floor(low, remaining & near, floor, at)
            slack[at] -= following - floor[at]
            if slack[at] < 0:
                break
            floor[at] = following
        self.dead.update(states)
        return False

    def _place(
        self, low: int, remaining: int, floor: list[int], slack: list[int], choice: tuple[int, int]
    ) -> _Steps:
        """Try each candidate at the floor of a section: `choice` is both."""
        at, candidates = choice
        height = floor[at]
        tried = set()
        for rank in indices(candidates):
            first, last = self.first[rank], self.last[rank]
            # Blocks of the same life and size are the same choice.
            alike = (first, last, self.exact[rank])
            if alike in tried or height + self.exact[rank] > self.capacity:
                continue
            tried.add(alike)
            above = floor[:]
            end = height + self.size[rank]
            above[first - low : last + 1 - low] = [end] * (last + 1 - first)
            self.offsets[rank] = height
            if (yield self._solve_parts(low, remaining ^ 1 << rank, above, slack[:])):
                return True
        return False

    def _pick_section(
        self, low: int, remaining: int, floor: list[int], slack: list[int]
    ) -> tuple[int, int, int] | None:
        """Raise floors at which no block can lie, then pick a section.

        Returns:
            Section in the range, its candidates, and all blocks that are live in its
            plateau; None if a section cannot give up as much as it must.
        """
        while True:
            best: tuple[int, int, tuple[int, int]] | None = None
            best_key, raised = (float(_FAR), 0), False
            for begin, end, wall in _plateaus(floor):
                inside = remaining & self.begin_from[low + begin] & self.end_by[low + end - 1]
                for t in range(begin, end):
                    candidates = inside & self.live[low + t]
                    if not candidates:
                        if not self._raise(low, remaining, floor, slack, (t, wall)):
                            return None
                        raised = True
                    elif not raised:
                        key = self.preference(low + t, candidates.bit_count(), floor[t], slack[t])
                        if key < best_key:
                            best, best_key = (t, candidates, (begin, end)), key
            if not raised and best:
                near = 0
                for live in self.live[low + best[2][0] : low + best[2][1]]:
                    near |= live
                return best[0], best[1], near

    def _raise(
        self, low: int, remaining: int, floor: list[int], slack: list[int], target: tuple[int, int]
    ) -> bool:
        """Raise a section's floor to its wall; whether it can give up as much."""
        t, wall = target
        if not remaining & self.live[low + t]:
            # Nothing is left here: it can give up whatever a neighbour wants, without end.
            slack[t] = _FAR << 1
        slack[t] -= wall - floor[t]
        floor[t] = wall
        if slack[t] < 0:
            self.failures[low + t] += 1
        return slack[t] >= 0

    def _next_floor(self, low: int, near: int, floor: list[int], at: int) -> int:
        """Lowest height above a section's floor at which a block of it can lie.

        A block lies on its highest floor or on a remaining block; one on which it
        can lie inside the plateau reaches into the plateau: it is `near`.
        """
        height, following = floor[at], _FAR
        here = self.live[low + at]
        for rank in indices(near):
            lowest = max(floor[self.first[rank] - low : self.last[rank] + 1 - low])
            following = min(following, lowest + self.size[rank])
            if lowest > height and here >> rank & 1:
                following = min(following, lowest)
        return following


def _plateaus(floor: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Ranges of equal floors between higher ones, and the lower of these two walls.

    Floors of a range may be changed once it has been given.
    """
    count = len(floor)
    begin, before = 0, _FAR
    while begin < count:
        height, end = floor[begin], begin + 1
        while end < count and floor[end] == height:
            end += 1
        wall = min(before, floor[end] if end < count else _FAR)
        if wall > height:
            yield begin, end, wall
        before, begin = height, end


def _key(first: First, length: int, size: int) -> tuple[float, int]:
    match first:
        case First.AREA:
            return -size * (length + 1), -size
        case First.LARGE:
            return -size, -length
        case First.LONG:
            return -length, -size
        case _:
            return length, -size


def _masks(
    first: Sequence[int], last: Sequence[int], count: int
) -> tuple[list[int], list[int], list[int]]:
    """Per section: blocks live in it, that begin in it or later, that end by it."""
    live, begins, ends = [0] * count, [0] * count, [0] * count
    for rank, (begin, end) in enumerate(zip(first, last, strict=True)):
        begins[begin] |= 1 << rank
        ends[end] |= 1 << rank
        for t in range(begin, end + 1):
            live[t] |= 1 << rank
    for t in range(1, count):
        ends[t] |= ends[t - 1]
        begins[-t - 1] |= begins[-t]
    return live, begins, ends
