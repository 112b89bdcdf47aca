"""The calls of a segment, and by how much what they share memory with has to differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.method.windows import Axis

if TYPE_CHECKING:
    from orchestrator.method.rows.network import Layer, Network


# The order in which rows are made: those that the last layers of a segment need.


class Step(NamedTuple):
    """A call for some rows of an output.

    Args:
        layer: Number of the layer.
        first: First row.
        last: Last row, inclusive.
        reads: For each image that the layer reads: first and last row, inclusive.
        over: The row of its only input where its output lies, as nothing reads that
            row any more; it may be one before the first. None if it lies elsewhere.
    """

    layer: int
    first: int
    last: int
    reads: tuple[tuple[int, int], ...]
    over: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it reads nothing of an image, as its windows see padding only."""
        return any(low > high for low, high in self.reads)

    def outermost(self, low: int) -> int:
        """The first row of a ring that it needs, of which it reads some from `low`."""
        return low if self.over is None else min(low, self.over)


class StepMaker:
    """The steps of a segment: each makes the rows that it needs before.

    Args:
        network: The network.
        first: First layer.
        last: Last layer, inclusive.
        band: Rows that each call computes at most.
        descends: Whether it begins with the last rows.
    """

    def __init__(
        self, network: Network, first: int, last: int, band: int, *, descends: bool = False
    ) -> None:
        self._layers = network.layers
        self._band = band
        self._descends = descends
        self._makers = {network.layers[n].out: n for n in range(first, last + 1)}
        self._counts = {n: network.images[i].rows for i, n in self._makers.items()}
        self._made = dict.fromkeys(self._counts, 0)
        self.steps: list[Step] = []
        # The last layer asks for all that it needs. Layers that nothing asks for completely, as the
        # last rows of some windows are not read, are made at the end.
        for number in range(last, first - 1, -1):
            while self._made[number] < self._counts[number]:
                self._make(number)

    def _make(self, number: int, until: int | None = None) -> None:
        """Make the next rows of a layer, up to some; all of one that adds up."""
        layer, begin = self._layers[number], self._made[number]
        if layer.accumulates:
            self._add_up(number)
            return
        # The caller gives as many rows as the profile says, no matter how many are needed.
        end = min(begin + (layer.given or self._most(layer)), self._counts[number])
        if until is not None and not layer.given:
            end = min(end, until)
        low, high = self._rows(begin, end, self._counts[number])
        reads = []
        for image, window in layer.reads:
            rows = window.inputs(low, high)
            reads.append(rows)
            if rows[0] <= rows[1]:
                outermost = window.size - rows[0] if self._descends else rows[1] + 1
                # Where windows move on by a row at least, all that are made next are
                # needed: the last band ends early.
                is_least = isinstance(window, Axis) or rows[1] - rows[0] >= high - low
                self._need(image, outermost, is_least=is_least)
        self._made[number] = end
        self.steps.append(Step(number, low, high, tuple(reads)))

    def _add_up(self, number: int) -> None:
        ((image, window),) = self._layers[number].reads
        band = self._most(self._layers[number])
        for begin in range(0, window.size, band):
            end = min(begin + band, window.size)
            self._need(image, end)
            rows = self._rows(begin, end, window.size)
            self.steps.append(Step(number, 0, 0, (rows,)))
        self._made[number] = 1

    def _most(self, layer: Layer) -> int:
        """Rows that a call of a layer computes at most."""
        return min(self._band, layer.most_rows or self._band)

    def _need(self, image: int, count: int, *, is_least: bool = False) -> None:
        """Make the first rows of an image, or the last ones, if a layer makes it."""
        maker = self._makers.get(image)
        # A call may make fewer rows than are needed, as a band has a limit.
        while maker is not None and self._made[maker] < count:
            self._make(maker, count if is_least else None)

    def _rows(self, begin: int, end: int, count: int) -> tuple[int, int]:
        """First and last row of those that come `begin`th to before `end`th."""
        if self._descends:
            return count - end, count - begin - 1
        return begin, end - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
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


def at_once(network: Network, number: int) -> Schedule:
    """The one call of a layer for all rows."""
    layer = network.layers[number]
    distances: dict[tuple[int, int], int] = {}
    images = [image for image, _ in layer.reads]
    if layer.in_place and images[0] not in images[1:]:
        image = images[0]
        if network.dies[image] == number:
            distances = {(image, layer.out): 0, (layer.out, image): 0}
    reads = tuple((0, network.images[image].rows - 1) for image, _ in layer.reads)
    step = Step(number, 0, network.images[layer.out].rows - 1, reads)
    return Schedule(descends=False, steps=(step,), distances=distances)


def schedule_of(
    network: Network,
    steps: Sequence[Step],
    rings: dict[int, int],
    merged: Mapping[int, int],
    over: Mapping[int, int],
    *,
    descends: bool = False,
) -> Schedule:
    """The steps, and distances of inputs that die from outputs; rings grow."""
    numbers = [step.layer for step in steps]
    first, last = min(numbers), max(numbers)
    inner = rings.keys() | merged.keys() | over.keys()
    dying = {i for i in network.whole(first, last) - inner if network.dies[i] <= last}
    wanted: dict[int, int] = {}  # by image: the outermost row that is read from here on
    distances: dict[tuple[int, int], int] = {}
    placed: list[Step] = []
    # From the last step on, as what is read later decides what a step may write over.
    for bare in reversed(steps):
        layer, step, later = network.layers[bare.layer], bare, {**wanted}
        if layer.out in over:
            row = _row_below(network, bare, wanted.get(over[layer.out]))
            step = bare._replace(over=row)
        placed.append(step)
        note_reads(network, step, wanted, descends=descends)
        out = merged.get(layer.out, layer.out)
        if out in rings:
            kept = _kept(step, wanted.get(out), descends=descends)
            rings[out] = max(rings[out], kept[1] - kept[0] + 1)
        # Distances are between whole images; rings have memory of their own.
        if out in rings or out in over:
            continue
        for image in dying & wanted.keys():
            key = (out, image) if descends else (image, out)
            if descends:
                distance = _distance_down(network, step, out, image, wanted[image])
            else:
                distance = _distance_up(network, step, out, image, wanted, later=later)
            # At least 1: a distance of 0 says that both begin at the same byte.
            distances[key] = max(distances.get(key, 1), distance)
    return Schedule(descends=descends, steps=tuple(placed[::-1]), distances=distances)


def note_reads(network: Network, step: Step, wanted: dict[int, int], *, descends: bool) -> None:
    """Note the outermost rows that a step reads, by image."""
    outermost = max if descends else min
    reads = zip(network.layers[step.layer].reads, step.reads, strict=True)
    for (image, _), (low, high) in reads:
        if low <= high:
            row = high if descends else step.outermost(low)
            wanted[image] = outermost(wanted.get(image, row), row)


def _distance_down(network: Network, step: Step, out: int, image: int, wanted: int) -> int:
    """From where a step writes to the end of what is read by it or later."""
    here, there = network.images[image], network.images[out]
    return (wanted + 1) * here.row_bytes - step.first * there.row_bytes


def _distance_up(
    network: Network,
    step: Step,
    out: int,
    image: int,
    wanted: Mapping[int, int],
    *,
    later: Mapping[int, int],
) -> int:
    """From what is read by a step or later to the end of where it writes.

    Args:
        network: The network.
        step: The step.
        out: What it fills.
        image: What is read.
        wanted: By image: the first row that is read by the step or later.
        later: The same without the step.
    """
    here, there = network.images[image], network.images[out]
    end, lead = (step.last + 1) * there.row_bytes, _lead_of(network, step, image)
    if lead is None:
        return end - wanted[image] * here.row_bytes
    ((low, _),) = step.reads
    # Smaller rows lie at the end of a band.
    own = network.images[network.layers[step.layer].out].row_bytes
    begin = end - (step.last - step.first + 1) * own
    distance = lead + begin - low * here.row_bytes
    if image not in later:
        return distance
    return max(distance, end - later[image] * here.row_bytes)


def _lead_of(network: Network, step: Step, image: int) -> int | None:
    """Bytes that an output begins at least before rows of an image that it reads.

    None if it must not lie over them.
    """
    over = network.over_of(step.layer, step.last - step.first + 1)
    is_read = image in (i for i, _ in network.layers[step.layer].reads)
    # What is apart is planned in bytes, not in pixels.
    if over is None or not is_read or step.is_empty or over.pixel_bytes > 1:
        return None
    return max(over.lead_bytes, over.few_bytes)


def _row_below(network: Network, step: Step, wanted: int | None) -> int:
    """Where an output lies over its input: the row that it begins at.

    Args:
        network: The network.
        step: That makes it.
        wanted: The first row of the input that a later step needs; None: none does.
    """
    layer, ((low, high),) = network.layers[step.layer], step.reads
    ((ring, _),) = layer.reads
    size = (step.last - step.first + 1) * network.images[layer.out].row_bytes
    rows = -(-size // network.images[ring].row_bytes)
    # No further than what is read, which is there.
    end = high + 1 if wanted is None else min(high + 1, wanted)
    return min(low, end - rows)


def _kept(step: Step, wanted: int | None, *, descends: bool) -> tuple[int, int]:
    """First and last row of a ring that have to be there when a step has run."""
    if wanted is None:
        return step.first, step.last
    if descends:
        return step.first, max(wanted, step.last)
    return min(wanted, step.first), step.last
