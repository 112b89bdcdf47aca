"""Some layers in a row, computed row by row on demand of the last ones.

An image between two of them is a ring of rows: a row is made when a layer after it
needs it, and is kept until no layer needs it any more. So skips of residual nets become
rings as long as the deeper path lags behind. Rings whose rows are all read by the very
next step take turns in one place.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrator.planner.blocks import aligned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from orchestrator.method.rows.network import Network


_STEP: Final = 120
"""Instructions that a step takes beside its call, about."""
_MOVED: Final = 3
"""Bytes that one instruction moves in a ring, about."""


class Step(NamedTuple):
    """A call for some rows of an output.

    Args:
        layer: Number of the layer.
        first: First row.
        last: Last row, inclusive.
        reads: For each image that the layer reads: first and last row, inclusive.
    """

    layer: int
    first: int
    last: int
    reads: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The calls of a segment in one direction.

    Args:
        descends: Whether it begins with the last rows.
        steps: In the order in which they run.
        distances: By (above, below), an input and an output or the other way round:
            bytes by which the one above has to begin behind the one below, so that
            both may share memory; 0 if they have to begin at the same byte.
    """

    descends: bool
    steps: tuple[Step, ...]
    distances: Mapping[tuple[int, int], int]


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
    places: tuple[tuple[int, ...], ...]
    whole: frozenset[int]
    scratch_bytes: int
    peak_bytes: int
    setup: int
    narrow: bool = False


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
    merged = _merged(network, first, last, inner) if by_rows else {}
    rings = dict.fromkeys(inner - merged.keys(), 1)
    if by_rows:
        ways: tuple[Way, ...] = (
            _way(network, first, last, band, rings, merged=merged),
        )
        if descends and not given:
            larger = {**rings}
            way = _way(network, first, last, band, larger, merged=merged, descends=True)
            ways += (way,) if larger == rings else ()
    else:
        ways = (_at_once(network, first),)
    scratch = _scratch(network, ways[0])
    places = _places(network, rings, merged, ways)
    return Segment(
        first=first,
        last=last,
        ways=ways,
        rings=rings,
        merged=merged,
        places=places,
        whole=whole,
        scratch_bytes=scratch,
        peak_bytes=_peak(network, whole, ways)
        + ring_bytes(network, rings, places)
        + aligned(scratch),
        setup=sum(_cost(network, step, scratch) for step in ways[0].steps)
        + _STEP * (len(ways[0].steps) - len(layers))
        + _cost_of_slides(network, ways[0], rings, merged)
        - sum(layer.whole for layer in layers if not layer.again),
    )


def narrowed(network: Network, one: Segment) -> Segment | None:
    """The segment in the least scratch memory, if that is worth its price.

    It has to save no less of the memory than it takes more of the instructions.
    """
    least = _scratch(network, one.ways[0], 0)
    saved = aligned(one.scratch_bytes) - aligned(least)
    steps = one.ways[0].steps
    more = sum(
        _cost(network, step, least) - _cost(network, step, one.scratch_bytes)
        for step in steps
    )
    if saved * network.whole_cost <= more * one.peak_bytes or not saved:
        return None
    return replace(
        one,
        scratch_bytes=least,
        peak_bytes=one.peak_bytes - saved,
        setup=one.setup + more,
        narrow=True,
    )


def _scratch(network: Network, way: Way, room_bytes: float = inf) -> int:
    """Scratch memory of the steps, in a room as far as that is possible."""
    return max(
        network.scratch_of(step.layer, step.last - step.first + 1, room_bytes)
        for step in way.steps
    )


def _merged(network: Network, first: int, last: int, inner: set[int]) -> dict[int, int]:
    """Images that only a layer reads which may write over them: where they lie.

    Such a layer asks for its rows one band at a time, so that nothing reads its output
    between the calls for a band of both. Smaller ones are at the end of such a band.
    """
    readers = Counter(image for layer in network.layers for image, _ in layer.reads)
    found: dict[int, int] = {}
    for number in range(last, first - 1, -1):
        out = network.layers[number].out
        for image in network.may_hold(number):
            if (
                image in inner
                and readers[image] == 1
                and not network.layers[network.born[image]].accumulates
                and not network.layers[network.born[image]].given
            ):
                found[image] = found.get(out, out)
                break
    return found


def ring_bytes(
    network: Network, rings: Mapping[int, int], places: Sequence[tuple[int, ...]]
) -> int:
    """Of all places of rings together."""
    images = network.images
    return sum(
        max(aligned(rings[image] * images[image].row_bytes) for image in place)
        for place in places
    )


def _places(
    network: Network,
    rings: Mapping[int, int],
    merged: Mapping[int, int],
    ways: Sequence[Way],
) -> tuple[tuple[int, ...], ...]:
    """The rings, those that take turns together: the largest ones first."""
    makers = {image: network.layers[network.born[image]] for image in rings}
    short = {i for i, of in makers.items() if not (of.given or of.accumulates)}
    apart: set[tuple[int, int]] = set()  # read and written by one step
    for way in ways:
        before: Step | None = None
        for step in way.steps:
            layer = network.layers[step.layer]
            out = merged.get(layer.out, layer.out)
            for (read, _), rows in zip(layer.reads, step.reads, strict=True):
                image = merged.get(read, read)
                if image not in short:
                    continue
                apart |= {(image, out), (out, image)} if image != out else set()
                if not _is_made_by(network, read, rows, before):
                    short.discard(image)
            before = step
    images = network.images
    order = sorted(short, key=lambda i: (-rings[i] * images[i].row_bytes, i))
    places: list[tuple[int, ...]] = []
    for image in order:
        at = next(
            (
                number
                for number, place in enumerate(places)
                if not any((image, other) in apart for other in place)
            ),
            len(places),
        )
        places[at : at + 1] = [(*places[at], image) if at < len(places) else (image,)]
    return (*places, *((image,) for image in rings if image not in short))


def _is_made_by(
    network: Network, image: int, rows: tuple[int, int], step: Step | None
) -> bool:
    """Whether a step has made all of some rows."""
    if step is None or network.layers[step.layer].out != image:
        return rows[0] > rows[1]
    return step.first <= rows[0] and rows[1] <= step.last


def _cost(network: Network, step: Step, room_bytes: int) -> int:
    """Instructions of a step, with a room for scratch memory."""
    layer = network.layers[step.layer]
    rows, count = step.last - step.first + 1, network.images[layer.out].rows
    if layer.accumulates:
        ((low, high),) = step.reads
        rows = high - low + 1
    elif rows == count:
        return layer.whole
    few = network.few_of(step.layer, rows, room_bytes)
    return sum(cost.of(rows) for cost in (few.costs if few else layer.costs))


class KeptRows(NamedTuple):
    """Rows of a ring that move to its beginning before a step fills more.

    Args:
        first: The first of them.
        rows: How many.
        base: The row whose place is then the beginning of the ring.
    """

    first: int
    rows: int
    base: int


def first_rows(network: Network, rings: Mapping[int, int], way: Way) -> dict[int, int]:
    """By ring: the row whose place is its beginning at first."""
    return {
        i: network.images[i].rows - rows if way.descends else 0
        for i, rows in rings.items()
    }


def kept_rows(
    network: Network,
    rings: Mapping[int, int],
    merged: Mapping[int, int],
    way: Way,
) -> Iterator[KeptRows | None]:
    """By step: what it needs of its ring; None if its output lies in none."""
    base = first_rows(network, rings, way)
    for step, wanted in zip(way.steps, _reads_after(network, rings, way), strict=True):
        out = network.layers[step.layer].out
        out = merged.get(out, out)
        if out not in base:
            yield None
            continue
        rows, kept = rings[out], KeptRows(0, 0, base[out])
        if way.descends and step.first < base[out]:
            last = max(wanted.get(out, step.last), step.last)
            kept = KeptRows(step.last + 1, last - step.last, last - rows + 1)
        elif not way.descends and step.last >= base[out] + rows:
            first = min(wanted.get(out, step.first), step.first)
            kept = KeptRows(first, step.first - first, first)
        base[out] = kept.base
        yield kept


def _reads_after(
    network: Network, rings: Mapping[int, int], way: Way
) -> list[dict[int, int]]:
    """By step: for each ring, the outermost row that is read by it or after it."""
    found: list[dict[int, int]] = []
    wanted: dict[int, int] = {}
    outermost = max if way.descends else min
    for step in reversed(way.steps):
        found.append({**wanted})
        reads = zip(network.layers[step.layer].reads, step.reads, strict=True)
        for (image, _), (low, high) in reads:
            if image in rings and low <= high:
                row = high if way.descends else low
                wanted[image] = outermost(wanted.get(image, row), row)
    return found[::-1]


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


def _at_once(network: Network, number: int) -> Way:
    layer = network.layers[number]
    distances: dict[tuple[int, int], int] = {}
    images = [image for image, _ in layer.reads]
    if layer.in_place and images[0] not in images[1:]:
        image = images[0]
        if network.dies[image] == number:
            distances = {(image, layer.out): 0, (layer.out, image): 0}
    reads = tuple((0, network.images[image].rows - 1) for image, _ in layer.reads)
    step = Step(number, 0, network.images[layer.out].rows - 1, reads)
    return Way(descends=False, steps=(step,), distances=distances)


class _Schedule:
    """The steps of a segment: each makes the rows that it needs before."""

    def __init__(
        self, network: Network, first: int, last: int, band: int, *, descends: bool
    ) -> None:
        self._layers = network.layers
        self._band = band
        self._descends = descends
        self._makers = {network.layers[n].out: n for n in range(first, last + 1)}
        self._counts = {n: network.images[i].rows for i, n in self._makers.items()}
        self._made = dict.fromkeys(self._counts, 0)
        self.steps: list[Step] = []
        for number in range(last, first - 1, -1):
            while self._made[number] < self._counts[number]:
                self._make(number)

    def _make(self, number: int) -> None:
        """Make the next rows of a layer; all of one that adds up."""
        layer, begin = self._layers[number], self._made[number]
        if layer.accumulates:
            self._add_up(number)
            return
        end = min(begin + (layer.given or self._band), self._counts[number])
        low, high = self._rows(begin, end, self._counts[number])
        reads = []
        for image, window in layer.reads:
            rows = window.inputs(low, high)
            reads.append(rows)
            if rows[0] <= rows[1]:
                outermost = window.size - rows[0] if self._descends else rows[1] + 1
                self._need(image, outermost)
        self._made[number] = end
        self.steps.append(Step(number, low, high, tuple(reads)))

    def _add_up(self, number: int) -> None:
        ((image, window),) = self._layers[number].reads
        for begin in range(0, window.size, self._band):
            end = min(begin + self._band, window.size)
            self._need(image, end)
            rows = self._rows(begin, end, window.size)
            self.steps.append(Step(number, 0, 0, (rows,)))
        self._made[number] = 1

    def _need(self, image: int, count: int) -> None:
        """Make the first rows of an image, or the last ones, if a layer makes it."""
        maker = self._makers.get(image)
        while maker is not None and self._made[maker] < count:
            self._make(maker)

    def _rows(self, begin: int, end: int, count: int) -> tuple[int, int]:
        """First and last row of those that come `begin`th to before `end`th."""
        if self._descends:
            return count - end, count - begin - 1
        return begin, end - 1


def _way(
    network: Network,
    first: int,
    last: int,
    band: int,
    rings: dict[int, int],
    *,
    merged: Mapping[int, int],
    descends: bool = False,
) -> Way:
    """The steps, and distances of inputs that die from outputs; rings grow."""
    steps = _Schedule(network, first, last, band, descends=descends).steps
    inner = rings.keys() | merged.keys()
    dying = {i for i in network.whole(first, last) - inner if network.dies[i] <= last}
    wanted: dict[int, int] = {}  # by image: the outermost row that is read from here on
    distances: dict[tuple[int, int], int] = {}
    outermost = max if descends else min
    for step in reversed(steps):
        layer = network.layers[step.layer]
        for (image, _), (low, high) in zip(layer.reads, step.reads, strict=True):
            if low <= high:
                row = high if descends else low
                known = wanted.get(image)
                wanted[image] = row if known is None else outermost(known, row)
        out = merged.get(layer.out, layer.out)
        if out in rings:
            kept = _kept(step, wanted.get(out), descends=descends)
            rings[out] = max(rings[out], kept[1] - kept[0] + 1)
            continue
        for image in dying & wanted.keys():
            here, there = network.images[image], network.images[out]
            if descends:  # from where it writes to the end of what is read
                key = (out, image)
                distance = (
                    wanted[image] + 1
                ) * here.row_bytes - step.first * there.row_bytes
            else:
                key = (image, out)
                distance = (step.last + 1) * there.row_bytes - wanted[
                    image
                ] * here.row_bytes
            distances[key] = max(distances.get(key, 1), distance)
    return Way(descends=descends, steps=tuple(steps), distances=distances)


def _kept(step: Step, wanted: int | None, *, descends: bool) -> tuple[int, int]:
    """First and last row of a ring that have to be there when a step has run."""
    if wanted is None:
        return step.first, step.last
    if descends:
        return step.first, max(wanted, step.last)
    return min(wanted, step.first), step.last


def _peak(network: Network, whole: frozenset[int], ways: Sequence[Way]) -> int:
    """Bytes of whole images, of which one pair may share memory."""
    sizes = {i: aligned(network.images[i].size_bytes) for i in whole}
    saved = 0
    for way in ways:
        for (above, below), distance in way.distances.items():
            together = max(aligned(distance) + sizes[above], sizes[below])
            saved = max(saved, sizes[above] + sizes[below] - together)
    return sum(sizes.values()) - saved
