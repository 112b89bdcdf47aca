"""Where to cut a network into segments: the least peak, then the least cost.

Both are exact for the given order of layers, by dynamic programming over cut points.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Final

from orchestrator.method.rows.plan import RowPlan, plan_rows
from orchestrator.method.rows.segment import Segment, narrowed, segment

if TYPE_CHECKING:
    from orchestrator.method.rows.network import Network


_SHORT: Final = 3
"""Layers of segments that give a first limit."""
_BANDS: Final = (2, 4, 8, 16)
"""Rows per call that are tried where there is room."""
_TRIES: Final = 6
"""Segments that are tried by rows to make room."""
_MORE: Final = 3
"""Limits that are tried where blocks find no room in the least one."""


class Segments:
    """The segments of a network that may be of use, each made once.

    Args:
        network: The network.
        is_fused: Whether they may have several layers.
    """

    def __init__(self, network: Network, *, is_fused: bool = True) -> None:
        self._network = network
        at_once = [[*self._at_once(at)] for at in range(len(network.layers))]
        self._ending = at_once
        self.whole_bytes = self.least_peak()
        for most in (_SHORT, len(network.layers)) if is_fused else ():
            limit = self.least_peak()
            self._ending = [
                [*self._of_rows(last, most, limit), *found] for last, found in enumerate(at_once)
            ]

    def _at_once(self, number: int) -> Iterator[Segment]:
        """A layer in as few calls as may be, also in the least scratch memory."""
        band = self._network.layers[number].most_rows or 0
        one = segment(self._network, number, number, band=band)
        if one is not None:
            yield one
            few = narrowed(self._network, one)
            if few is not None:
                yield few

    def _of_rows(self, last: int, most: int, limit: float) -> Iterator[Segment]:
        """Segments by rows that end with a layer and need no more than a limit."""
        for first in range(last, max(last - most, -1), -1):
            one = segment(self._network, first, last)
            if one is None:
                return
            for way in (one, narrowed(self._network, one)):
                if way is not None and way.peak_bytes <= limit:
                    yield way
            # Segments that begin earlier have these rings as well.
            if one.ring_bytes(self._network) > limit:
                return

    def least_peak(self) -> float:
        """The least limit for which there are cuts; infinite if there are none."""
        best: list[float] = [0]
        for ending in self._ending:
            peaks = [max(best[s.first], s.peak_bytes) for s in ending]
            best.append(min(peaks, default=inf))
        return best[-1]

    def least_limit(self, most_setup: float) -> float:
        """The least limit for which there are cuts of no more than some cost.

        The largest of all if that is still too much; infinite if there are none.

        Args:
            most_setup: Instructions that computing by rows may cost.
        """
        limits = self.limits()
        if limits[0] == inf:
            return inf
        at = self._first_cheap(limits, most_setup)
        if 0 < at < len(limits):
            # Below it, wider bands of the same segments may be as cheap.
            wider = self._limits_between(limits[at - 1], limits[at])
            return [*wider, limits[at]][self._first_cheap(wider, most_setup)]
        return limits[min(at, len(limits) - 1)]

    def _first_cheap(self, limits: Sequence[float], most_setup: float) -> int:
        """Which of some limits, the least first, is cheap enough; their count if none.

        The larger a limit, the fewer calls.
        """
        return bisect_left(limits, x=True, key=lambda b: self._setup(b) <= most_setup)

    def _limits_between(self, low: float, high: float) -> list[float]:
        """What the segments for a limit need in wider bands, if less than another."""
        peaks = {
            wider.peak_bytes
            for one in self.cuts(low)
            if len(one.ways[0].steps) > 1
            for band in _BANDS
            if (wider := self._in_bands(one, band))
        }
        return sorted(peak for peak in peaks if low < peak < high)

    def limits(self) -> list[float]:
        """All limits that differ in which segments there may be, the least first."""
        low = self.least_peak()
        peaks = {s.peak_bytes for found in self._ending for s in found}
        return [low, *sorted(peak for peak in peaks if peak > low)]

    def _setup(self, limit_bytes: float) -> int:
        return sum(one.setup for one in self.cuts(limit_bytes))

    def cuts(self, limit_bytes: float) -> tuple[Segment, ...]:
        """Segments that each need no more than a limit, at the least cost."""
        best: list[tuple[float, Segment | None]] = [(0, None)]
        for ending in self._ending:
            ways = [
                (best[s.first][0] + s.setup, s.last - s.first, s)
                for s in ending
                if s.peak_bytes <= limit_bytes
            ]
            cost, _, chosen = min(ways, key=lambda way: way[:2], default=(inf, 0, None))
            best.append((cost, chosen))
        found = reversed([*self._back(best)])
        return tuple(self._widest(one, limit_bytes) for one in found)

    def smallest(self, limit_bytes: float, most_setup: float = inf) -> RowPlan:
        """The smallest plan for a limit, or for one of the next ones if that is less.

        Args:
            limit_bytes: As for `cuts`.
            most_setup: Instructions that computing by rows may cost.
        """
        best = self.plan(limit_bytes, most_setup)
        for limit in [b for b in self.limits() if b > limit_bytes][:_MORE]:
            if limit >= best.arena_bytes:
                break
            found = self.plan(limit, most_setup)
            if found.arena_bytes < best.arena_bytes:
                best = found
        return best

    def plan(self, limit_bytes: float, most_setup: float = inf) -> RowPlan:
        """A plan of the cuts for a limit, about as large as that.

        Where blocks find no room there, layers that run at once go by rows instead,
        those that need most first: then their output may lie over their input.

        Args:
            limit_bytes: As for `cuts`.
            most_setup: Instructions that computing by rows may cost.
        """
        cuts = [*self.cuts(limit_bytes)]
        best = plan_rows(self._network, cuts)
        largest = sorted(range(len(cuts)), key=lambda i: -cuts[i].peak_bytes)
        for number in largest[:_TRIES]:
            if best.arena_bytes <= limit_bytes:
                break
            one = self._over_input(cuts[number], limit_bytes)
            others = [*cuts[:number], one or cuts[number], *cuts[number + 1 :]]
            if one is None or sum(s.setup for s in others) > most_setup:
                continue
            found = plan_rows(self._network, others)
            if found.arena_bytes < best.arena_bytes:
                best, cuts = found, others
        return best

    def _over_input(self, one: Segment, limit: float) -> Segment | None:
        """A segment of one step by rows, if its output may then lie over its input."""
        for band in (*reversed(_BANDS), 1) if len(one.ways[0].steps) == 1 else ():
            found = segment(self._network, one.first, one.last, band=band, descends=True)
            if found is None:
                return None
            if found.peak_bytes <= limit and any(w.distances for w in found.ways):
                return found
        return None

    def _back(self, best: list[tuple[float, Segment | None]]) -> Iterator[Segment]:
        at = len(self._ending)
        while at:
            chosen = best[at][1]
            if chosen is None:
                raise ValueError(at)
            yield chosen
            at = chosen.first

    def _widest(self, one: Segment, limit: float) -> Segment:
        """The segment in bands that have room, in both directions.

        The widest, but for kernels for single rows, which may take less.
        """
        if len(one.ways[0].steps) == 1:
            return one
        found = one
        for band in (1, *_BANDS):
            wider = self._in_bands(one, band, descends=True)
            if wider is None or wider.peak_bytes > limit:
                break
            if band == 1 or wider.setup < found.setup:
                found = wider
        return found

    def _in_bands(self, one: Segment, band: int, *, descends: bool = False) -> Segment | None:
        """The segment in bands of other rows, in as much scratch memory."""
        found = segment(self._network, one.first, one.last, band=band, descends=descends)
        if found is None or not one.narrow:
            return found
        return narrowed(self._network, found) or found
