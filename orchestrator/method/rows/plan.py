"""Offsets of images and rings, and the table of steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orchestrator.method.rows.schedules import Schedule, Step
from orchestrator.method.rows.segment import first_rows, kept_rows
from orchestrator.planner.blocks import Block, aligned
from orchestrator.planner.overlapping import plan_overlapping

if TYPE_CHECKING:
    from orchestrator.method.rows.network import Network
    from orchestrator.method.rows.segment import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Slide:
    """Rows of a ring that move to its beginning, as more rows need their place.

    Args:
        image: The image whose rows these are.
        first: The first row that moves; it then lies at the beginning.
        source: Offset in the arena.
        target: Offset in the arena, below the source.
        size_bytes: Of all rows that move.
    """

    image: int
    first: int
    source: int
    target: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A step with its places.

    Args:
        step: Which rows of which layer.
        reads: Offset of the first row, for each image that the layer reads.
        out: Offset of the first row that is written.
        scratch: Offset of the scratch memory.
    """

    step: Step
    reads: tuple[int, ...]
    out: int
    scratch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """How a network runs.

    Args:
        moves: Calls and slides, in order.
        offsets: By image that exists as a whole, and of rows that the caller gives.
        arena_bytes: Of everything.
        least_bytes: No arena with these segments can be smaller.
        setup: Instructions that computing by rows costs, about.
        rooms: By layer: scratch memory that there is for it, in bytes.
    """

    moves: tuple[Call | Slide, ...]
    offsets: dict[int, int]
    arena_bytes: int
    least_bytes: int
    setup: int
    rooms: dict[int, int] = field(default_factory=dict)


def plan_rows(network: Network, segments: Sequence[Segment]) -> RowPlan:
    """Give everything its place.

    Args:
        network: The network.
        segments: Of all layers, in order.
    """
    rooms = _Rooms(network, segments)
    schedules = [[*one.schedules] for one in segments]
    while True:
        distances = [schedule.distances for some in schedules for schedule in some]
        rooms.place(distances)
        chosen = [rooms.fitting(some) for some in schedules]
        if all(chosen):
            break
        # Its images share memory in both directions at once: leave it one of them.
        for some, schedule in zip(schedules, chosen, strict=True):
            if schedule is None:
                some.pop()
    moves: list[Call | Slide] = []
    for number, (one, schedule) in enumerate(zip(segments, chosen, strict=True)):
        if schedule is not None:
            moves += _moves(network, one, schedule, rooms.where, rooms.scratch(number))
    given = {layer.out for layer in network.layers if layer.given}
    rings = rooms.rings.keys() - given
    return RowPlan(
        moves=tuple(moves),
        offsets={i: o for i, o in rooms.where.items() if i not in rings},
        arena_bytes=rooms.size_bytes,
        least_bytes=rooms.least_bytes,
        setup=sum(one.setup for one in segments),
        rooms={
            layer: one.scratch_bytes for one in segments for layer in range(one.first, one.last + 1)
        },
    )


class _Rooms:
    """Blocks of images, rings and scratch memory, and their places."""

    def __init__(self, network: Network, segments: Sequence[Segment]) -> None:
        at = {
            n: number for number, one in enumerate(segments) for n in range(one.first, one.last + 1)
        }
        self.rings = {i: rows for one in segments for i, rows in one.rings.items()}
        elsewhere = {i for one in segments for i in (*one.merged, *one.over)}
        self.least_bytes = max((s.peak_bytes for s in segments), default=0)
        self.where: dict[int, int] = {}
        self.size_bytes = 0
        self._names: dict[int, int] = {}
        self._scratch: dict[int, int] = {}
        self._blocks: list[Block] = []
        self._offsets: tuple[int, ...] = ()
        for image, born in sorted(network.born.items()):
            # What is merged, or lies over a ring, has a place in another block; rings that take
            # turns have one block together.
            if image in elsewhere or image in self.rings:
                continue
            # Inputs are born before the first segment, outputs die after the last one.
            size, first = network.images[image], at.get(born, -1)
            last = at.get(network.dies[image], len(segments))
            self._names[image] = self._add(f"image {image}", first, last, size.size_bytes)
        for number, one in enumerate(segments):
            for place in one.places:
                size_bytes = one.place_bytes(network, place)
                block = self._add(f"image {place[0]}", number, number, size_bytes)
                self._names |= dict.fromkeys(place, block)
        for number, one in enumerate(segments):
            if one.scratch_bytes:
                name = f"scratch {number}"
                self._scratch[number] = self._add(name, number, number, one.scratch_bytes)

    def _add(self, name: str, first: int, last: int, size_bytes: int) -> int:
        block = Block(name=name, first=first, last=last, size_bytes=aligned(size_bytes))
        self._blocks.append(block)
        return len(self._blocks) - 1

    def place(self, distances: Sequence[Mapping[tuple[int, int], int]]) -> None:
        """Find places."""
        allowed = {
            (self._names[above], self._names[below]): aligned(distance)
            for some in distances
            for (above, below), distance in some.items()
        }
        self._offsets, self.size_bytes = plan_overlapping(
            self._blocks, allowed, least_bytes=self.least_bytes
        )
        self.where = {i: self._offsets[name] for i, name in self._names.items()}

    def scratch(self, number: int) -> int:
        """Offset of the scratch memory of a segment."""
        return self._offsets[self._scratch[number]] if number in self._scratch else 0

    def fitting(self, schedules: Sequence[Schedule]) -> Schedule | None:
        """The first way whose distances these places keep."""
        pairs = {frozenset(pair) for schedule in schedules for pair in schedule.distances}
        shared = [p for p in pairs if len(p) > 1 and self._is_shared(*p)]
        for schedule in schedules:
            if all(self._keeps(schedule, *pair) for pair in shared):
                return schedule
        return None

    def _is_shared(self, one: int, other: int) -> bool:
        here, there = self._names[one], self._names[other]
        return (
            self._offsets[here] < self._offsets[there] + self._blocks[there].size_bytes
            and self._offsets[there] < self._offsets[here] + self._blocks[here].size_bytes
        )

    def _keeps(self, schedule: Schedule, one: int, other: int) -> bool:
        for above, below in ((one, other), (other, one)):
            distance = schedule.distances.get((above, below))
            between = self.where[above] - self.where[below]
            if distance is not None and (
                # Blocks are multiples of 16, and so have to be the distances between them.
                between >= aligned(distance) if distance else between == 0
            ):
                return True
        return False


def _moves(
    network: Network, one: Segment, schedule: Schedule, where: Mapping[int, int], scratch: int
) -> Iterator[Call | Slide]:
    """Calls of a segment, and slides where a ring is full."""
    base, merged = first_rows(network, one.rings, schedule), one.merged
    leads = one.leads(network)
    # In front of a ring is room for what lies over its first rows.
    where = {image: at + leads.get(image, 0) for image, at in where.items()}
    over: dict[int, int] = {}  # by image over its input: where its rows begin

    def root_of(image: int) -> int:
        return merged.get(image, image)

    def place(image: int, first: int, rows: int) -> int:
        """Where some rows begin, at the end of those that they lie in."""
        root = root_of(image)
        if root in over:
            return over[root] + first * network.images[root].row_bytes
        size, here = (network.images[i].row_bytes for i in (root, image))
        return where[root] + (first - base.get(root, 0)) * size + rows * (size - here)

    found = kept_rows(network, one.rings, merged, schedule)
    for step, moved in zip(schedule.steps, found, strict=True):
        layer = network.layers[step.layer]
        root = root_of(layer.out)
        size = network.images[root].row_bytes
        if step.over is not None:
            begin = place(one.over[root], step.over, 0) - one.lead(network, root)
            over[root] = begin - step.first * size
        if moved is not None:
            if moved.rows:
                yield Slide(
                    image=root,
                    first=moved.first,
                    source=where[root] + (moved.first - base[root]) * size,
                    target=where[root] + (moved.first - moved.base) * size,
                    size_bytes=moved.rows * size,
                )
            base[root] = moved.base
        yield Call(
            step=step,
            reads=tuple(
                # Where a call reads no rows, any place will do.
                place(image, low, high - low + 1)
                if low <= high
                else where[one.over.get(root_of(image), root_of(image))]
                for (image, _), (low, high) in zip(layer.reads, step.reads, strict=True)
            ),
            out=place(layer.out, step.first, step.last - step.first + 1),
            scratch=scratch,
        )
