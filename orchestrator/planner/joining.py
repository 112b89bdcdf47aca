"""A search for plans without an unused byte, in which blocks are joined beforehand.

Where all sections are full, the blocks that end at a moment and those that begin there
take the same bytes. If some that end are as large together as some that begin, they
most likely take over each other's bytes. Then the moment can be parted into two: for
these blocks and for the others. Two joins become possible that leave fewer blocks:

- one block ends at a moment and one of the same size begins: they lie at one offset;
- blocks begin at the same moment and end at the same moment: they are stacked.

Every plan of the joined blocks is one of the blocks themselves, but a join can be
wrong: sums may be equal by accident. So each has a risk, the number of accidents to be
expected. The least risky joins come first, as each that is right makes others less
risky; in between, the search tries what there is. Where it shows that the joined blocks
do not fit, all begins anew, with the risks in another order.

Chance comes from a generator with fixed seeds, and work is limited in nodes: plans are
the same everywhere.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations, count
from math import comb
from random import Random
from typing import TYPE_CHECKING, Final

from orchestrator.planner.blocks import Block
from orchestrator.planner.search import STRATEGIES, Outcome, search
from orchestrator.planner.sections import Sections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_RISKS: Final = (0.001, 0.004, 0.016, 0.06, 0.25, 1.0, 4.0)
"""Joins below the first are made, then those below the next, and so on."""
_NODES: Final = (4, 1, 1, 1)
"""Nodes that each strategy may visit between joins, for each block that is left.

They take turns: few leave time for more beginnings."""
_SUMS: Final = 6_000
"""How many sums are compared at most for groups of certain lengths."""


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """Joined blocks.

    Args:
        first: Section in which it begins.
        last: Section in which it ends, inclusive.
        size: In bytes.
        places: Index of each block and its offset in the piece.
    """

    first: int
    last: int
    size: int
    places: tuple[tuple[int, int], ...]


def search_joined(
    blocks: Sequence[Block], *, capacity_bytes: int, nodes: int
) -> tuple[int, ...] | None:
    """Offsets of a plan that fits a capacity, if one is found.

    Args:
        blocks: Of a size above 0, in an order that does not depend on the caller's.
        capacity_bytes: What the plan may take; nothing is found unless the blocks fill
            it all the time.
        nodes: When to give up: states that are looked at, fewer the fewer blocks are
            left, and blocks that are joined.
    """
    unit = max(b.alignment for b in blocks)
    start = [
        _Piece(b.first, b.last, -(-b.size_bytes // unit) * unit, ((i, 0),))
        for i, b in enumerate(blocks)
    ]
    start, live = _by_section(start)
    if any(size != capacity_bytes for size in live):
        return None
    for seed in count():
        random, pieces = Random(seed), start  # noqa: S311  # not for secrets
        for risk in _RISKS:
            before = len(pieces)
            pieces = _Joining(unit, risk, random).join(pieces)
            nodes -= before
            if nodes < 0:
                return None
            if len(pieces) == before and risk > _RISKS[0]:
                continue
            found, visited = _search(
                pieces,
                capacity_bytes,
                min(nodes, _NODES[seed % len(_NODES)] * len(pieces)),
            )
            nodes -= visited * len(pieces) // len(blocks)
            if found:
                return found
            if found is not None:
                break
    return None


def _search(
    pieces: Sequence[_Piece], capacity_bytes: int, nodes: int
) -> tuple[tuple[int, ...] | None, int]:
    """Offsets of the blocks; () if the pieces cannot fit, None if it gave up."""
    blocks = [
        Block(name="", first=p.first, last=p.last, size_bytes=p.size, alignment=1)
        for p in pieces
    ]
    visited = 0
    for strategy in STRATEGIES:
        found = search(
            blocks, capacity_bytes=capacity_bytes, strategy=strategy, nodes=nodes
        )
        visited += found.nodes
        if found.outcome is Outcome.FOUND:
            offsets = {
                index: base + offset
                for piece, base in zip(pieces, found.offsets, strict=True)
                for index, offset in piece.places
            }
            return tuple(offsets[i] for i in range(len(offsets))), visited
        if found.outcome is Outcome.IMPOSSIBLE:
            return (), visited
    return None, visited


def _by_section(pieces: Sequence[_Piece]) -> tuple[list[_Piece], list[int]]:
    """Pieces with sections as times, and the bytes that are live in each."""
    spans = Sections(pieces)
    live = [0] * spans.count
    found = []
    for piece, (first, last) in zip(pieces, spans.spans, strict=True):
        found.append(_Piece(first, last, piece.size, piece.places))
        for t in range(first, last + 1):
            live[t] += piece.size
    return found, live


def _at(
    pieces: Iterable[_Piece], section: Callable[[_Piece], int]
) -> defaultdict[int, list[_Piece]]:
    found: defaultdict[int, list[_Piece]] = defaultdict(list)
    for piece in pieces:
        found[section(piece)].append(piece)
    return found


class _Joining:
    """Joins up to a risk. All sections of the pieces are full."""

    def __init__(self, unit: int, risk: float, random: Random) -> None:
        self._unit = unit
        self._risk = risk
        self._random = random

    def join(self, pieces: list[_Piece]) -> list[_Piece]:
        """Join until nothing changes."""
        while True:
            before = len(pieces)
            pieces = _chained(self._stacked(self._parted(pieces)))
            if len(pieces) == before:
                return pieces

    def _accepts(self, risk: float) -> bool:
        return risk * (1 / 3, 1, 3)[int(3 * self._random.random())] < self._risk

    def _parted(self, pieces: Sequence[_Piece]) -> list[_Piece]:
        """Part each moment into one per group of blocks that probably swap bytes."""
        pieces, live = _by_section(pieces)
        ends, begins = _at(pieces, lambda p: p.last), _at(pieces, lambda p: p.first)
        first, last = dict.fromkeys(begins[0], 0), dict[_Piece, int]()
        now = 0
        for t in range(len(live) - 1):
            for ending, beginning in self._groups(ends[t], begins[t + 1]):
                last |= dict.fromkeys(ending, now)
                now += 1
                first |= dict.fromkeys(beginning, now)
        last |= dict.fromkeys(ends[len(live) - 1], now)
        return [_Piece(first[p], last[p], p.size, p.places) for p in pieces]

    def _groups(
        self, ends: Iterable[_Piece], begins: Iterable[_Piece]
    ) -> list[tuple[tuple[_Piece, ...], tuple[_Piece, ...]]]:
        """Groups of equal sums, and what is left."""
        before = sorted(ends, key=lambda _: self._random.random())
        after = sorted(begins, key=lambda _: self._random.random())
        groups = []
        while found := self._group(before, after):
            groups.append(found)
            before = [p for p in before if p not in found[0]]
            after = [p for p in after if p not in found[1]]
        return [*groups, (tuple(before), tuple(after))]

    def _group(
        self, before: Sequence[_Piece], after: Sequence[_Piece]
    ) -> tuple[tuple[_Piece, ...], tuple[_Piece, ...]] | None:
        """One group, not the larger half of the blocks; the least risky there is."""
        values = sum(p.size for p in before) // self._unit
        lengths = []
        for i in range(1, len(before)):
            for j in range(1, len(after)):
                if 2 * (i + j) > len(before) + len(after):
                    break
                left, right = comb(len(before), i), comb(len(after), j)
                risk = left * right / values
                if left + right <= _SUMS and self._accepts(risk):
                    lengths.append((risk, i, j))
        for _, i, j in sorted(lengths):
            sums: dict[int, tuple[_Piece, ...]] = {}
            for some in combinations(before, i):
                sums.setdefault(sum(p.size for p in some), some)
            for others in combinations(after, j):
                if found := sums.get(sum(p.size for p in others)):
                    return found, others
        return None

    def _stacked(self, pieces: Sequence[_Piece]) -> list[_Piece]:
        """Stack blocks of one lifetime.

        They are probably in one group at both ends; at the border of time they are.
        """
        moments = max(p.last for p in pieces)
        begins, ends = Counter(p.first for p in pieces), Counter(p.last for p in pieces)
        alike: dict[tuple[int, int], list[_Piece]] = {}
        for piece in pieces:
            alike.setdefault((piece.first, piece.last), []).append(piece)
        stacked = []
        for (first, last), group in alike.items():
            apart = (first > 0) * (begins[first] - 2) * (last < moments)
            risk = apart * (ends[last] - 2) / (moments + 1)
            if len(group) == 1 or not self._accepts(risk):
                stacked += group
                continue
            places: list[tuple[int, int]] = []
            size = 0
            for piece in group:
                places += [(index, size + offset) for index, offset in piece.places]
                size += piece.size
            stacked.append(_Piece(first, last, size, tuple(places)))
        return stacked


def _chained(pieces: Sequence[_Piece]) -> list[_Piece]:
    """Join the only block that ends at a moment to the only one that begins there."""
    ends, begins = _at(pieces, lambda p: p.last), _at(pieces, lambda p: p.first)
    for t in sorted(ends):
        if len(ends[t]) == len(begins[t + 1]) == 1:
            one, other = ends.pop(t)[0], begins.pop(t + 1)[0]
            both = _Piece(one.first, other.last, one.size, one.places + other.places)
            begins[one.first].remove(one)
            begins[one.first].append(both)
            ends[other.last].remove(other)
            ends[other.last].append(both)
    return [piece for t in sorted(begins) for piece in begins[t]]
