"""The network of a method: its calls as layers, lives of its values as images."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from orchestrator.core.dtype import ScalarType
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.inventory import PACKED
from orchestrator.method.passes.packing.kernels import KERNELS, packed_header
from orchestrator.method.places import Access
from orchestrator.method.rows.bands import RowCall, channels_of, image_of, pixels_of, windows_of
from orchestrator.method.rows.copies import is_spread
from orchestrator.method.rows.costs import costs_of, sums_cost, whole_cost
from orchestrator.method.rows.network import Layer, Network
from orchestrator.method.rows.plan import RowPlan, plan_rows
from orchestrator.method.rows.segment import Segment, narrowed, segment
from orchestrator.method.rows.strips import fitted_for_bands
from orchestrator.method.windows import Axis, Core, Image, Window
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import TensorValue

# Kernels for bands of few pixels, where they save enough.
#
# They have the tensors and the header of the kernels that they replace. Both may be linked then,
# so that a few calls alone do not pay for one. Where memory is scarce, some compute fewer pixels
# at once, in less scratch memory, or go without.

# Half a percent (decision 27). All kernels for narrow bands together take up to 2.9 KB of flash
# (benchmarks/README.md, Memory).
_LEAST_PART_SAVED: Final = 200
"""A kernel has to save one part in so many of a run."""


def with_scratch_saving(method: LinkedMethod, call: LinkedCall) -> LinkedCall:
    """The call with the kernel of its `ScratchSavingVariant`."""
    header, kernel = packed_header(method, call), KERNELS[call.function]
    assert header is not None  # noqa: S101  # the kernel is packed
    name, changed = header.with_scratch_saving()
    words = call.form.header if changed == header else changed.words()
    return replace(call, function=kernel.instead(name), prepared=replace(call.form, header=words))


def with_narrow_kernels(method: LinkedMethod, whole_cost: int) -> LinkedMethod:
    """The method with kernels for narrow bands.

    Args:
        method: By rows.
        whole_cost: Estimated instructions of a run.
    """
    calls = [method.call(number) for number in range(len(method.instructions))]
    headers = [packed_header(method, call) for call in calls]
    # In order: a kernel that was put in may give way to a narrower one.
    for row in PACKED:
        for wide in row.instead_of.split():
            kernels = [KERNELS.get(call.function) for call in calls]
            saved = [
                header.saved(wide, row.name)
                if header and kernel and kernel.row.name == wide
                else None
                for header, kernel in zip(headers, kernels, strict=True)
            ]
            # Once a kernel is in the product, each further call that takes it is for nothing.
            is_linked = any(kernel and kernel.row == row for kernel in kernels)
            if is_linked or _LEAST_PART_SAVED * sum(s for s in saved if s) >= whole_cost:
                calls = [
                    replace(call, function=kernel.instead(row.name))
                    if kernel and s is not None
                    else call
                    for call, kernel, s in zip(calls, kernels, saved, strict=True)
                ]
    return replace(method, instructions=tuple(calls))


_KNOWN: Final = frozenset({Access.READS, Access.FILLS, Access.SCRATCH})
_PART: Final = frozenset({Access.READS, Access.UPDATES, Access.SCRATCH})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedNetwork:
    """A method as a network.

    Args:
        network: The network.
        banded: The method with the calls that bands are made of, and more values.
        calls: By layer: the instructions that it is, several for a concatenation; two
            layers for an average of a whole image, sums and their averages. None for
            rows that the caller gives.
        reads: By layer: what it reads from the arena, by instruction and position of
            the argument.
        values: By image: a tensor like it.
        inputs: By input of the method: its image; None if it has no bytes.
        outputs: The same for outputs.
        memory_id: Of the arena.
    """

    network: Network
    banded: LinkedMethod
    calls: tuple[tuple[int, ...], ...]
    reads: tuple[tuple[tuple[int, int], ...], ...]
    values: dict[int, TensorValue]
    inputs: tuple[int | None, ...]
    outputs: tuple[int | None, ...]
    memory_id: int

    def is_split(self, layer: int) -> bool:
        """Whether a layer is one of two for a call."""
        layers, born = self.network.layers, self.network.born
        makers = [born[image] for image, _ in layers[layer].reads]
        return layers[layer].accumulates or any(
            maker >= 0 and layers[maker].accumulates for maker in makers
        )

    def with_rooms(self, method: LinkedMethod, rooms: Mapping[int, int]) -> ExtractedNetwork:
        """This network with strips as long as there is room, by layer, of this method."""
        of_calls: dict[int, int] = {}
        for layer, room in rooms.items():
            for number in self.calls[layer]:  # of several layers if computed twice
                of_calls[number] = min(of_calls.get(number, room), room)
        return replace(self, banded=fitted_for_bands(method, of_calls))


class UnknownNetworkError(Exception):
    """Something of the method cannot be planned by rows; says what."""


def network_of(method: LinkedMethod, core: Core) -> ExtractedNetwork:
    """The network of a method.

    Args:
        method: With planned memory, and prepared calls.
        core: What it runs on.

    Raises:
        UnknownNetworkError: Something of it cannot be planned by rows.
    """
    arenas = method.arenas
    # Memory of the caller is at no fixed distance from the arena.
    if len(arenas) != 1 or method.given:
        raise UnknownNetworkError("its tensors do not lie in one arena")
    if SHARED_ID in arenas or method.state:
        raise UnknownNetworkError("it has state")
    return _Builder(method, core).found(*arenas)


class _Builder:
    """Follows values through a method: each time one is filled it is a new image."""

    def __init__(self, method: LinkedMethod, core: Core) -> None:
        self._method = method
        self._banded = fitted_for_bands(method)
        self._core = core
        self._values: dict[int, TensorValue] = {}
        self._now: dict[tuple[int, int], int] = {}  # by place: the image that is there
        self._layers: list[Layer] = []
        self._calls: list[tuple[int, ...]] = []
        self._reads: list[tuple[tuple[int, int], ...]] = []
        self._images: dict[int, Image] = {}

    def found(self, memory_id: int) -> ExtractedNetwork:
        method = self._method
        places = method.places
        inputs = [self._filled(i) if i in places else None for i in method.inputs]
        for at, image in enumerate(inputs):
            if rows := method.io.port(at, is_input=True).rows:
                self._add((), (), self._given(image, rows))
        for numbers in self._groups():
            self._layer(numbers)
        outputs = [self._image(i) if i in places else None for i in method.outputs]
        kept = [inputs[border.index] for border in method.borders if border.is_kept]
        return ExtractedNetwork(
            network=Network(
                images=self._images,
                layers=tuple(self._layers),
                inputs=frozenset(i for i in inputs if i is not None)
                - {layer.out for layer in self._layers},
                outputs=frozenset(i for i in (*outputs, *kept) if i is not None),
            ),
            banded=self._banded,
            calls=tuple(self._calls),
            reads=tuple(self._reads),
            values=self._values,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            memory_id=memory_id,
        )

    def _given(self, image: int | None, rows: int) -> Layer:
        """The layer of an input of which the caller gives some rows at a time."""
        if image is None or len(self._method.inputs) > 1:
            raise UnknownNetworkError("it is not the only input")
        count = self._images[image].rows
        if not 1 < count >= rows:
            is_image = count > 1
            raise UnknownNetworkError(
                f"it has {count} rows" if is_image else "it is not an image of batch 1"
            )
        return Layer(reads=(), out=image, given=rows)

    def _new(self, value: TensorValue) -> int:
        image = len(self._images)
        self._images[image] = image_of(value)
        self._values[image] = value
        return image

    def _filled(self, index: int) -> int:
        value, place = self._method.values[index], self._method.places[index]
        if not isinstance(value, TensorValue):
            raise UnknownNetworkError("it has values that are no tensors")
        image = self._new(value)
        # What it overlaps is gone.
        self._now = {
            (begin, end): other
            for (begin, end), other in self._now.items()
            if end <= place.begin or place.end <= begin
        }
        self._now[place.begin, place.end] = image
        return image

    def _image(self, index: int) -> int:
        place = self._method.places[index]
        image = self._now.get((place.begin, place.end))
        if image is None:
            raise UnknownNetworkError("it reads a part of a tensor, or several at once")
        return image

    def _groups(self) -> list[list[tuple[int, LinkedCall]]]:
        """The calls of each layer: several where they fill parts of a tensor."""
        groups: list[list[tuple[int, LinkedCall]]] = []
        origins, last = self._method.origins, None
        for number, call in enumerate(self._method.instructions):
            if not isinstance(call, LinkedCall):
                raise UnknownNetworkError("it has branches, or moves values")
            if call.prepared is None:
                raise UnknownNetworkError(f"{call.operator} is not prepared")
            accesses = Counter(call.accesses)
            this = origins[number], call.outs
            is_part = this == last and Access.UPDATES in accesses
            known = _PART if is_part else _KNOWN
            written = accesses[Access.FILLS] + accesses[Access.UPDATES]
            if written != 1 or not known.issuperset(accesses):
                raise UnknownNetworkError(f"{call.operator} is not prepared")
            if is_part:
                groups[-1].append((number, call))
            else:
                groups.append([(number, call)])
                last = this
        return groups

    def _layer(self, calls: list[tuple[int, LinkedCall]]) -> None:
        """Add the layers of some calls that fill a tensor."""
        core = self._core
        reads: list[tuple[int, int]] = []
        images: list[int] = []
        windows: list[Window] = []
        by_rows = True
        numbers = tuple(number for number, _ in calls)
        whole = [RowCall.of(self._method, call) for _, call in calls]
        banded = [RowCall.of(self._banded, self._banded.call(number)) for number in numbers]
        for number, call in zip(numbers, banded, strict=True):
            reads += [(number, position) for _, position in call.reads]
            images += [self._image(index) for index, _ in call.reads]
            found = windows_of(call)
            windows += found or ()
            by_rows = by_rows and found is not None
        by_rows = by_rows and bool(reads)  # rows of nothing are no rows
        first = calls[0][1]
        is_average = pixels_of(first) is not None and len(images) == 1
        if is_average:
            images = [self._sums(numbers, tuple(reads), images[0])]
        out = self._filled(next(i for i, a in first.arguments if a is Access.FILLS))
        count = self._images[out].rows
        if not by_rows:
            sizes = [self._images[image].rows for image in images]
            windows = [Axis(size=size, out=count, kernel=size) for size in sizes]
        header = banded[0].header
        self._add(
            numbers,
            tuple(reads),
            Layer(
                reads=tuple(zip(images, windows, strict=True)),
                out=out,
                scratch_bytes=sum(call.scratch_bytes for call in banded),
                whole_scratch_bytes=sum(call.scratch_bytes for call in whole),
                by_rows=by_rows,
                in_place=by_rows
                and len(calls) == 1
                and all(self._images[i] == self._images[out] for i in images)
                and whole[0].may_write_over_input,
                costs=tuple(cost for call in banded for cost in costs_of(call, core, count)),
                at_end=by_rows
                and reads[0][0] == numbers[0]
                and is_spread(first, (self._images[images[0]], self._images[out])),
                over=header.overlap(self._images[images[0]], self._images[out])
                if header and by_rows and len(banded) == len(images) == 1
                else None,
                scratch_saving=header.scratch_saving(core, count, banded[0].weights)
                if header and by_rows and len(banded) == 1
                else None,
                whole=0  # sums and averages are one call
                if is_average
                else sum(whole_cost(call, core, count) for call in whole),
            ),
        )

    def _sums(
        self, numbers: tuple[int, ...], reads: tuple[tuple[int, int], ...], image: int
    ) -> int:
        """The layer that adds up the rows of an image; the image of its sums."""
        value = self._values[image]
        call = self._method.call(numbers[0])
        channels = channels_of(call)
        sums = self._new(replace(value, dtype=ScalarType.Int, sizes=(channels,), dim_order=(0,)))
        rows = self._images[image].rows
        self._add(
            numbers,
            reads,
            Layer(
                reads=((image, Axis(size=rows, out=1, kernel=rows)),),
                out=sums,
                accumulates=True,
                costs=(sums_cost(value.numel, rows, self._core),),
                whole=whole_cost(RowCall.of(self._method, call), self._core, 1),
            ),
        )
        return sums

    def _add(
        self, calls: tuple[int, ...], reads: tuple[tuple[int, int], ...], layer: Layer
    ) -> None:
        # A tensor may be read in another shape than it was filled in.
        if any(w.size > self._images[image].rows for image, w in layer.reads):
            raise UnknownNetworkError("it reads more rows of an image than it has")
        self._calls.append(calls)
        self._reads.append(reads)
        self._layers.append(layer)


# Where to cut a network into segments: the least peak, then the least cost.
#
# Both are exact for the given order of layers, by dynamic programming over cut points.

# Chosen by hand, as what follows: with 1 or 8, arenas of DS-CNN, ResNet-8, MobileNetV1 and of
# `unet` and `rgb` of tests/data/held_out stay the same, on an M4 and on an M55.
_SHORT: Final = 3
"""Layers of segments that give a first limit."""
# With 2 alone these arenas stay the same, and the calls get more: 168 in place of 106 for
# MobileNetV1 on an M55.
_BANDS: Final = (2, 4, 8, 16)
"""Rows per call that are tried where there is room."""
# The arena of MobileNetV1 on an M4 was 30,160 bytes before there were such segments, and 28,416
# with them. Now other bounds, on these and on limits, from 0 to 10, change none of these arenas.
_MOST_OVER_INPUT: Final = 6
"""Segments that are tried by rows to make room."""
_MOST_LIMITS: Final = 3
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
            # Short segments first: what they need bounds longer ones, of which most need more and
            # are then never made whole.
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
            # Layers before a call that cannot go by rows are in no segment with it.
            if one is None:
                return
            for found in (one, narrowed(self._network, one)):
                if found is not None and found.peak_bytes <= limit:
                    yield found
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
            # Limits of segments are those of bands of one row: between two of them wider bands may
            # be cheap enough. `auto` of MobileNetV1 0.25 on an M55 took about 30 KB in place of
            # 36,864 bytes.
            wider = self._limits_between(limits[at - 1], limits[at])
            return [*wider, limits[at]][self._first_cheap(wider, most_setup)]
        return limits[min(at, len(limits) - 1)]

    def _first_cheap(self, limits: Sequence[float], most_setup: float) -> int:
        """Which of some limits, the least first, is cheap enough; their count if none.

        The larger a limit, the fewer calls.
        """
        return bisect_left(
            limits, x=True, key=lambda b: sum(s.setup for s in self.cuts(b)) <= most_setup
        )

    def _limits_between(self, low: float, high: float) -> list[float]:
        """What the segments for a limit need in wider bands, if less than another."""
        peaks = {
            wider.peak_bytes
            for one in self.cuts(low)
            if len(one.schedules[0].steps) > 1
            for band in _BANDS
            if (wider := self._in_bands(one, band))
        }
        return sorted(peak for peak in peaks if low < peak < high)

    def limits(self) -> list[float]:
        """All limits that differ in which segments there may be, the least first."""
        low = self.least_peak()
        peaks = {s.peak_bytes for found in self._ending for s in found}
        return [low, *sorted(peak for peak in peaks if peak > low)]

    def cuts(self, limit_bytes: float) -> tuple[Segment, ...]:
        """Segments that each need no more than a limit, at the least cost."""
        best: list[tuple[float, Segment | None]] = [(0, None)]
        for ending in self._ending:
            choices = [
                (best[s.first][0] + s.setup, s.last - s.first, s)
                for s in ending
                if s.peak_bytes <= limit_bytes
            ]
            # Shorter segments among those that cost as much.
            cost, _, chosen = min(choices, key=lambda choice: choice[:2], default=(inf, 0, None))
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
        # A bound is not always reached: the next one may give a smaller arena.
        for limit in [b for b in self.limits() if b > limit_bytes][:_MOST_LIMITS]:
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
        for number in largest[:_MOST_OVER_INPUT]:
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
        for band in (*reversed(_BANDS), 1) if len(one.schedules[0].steps) == 1 else ():
            found = segment(self._network, one.first, one.last, band=band, descends=True)
            if found is None:
                return None
            if found.peak_bytes <= limit and any(w.distances for w in found.schedules):
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
        if len(one.schedules[0].steps) == 1:
            return one
        found = one
        for band in (1, *_BANDS):
            wider = self._in_bands(one, band, descends=True)
            if wider is None or wider.peak_bytes > limit:
                break
            # In both directions, a band of one row is the segment that there is.
            if band == 1 or wider.setup < found.setup:
                found = wider
        return found

    def _in_bands(self, one: Segment, band: int, *, descends: bool = False) -> Segment | None:
        """The segment in bands of other rows, in as much scratch memory."""
        found = segment(self._network, one.first, one.last, band=band, descends=descends)
        if found is None or not one.narrow:
            return found
        return narrowed(self._network, found) or found
