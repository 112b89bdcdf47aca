"""Some layers in a row, computed row by row on demand of the last ones.

An image between two of them is a ring of rows: a row is made when a layer after it
needs it, and is kept until no layer needs it any more. So skips of residual nets become
rings as long as the deeper path lags behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Final

from orchestrator.method.rows.schedule import Schedule, Step
from orchestrator.method.rows.slides import kept_rows
from orchestrator.method.rows.together import images_over, merged_images, places_of, rooted
from orchestrator.method.rows.ways import Way, at_once, way_of
from orchestrator.planner.blocks import aligned

if TYPE_CHECKING:
    from orchestrator.method.rows.network import Network


_STEP: Final = 120
"""Instructions that a step takes beside its call, about."""
_MOVED: Final = 3
"""Bytes that one instruction moves in a ring, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Layers `first` to `last` (inclusive), and what they need.

    Args:
        first: First layer.
        last: Last layer.
        ways: To compute it.
        rings: By image between layers: rows that are kept at most, in any way.
        merged: By image whose rows lie where those of another one come: that image,
            a ring or a whole one. It has no memory of its own.
        over: By image whose rows lie over those of the ring that they are made of: that
            ring. It has no memory of its own, either.
        places: All rings, those that take turns in one place together.
        whole: Images that exist as a whole while the segment runs.
        scratch_bytes: Of the call that needs most.
        peak_bytes: A lower bound on the arena while the segment runs.
        setup: Instructions that computing by rows costs, about.
        narrow: Whether calls that would need more scratch memory than others must
            compute few pixels at once.
    """

    first: int
    last: int
    ways: tuple[Way, ...]
    rings: Mapping[int, int]
    merged: Mapping[int, int]
    over: Mapping[int, int]
    places: tuple[tuple[int, ...], ...]
    whole: frozenset[int]
    scratch_bytes: int
    peak_bytes: int
    setup: int
    narrow: bool = False

    def lead(self, network: Network, image: int) -> int:
        """Bytes between an output and rows of a ring that it lies over, at least."""
        over = network.layers[network.born[image]].over
        return over.lead(is_few=self.narrow) if over else 0

    def leads(self, network: Network) -> dict[int, int]:
        """By ring: bytes in front of it, for what lies over its rows."""
        found: dict[int, int] = {}
        for image, ring in self.over.items():
            found[ring] = max(found.get(ring, 0), self.lead(network, image))
        return found

    def place_bytes(self, network: Network, place: Sequence[int]) -> int:
        """Of the place of some rings that take turns."""
        leads = self.leads(network)
        return max(leads.get(i, 0) + self.rings[i] * network.images[i].row_bytes for i in place)

    def ring_bytes(self, network: Network) -> int:
        """Of all places of rings together."""
        return sum(aligned(self.place_bytes(network, place)) for place in self.places)


def segment(
    network: Network, first: int, last: int, *, band: int = 1, descends: bool = False
) -> Segment | None:
    """The layers of a segment, computed in bands of some rows; None if that cannot be.

    Rows that the caller gives come from the first to the last, and are never whole.

    Args:
        network: The network.
        first: First layer.
        last: Last layer, inclusive.
        band: Rows that each call computes at most; 0: one call for each layer.
        descends: Whether it may also begin with the last rows, with the same rings.
    """
    layers = network.layers[first : last + 1]
    by_rows = band > 0 and all(layer.by_rows for layer in layers)
    if not by_rows and first != last:
        return None
    inner = {layer.out for layer in layers if network.dies[layer.out] <= last}
    given = [layer.out for layer in layers if layer.given]
    if not (by_rows and inner.issuperset(given)) and given:
        return None  # it would be whole
    whole = network.whole(first, last) - inner
    merged = merged_images(network, first, last, inner) if by_rows else {}
    rings, over = dict.fromkeys(inner - merged.keys(), 1), dict[int, int]()
    if by_rows:
        steps = Schedule(network, first, last, band).steps
        over = images_over(network, rings, merged, steps)
        rings = dict.fromkeys(rings.keys() - {merged.get(image, image) for image in over}, 1)
        merged = rooted(merged, over)
        ways: tuple[Way, ...] = (way_of(network, steps, rings, merged, over),)
        if descends and not given and not over:
            larger = {**rings}
            steps = Schedule(network, first, last, band, descends=True).steps
            way = way_of(network, steps, larger, merged, over, descends=True)
            ways += (way,) if larger == rings else ()
    else:
        ways = (at_once(network, first),)
    scratch = _scratch(network, ways[0])
    places = places_of(network, rings, merged, over, ways)
    found = Segment(
        first=first,
        last=last,
        ways=ways,
        rings=rings,
        merged=merged,
        over=over,
        places=places,
        whole=whole,
        scratch_bytes=scratch,
        peak_bytes=_peak(network, whole, ways) + aligned(scratch),
        setup=sum(_cost(network, step, scratch) for step in ways[0].steps)
        + _STEP * (len(ways[0].steps) - len(layers))
        + _cost_of_slides(network, ways[0], rings, merged)
        - sum(layer.whole for layer in layers if not layer.again),
    )
    return replace(found, peak_bytes=found.peak_bytes + found.ring_bytes(network))


def narrowed(network: Network, one: Segment) -> Segment | None:
    """The segment in the least scratch memory, if that is worth its price.

    It has to save no less of the memory than it takes more of the instructions.
    """
    least = _scratch(network, one.ways[0], 0)
    few = replace(one, scratch_bytes=least, narrow=True)
    saved = aligned(one.scratch_bytes) - aligned(least)
    saved -= few.ring_bytes(network) - one.ring_bytes(network)
    steps = one.ways[0].steps
    more = sum(
        _cost(network, step, least) - _cost(network, step, one.scratch_bytes) for step in steps
    )
    if saved * network.whole_cost <= more * one.peak_bytes or saved <= 0:
        return None
    return replace(few, peak_bytes=one.peak_bytes - saved, setup=one.setup + more)


def _scratch(network: Network, way: Way, room_bytes: float = inf) -> int:
    """Scratch memory of the steps, in a room as far as that is possible."""
    return max(
        network.scratch_of(step.layer, step.last - step.first + 1, room_bytes) for step in way.steps
    )


def _cost(network: Network, step: Step, room_bytes: int) -> int:
    """Instructions of a step, with a room for scratch memory."""
    layer = network.layers[step.layer]
    rows, count = step.last - step.first + 1, network.images[layer.out].rows
    few = network.few_of(step.layer, rows, room_bytes)
    if layer.accumulates:
        ((low, high),) = step.reads
        rows = high - low + 1
    elif rows == count and few is None:
        return layer.whole
    return sum(cost.of(rows) for cost in (few.costs if few else layer.costs))


def _cost_of_slides(
    network: Network, way: Way, rings: Mapping[int, int], merged: Mapping[int, int]
) -> int:
    """Instructions of moves within rings."""
    total = 0
    found = kept_rows(network, rings, merged, way)
    for step, kept in zip(way.steps, found, strict=True):
        if kept is not None and kept.rows:
            out = network.layers[step.layer].out
            size = network.images[merged.get(out, out)].row_bytes
            total += _STEP + kept.rows * size // _MOVED
    return total


def _peak(network: Network, whole: frozenset[int], ways: Sequence[Way]) -> int:
    """Bytes of whole images, of which one pair may share memory."""
    sizes = {i: aligned(network.images[i].size_bytes) for i in whole}
    saved = 0
    for way in ways:
        for (above, below), distance in way.distances.items():
            together = max(aligned(distance) + sizes[above], sizes[below])
            saved = max(saved, sizes[above] + sizes[below] - together)
    return sum(sizes.values()) - saved
