"""Images of a segment that lie where others do, as they are not needed together.

A layer may write over its input, or over rows of it that nothing needs any more. Rings
whose rows are all read by the very next step take turns in one place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.method.rows.network import Network
    from orchestrator.method.rows.schedule import Step
    from orchestrator.method.rows.ways import Way


def merged_images(network: Network, first: int, last: int, inner: set[int]) -> dict[int, int]:
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
        if image in apart or together & lasting or len({images[i] for i in together}) > 1:
            continue
        ((ring, _),) = network.layers[born[image]].reads
        of = network.layers[born[ring]] if ring in rings else None
        if of and not (of.given or of.accumulates) and ring not in taken:
            found[image] = ring
            taken.add(root)
    return found


def rooted(merged: Mapping[int, int], over: Collection[int]) -> dict[int, int]:
    """The same images, but merged into those that lie over a ring."""
    roots = {merged.get(image, image): image for image in over}
    found = {i: roots.get(root, root) for i, root in merged.items() if i not in over}
    return found | {root: image for root, image in roots.items() if root != image}


def places_of(
    network: Network,
    rings: Mapping[int, int],
    merged: Mapping[int, int],
    over: Mapping[int, int],
    ways: Sequence[Way],
) -> tuple[tuple[int, ...], ...]:
    """The rings, those that take turns together: the largest ones first."""
    makers = {image: network.layers[network.born[image]] for image in rings}
    short = {i for i, of in makers.items() if not (of.given or of.accumulates)}
    short -= {*over.values()}
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


def _is_made_by(network: Network, image: int, rows: tuple[int, int], step: Step | None) -> bool:
    """Whether a step has made all of some rows."""
    if step is None or network.layers[step.layer].out != image:
        return rows[0] > rows[1]
    return step.first <= rows[0] and rows[1] <= step.last
