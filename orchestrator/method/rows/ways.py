"""The calls of a segment, and by how much what they share memory with has to differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.method.rows.schedule import Step

if TYPE_CHECKING:
    from orchestrator.method.rows.network import Network


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


def at_once(network: Network, number: int) -> Way:
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
    return Way(descends=False, steps=(step,), distances=distances)


def way_of(
    network: Network,
    steps: Sequence[Step],
    rings: dict[int, int],
    merged: Mapping[int, int],
    over: Mapping[int, int],
    *,
    descends: bool = False,
) -> Way:
    """The steps, and distances of inputs that die from outputs; rings grow."""
    numbers = [step.layer for step in steps]
    first, last = min(numbers), max(numbers)
    inner = rings.keys() | merged.keys() | over.keys()
    dying = {i for i in network.whole(first, last) - inner if network.dies[i] <= last}
    wanted: dict[int, int] = {}  # by image: the outermost row that is read from here on
    distances: dict[tuple[int, int], int] = {}
    placed: list[Step] = []
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
        if out in rings or out in over:
            continue
        for image in dying & wanted.keys():
            key = (out, image) if descends else (image, out)
            if descends:
                distance = _distance_down(network, step, out, image, wanted[image])
            else:
                distance = _distance_up(network, step, out, image, wanted, later=later)
            distances[key] = max(distances.get(key, 1), distance)
    return Way(descends=descends, steps=tuple(placed[::-1]), distances=distances)


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
