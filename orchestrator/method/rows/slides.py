"""Rows of rings that move to their beginning before a step fills more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.method.rows.ways import Way, note_reads

if TYPE_CHECKING:
    from orchestrator.method.rows.network import Network


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
    found = {i: network.images[i].rows - rows if way.descends else 0 for i, rows in rings.items()}
    for step in way.steps:
        if step.over is not None:
            ((ring, _),) = network.layers[step.layer].reads
            found[ring] = min(found[ring], step.over)
    return found


def kept_rows(
    network: Network, rings: Mapping[int, int], merged: Mapping[int, int], way: Way
) -> Iterator[KeptRows | None]:
    """By step: what it needs of its ring; None if its output lies in none."""
    base = first_rows(network, rings, way)
    for step, wanted in zip(way.steps, _reads_after(network, way), strict=True):
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


def _reads_after(network: Network, way: Way) -> list[dict[int, int]]:
    """By step: for each image, the outermost row that is read after it."""
    found: list[dict[int, int]] = []
    wanted: dict[int, int] = {}
    for step in reversed(way.steps):
        found.append({**wanted})
        note_reads(network, step, wanted, descends=way.descends)
    return found[::-1]
