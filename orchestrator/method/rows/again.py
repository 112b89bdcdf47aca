"""Long skips computed a second time, shortly before they are read, instead of kept.

A skip of a U-Net is live while everything below it runs. Where what it was computed
from is smaller, or is live as long anyway, the same calls can fill it again for its
late readers. This is a rewriting of the network: some of its layers are there twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from operator import itemgetter
from typing import Final

from orchestrator.method.rows.extracted import Segments
from orchestrator.method.rows.network import Layer, Network
from orchestrator.method.rows.plan import RowPlan
from orchestrator.method.rows.verify import problems_of_twins

# Chosen by hand: two blocks of a U-Net, each of two convolutions and a pool.
_DEEPEST: Final = 6
"""Layers that are computed again for a skip, at most."""


class RecomputedProofError(Exception):
    """A network with layers twice computes something else: an internal error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputedNetwork:
    """A network of which some layers are there twice.

    Args:
        network: The network.
        twins: By layer: the one of the first network that it is.
    """

    network: Network
    twins: tuple[int, ...]

    @classmethod
    def of(cls, network: Network) -> RecomputedNetwork:
        """A network as it is."""
        return cls(network=network, twins=tuple(range(len(network.layers))))

    @property
    def calls(self) -> int:
        """How many layers are there a second time."""
        return sum(layer.again for layer in self.network.layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """An image that could be computed again.

    Args:
        image: The image.
        layers: That fill it, in order.
        reader: The first layer that then reads the new image, as all later ones do.
    """

    image: int
    layers: tuple[int, ...]
    reader: int


def skips(network: Network) -> Iterator[Skip]:
    """Images that live long, with layers that fill them from fewer bytes."""
    for image, born in network.born.items():
        readers = [n for n, of in enumerate(network.layers) if image in _read(of)]
        if born < 0 or not readers or image in network.outputs:
            continue
        for before, reader in zip((born, *readers), readers, strict=False):
            # The gap before the first reader is no reason to compute the image twice: that one
            # needs it anyway.
            if reader - before > 1 and before != born:
                yield from _chains(network, image, reader)


def _chains(network: Network, image: int, reader: int) -> Iterator[Skip]:
    """Longer and longer ways to compute an image again."""
    born, sizes = network.born, network.images
    layers: set[int] = set()
    wanted = {image}
    while len(layers) < _DEEPEST:
        # What is there anyway does not have to be computed.
        gone = {i for i in wanted if i == image or network.dies[i] < reader}
        number = max((born[i] for i in gone), default=-1)
        if number < 0 or not _can_repeat(network, number):
            return
        layers.add(number)
        wanted = (wanted - {network.layers[number].out}) | _read(network.layers[number])
        kept = [i for i in wanted if network.dies[i] < reader]
        if sum(sizes[i].size_bytes for i in kept) < sizes[image].size_bytes:
            yield Skip(image=image, layers=tuple(sorted(layers)), reader=reader)


def _read(layer: Layer) -> set[int]:
    return {image for image, _ in layer.reads}


def _can_repeat(network: Network, number: int) -> bool:
    """Whether a layer is calls of its own: no part of an average, no given rows."""
    layer, born = network.layers[number], network.born
    makers = [born[image] for image in _read(layer)]
    averages = any(m >= 0 and network.layers[m].accumulates for m in makers)
    return not (layer.given or layer.accumulates or averages)


def computed_again(recomputed: RecomputedNetwork, skip: Skip) -> RecomputedNetwork:
    """The network with the layers of a skip a second time, before its late reader."""
    network, images = recomputed.network, dict(recomputed.network.images)
    new: dict[int, int] = {}
    added: list[Layer] = []
    for number in skip.layers:
        layer = network.layers[number]
        new[layer.out] = len(images)
        images[new[layer.out]] = images[layer.out]
        reads = tuple((new.get(i, i), window) for i, window in layer.reads)
        added.append(replace(layer, reads=reads, out=new[layer.out], again=True))
    late = [
        replace(
            layer,
            reads=tuple((new[i] if i == skip.image else i, window) for i, window in layer.reads),
        )
        for layer in network.layers[skip.reader :]
    ]
    early, twins = skip.reader, recomputed.twins
    return RecomputedNetwork(
        network=replace(network, images=images, layers=(*network.layers[:early], *added, *late)),
        twins=(*twins[:early], *(twins[n] for n in skip.layers), *twins[early:]),
    )


def plan_of(segments: Segments, most_setup: float) -> RowPlan | None:
    """The smallest plan of a network at some cost; None if there is none.

    Args:
        segments: Of the network.
        most_setup: Instructions that computing by rows may cost.
    """
    limit = segments.least_limit(most_setup)
    return None if limit == inf else segments.smallest(limit, most_setup)


def with_skips_again(
    network: Network, plan: RowPlan, *, most_setup: float, most_again: float
) -> Iterator[tuple[RecomputedNetwork, RowPlan]]:
    """Networks with more and more skips computed again, each in a smaller arena.

    Every one takes the skip that makes the arena smallest.

    Args:
        network: The network.
        plan: Its smallest plan.
        most_setup: Instructions that computing by rows, and again, may cost.
        most_again: Instructions of calls that compute again, without what rows cost.

    Raises:
        RecomputedProofError: A network computes something else.
    """
    recomputed, segments = RecomputedNetwork.of(network), Segments(network)
    while True:
        cuts = segments.cuts(segments.least_limit(most_setup))
        peak = max(cuts, key=lambda one: one.peak_bytes)
        live = peak.whole | peak.rings.keys()
        found = []
        for number, skip in enumerate(skips(recomputed.network)):
            # Only what is live at the peak can make it smaller.
            if skip.image not in live:
                continue
            made = computed_again(recomputed, skip)
            tried = _smaller(made.network, plan, most_setup, most_again)
            if tried is not None:
                # The number decides between equals, as there is no order between networks.
                key = tried[1].arena_bytes, tried[1].setup, number
                found.append((key, made, *tried))
        if not found:
            return
        _, recomputed, segments, plan = min(found, key=itemgetter(0))
        if problems := problems_of_twins(network, recomputed.network, recomputed.twins):
            raise RecomputedProofError("; ".join(problems))
        yield recomputed, plan


def _smaller(
    network: Network, plan: RowPlan, most_setup: float, most_again: float
) -> tuple[Segments, RowPlan] | None:
    """The plan of a network, if it is smaller than another and cheap enough."""
    if sum(layer.whole for layer in network.layers if layer.again) > most_again:
        return None
    segments = Segments(network)
    if segments.least_peak() >= plan.arena_bytes:
        return None
    found = plan_of(segments, most_setup)
    if found is None or found.arena_bytes >= plan.arena_bytes:
        return None
    return None if found.setup > most_setup else (segments, found)
