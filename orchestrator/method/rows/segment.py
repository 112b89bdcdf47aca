"""Some layers in a row, computed row by row on demand of the last ones.

An image between two of them is a ring of rows: a row is made when a layer after it
needs it, and is kept until no layer needs it any more. So skips of residual nets become
rings as long as the deeper path lags behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrator.method.rows.schedules import (
    Schedule,
    Step,
    StepMaker,
    at_once,
    note_reads,
    schedule_of,
)
from orchestrator.planner.blocks import aligned

if TYPE_CHECKING:
    from orchestrator.method.rows.network import Network


# Images of a segment that lie where others do, as they are not needed together.
#
# A layer may write over its input, or over rows of it that nothing needs any more. Rings whose
# rows are all read by the very next step take turns in one place.


def merged_images(network: Network, first: int, last: int, inner: set[int]) -> dict[int, int]:
    """Images that only a layer reads which may write over them: where they lie.

    Such a layer asks for its rows one band at a time, so that nothing reads its output
    between the calls for a band of both. Smaller ones are at the end of such a band.
    """
    readers = Counter(image for layer in network.layers for image, _ in layer.reads)
    found: dict[int, int] = {}
    # From the last layer on: where an image lies in the output of its reader, that output already
    # has its own place.
    for number in range(last, first - 1, -1):
        out = network.layers[number].out
        for image in network.may_hold(number):
            if (
                image in inner
                and readers[image] == 1
                # Every call updates sums, so they have a place of their own.
                and not network.layers[network.born[image]].accumulates
                and not network.layers[network.born[image]].given
            ):
                found[image] = found.get(out, out)
                break
    return found


def images_over(
    network: Network, rings: Collection[int], merged: Mapping[int, int], steps: Sequence[Step]
) -> dict[int, int]:
    """Images whose rows may lie over the ring that they are made of: that ring.

    The next step alone reads them, before anything changes in the ring, or makes of
    them an image that lies in the same place and is read by the next step alone.

    Args:
        network: The network.
        rings: All of them, as long as no image lies over another one.
        merged: As in a segment.
        steps: From the first rows to the last ones.
    """
    born, images = network.born, network.images
    lasting: set[int] = set()  # read by another step than the next one
    apart: set[int] = set()  # made by calls that cannot write over what they read
    before: Step | None = None
    for step in steps:
        layer = network.layers[step.layer]
        for (image, _), rows in zip(layer.reads, step.reads, strict=True):
            if not _is_made_by(network, image, rows, before):
                lasting.add(image)
        over = network.over_of(step.layer, step.last - step.first + 1)
        if over is None or step.is_empty:
            apart.add(layer.out)
        before = step
    found: dict[int, int] = {}
    taken: set[int] = set()
    for root in sorted(rings, key=born.__getitem__):
        together = {root, *(i for i, of in merged.items() if of == root)}
        image = min(together, key=born.__getitem__)
        # Rows of another size would not begin where those of the ring do.
        if image in apart or together & lasting or len({images[i] for i in together}) > 1:
            continue
        ((ring, _),) = network.layers[born[image]].reads
        # A ring that lies over another one moves with the rows of that one.
        of = network.layers[born[ring]] if ring in rings else None
        if of and not (of.given or of.accumulates) and ring not in taken:
            found[image] = ring
            taken.add(root)
    return found


def rooted(merged: Mapping[int, int], over: Collection[int]) -> dict[int, int]:
    """Merged images, where those that lie over a ring are the roots."""
    roots = {merged.get(image, image): image for image in over}
    found = {i: roots.get(root, root) for i, root in merged.items() if i not in over}
    return found | {root: image for root, image in roots.items() if root != image}


def places_of(
    network: Network,
    rings: Mapping[int, int],
    merged: Mapping[int, int],
    over: Mapping[int, int],
    schedules: Sequence[Schedule],
) -> tuple[tuple[int, ...], ...]:
    """The rings, those that take turns together: the largest ones first."""
    makers = {image: network.layers[network.born[image]] for image in rings}
    short = {i for i, of in makers.items() if not (of.given or of.accumulates)}
    short -= {*over.values()}
    apart: set[tuple[int, int]] = set()  # read and written by one step
    for schedule in schedules:
        before: Step | None = None
        for step in schedule.steps:
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


def _is_made_by(network: Network, image: int, rows: tuple[int, int], step: Step | None) -> bool:
    """Whether a step has made all of some rows."""
    if step is None or network.layers[step.layer].out != image:
        return rows[0] > rows[1]
    return step.first <= rows[0] and rows[1] <= step.last


# Rows of rings that move to their beginning before a step fills more.


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


def first_rows(network: Network, rings: Mapping[int, int], schedule: Schedule) -> dict[int, int]:
    """By ring: the row whose place is its beginning at first."""
    found = {
        i: network.images[i].rows - rows if schedule.descends else 0 for i, rows in rings.items()
    }
    for step in schedule.steps:
        if step.over is not None:
            ((ring, _),) = network.layers[step.layer].reads
            found[ring] = min(found[ring], step.over)
    return found


def kept_rows(
    network: Network, rings: Mapping[int, int], merged: Mapping[int, int], schedule: Schedule
) -> Iterator[KeptRows | None]:
    """By step: what it needs of its ring; None if its output lies in none."""
    base = first_rows(network, rings, schedule)
    for step, wanted in zip(schedule.steps, _reads_after(network, schedule), strict=True):
        out = network.layers[step.layer].out
        out = merged.get(out, out)
        if out not in base:
            yield None
            continue
        rows, kept = rings[out], KeptRows(0, 0, base[out])
        if schedule.descends and step.first < base[out]:
            last = max(wanted.get(out, step.last), step.last)
            kept = KeptRows(step.last + 1, last - step.last, last - rows + 1)
        elif not schedule.descends and step.last >= base[out] + rows:
            first = min(wanted.get(out, step.first), step.first)
            kept = KeptRows(first, step.first - first, first)
        base[out] = kept.base
        yield kept


def _reads_after(network: Network, schedule: Schedule) -> list[dict[int, int]]:
    """By step: for each image, the outermost row that is read after it."""
    found: list[dict[int, int]] = []
    wanted: dict[int, int] = {}
    for step in reversed(schedule.steps):
        found.append({**wanted})
        note_reads(network, step, wanted, descends=schedule.descends)
    return found[::-1]


# What the executor does to make the struct of a call in RAM: a run with 340 steps takes 1 percent
# longer on an M4 (decision 27).
_STEP: Final = 120
"""Instructions that a step takes beside its call, about."""
# What `MoveCall` costs with DSP in rows/costs.py; with vectors moves take less.
_MOVED: Final = 3
"""Bytes that one instruction moves in a ring, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Layers `first` to `last` (inclusive), and what they need.

    Args:
        first: First layer.
        last: Last layer.
        schedules: To compute it.
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
    schedules: tuple[Schedule, ...]
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
        """Bytes of the place of some rings that take turns."""
        leads = self.leads(network)
        return max(leads.get(i, 0) + self.rings[i] * network.images[i].row_bytes for i in place)

    def ring_bytes(self, network: Network) -> int:
        """Bytes of all places of rings together."""
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
    # A call that needs all of its input has no rows to wait for: it is a segment by itself.
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
        steps = StepMaker(network, first, last, band).steps
        over = images_over(network, rings, merged, steps)
        # Sizes of rings are found by walking the steps, once it is known what lies over what: until
        # then 1.
        rings = dict.fromkeys(rings.keys() - {merged.get(image, image) for image in over}, 1)
        merged = rooted(merged, over)
        schedules: tuple[Schedule, ...] = (schedule_of(network, steps, rings, merged, over),)
        # What lies over a ring relies on rows being needed from the first to the last.
        if descends and not given and not over:
            larger = {**rings}
            steps = StepMaker(network, first, last, band, descends=True).steps
            schedule = schedule_of(network, steps, larger, merged, over, descends=True)
            # Both directions share the places of the plan: rings of another size would be another
            # segment.
            schedules += (schedule,) if larger == rings else ()
    else:
        schedules = (at_once(network, first),)
    scratch = _scratch(network, schedules[0])
    places = places_of(network, rings, merged, over, schedules)
    found = Segment(
        first=first,
        last=last,
        schedules=schedules,
        rings=rings,
        merged=merged,
        over=over,
        places=places,
        whole=whole,
        scratch_bytes=scratch,
        peak_bytes=_peak(network, whole, schedules) + aligned(scratch),
        setup=sum(_cost(network, step, scratch) for step in schedules[0].steps)
        # One step of each layer would be there without bands, too.
        + _STEP * (len(schedules[0].steps) - len(layers))
        + _cost_of_slides(network, schedules[0], rings, merged)
        # What is computed again has no call to compare with: all of it is extra.
        - sum(layer.whole for layer in layers if not layer.again),
    )
    return replace(found, peak_bytes=found.peak_bytes + found.ring_bytes(network))


def narrowed(network: Network, one: Segment) -> Segment | None:
    """The segment in the least scratch memory, if that is worth its price.

    It has to save no less of the memory than it takes more of the instructions.
    """
    least = _scratch(network, one.schedules[0], 0)
    narrow = replace(one, scratch_bytes=least, narrow=True)
    saved = aligned(one.scratch_bytes) - aligned(least)
    saved -= narrow.ring_bytes(network) - one.ring_bytes(network)
    steps = one.schedules[0].steps
    more = sum(
        _cost(network, step, least) - _cost(network, step, one.scratch_bytes) for step in steps
    )
    # Shares: of the memory of the segment, of the instructions of a run.
    if saved * network.whole_cost <= more * one.peak_bytes or saved <= 0:
        return None
    return replace(narrow, peak_bytes=one.peak_bytes - saved, setup=one.setup + more)


def _scratch(network: Network, schedule: Schedule, room_bytes: float = inf) -> int:
    """Scratch memory of the steps, in a room as far as that is possible."""
    return max(
        network.scratch_of(step.layer, step.last - step.first + 1, room_bytes)
        for step in schedule.steps
    )


def _cost(network: Network, step: Step, room_bytes: int) -> int:
    """Instructions of a step, with a room for scratch memory."""
    layer = network.layers[step.layer]
    rows, count = step.last - step.first + 1, network.images[layer.out].rows
    variant = network.scratch_saving_of(step.layer, rows, room_bytes)
    if layer.accumulates:
        ((low, high),) = step.reads
        rows = high - low + 1
    elif rows == count and variant is None:
        return layer.whole
    return sum(cost.of(rows) for cost in (variant.costs if variant else layer.costs))


def _cost_of_slides(
    network: Network, schedule: Schedule, rings: Mapping[int, int], merged: Mapping[int, int]
) -> int:
    """Instructions of moves within rings."""
    total = 0
    found = kept_rows(network, rings, merged, schedule)
    for step, kept in zip(schedule.steps, found, strict=True):
        if kept is not None and kept.rows:
            out = network.layers[step.layer].out
            size = network.images[merged.get(out, out)].row_bytes
            total += _STEP + kept.rows * size // _MOVED
    return total


def _peak(network: Network, whole: frozenset[int], schedules: Sequence[Schedule]) -> int:
    """Bytes of whole images, of which one pair may share memory."""
    sizes = {i: aligned(network.images[i].size_bytes) for i in whole}
    saved = 0
    for schedule in schedules:
        for (above, below), distance in schedule.distances.items():
            together = max(aligned(distance) + sizes[above], sizes[below])
            saved = max(saved, sizes[above] + sizes[below] - together)
    return sum(sizes.values()) - saved
